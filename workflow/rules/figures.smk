# Every figure in the gallery, each of which declares what it is of (the grid, evidence, unlearning, or
# one cell), and the tables, or artifacts of a cell, that it reads, if any. Its caption is the file of
# its name in workflow/report.


# What the figures of a cell show.
OF_CELL = {
    "scores": paths.SCORES.replace("{selector}", RATIO),
    "geometry": paths.GEOMETRY,
}
# Parts of the report that are not called as what their figures are of.
CATEGORIES = {"cell": "Evidence", "grid": "Figures"}

for name, drawing in plugins("figure").items():
    of_cell = drawing.of == "cell"
    pdf = (paths.CELL_FIGURE if of_cell else paths.FIGURE).replace("{figure}", name)

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
                category=CATEGORIES.get(drawing.of, drawing.of.capitalize()),
                labels={"figure": name.replace("_", " ")}
                | ({"run": "{dataset}, {model}, {seed}"} if of_cell else {}),
            ),
        log:
            pdf.replace("figures", "logs/figure").replace(".pdf", ".log"),
        localrule: True
        conda:
            "../../envs/mamushi.yaml"
        params:
            settings=settings("figure", *(CELL if of_cell else ()), name=name),
        shell:
            "exec python -m mamushi figure --tables {input:q} --out {output.out:q}"
            " --settings {params.settings:q} > {log:q} 2>&1"


use rule figure_sad as figure_study with:
    input:
        expand(
            paths.STUDY_TABLE, table=plugins("figure")["sad"].reads, allow_missing=True
        ),
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
        settings=settings("figure", "study", name="sad"),
