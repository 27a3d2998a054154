# Models that are kept are asked at any time: what they say, how fast they learn the domain, what they
# make of single texts. A new question is a line in `config.questions`,
# its function in `stages._questions`, and the schemas of its tables.


for name, question in questions.QUESTIONS.items():

    rule:
        name:
            name
        input:
            trained=tensors_of(),
            unlearned=branch(
                lambda wildcards: arms.Arm.parse(wildcards.arm).unlearner is not None,
                then=paths.TRAINED,
            ),
            examples=made(paths.EXAMPLES) if question.texts else [],
            tokens=of_arm(paths.TOKENS) if question.texts else [],
            model_card=of_arm(paths.MODEL_CARD),
        output:
            **answers_of("{arm}", [name]),
        log:
            f"results/logs/{name}/{{dataset}}/{{model}}/seed{{seed}}/{{arm}}.log",
        threads: RESOURCES.cores(8)
        resources:
            gpu=RESOURCES.gpus,
            mem_mb=RESOURCES.model_memory,
            runtime=RESOURCES.of_model(*question.minutes),
        params:
            settings=params("ask", "model", "seed", "arm", asked=[name]),
        shell:
            command("ask")


# The gold standard reads what all models of a run said.
rule judge:
    input:
        generations=lambda wildcards: grid.generations(config, {**wildcards}),
        trained=paths.TRAINED.replace("{arm}", "gold"),
        model_card=of_arm(paths.MODEL_CARD, "gold"),
    output:
        out=paths.JUDGED,
    log:
        "results/logs/judge/{dataset}/{model}/seed{seed}.log",
    threads: RESOURCES.cores(8)
    resources:
        gpu=RESOURCES.gpus,
        mem_mb=RESOURCES.model_memory,
        runtime=RESOURCES.of_model(30, 20, 5),
    params:
        settings=params("judge", *CELL, arm="gold"),
    shell:
        command("judge")
