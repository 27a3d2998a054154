# Raw files -> one table of texts: cleaned, near-duplicates collapsed, cross-posts dropped, and
# split into the contamination, inference and evaluation sections.


if REMADE:
    logger.info(
        f"Made again from other files or code: {', '.join(REMADE)}. What depends on that runs "
        "only if the texts turn out to be others."
    )

    checkpoint examples:
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
        conda:
            "../../envs/mamushi.yaml"
        resources:
            mem_mb=of_texts(8000, 4000),
            runtime=of_texts(60, 20),
        params:
            settings=params(settings.examples, "dataset"),
        shell:
            command("examples", cache="results/downloads/{wildcards.dataset}")

else:

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
        conda:
            "../../envs/mamushi.yaml"
        resources:
            mem_mb=of_texts(8000, 4000),
            runtime=of_texts(60, 20),
        params:
            settings=params(settings.examples, "dataset"),
        shell:
            command("examples", cache="results/downloads/{wildcards.dataset}")
