"""Files as Snakemake's ``benchmark:`` writes them."""

from __future__ import annotations

from pathlib import Path

HEAD = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time"


def write(path: Path, wall: float, cpu: object = "NA", rss: object = "NA") -> None:
    """One job of ``wall`` seconds, of which ``cpu`` processor seconds were seen, and MB."""
    path.parent.mkdir(parents=True, exist_ok=True)
    values = (wall, "0:00:00", rss, *["NA"] * 6, cpu)
    path.write_text(f"{HEAD}\n" + "\t".join(map(str, values)) + "\n", encoding="utf-8")
