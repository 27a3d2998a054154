# `execution.shards`: the files of a corpus are screened by several jobs, and `examples` puts together
# what passed. The rows that pass are the same ones however many jobs there are.
from mamushi_extras.shards.settings import over_shards, shards_of

SHARDS = {name: explained(shards_of, config, name) for name in CORPORA}
SHARDED = [name for name, shards in SHARDS.items() if len(shards) > 1]
PARTS |= {
    name: [
        paths.CORPUS_SCREEN.format(dataset=name),
        paths.SCREEN_CUT.format(dataset=name),
        *expand(paths.PASSED_ROWS, dataset=name, shard=range(len(SHARDS[name]))),
    ]
    for name in SHARDED
}


rule screen_texts:
    input:
        ancient(lambda wildcards: SHARDS[wildcards.dataset][int(wildcards.shard)]),
    output:
        out=temp(paths.SCREEN_TEXTS),
    log:
        "results/logs/screen_texts/{dataset}/{shard}.log",
    wildcard_constraints:
        dataset=only(SHARDED),
    priority: LOOK_FIRST
    conda:
        "../../../envs/mamushi.yaml"
    resources:
        mem_mb=RESOURCES.of_texts(4000, 0),
        runtime=RESOURCES.of_texts(120, 0),
    params:
        settings=settings("screen-texts", "dataset", "shard"),
    shell:
        "exec python -m mamushi screen-texts --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule screen_fit:
    input:
        texts=over_shards(SHARDS, paths.SCREEN_TEXTS),
    output:
        out=paths.CORPUS_SCREEN,
    log:
        "results/logs/screen_fit/{dataset}.log",
    wildcard_constraints:
        dataset=only(SHARDED),
    priority: LOOK_FIRST
    conda:
        "../../../envs/mamushi.yaml"
    resources:
        mem_mb=RESOURCES.of_texts(8000, 0),
        runtime=RESOURCES.of_texts(60, 0),
    params:
        settings=settings("screen-fit", "dataset"),
    shell:
        "exec python -m mamushi screen-fit --texts {input.texts:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule screen_scores:
    input:
        ancient(lambda wildcards: SHARDS[wildcards.dataset][int(wildcards.shard)]),
        screen=paths.CORPUS_SCREEN,
    output:
        out=temp(paths.SCREEN_SCORES),
    log:
        "results/logs/screen_scores/{dataset}/{shard}.log",
    wildcard_constraints:
        dataset=only(SHARDED),
    conda:
        "../../../envs/mamushi.yaml"
    resources:
        mem_mb=RESOURCES.of_texts(4000, 0),
        runtime=RESOURCES.of_texts(240, 0),
    params:
        settings=settings("screen-scores", "dataset", "shard"),
    shell:
        "exec python -m mamushi screen-scores --screen {input.screen:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule screen_cut:
    input:
        scores=over_shards(SHARDS, paths.SCREEN_SCORES),
    output:
        out=paths.SCREEN_CUT,
    log:
        "results/logs/screen_cut/{dataset}.log",
    wildcard_constraints:
        dataset=only(SHARDED),
    conda:
        "../../../envs/mamushi.yaml"
    resources:
        mem_mb=RESOURCES.of_texts(4000, 0),
        runtime=RESOURCES.of_texts(60, 0),
    params:
        settings=settings("screen-cut", "dataset"),
    shell:
        "exec python -m mamushi screen-cut --scores {input.scores:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule screen_pass:
    input:
        ancient(lambda wildcards: SHARDS[wildcards.dataset][int(wildcards.shard)]),
        scores=paths.SCREEN_SCORES,
        cut=paths.SCREEN_CUT,
    output:
        out=temp(paths.PASSED_ROWS),
    log:
        "results/logs/screen_pass/{dataset}/{shard}.log",
    wildcard_constraints:
        dataset=only(SHARDED),
    conda:
        "../../../envs/mamushi.yaml"
    resources:
        mem_mb=RESOURCES.of_texts(4000, 0),
        runtime=RESOURCES.of_texts(120, 0),
    params:
        settings=settings("screen-pass", "dataset", "shard"),
    shell:
        "exec python -m mamushi screen-pass --scores {input.scores:q} --cut {input.cut:q}"
        " --out {output.out:q} --settings {params.settings:q} > {log:q} 2>&1"
