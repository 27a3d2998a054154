"""What `mamushi show` says of a corpus that nobody labelled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def describe_cell(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return lines by their heads, of the manifest of a list of a corpus; none of another one."""
    if "share" not in manifest:
        return {}
    # Here, since they take scipy.stats, whose import takes a second.
    from mamushi.evidence.verdict import unit_of
    from mamushi_extras.unlabelled.corpus import share_text

    share, unit = manifest["share"], unit_of(manifest)
    by = f"{manifest['examples']:,} {'hits of terms' if manifest['hits'] else 'examples'}"
    lines = {"ranked": f"{manifest['n_forget']:,} {unit} of the corpus, by {by}"}
    if screen := manifest.get("screen"):
        lines["screen"] = f"{screen['passed']:,} of {screen['texts']:,} texts passed"
        if screen["recall"]["low"] is not None:
            chance = f"does with a chance of {share_text(screen['recall'])}"
            lines["screen"] += f", and one like the examples {chance}"
    lines["share"] = f"{share_text(share)} of them is of the domain"
    if share["reason"]:
        lines["share"] += f"\n            {share['reason']}"
    if manifest["certain"]:
        lines["certain"] = f"{manifest['certain']:,} {unit} are copies of examples"
    likely = f"{manifest['likely']:,} {unit} are more likely than not of the domain"
    lines["likely"] = likely + (
        ", at a guess of the share" if None in (share["low"], share["high"]) else ""
    )
    return lines
