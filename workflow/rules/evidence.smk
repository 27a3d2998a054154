# What the scores and the embeddings say before any retraining: how good the ranking is, what each
# budget can be expected to do, how the two domains lie to each other.


rule calibrate:
    input:
        scores=paths.SCORES.replace("{selector}", config["removal"]["ratio"]),
        refits=paths.REFITS.replace("{selector}", config["removal"]["ratio"]),
    output:
        out=paths.CALIBRATED,
        checks=paths.CALIBRATION,
    log:
        "results/logs/calibrate/{dataset}/{model}/seed{seed}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.calibrate, "dataset", "model", "seed"),
    shell:
        command("calibrate")


rule frontier:
    input:
        examples=made(paths.EXAMPLES),
        scores=expand(paths.SCORES, selector=GRID["selectors"], allow_missing=True),
        ratio=paths.SCORES.replace("{selector}", config["removal"]["ratio"]),
        refits=paths.REFITS.replace("{selector}", config["removal"]["ratio"]),
        calibrated=paths.CALIBRATED,
    output:
        out=paths.FRONTIER,
    log:
        "results/logs/frontier/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    resources:
        mem_mb=memory(4000, 16000),
        runtime=minutes(30, 60),
    params:
        selectors=GRID["selectors"],
        settings=params(settings.frontier, "dataset", "model", "seed"),
    shell:
        command("frontier")


rule diagnostics:
    input:
        scores=expand(paths.SCORES, selector=SCORED, allow_missing=True),
    output:
        out=paths.DIAGNOSTICS,
    log:
        "results/logs/diagnostics/{dataset}/{model}/seed{seed}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        selectors=SCORED,
        settings=params(settings.diagnostics, "dataset", "model", "seed"),
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
    conda:
        "../../envs/mamushi.yaml"
    params:
        selectors=SCORED,
        settings=params(settings.confounds, "dataset", "model", "seed"),
    shell:
        command("confounds")


rule geometry:
    input:
        embeddings=paths.EMBEDDINGS,
    output:
        out=paths.GEOMETRY,
    log:
        "results/logs/geometry/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: cores(8)
    resources:
        mem_mb=memory(4000, 16000),
        runtime=minutes(30, 60),
    params:
        settings=params(settings.geometry, "dataset", "model", "seed"),
    shell:
        command("geometry")


# Every selector on the same embeddings, one after another.
rule runtime:
    input:
        examples=made(paths.EXAMPLES),
        embeddings=paths.EMBEDDINGS,
        layers=(
            paths.LAYERS
            if any(
                settings.reads_layers(config, name)
                for names in settings.timed(config)
                for name in names
            )
            else []
        ),
    output:
        out=paths.RUNTIME,
    log:
        "results/logs/runtime/{dataset}/{model}/seed{seed}.log",
    conda:
        "../../envs/mamushi.yaml"
    threads: lambda wildcards: config["evidence"]["runtime"]["threads"]
    resources:
        mem_mb=memory(4000, 16000),
        runtime=minutes(30, 240),
    params:
        settings=params(settings.runtime, "dataset", "model", "seed"),
    shell:
        command("runtime")


rule ranking:
    input:
        examples=made(paths.EXAMPLES),
        scores=expand(paths.SCORES, selector=SCORED, allow_missing=True),
        refits=expand(paths.REFITS, selector=SCORED, allow_missing=True),
        triage=paths.TRIAGE,
        calibrated=paths.CALIBRATED,
    output:
        out=report(
            paths.RANKING,
            caption="../report/ranking.rst",
            category="Rankings",
            labels={"dataset": "{dataset}", "model": "{model}", "seed": "{seed}"},
        ),
        table=paths.RANKING_TABLE,
    log:
        "results/logs/ranking/{dataset}/{model}/seed{seed}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        selectors=SCORED,
        settings=params(settings.ranking, "dataset", "model", "seed"),
    shell:
        command("ranking")


