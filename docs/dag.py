"""Draw docs/guide/dag.svg: the rules of the core by rule file, from Snakemake's own graph.

    python docs/dag.py        # in a clone

Arrows that a longer way implies are left out (a transitive reduction), and targets, which only
collect. Rules stand in the order of the files that workflow/Snakefile includes.
"""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from mamushi.stages.tables import TABLES

ROOT = Path(__file__).parents[1]
RULES = ROOT / "workflow" / "rules"
PICTURE = ROOT / "docs" / "guide" / "dag.svg"
TARGETS = ("all", "studies", "unlearning", "evidence")
NOT_IN_THE_GRID = frozenset({"base_model"})
"""Rules that the paper's grid does not ask for: tiny models."""
STAGES = {
    "data": "raw files to splits",
    "models": "models and tokens",
    "endpoints": "the fixed models",
    "embed": "embeddings",
    "select": "scores and lists",
    "evidence": "before retraining",
    "retrain": "retraining per budget",
    "unlearn": "unlearning per budget",
    "evaluate": "held-out perplexity",
    "probe": "what models say",
    "tables": "tables",
    "figures": "figures",
}
"""Rule files in the order of the drawing, and what a row is called."""
ROW, BOX, HEIGHT = 1.0, 1.9, 0.46
"""Distance of rows, width of a rule's slot and height of its box, in the drawing's units."""

Edges = set[tuple[str, str]]


def rule_graph() -> Edges:
    """Return which rule's files which other rule reads, as ``snakemake --rulegraph`` has it."""
    certain = ["--config", "evidence={refits: {whole: 1}}", "grid={seeds: [0], budgets: [0.1]}"]
    command = [sys.executable, "-m", "snakemake", "--rulegraph", "dot", *certain, "--", *TARGETS]
    dot = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = dict(re.findall(r'(\d+)\[label = "(\w+)"', dot))
    return {(names[a], names[b]) for a, b in re.findall(r"(\d+) -> (\d+)", dot)}


def rows() -> dict[str, str]:
    """Return by rule the rule file in which it stands; figures are one, named after their loop, and
    the rules of tables stand in theirs."""
    texts = {stage: (RULES / f"{stage}.smk").read_text(encoding="utf-8") for stage in STAGES}
    line = re.compile(r"^(?:use )?rule (?:\w+ as )?(\w+)(?=:| with)", re.MULTILINE)
    found = {rule: stage for stage, text in texts.items() for rule in line.findall(text)}
    return found | dict.fromkeys(TABLES, "tables")


def merged(edges: Edges, row_of: dict[str, str]) -> Edges:
    """Return the edges between rules that have a row, all figures taken together."""
    short = {(*(re.sub(r"^figure_.*", "figures", end) for end in edge),) for edge in edges}
    placed = row_of.keys() | {"figures"}
    return {(a, b) for a, b in short if a in placed and b in placed and a != b}


def reduced(edges: Edges) -> Edges:
    """Return the edges without those that a longer way implies; the graph has no circle."""

    def reachable(start: str) -> set[str]:
        """Return all rules behind one."""
        behind = {b for a, b in edges if a == start}
        return behind.union(*(reachable(rule) for rule in behind)) if behind else behind

    after = {rule: reachable(rule) for edge in edges for rule in edge}
    between = {(a, b) for a, b in edges if any(b in after[c] for x, c in edges if x == a)}
    return edges - between


def levels(edges: Edges, row_of: dict[str, str]) -> list[tuple[str, list[str]]]:
    """Return rows of the drawing, stage by stage: rules of a stage that read others of it are below
    those."""
    rules = {rule for edge in edges for rule in edge}
    drawn: list[tuple[str, list[str]]] = []
    for stage in STAGES:
        left = {rule for rule in rules if row_of.get(rule, "figures") == stage}
        while left:
            behind = {b for a, b in edges if {a, b} <= left}
            drawn.append((stage, sorted(left - behind)))
            left = behind
    return drawn


def places(edges: Edges, drawn: list[tuple[str, list[str]]]) -> dict[str, tuple[float, float]]:
    """Return the centre of each rule: near the mean of what it reads, as far as there is room."""
    at: dict[str, tuple[float, float]] = {}
    for depth, (_, rules) in enumerate(drawn):
        read = {rule: [at[a][0] for a, b in edges if b == rule and a in at] for rule in rules}
        wished = {rule: sum(x) / len(x) if x else 0.0 for rule, x in read.items()}
        ordered = sorted(rules, key=lambda rule: (wished[rule], rule))
        x: list[float] = []
        for rule in ordered:
            x.append(max(wished[rule], x[-1] + BOX) if x else wished[rule])
        shift = sum(wished[rule] - here for rule, here in zip(ordered, x, strict=True)) / len(x)
        at |= {rule: (here + shift, -depth * ROW) for rule, here in zip(ordered, x, strict=True)}
    return at


def draw(axes: Axes, edges: Edges, at: dict[str, tuple[float, float]]) -> None:
    """Draw arrows, and above them boxes with the names of rules."""
    for start, end in sorted(edges):
        (x, y), (to_x, to_y) = at[start], at[end]
        bend = 0.0 if abs(y - to_y) <= ROW else 0.12 * (1 if x >= 0 else -1)
        side = HEIGHT / 2 if y > to_y else -HEIGHT / 2
        arrow = FancyArrowPatch(
            (x, y - side),
            (to_x, to_y + side),
            connectionstyle=f"arc3,rad={bend}",
            arrowstyle="-|>",
            mutation_scale=7,
            linewidth=0.8,
            color="#8A8A8A",
            shrinkA=0,
            shrinkB=0,
        )
        axes.add_patch(arrow)
    width = 0.9 * BOX
    for rule, (x, y) in at.items():
        corner = (x - width / 2, y - HEIGHT / 2)
        look = {"boxstyle": "round,pad=0.02,rounding_size=0.08", "fc": "white", "ec": "#0072B2"}
        axes.add_patch(FancyBboxPatch(corner, width, HEIGHT, zorder=3, **look))
        axes.text(x, y, rule, ha="center", va="center", fontsize=7, zorder=4)


def main() -> None:
    """Draw the picture again."""
    mpl.use("Agg")
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "mamushi"})
    row_of = rows()
    edges = reduced(merged(rule_graph(), row_of))
    drawn = levels(edges, row_of)
    at = places(edges, drawn)
    left, right = (extreme(x for x, _ in at.values()) for extreme in (min, max))
    figure, axes = plt.subplots(figsize=(9, 10))
    for depth, (stage, _) in enumerate(drawn):
        if depth == 0 or drawn[depth - 1][0] != stage:
            name = f"{STAGES[stage]}\n{stage}.smk"
            axes.text(left - 1.1 * BOX, -depth * ROW, name, ha="right", va="center", fontsize=8)
            axes.axhline((0.5 - depth) * ROW, color="#E4E4E4", linewidth=0.8, zorder=0)
    draw(axes, edges, at)
    axes.set(xlim=(left - 2.4 * BOX, right + 0.6 * BOX), ylim=(-len(drawn) * ROW + 0.4, 0.5))
    axes.axis("off")
    figure.savefig(PICTURE, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
