# The texts of a seed that draws its own: what its jobs read in the place of all examples.
rule draw:
    input:
        examples=paths.EXAMPLES,
    output:
        out=paths.DRAWN,
    log:
        "results/logs/draw/{dataset}/seed{seed}.log",
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("draw", "dataset", "seed"),
    shell:
        "exec python -m mamushi draw --examples {input.examples:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
