# Every figure in the gallery, each of which declares its category and label in the report, what it is
# of (the grid, evidence, unlearning, or one cell), and the tables, or artifacts of a cell, that it
# reads, if any. Its caption is the file of its name in workflow/report.


# What the figures of a cell show.
OF_CELL = {
    "scores": paths.SCORES.replace("{selector}", RATIO),
    "geometry": paths.GEOMETRY,
}

for name, drawing in plugins("figure").items():
    of_cell = drawing.of == "cell"
    pdf = (paths.CELL_FIGURE if of_cell else paths.FIGURE).replace("{figure}", name)
    place = f"{name}/{{dataset}}/{{model}}/seed{{seed}}" if of_cell else name

    rule:
        name:
            f"figure_{name}"
        input:
            [
                OF_CELL[table] if of_cell else paths.TABLE.replace("{table}", table)
                for table in drawing.reads
            ],
        output:
            out=pdf,
            png=report(
                pdf.replace(".pdf", ".png"),
                caption=f"../report/{name}.rst",
                category=drawing.category,
                labels={"figure": drawing.label}
                | ({"run": "{dataset}, {model}, {seed}"} if of_cell else {}),
            ),
        log:
            f"results/logs/figure/{place}.log",
        localrule: True
        conda:
            "../../envs/mamushi.yaml"
        params:
            # The folder in which it finds what it shows. Not in the command, which is put together
            # when the loop is over.
            tables=(lambda job: "results") if of_cell else (lambda job: paths.TABLES),
            settings=settings("figure", *(CELL if of_cell else ()), name=name),
        shell:
            "exec python -m mamushi figure --tables {params.tables:q} --out {output.out:q}"
            " --settings {params.settings:q} > {log:q} 2>&1"


use rule figure_sad as figure_study with:
    input:
        expand(paths.STUDY_TABLE, table=grid.STUDY_TABLES, allow_missing=True),
    output:
        out=paths.STUDY_FIGURE,
        png=report(
            paths.STUDY_FIGURE.replace(".pdf", ".png"),
            caption="../report/study.rst",
            category="Studies",
            labels={"study": "{study}"},
        ),
    log:
        "results/logs/figure/study/{study}.log",
    params:
        tables=lambda wildcards: f"{paths.TABLES}/{wildcards.study}",
        settings=settings("figure", "study", name="sad"),
