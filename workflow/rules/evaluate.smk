# Perplexity of the models that are kept, on the static held-out sets of both domains. Retrained
# models are measured where they are trained: see retrain.smk.


EVALUATE = params(settings.evaluate, "model", "endpoint")


rule evaluate:
    input:
        shards=shards(paths.NLL_ENDPOINT, EVALUATE),
        trained=tensors_of,
        examples=made(paths.EXAMPLES),
        tokens=of_endpoint(paths.TOKENS),
        model_card=of_endpoint(paths.MODEL_CARD),
    output:
        out=paths.PERPLEXITY_ENDPOINT,
        nll=paths.NLL_ENDPOINT,
    log:
        "results/logs/evaluate/{dataset}/{model}/seed{seed}/{endpoint}.log",
    group:
        packed("evaluate", "endpoint", ["base", "contaminated", "gold", "beta0"])
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        gpu=GPUS,
        pack=1,
        mem_mb=MODEL_MEMORY,
        runtime=minutes(30, 20, 5, texts=minutes_to_measure, shared=["evaluate"]),
    params:
        settings=EVALUATE,
        shard=SHARD,
    shell:
        command("evaluate", shards="{input.shards:q}")


use rule evaluate as evaluate_shard with:
    output:
        out=[],
        nll=temp(paths.SHARD.replace("{table}", "{endpoint}")),
    log:
        "results/logs/evaluate/{dataset}/{model}/seed{seed}/{endpoint}/{scatteritem}.log",


# Who pays: the change of the perplexity's parts, by what is known of the texts.
rule subgroups:
    input:
        examples=lambda wildcards: [
            made_of(paths.EXAMPLES, dataset) for dataset in GRID["datasets"]
        ],
        nll=lambda wildcards: grid.nlls(GRID),
    output:
        csv=report(
            paths.TABLE_CSV.replace("{table}", "subgroups"),
            caption="../report/subgroups.rst",
            category="Tables",
            labels={"table": "Who pays"},
        ),
        parquet=paths.TABLE.replace("{table}", "subgroups"),
    log:
        "results/logs/subgroups.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(lambda config: settings.subgroups(GRID)),
    shell:
        command("subgroups", out_folder="$(dirname {output.csv:q})")
