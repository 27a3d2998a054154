# A fresh base model, fine-tuned on the inference section less what the removal list names, and
# measured on the held-out sets before it is let go. Training and measuring share a process, because
# loading the base model and passing billions of trained weights through a file would cost more than
# the measurement; so a retrained model reaches the disk only where `keep_checkpoints` asks for it.


rule retrain:
    input:
        examples=made(paths.EXAMPLES),
        tokens=base_of(paths.TOKENS),
        model_card=base_of(paths.MODEL_CARD),
        removal=paths.REMOVAL,
        weights=taken("downweight"),
        spans=taken("mask"),
    output:
        perplexity=paths.PERPLEXITY,
        nll=paths.NLL,
        log_table=paths.RETRAINED_LOG,
        card=paths.RETRAINED_CARD,
    log:
        "results/logs/retrain/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    group:
        packed("retrain", "beta", retrained_betas())
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        pack=1,
        mem_mb=MODEL_MEMORY,
        runtime=TRAINING_MINUTES,
    params:
        settings=params(settings.retrain, "dataset", "model", "seed"),
        tensors=kept_tensors,
    shell:
        command("retrain", tensors="{params.tensors:q}")