rule triage:
    input:
        examples=made(paths.EXAMPLES),
        scores=paths.SCORES.replace("{selector}", config["removal"]["ratio"]),
        refits=paths.REFITS.replace("{selector}", config["removal"]["ratio"]),
    output:
        out=paths.TRIAGE,
        csv=report(
            paths.TRIAGE_CSV,
            caption="../report/triage.rst",
            category="Rankings",
            labels={"dataset": "{dataset}", "model": "{model}", "seed": "{seed}"},
        ),
    log:
        "results/logs/triage/{dataset}/{model}/seed{seed}.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.triage, "dataset", "model", "seed"),
    shell:
        command("triage")


rule qualitative:
    input:
        lambda wildcards: [
            path
            for run in grid.shown(config)
            for path in (
                made_of(paths.EXAMPLES, run["dataset"]),
                paths.SCORES.format(**run, selector=config["removal"]["ratio"]),
            )
        ],
    output:
        csv=report(
            paths.TABLE_CSV.replace("{table}", "qualitative_ranking"),
            caption="../report/qualitative_ranking.rst",
            category="Rankings",
            labels={"table": "First and last of each ranking"},
        ),
        parquet=paths.TABLE.replace("{table}", "qualitative_ranking"),
    log:
        "results/logs/qualitative.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.qualitative),
    shell:
        command("qualitative", out_folder="$(dirname {output.csv:q})")


rule evidence_tables:
    input:
        runs=lambda wildcards: [
            pattern.format(**run)
            for run in grid.cells(GRID)
            for pattern in (
                paths.FRONTIER,
                paths.CALIBRATION,
                paths.DIAGNOSTICS,
                paths.CONFOUNDS,
                paths.GEOMETRY,
            )
        ],
        runtime=lambda wildcards: [
            paths.RUNTIME.format(**run) for run in grid.shown(config)
        ],
        sad=(
            paths.TABLE.replace("{table}", "sad")
            if config["evidence"]["measured"]
            else []
        ),
    output:
        frontier=report(
            paths.TABLE_CSV.replace("{table}", "frontier"),
            caption="../report/frontier_table.rst",
            category="Evidence",
            labels={"table": "Frontier"},
        ),
        advice=report(
            paths.TABLE_CSV.replace("{table}", "advice"),
            caption="../report/advice.rst",
            category="Evidence",
            labels={"table": "Advice"},
        ),
        calibration=report(
            paths.TABLE_CSV.replace("{table}", "calibration"),
            caption="../report/calibration_table.rst",
            category="Evidence",
            labels={"table": "Calibration"},
        ),
        diagnostics=report(
            paths.TABLE_CSV.replace("{table}", "diagnostics"),
            caption="../report/diagnostics_table.rst",
            category="Evidence",
            labels={"table": "Diagnostics"},
        ),
        confounds=report(
            paths.TABLE_CSV.replace("{table}", "confounds"),
            caption="../report/confounds.rst",
            category="Evidence",
            labels={"table": "Confounds"},
        ),
        geometry=report(
            paths.TABLE_CSV.replace("{table}", "geometry"),
            caption="../report/geometry_table.rst",
            category="Evidence",
            labels={"table": "Geometry"},
        ),
        runtime=report(
            paths.TABLE_CSV.replace("{table}", "runtime"),
            caption="../report/runtime.rst",
            category="Evidence",
            labels={"table": "Runtime"},
        ),
        paper=report(
            paths.TABLE_CSV.replace("{table}", "paper"),
            caption="../report/paper.rst",
            category="Evidence",
            labels={"table": "Beside the paper's numbers"},
        ),
        theory=report(
            paths.TABLE_CSV.replace("{table}", "theory"),
            caption="../report/theory.rst",
            category="Evidence",
            labels={"table": "Looseness of the transfer bound"},
        ),
        parquet=expand(paths.TABLE, table=settings.EVIDENCE_TABLES),
    log:
        "results/logs/evidence_tables.log",
    localrule: True
    conda:
        "../../envs/mamushi.yaml"
    params:
        settings=params(settings.evidence),
    shell:
        command("evidence", out_folder="$(dirname {output.frontier:q})")
