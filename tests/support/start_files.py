"""A results folder with something of every kind that the start page links."""

from base64 import b64decode
from pathlib import Path

from mamushi.io.files import write_json
from tests.support.judged_files import judged

CELL = "runs/d/m/seed0"
MADE = [
    f"{CELL}/ranking.html",
    f"{CELL}/removals/s/beta0.10.parquet",
    f"{CELL}/removals/s/beta0.10.json",
    "data/d/card.json",
    "figures/diagnostics/d/m/seed0.png",
    "figures/diagnostics/d/m/seed0.pdf",
    "figures/sad.png",
    "figures/sad.pdf",
    "figures/study/turned.png",
    "tables/sad.csv",
    "tables/sad.parquet",
    "tables/turned/sad.csv",
    "report.html",
]
BESIDE = [
    f"{CELL}/removals/s/beta0.20.parquet",
    f"{CELL}/scores/s.parquet",
    f"{CELL}/frontier.parquet",
    "logs/tables.log",
]
"""What the start page does not name."""
PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


def write_results(root: Path) -> None:
    """The files of ``MADE`` in the results folder ``root``, and some beside them."""
    for name in [*MADE, *BESIDE]:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PIXEL if path.suffix == ".png" else b"made up\n")
    manifest = {"beta": 0.1, "removed": 1200, "n_forget": 12000, "n_retain": 2, **judged()}
    write_json(root / CELL / "removals/s/beta0.10.json", manifest)
