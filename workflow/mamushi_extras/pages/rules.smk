# The page to browse a run's ranking. It has the grid's selectors, and opens with the one to act on.
OF_EVIDENCE.append(paths.RANKING)


rule ranking:
    input:
        examples=texts_of_seed,
        # Of a corpus that nobody labelled the posterior.
        scores=lambda wildcards: expand(
            (
                paths.POSTERIOR
                if sources.is_unlabelled(DATASETS[wildcards.dataset])
                else paths.SCORES
            ),
            selector=RANKED,
            allow_missing=True,
        ),
        refits=refits_of(*RANKED),
        manifests=expand(
            paths.MANIFEST,
            selector=RANKED,
            beta=paths.beta(grid.budgets(config)[0]),
            allow_missing=True,
        ),
    output:
        out=report(
            paths.RANKING,
            caption="../../report/ranking.rst",
            category="Rankings",
            labels={"dataset": "{dataset}", "model": "{model}", "seed": "{seed}"},
        ),
    log:
        "results/logs/ranking/{dataset}/{model}/seed{seed}.log",
    localrule: True
    conda:
        "../../../envs/mamushi.yaml"
    params:
        settings=settings("ranking", *CELL),
    shell:
        "exec python -m mamushi ranking --examples {input.examples:q} --scores {input.scores:q}"
        " --refits {input.refits:q} --manifests {input.manifests:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
