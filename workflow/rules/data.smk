# Raw files -> one table of texts: cleaned, near-duplicates collapsed, cross-posts dropped, and
# split into the contamination, inference and evaluation sections.
rule examples:
    # By content, which is among the settings: a date tells neither an older file nor a copy.
    input:
        ancient(lambda wildcards: sources.files(config["datasets"][wildcards.dataset])),
    output:
        examples=paths.EXAMPLES,
        duplicates=paths.DUPLICATES,
        card=report(
            paths.DATA_CARD,
            caption="../report/data.rst",
            category="Data",
            labels={"dataset": "{dataset}"},
        ),
    log:
        "results/logs/examples/{dataset}.log",
    priority: LOOK_FIRST
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=RESOURCES.amount(8000, texts=4000),
        runtime=RESOURCES.amount(60, texts=20),
    params:
        settings=settings("examples", "dataset"),
    shell:
        "exec python -m mamushi examples --cache results/downloads/{wildcards.dataset}"
        " --examples {output.examples:q} --duplicates {output.duplicates:q} --card {output.card:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
