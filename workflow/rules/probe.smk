# What the models say, judged by the gold standard, and how fast unlearned ones relearn. An
# unlearned model is asked in the job that makes it, so that none needs to be kept.


use rule unlearn as unlearn_and_probe with:
    output:
        perplexity=paths.PERPLEXITY_UNLEARNED,
        log_table=paths.UNLEARNED_LOG,
        card=paths.UNLEARNED_CARD,
        continuations=paths.CONTINUATIONS,
        relearning=paths.RELEARNING,
    wildcard_constraints:
        dataset=only(config["probe"]["datasets"]),
        model=only(config["probe"]["models"]),
        seed=only(str(seed) for seed in config["probe"]["seeds"]),
        unlearner=only(config["probe"]["unlearners"]),
        selector=only(config["probe"]["selectors"]),
        beta=only([paths.beta(config["probe"]["budget"])]),
    params:
        settings=params(
            settings.unlearn_and_probe, "dataset", "model", "seed", "unlearner"
        ),
        trunk=lambda wildcards: paths.TRUNK.format(**wildcards),
        tensors=kept_tensors,


ruleorder: unlearn_and_probe > unlearn


rule generate:
    input:
        trained=tensors_of,
        model_card=of_endpoint(paths.MODEL_CARD),
    output:
        out=paths.CONTINUATIONS_ENDPOINT,
    log:
        "results/logs/generate/{dataset}/{model}/seed{seed}/{endpoint}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 20, 5),
    params:
        settings=params(settings.generate, "model", "endpoint"),
    shell:
        command("generate")


# A model that never saw the domain learns it too: what relearning is compared with.
rule relearn:
    input:
        trained=paths.TRAINED.replace("{endpoint}", "gold"),
        examples=made(paths.EXAMPLES),
        tokens=base_of(paths.TOKENS),
        model_card=base_of(paths.MODEL_CARD),
    output:
        out=paths.RELEARNING_GOLD,
    log:
        "results/logs/relearn/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 20, 5),
    params:
        settings=params(settings.relearn, "model", "seed"),
    shell:
        command("relearn")


# The gold standard reads what all models of a run said.
rule judge:
    input:
        continuations=lambda wildcards: grid.continuations(config, {**wildcards}),
        trained=paths.TRAINED.replace("{endpoint}", "gold"),
        model_card=base_of(paths.MODEL_CARD),
    output:
        out=paths.GENERATIONS,
    log:
        "results/logs/judge/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 20, 5),
    params:
        settings=params(settings.judge, "dataset", "model", "seed"),
    shell:
        command("judge")


rule probes:
    input:
        lambda wildcards: probe_results(),
    output:
        generations=report(
            paths.TABLE_CSV.replace("{table}", "generations"),
            caption="../report/generations.rst",
            category="Unlearning",
            labels={"table": "Generations"},
        ),
        relearning=report(
            paths.TABLE_CSV.replace("{table}", "relearning"),
            caption="../report/relearning_table.rst",
            category="Unlearning",
            labels={"table": "Relearning"},
        ),
        parquet=expand(paths.TABLE, table=settings.PROBE_TABLES),
    log:
        "results/logs/probes.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.probes),
    shell:
        command("probes", out_folder="$(dirname {output.generations:q})")
