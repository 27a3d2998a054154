# A fresh base model, fine-tuned by `finetune` of stages/train.py on the inference section less a removal
# list, see config/arms.py. Log, card, perplexity and NLL stay; tensors do with `keep_checkpoints`.
rule retrain:
    input:
        arm_files(
            "examples", "model_card", "tokens", "removal", "spans", arm=arms.RETRAINED
        ),
    output:
        **trained_files(arms.RETRAINED),
    log:
        "results/logs/retrain/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("retrain"),  # mamushi_cluster/resources.py
    params:
        settings=settings("finetune", *CELL, role="retrained"),
        evaluation=evaluation_of(arms.RETRAINED),
    shell:
        "exec python -m mamushi finetune --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --removal {input.removal:q} --spans {input.spans:q}"
        " --tensors {output.tensors:q} --log-table {output.log_table:q} --card {output.card:q}"
        " --evaluation {params.evaluation:q} --perplexity {output.perplexity:q}"
        " --nll {output.nll:q} --settings {params.settings:q} > {log:q} 2>&1"
