# What is left in a model after a deletion, told against gold. A model that was retrained or unlearned
# is not kept, and so is made once more for this, and deleted when all has been asked of it.


use rule retrain as left_retrain with:
    output:
        perplexity=temp(paths.LEFT_PERPLEXITY.replace("{unlearner}", "retraining")),
        nll=temp(paths.LEFT_NLL.replace("{unlearner}", "retraining")),
        log_table=temp(paths.LEFT_LOG.replace("{unlearner}", "retraining")),
        card=temp(paths.LEFT_CARD.replace("{unlearner}", "retraining")),
        tensors=temp(paths.LEFT_TENSORS.replace("{unlearner}", "retraining")),
    log:
        "results/logs/left_retrain/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    group:
        None


use rule unlearn as left_unlearn with:
    output:
        perplexity=temp(paths.LEFT_PERPLEXITY),
        log_table=temp(paths.LEFT_LOG),
        card=temp(paths.LEFT_CARD),
        tensors=temp(paths.LEFT_TENSORS),
        continuations=[],
        relearning=[],
    log:
        "results/logs/left_unlearn/{dataset}/{model}/seed{seed}/{unlearner}/{selector}/beta{beta}.log",
    wildcard_constraints:
        unlearner=only(config["unlearners"]),
    group:
        None


# What brings the domain back: fine-tuning on a few texts, of either domain or of neither, and
# rounded weights. Gold and retrained models are opened alike.
rule gold_relapse:
    input:
        trained=paths.TRAINED.replace("{endpoint}", "gold"),
        unlearned=[],
        examples=made(paths.EXAMPLES),
        tokens=base_of(paths.TOKENS),
        model_card=base_of(paths.MODEL_CARD),
    output:
        out=paths.RELAPSES_GOLD,
        nll=paths.SAID_OF_GOLD,
    log:
        "results/logs/gold_relapse/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(60, 40, 10),
    params:
        settings=params(settings.relapse, "model", "seed"),
    shell:
        command("relapse")


use rule gold_relapse as retrained_relapse with:
    input:
        trained=paths.LEFT_TENSORS.replace("{unlearner}", "retraining"),
        unlearned=[],
        examples=made(paths.EXAMPLES),
        tokens=base_of(paths.TOKENS),
        model_card=base_of(paths.MODEL_CARD),
    output:
        out=paths.RELAPSES.replace("{unlearner}", "retraining"),
        nll=paths.SAID_OF.replace("{unlearner}", "retraining"),
    log:
        "results/logs/retrained_relapse/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",


use rule gold_relapse as unlearned_relapse with:
    input:
        trained=start_tensors,
        unlearned=paths.LEFT_TENSORS,
        examples=made(paths.EXAMPLES),
        tokens=of_start(paths.TOKENS),
        model_card=of_start(paths.MODEL_CARD),
    output:
        out=paths.RELAPSES,
        nll=paths.SAID_OF,
    log:
        "results/logs/unlearned_relapse/{dataset}/{model}/seed{seed}/{unlearner}/{selector}/beta{beta}.log",
    wildcard_constraints:
        unlearner=only(config["unlearners"]),
    params:
        settings=params(settings.relapse_unlearned, "model", "seed"),


# Tasks of lm-evaluation-harness, where the configuration names any.
rule tasks:
    input:
        trained=tensors_of,
        unlearned=[],
        model_card=of_endpoint(paths.MODEL_CARD),
    output:
        out=paths.TASKS_ENDPOINT,
    log:
        "results/logs/tasks/{dataset}/{model}/seed{seed}/{endpoint}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        # The harness asks models that one GPU holds.
        gpu=1,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(60, 60, 30),
    params:
        settings=params(settings.tasks, "model", "endpoint"),
    shell:
        command("tasks")


use rule tasks as retrained_tasks with:
    input:
        trained=paths.LEFT_TENSORS.replace("{unlearner}", "retraining"),
        unlearned=[],
        model_card=base_of(paths.MODEL_CARD),
    output:
        out=paths.TASKS.replace("{unlearner}", "retraining"),
    log:
        "results/logs/retrained_tasks/{dataset}/{model}/seed{seed}/{selector}/beta{beta}.log",
    params:
        settings=params(settings.tasks_retrained, "model"),


use rule tasks as unlearned_tasks with:
    input:
        trained=start_tensors,
        unlearned=paths.LEFT_TENSORS,
        model_card=of_start(paths.MODEL_CARD),
    output:
        out=paths.TASKS,
    log:
        "results/logs/unlearned_tasks/{dataset}/{model}/seed{seed}/{unlearner}/{selector}/beta{beta}.log",
    wildcard_constraints:
        unlearner=only(config["unlearners"]),
    params:
        settings=params(settings.tasks_unlearned, "model"),


rule left_models:
    input:
        examples=lambda wildcards: [
            made_of(paths.EXAMPLES, dataset)
            for dataset in dict.fromkeys(
                [*GRID["datasets"], *grid.looked_at(config)["datasets"]]
            )
        ],
        measured=lambda wildcards: grid.left_models(config),
    output:
        klom=report(
            paths.TABLE_CSV.replace("{table}", "klom"),
            caption="../report/klom.rst",
            category="What is left",
            labels={"table": "Distance from gold models"},
        ),
        tell_models=report(
            paths.TABLE_CSV.replace("{table}", "tell_models"),
            caption="../report/tell_models.rst",
            category="What is left",
            labels={"table": "Telling models apart"},
        ),
        name_texts=report(
            paths.TABLE_CSV.replace("{table}", "name_texts"),
            caption="../report/name_texts.rst",
            category="What is left",
            labels={"table": "Naming removed texts"},
        ),
        relapse=report(
            paths.TABLE_CSV.replace("{table}", "relapse"),
            caption="../report/relapse.rst",
            category="What is left",
            labels={"table": "How it comes back"},
        ),
        utility=report(
            paths.TABLE_CSV.replace("{table}", "utility"),
            caption="../report/utility.rst",
            category="What is left",
            labels={"table": "Utility by subgroup"},
        ),
        tasks=[
            report(
                paths.TABLE_CSV.replace("{table}", table),
                caption="../report/utility_tasks.rst",
                category="What is left",
                labels={"table": "Utility on tasks"},
            )
            for table in left_model_tables()
            if table == "utility_tasks"
        ],
        parquet=expand(paths.TABLE, table=left_model_tables()),
    log:
        "results/logs/left_models.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.left_models),
    shell:
        command("left-models", out_folder="$(dirname {output.klom:q})")
