"""How every figure looks: a colour and marker per selector, panels, words, reproducible files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import PercentFormatter

from mamushi.io.files import atomic
from mamushi.io.tables import DOMAINS, FORGET, RETAIN

# Okabe and Ito's palette, which colour-blind readers can tell apart, then Tol's darker tones.
SELECTORS: dict[str, tuple[str, str, Any]] = {
    "random": ("Random", "#7A7A7A", "s"),
    "l2_norm": ("L2 norm", "#56B4E9", "v"),
    "cos_mu2": ("COS-μ2", "#E69F00", "^"),
    "lr_cos": ("LR-COS", "#009E73", "D"),
    "lr_maha": ("LR-Maha", "#117733", "d"),
    "vmf": ("vMF", "#0072B2", "P"),
    "coreset": ("Coreset", "#B8A000", "X"),
    "kcenter": ("k-center", "#CC79A7", "<"),
    "mamushi": ("Mamushi", "#D55E00", "o"),
    "mamushi_lr": ("Mamushi (LR)", "#332288", "h"),
    "mamushi_lr_matched": ("Mamushi (LR, matched)", "#44AA99", "p"),
    "auto": ("Auto", "#4477AA", (6, 1, 0)),
    "linear": ("Layers (LR)", "#A6611A", (5, 1, 0)),
    "lexical": ("Words (LR)", "#228833", (3, 1, 0)),
    "mamushi_words": ("Mamushi (words)", "#DDAA33", (8, 1, 0)),
    "anti_mamushi": ("Anti-Mamushi", "#882255", ">"),
    "oracle": ("Oracle", "#000000", "*"),
    "greedy_unigram": ("Greedy set", "#994455", (7, 1, 0)),
    "token_unigram": ("Tokens (counts)", "#AA3377", (4, 1, 45)),
    "token_random": ("Tokens (random)", "#BBBBBB", (3, 0, 90)),
}
"""Name, colour and marker of each selector, the same in every figure."""
MARKS = {name: (colour, marker) for name, (_, colour, marker) in SELECTORS.items()}
SPARE = (("#6699CC", "8"), ("#AA4499", "H"), ("#999933", "4"), ("#661100", "1"), ("#888888", "2"))
"""For selectors of one's own, in the order of the grid."""
LABELS = {name: text for name, (text, _, _) in SELECTORS.items()} | {
    "jigsaw": "Jigsaw",
    "newsgroups": "20 Newsgroups",
    "synthetic": "Synthetic",
    "llama-3.1-8b": "Llama-3.1-8B",
    "qwen-2.5-7b": "Qwen-2.5-7B",
    "gemma-2-2b": "Gemma-2-2B",
}
"""What people call a selector, dataset or model; others have their own name."""
OURS = "mamushi"
BUDGET = "deletion budget β"
SEEDS = "band: one standard error of the mean over the seeds to either side"
"""What the bands around measured curves are."""
COLOURS = {FORGET: "#D55E00", RETAIN: "#0072B2"}
"""The domains, in the two tones of the house palette that differ most."""
BOTH = "#44337A"
"""What belongs to both domains at once."""
NEUTRAL = "#555555"
"""Reference lines and what belongs to neither domain."""
LONG = (0, (6, 2))
DASHED = (0, (5, 2))
DOTTED = (0, (1, 1.5))
COMPARED = (0, (3, 1.5))
HALO = [withStroke(linewidth=2.2, foreground="white")]
"""Around numbers and names, so that they can be read over lines."""
CROWDED = 60
"""Bars beyond which there is no room for gaps."""
WIDTH, HEIGHT = 2.4, 1.9
"""Inches of a panel."""
SIZE = 8.0
"""Points of the font."""
INK = ".15"
"""Of axes and words: dark grey."""
HOUSE: Any = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "font.family": "DejaVu Sans",
    "font.size": SIZE,
    "axes.titlesize": SIZE + 1,
    "axes.labelsize": SIZE,
    "xtick.labelsize": SIZE - 1,
    "ytick.labelsize": SIZE - 1,
    "legend.fontsize": SIZE,
    "legend.title_fontsize": SIZE - 1,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "axes.grid": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "markers.fillstyle": "full",
    # Text stays text in the PDF, so that it can be searched and copied.
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.08,
}
"""Matplotlib's settings within which every figure is drawn."""

Grid = Mapping[str, Any]
"""The lists of a grid, ``datasets, models, seeds, selectors`` and more, or the names of a cell."""


def label(name: str) -> str:
    """Return what people call it."""
    return LABELS.get(name, name)


