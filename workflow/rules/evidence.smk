# What the scores and the embeddings say before any retraining: how good the ranking is, what each
# budget can be expected to do, how the two domains lie to each other.


rule calibrate:
    input:
        examples=texts_of_seed,
        embeddings=paths.EMBEDDINGS,
        scores=paths.SCORES.replace("{selector}", RATIO),
        refits=refits_of(RATIO),
    output:
        out=paths.CALIBRATED,
        checks=paths.CALIBRATION,
    log:
        "results/logs/calibrate/{dataset}/{model}/seed{seed}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("calibrate", *CELL),
    shell:
        "exec python -m mamushi calibrate --examples {input.examples:q}"
        " --embeddings {input.embeddings:q} --scores {input.scores:q} --refits {input.refits:q}"
        " --out {output.out:q} --checks {output.checks:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule frontier:
    input:
        examples=texts_of_seed,
        scores=expand(paths.SCORES, selector=RANKED, allow_missing=True),
        ratio=paths.SCORES.replace("{selector}", RATIO),
        refits=refits_of(RATIO),
        calibrated=paths.CALIBRATED,
    output:
        out=paths.FRONTIER,
    log:
        "results/logs/frontier/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=RESOURCES.amount(4000, 16000),
        runtime=RESOURCES.amount(30, 60),
    params:
        settings=settings("frontier", *CELL),
    shell:
        "exec python -m mamushi frontier --examples {input.examples:q}"
        " --scores {input.scores:q} --ratio {input.ratio:q} --refits {input.refits:q}"
        " --calibrated {input.calibrated:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule describe:
    input:
        scores=expand(
            paths.SCORES, selector=described_selectors(config), allow_missing=True
        ),
        calibrated=paths.CALIBRATED,
    output:
        diagnostics=paths.DIAGNOSTICS,
    log:
        "results/logs/describe/{dataset}/{model}/seed{seed}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=settings("describe", *CELL),
    shell:
        "exec python -m mamushi describe --scores {input.scores:q}"
        " --calibrated {input.calibrated:q} --diagnostics {output.diagnostics:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"


rule geometry:
    input:
        embeddings=paths.EMBEDDINGS,
    output:
        out=paths.GEOMETRY,
    log:
        "results/logs/geometry/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: RESOURCES.cores(8)
    resources:
        mem_mb=RESOURCES.amount(4000, 16000),
        runtime=RESOURCES.amount(30, 60),
    params:
        settings=settings("geometry", *CELL),
    shell:
        "exec python -m mamushi geometry --embeddings {input.embeddings:q} --out {output.out:q}"
        " --settings {params.settings:q} > {log:q} 2>&1"
