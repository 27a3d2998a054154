# Raw files -> one table of texts: cleaned, near-duplicates collapsed, cross-posts dropped, and
# split into the contamination, inference and evaluation sections.


rule examples:
    # By content, which is among the settings: a date tells neither an older file nor a copy.
    input:
        ancient(lambda wildcards: files(config["datasets"][wildcards.dataset])),
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
    resources:
        mem_mb=RESOURCES.of_texts(8000, 4000),
        runtime=RESOURCES.of_texts(60, 20),
    params:
        settings=params("examples", "dataset"),
    shell:
        command("examples", cache="results/downloads/{wildcards.dataset}")


if REMADE:
    logger.info(
        f"Made again from other files or code: {', '.join(REMADE)}. What depends on that runs "
        "only if the texts turn out to be others."
    )
    internals.make_checkpoint(workflow, checkpoints, "examples")
