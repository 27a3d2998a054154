# What the scores and the embeddings say before any retraining: how good the ranking is, what each
# budget can be expected to do, how the two domains lie to each other.


rule calibrate:
    input:
        examples=made(paths.EXAMPLES),
        embeddings=paths.EMBEDDINGS,
        scores=paths.SCORES.replace("{selector}", RATIO),
        refits=refits_of(RATIO),
    output:
        out=paths.CALIBRATED,
        checks=paths.CALIBRATION,
    log:
        "results/logs/calibrate/{dataset}/{model}/seed{seed}.log",
    localrule: True
    params:
        settings=params("calibrate", *CELL),
    shell:
        command("calibrate")


rule frontier:
    input:
        scores=expand(paths.SCORES, selector=RANKED, allow_missing=True),
        ratio=paths.SCORES.replace("{selector}", RATIO),
        refits=refits_of(RATIO),
        calibrated=paths.CALIBRATED,
    output:
        out=paths.FRONTIER,
    log:
        "results/logs/frontier/{dataset}/{model}/seed{seed}.log",
    resources:
        mem_mb=RESOURCES.of_model(4000, 16000),
        runtime=RESOURCES.of_model(30, 60),
    params:
        selectors=RANKED,
        settings=params("frontier", *CELL),
    shell:
        command("frontier")


# What retraining is predicted to do, for texts that a language model reads.
rule predict:
    input:
        examples=made(paths.EXAMPLES),
        tokens=of_arm(paths.TOKENS, "gold"),
        scores=RANKINGS,
    output:
        out=paths.PREDICTED,
    log:
        "results/logs/predict/{dataset}/{model}/seed{seed}.log",
    localrule: True
    params:
        selectors=GRID["selectors"],
        settings=params("predict", *CELL),
    shell:
        command("predict")


rule diagnostics:
    input:
        scores=expand(paths.SCORES, selector=SCORED, allow_missing=True),
        calibrated=paths.CALIBRATED,
    output:
        out=paths.DIAGNOSTICS,
    log:
        "results/logs/diagnostics/{dataset}/{model}/seed{seed}.log",
    localrule: True
    params:
        selectors=SCORED,
        settings=params("diagnostics", *CELL),
    shell:
        command("diagnostics")


rule confounds:
    input:
        examples=made(paths.EXAMPLES),
        duplicates=made(paths.DUPLICATES),
        scores=expand(paths.SCORES, selector=SCORED, allow_missing=True),
    output:
        out=paths.CONFOUNDS,
    log:
        "results/logs/confounds/{dataset}/{model}/seed{seed}.log",
    localrule: True
    params:
        selectors=SCORED,
        settings=params("confounds", *CELL),
    shell:
        command("confounds")


rule geometry:
    input:
        embeddings=paths.EMBEDDINGS,
    output:
        out=paths.GEOMETRY,
    log:
        "results/logs/geometry/{dataset}/{model}/seed{seed}.log",
    threads: RESOURCES.cores(8)
    resources:
        mem_mb=RESOURCES.of_model(4000, 16000),
        runtime=RESOURCES.of_model(30, 60),
    params:
        settings=params("geometry", *CELL),
    shell:
        command("geometry")


# What the jobs of the scores say that they took.
TIMED = list(dict.fromkeys(itertools.chain(*timed(config).values())))


rule runtime:
    input:
        scores=expand(paths.SCORES, selector=TIMED, allow_missing=True),
    output:
        out=paths.RUNTIME,
    log:
        "results/logs/runtime/{dataset}/{model}/seed{seed}.log",
    localrule: True
    params:
        scored=TIMED,
        logs=lambda wildcards: [
            SCORE_LOG.format(**wildcards, selector=name) for name in TIMED
        ],
        settings=params("runtime", *CELL),
    shell:
        command("runtime")


rule ranking:
    input:
        examples=made(paths.EXAMPLES),
        scores=partial(ranking_of, selector=RANKED),
        refits=refits_of(RANKED),
        stability=expand(paths.STABILITY, selector=RANKED, allow_missing=True),
        tokens=expand(
            paths.TOKENS_SHOWN,
            selector=grid.token_rankings(config, GRID),
            allow_missing=True,
        ),
    output:
        out=report(
            paths.RANKING,
            caption="../report/ranking.rst",
            category="Rankings",
            labels={"dataset": "{dataset}", "model": "{model}", "seed": "{seed}"},
        ),
    log:
        "results/logs/ranking/{dataset}/{model}/seed{seed}.log",
    localrule: True
    params:
        selectors=RANKED,
        refitted=RANKED if REFITTED else [],
        settings=params("ranking", *CELL),
    shell:
        command("ranking")
