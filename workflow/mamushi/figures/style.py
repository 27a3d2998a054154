"""How every figure looks: a colour and marker per selector, panels, legend, reproducible files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from mamushi.artifacts.files import atomic

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
    "mamushi_stack": ("Mamushi (stack)", "#6A3D9A", (4, 1, 0)),
    "auto": ("Auto", "#4477AA", (6, 1, 0)),
    "linear": ("Layers (LR)", "#A6611A", (5, 1, 0)),
    "lexical": ("Words (LR)", "#228833", (3, 1, 0)),
    "bm25": ("BM25", "#8C6D31", (4, 1, 45)),
    "dsir": ("DSIR", "#DDAA33", (3, 0, 180)),
    "anti_mamushi": ("Anti-Mamushi", "#882255", ">"),
    "oracle": ("Oracle", "#000000", "*"),
}
"""Name, colour and marker of each selector, the same in every figure."""
MARKS = {name: (colour, marker) for name, (_, colour, marker) in SELECTORS.items()}
SPARE = (("#6699CC", "8"), ("#AA4499", "H"), ("#999933", "4"), ("#661100", "1"), ("#888888", "2"))
"""For selectors of one's own, in the order of the grid."""
LABELS = {name: text for name, (text, _, _) in SELECTORS.items()} | {
    "retraining": "Retraining",
    "neggrad_plus": "NegGrad+",
    "salun": "SalUn",
    "graddiff": "GradDiff",
    "npo": "NPO",
    "simnpo": "SimNPO",
    "jigsaw": "Jigsaw",
    "newsgroups": "20 Newsgroups",
    "synthetic": "Synthetic",
    "llama-3.1-8b": "Llama-3.1-8B",
    "qwen-2.5-7b": "Qwen-2.5-7B",
    "gemma-2-2b": "Gemma-2-2B",
}
"""What people call a selector, unlearner, dataset or model; others have their own name."""
OURS = "mamushi"
R = TypeVar("R")
C = TypeVar("C")
BUDGET = "deletion budget β"
SEEDS = "band: one standard error of the mean over the seeds to either side"
"""What the bands around measured curves are."""


Grid = Mapping[str, Any]
"""The lists of a grid, ``datasets, models, seeds, selectors`` and more, or the names of a cell."""


@dataclass(frozen=True)
class Style:
    """The ``figures`` section of the configuration. Sizes in inches and points."""

    panel_width: float
    panel_height: float
    font_size: float
    dpi: int
    log_scale: bool


def label(name: str) -> str:
    """Return what people call it."""
    return LABELS.get(name, name)


def marks(selectors: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return Matplotlib's keywords for the line of each selector; ``mamushi`` stands out."""
    own = [name for name in selectors if name not in MARKS]
    found = {}
    for name in selectors:
        colour, marker = MARKS[name] if name in MARKS else SPARE[own.index(name) % len(SPARE)]
        first = name == OURS
        found[name] = {
            "color": colour,
            "marker": marker,
            "linewidth": 1.8 if first else 1.1,
            "markersize": 6.5 if marker == "*" else 4.5 if first else 3.8,
            "zorder": 4 if first else 3,
            "label": label(name),
        }
    return found


@contextmanager
def styled(style: Style) -> Iterator[None]:
    """Draw the figures within the block in the house style."""
    size = style.font_size
    rules = {
        **sns.axes_style("ticks"),
        "font.family": "DejaVu Sans",
        "font.size": size,
        "axes.titlesize": size + 1,
        "axes.labelsize": size,
        "xtick.labelsize": size - 1,
        "ytick.labelsize": size - 1,
        "legend.fontsize": size,
        "legend.title_fontsize": size - 1,
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
        "figure.constrained_layout.use": True,
        "figure.constrained_layout.w_pad": 0.08,
    }
    with mpl.rc_context(rules):
        yield


def panels(rows: int, columns: int, style: Style) -> tuple[Figure, np.ndarray[Any, Any]]:
    """Return a figure of ``rows`` x ``columns`` axes that share the budget axis, as a 2-d array.

    A single column is drawn wider, so that its legend fits below it.
    """
    width = max(columns, 1.6) * style.panel_width
    size = (width + 0.3, rows * style.panel_height + 0.7)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, sharex=True)
    return figure, axes


def facets(
    rows: Mapping[R, str], columns: Mapping[C, str], style: Style, *, x: str, log: bool
) -> tuple[Figure, list[tuple[Axes, R, C]]]:
    """Return a figure and each of its panels with its row and column, whose names are at the edges.

    ``x`` is the name below: of the deletion budget, which has its axis, or of something else. The
    vertical axis is logarithmic where ``log`` says so.
    """
    figure, axes = panels(len(rows), len(columns), style)
    for panel in axes.flat:
        if x == BUDGET:
            budget_axis(panel)
        if log:
            log_axis(panel)
    for panel, name in zip(axes[0], columns.values(), strict=True):
        panel.set_title(name)
    for panel, name in zip(axes[:, 0], rows.values(), strict=True):
        panel.set_ylabel(name)
    for panel in axes[-1]:
        panel.set_xlabel(x)
    places = zip(axes.flat, product(rows, columns), strict=True)
    return figure, [(panel, row, column) for panel, (row, column) in places]


def budget_axis(axes: Axes) -> None:
    """Let the horizontal axis go from nothing to all of the forget set."""
    axes.set_xlim(-0.03, 1.03)
    axes.set_xticks([0, 0.2, 0.4, 0.6, 0.8, 1.0])


def log_axis(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers. Call it before curves are drawn."""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def note(
    axes: Axes, text: str, at: tuple[Any, Any], shift: tuple[float, float], **look: Any
) -> None:
    """Write a text so many points beside a place."""
    axes.annotate(text, at, xytext=shift, textcoords="offset points", **look)


def band(axes: Axes, x: Any, low: Any, high: Any, colour: str, alpha: float = 0.18) -> None:
    """Draw a band between two curves, under all lines."""
    axes.fill_between(x, low, high, color=colour, alpha=alpha, linewidth=0, zorder=1)


def legend_below(figure: Figure, panel: Axes, bands: str = "") -> None:
    """Put one legend under all panels: the labelled lines of ``panel``, and what ``bands`` are."""
    handles = [line for line in panel.get_lines() if not str(line.get_label()).startswith("_")]
    size = float(mpl.rcParams["legend.fontsize"])
    longest = max(len(str(handle.get_label())) for handle in handles)
    # A character is about half as wide as the font size; the sample line takes some six of them.
    each = (longest + 6) * 0.52 * size / 72
    columns = max(1, min(len(handles), int(figure.get_figwidth() / each)))
    shapes = (shape for axes in figure.axes for shape in axes.collections)
    banded = any(isinstance(shape, PolyCollection) for shape in shapes)
    # As even rows as possible: 8 entries in 7 columns read better as 4 + 4.
    columns = -(-len(handles) // -(-len(handles) // columns))
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=2.2,
        columnspacing=1.4,
        title=bands if banded else None,
    )


def save(figure: Figure, path: str | os.PathLike[str], style: Style) -> None:
    """Write the figure as PDF and PNG, without dates: same figure, same bytes."""
    for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
        with atomic(Path(path).with_suffix(f".{kind}")) as part:
            figure.savefig(part, format=kind, dpi=style.dpi, metadata=metadata)
    plt.close(figure)
