# A fresh base model, fine-tuned on the inference section less what the removal list names, and
# measured on the held-out sets before it is let go. Training and measuring share a process, because
# loading the base model and passing billions of trained weights through a file would cost more than
# the measurement; so a retrained model reaches the disk only where `keep_checkpoints` asks for it.


rule retrain:
    input:
        examples=paths.EXAMPLES,
        tokens=base_of(paths.TOKENS),
        card=base_of(paths.MODEL_CARD),
        removal=paths.REMOVAL,
    output:
        tensors=[paths.RETRAINED_TENSORS] if config["keep_checkpoints"] else [],
        perplexity=paths.PERPLEXITY,
        log_table=paths.RETRAINED_LOG,
        card=paths.RETRAINED_CARD,
    log:
        "results/logs/retrain/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    benchmark:
        "results/benchmarks/retrain/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.tsv"
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=1,
        mem_mb=memory(4000, 64000),
        runtime=minutes(60, 240),
    params:
        settings=params(settings.retrain, "dataset", "model", "seed"),
    shell:
        "exec python -m mamushi retrain --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.card:q} --removal {input.removal:q}"
        " --perplexity {output.perplexity:q} --tensors {output.tensors:q}"
        " --log-table {output.log_table:q} --card {output.card:q}"
        " --state {output.card:q}.state"
        " --settings {params.settings:q} > {log:q} 2>&1"
