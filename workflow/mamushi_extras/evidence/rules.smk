# What scores tell beside what the paper asks of them: what retraining is predicted to do, and how
# alike the selectors rank.
from mamushi_extras.evidence.stages import foreseen


# For texts that a language model reads.
rule predict:
    input:
        arm_files("examples", "tokens", arm="gold"),
        scores=[grid.ranking_pattern(config, name) for name in foreseen(config)],
    output:
        out=paths.PREDICTED,
    log:
        "results/logs/predict/{dataset}/{model}/seed{seed}.log",
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("predict", *CELL),
    shell:
        "exec python -m mamushi predict --examples {input.examples:q} --tokens {input.tokens:q}"
        " --scores {input.scores:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