def marks(selectors: Sequence[str], compared: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Return Matplotlib's keywords for the line of each selector; ``mamushi`` stands out, and those
    of ``compared`` stand back: thin, dashed and named as comparisons."""
    unmarked = [name for name in selectors if name not in MARKS]
    by_selector = {}
    for name in selectors:
        colour, marker = MARKS[name] if name in MARKS else SPARE[unmarked.index(name) % len(SPARE)]
        first = name == OURS
        by_selector[name] = {
            "color": colour,
            "marker": marker,
            "linewidth": 1.8 if first else 1.1,
            "markersize": 6.5 if marker == "*" else 4.5 if first else 3.8,
            "zorder": 4 if first else 3,
            "label": label(name),
        }
        if name in compared:
            back = {"linewidth": 0.8, "linestyle": COMPARED, "zorder": 2.5}
            by_selector[name] |= {**back, "label": f"{label(name)} (comparison)"}
    return by_selector


# Panels ---------------------------------------------------------------------------------------


def facets(
    rows: Mapping[Any, str], columns: Mapping[Any, str], x: str = BUDGET
) -> tuple[Figure, list[tuple[Axes, Any, Any]]]:
    """Return a figure and each of its panels with its row and column, whose names are at the edges.

    ``x`` is the name below: of the deletion budget, which has its axis, or of something else. A
    single column is drawn wider, so that its legend fits below it.
    """
    size = (max(len(columns), 1.6) * WIDTH + 0.3, len(rows) * HEIGHT + 0.7)
    figure, axes = plt.subplots(len(rows), len(columns), figsize=size, squeeze=False, sharex=True)
    if x == BUDGET:
        axes[0, 0].set(xlim=(-0.03, 1.03), xticks=[0, 0.2, 0.4, 0.6, 0.8, 1.0])
    for panel, name in zip(axes[0], columns.values(), strict=True):
        panel.set_title(name)
    for panel, name in zip(axes[:, 0], rows.values(), strict=True):
        panel.set_ylabel(name)
    for panel in axes[-1]:
        panel.set_xlabel(x)
    places = zip(axes.flat, product(rows, columns), strict=True)
    return figure, [(panel, row, column) for panel, (row, column) in places]


def models(grid: Grid) -> dict[str, str]:
    """Return the names of a grid's models, as columns of ``facets``."""
    return {model: label(model) for model in grid["models"]}


def canvas(rows: int, columns: int, grid: Grid, note: str = "") -> tuple[Figure, list[Axes]]:
    """Return a figure of ``rows`` x ``columns`` panels with axes of their own, row by row, under
    the name of the run and a ``note``."""
    size = (columns * WIDTH + 0.3, rows * HEIGHT + 0.5)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    name = f"{label(grid['dataset'])}, {label(grid['model'])}, seed {grid['seed']}{note}"
    figure.suptitle(name, fontsize=SIZE + 2)
    return figure, list(axes.flat)


def share_axis(axes: Axes, top: float = 1.0) -> None:
    """Make the vertical axis one of shares from nothing to ``top``, in per cent."""
    axes.set_ylim(0, 1.03 * top)
    axes.yaxis.set_major_formatter(PercentFormatter(1, symbol="%"))


# What is drawn in them ------------------------------------------------------------------------


def band(axes: Axes, x: Any, low: Any, high: Any, colour: str, alpha: float = 0.18) -> None:
    """Draw a band between two curves, under all lines."""
    axes.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0, zorder=1)


def plot_domains(axes: Axes, x: Any, heights: Mapping[str, Any]) -> None:
    """Draw a curve of each domain in its colour."""
    for name in DOMAINS:
        axes.plot(x, heights[name], color=COLOURS[name], linewidth=1.8, label=name, zorder=4)


def bars(axes: Axes, at: Any, heights: Any, of: int, colour: str) -> None:
    """Draw some of ``of`` neighbouring bars, with gaps between them where there is room."""
    # Without gaps a thin edge keeps the background from shining through.
    look: dict[str, Any] = {"width": 0.8, "linewidth": 0}
    if of > CROWDED:
        look = {"width": 1.0, "linewidth": 0.3, "edgecolor": colour}
    axes.bar(at, heights, color=colour, **look)


def note(
    axes: Axes, text: str, at: tuple[Any, Any], shift: tuple[float, float], **look: Any
) -> None:
    """Write a text so many points beside a place."""
    axes.annotate(text, at, xytext=shift, textcoords="offset points", **look)


def write_above(axes: Axes, text: str) -> None:
    """Write lines between a panel and its title, which is set: there they cover nothing."""
    look = {"ha": "center", "va": "bottom", "fontsize": SIZE - 1, "linespacing": 1.2}
    note(axes, text, (0.5, 1), (0, 3), xycoords="axes fraction", **look)
    axes.set_title(axes.get_title(), pad=6 + 1.3 * (SIZE - 1) * (1 + text.count("\n")))


def reference(axes: Axes, height: float, text: str = "", *, below: bool = False) -> None:
    """Draw a dashed horizontal line with its name above or ``below`` its right end."""
    axes.axhline(height, color=NEUTRAL, linewidth=0.9, linestyle=DASHED, zorder=2)
    look = {"color": NEUTRAL, "fontsize": SIZE - 1, "zorder": 6, "path_effects": HALO}
    look |= {"ha": "right", "va": "top" if below else "bottom"}
    shift = (-2, -2.5 if below else 2)
    note(axes, text, (1, height), shift, xycoords=("axes fraction", "data"), **look)


def per_cent(share: float) -> str:
    """Return whole per cent, and a digit more below ten, where it matters."""
    return f"{100 * share:.{1 if share < 0.1 else 0}f}%"


def legend_below(figure: Figure, panel: Axes, bands: str = "") -> None:
    """Put one legend under all panels: the labelled lines of ``panel``, and what ``bands`` are."""
    handles = [line for line in panel.get_lines() if not str(line.get_label()).startswith("_")]
    longest = max(len(str(handle.get_label())) for handle in handles)
    # A character is about half as wide as the font size; the sample line takes some six of them.
    width_of_entry = (longest + 6) * 0.52 * SIZE / 72
    columns = max(1, min(len(handles), int(figure.get_figwidth() / width_of_entry)))
    shapes = (shape for axes in figure.axes for shape in axes.collections)
    banded = any(isinstance(shape, PolyCollection) for shape in shapes)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        # As even rows as possible: 8 entries in 7 columns read better as 4 + 4.
        ncols=-(-len(handles) // -(-len(handles) // columns)),
        frameon=False,
        handlelength=2.2,
        columnspacing=1.4,
        title=bands if banded else None,
    )


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write the figure as PDF and PNG, without dates: same figure, same bytes."""
    for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
        with atomic(Path(path).with_suffix(f".{kind}")) as part:
            figure.savefig(part, format=kind, metadata=metadata)
    plt.close(figure)
