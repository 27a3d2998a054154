"""What `mamushi rank` made in a folder, and from what: so that it makes nothing twice, and that
Snakemake, whose own record knows none of it, makes again what an older configuration asked for."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.errors import UserError
from mamushi.io.digests import fingerprint
from mamushi.io.files import read_json, write_json
from mamushi.running.stage import Job, stages

RECORD = Path("results/ranked.json")
EARLY = 86_400
"""A date, in seconds; 0 is none for Snakemake."""
UNDATED = ("examples", "model-card")
"""Stages whose files come from outside, of which the rules look at the content alone."""


class Record:
    """The record of this folder."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, Any]] = read_json(RECORD) if RECORD.is_file() else {}

    def is_current(self, job: Job) -> bool:
        """Tell whether the outputs of a job are there, made from its inputs as they are now, by
        this command or, if they name their origin, by Snakemake. Those are dated after their inputs
        then, as Snakemake asks."""
        if not all(path.is_file() for path in job.outputs):
            return False
        entry, origins = self.entries.get(str(job.outputs[0]), {}), map(_origin, job.outputs)
        if entry.get("dates") == _file_dates(job.outputs):
            current = entry["origin"] == fingerprint(job.origin)
        else:
            # A manifest also names what its scores were made from, and a card raw files.
            agree = [
                all(origin[name] == job.origin[name] for name in ("settings", "versions"))
                and job.origin["inputs"].items() <= origin["inputs"].items()
                for origin in filter(None, origins)
            ]
            current = bool(agree) and all(agree)
        if current and max(_file_dates(job.inputs.values()).values(), default=0) > min(
            _file_dates(job.outputs).values()
        ):
            for path in job.outputs:
                os.utime(path)
        return current

    def add(self, job: Job, wildcards: Mapping[str, Any]) -> None:
        """Note that the outputs of a job are current."""
        entry = {
            **{"stage": job.stage.name, "wildcards": dict(wildcards)},
            **{"settings": job.recorded, "origin": fingerprint(job.origin)},
            "dates": _file_dates(job.outputs),
        }
        if self.entries.get(str(job.outputs[0])) != entry:
            self.entries[str(job.outputs[0])] = entry
            write_json(RECORD, self.entries)


def date_back(config: Mapping[str, Any]) -> list[str]:
    """Give an early date to the files that `mamushi rank` made and this configuration would make
    otherwise, on which Snakemake makes them again. Return those for which no date decides that, as
    the texts of a table: they are to be forced."""
    forced = []
    for first, entry in Record().entries.items():
        files = [*filter(Path.is_file, map(Path, entry["dates"]))]
        if _file_dates(files) != entry["dates"] or _matches_settings(entry, config):
            continue
        if entry["stage"] in UNDATED:
            forced.append(first)
        else:
            for path in files:
                os.utime(path, (EARLY, EARLY))
    return forced


def require_forcerun(config: Mapping[str, Any], words: Sequence[str]) -> None:
    """Raise ``UserError`` if a file has to be made again only because of the configuration, and the
    words of Snakemake's command line lack ``--forcerun``."""
    if (forced := date_back(config)) and not {"--forcerun", "-R"} & {*words}:
        do = "run mamushi rank again, or mamushi run in the place of snakemake, or delete it"
        raise UserError("was ranked under another configuration", where=forced[0], do=do)


def _matches_settings(entry: Mapping[str, Any], config: Mapping[str, Any]) -> bool:
    """Tell whether a configuration has the settings of an entry, or nothing of its names."""
    try:
        settings = stages()[entry["stage"]].settings_text(config, **entry["wildcards"])
    except (KeyError, UserError):
        return True
    return bool(json.loads(settings) == entry["settings"])


def _file_dates(files: Iterable[Path]) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in files}


def _origin(path: Path) -> Mapping[str, Any]:
    """Return the origin that a file names; nothing of a page or a figure."""
    if path.suffix not in (".json", ".parquet"):
        return {}
    from mamushi.io.tables import read_metadata

    about = read_json(path) if path.suffix == ".json" else read_metadata(path)
    origin = about.get("provenance", about)
    return origin if "settings" in origin else {}
