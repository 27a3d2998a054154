# The fine-tunes that all selectors of a run share. Contaminated is trained on the contamination
# section and does the embedding; beta 0 and gold, the two ends of every curve, on the inference
# section with and without its forget texts.
rule endpoint:
    input:
        arm_files("examples", "model_card", "tokens", arm="{role}"),
    output:
        **trained_files("{role}", is_kept=True),
    log:
        "results/logs/endpoint/{dataset}/{model}/seed{seed}/{role}.log",
    wildcard_constraints:
        role="contaminated|gold|beta0",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        **on_gpu("endpoint"),
    params:
        settings=settings("finetune", *CELL, "role"),
    shell:
        "exec python -m mamushi finetune --examples {input.examples:q} --tokens {input.tokens:q}"
        " --model-card {input.model_card:q} --tensors {output.tensors:q}"
        " --log-table {output.log_table:q} --card {output.card:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
