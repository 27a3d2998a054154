"""Read the ranking of a forget set, show its two ends, and compare it with itself, refitted.

Refits say how far chance decides a list. The rankings are that of the scores and those of their
whole refits (``selection/refits.py``), R in all. The frequency of a text at a budget is the share
of them that list it. ``surely`` is frequency 1: then its chance to be in another list is at least
0.05 ** (1 / R) with 95% confidence (the Clopper-Pearson bound for R of R), 0.61 for 6 rankings; any
other text of the list is a toss-up.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.evaluation.masking import mask
from mamushi.io import digests, paths, schemas
from mamushi.io.domains import FORGET
from mamushi.io.files import read_json
from mamushi.io.tables import read_groups, read_metadata, read_table
from mamushi.selection.arrays import Doubles
from mamushi.selection.metrics import spearman
from mamushi.selection.removals import budget_size, read_texts_of

EXCERPT = 300
Ranks = NDArray[np.int64]


def ranking_path(root: Path, names: Mapping[str, str | int]) -> Path:
    """Return where the ranking of a selector lies: that of a corpus, or of forget texts."""
    corpus = paths.under(root, paths.POSTERIOR, **names)
    return corpus if corpus.is_file() else paths.under(root, paths.SCORES, **names)


def is_earlier(run: Mapping[str, str], inputs: Mapping[str, Any]) -> bool:
    """Return whether a list of a run, made from files with the digests ``inputs``, is of an earlier
    ranking than its selector's present one. Budgets that were left out of the configuration keep
    such lists. Raises ``UserError`` for a damaged ranking."""
    root, names = Path(run["root"]), {name: run[name] for name in run if name != "root"}
    ranking, was = ranking_path(root, names), inputs.get("posterior", inputs.get("scores"))
    if was is None or not ranking.is_file() or digests.of(ranking) == was:
        return False
    read_metadata(ranking)
    return True


def read_manifests(root: Path, pattern: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the manifests whose paths fit a pattern in a results folder, with their ``selector``
    and the ``path`` of their list. The second of two lists has those of an earlier ranking."""
    names = dict.fromkeys(("dataset", "model", "seed", "selector", "beta"), "*")
    current, earlier = list[dict[str, Any]](), list[dict[str, Any]]()
    for path in sorted(root.glob(str(paths.under("", pattern, **names)))):
        run, manifest = paths.wildcards(pattern, path) or {}, read_json(path)
        manifest |= {"selector": run["selector"], "path": path.with_suffix(".parquet")}
        inputs = manifest.get("provenance", {}).get("inputs", {})
        (earlier if is_earlier(run, inputs) else current).append(manifest)
    return current, earlier


def cut(root: Path, cell: Mapping[str, str | int]) -> str | None:
    """Say how many texts of a cell a model read in part; None where it read all, or no tokens are
    there."""
    if not (tokens := paths.under(root, paths.TOKENS, **cell)).is_file():
        return None
    about = read_metadata(tokens)
    settings = read_metadata(paths.under(root, paths.EMBEDDINGS, **cell))["settings"]
    most = int(about.get("positions") or about["max_length"])
    most = min(int(settings["embedding"].get("max_length", most)), most)
    groups = read_groups(tokens, schemas.TOKENS, ["tokens"])
    lengths = (pc.list_value_length(group["tokens"]).to_numpy() for group in groups)
    count = sum(int((of_group >= most).sum()) for of_group in lengths)
    return f"{count:,} texts were read up to their first {most} tokens" if count else None


def excerpt(text: str, length: int = EXCERPT) -> str:
    """Return ``text`` masked, white space folded, and cut to ``length`` characters; in this order,
    as a piece of a word may not be known for what it is."""
    folded = " ".join(mask(text).split())
    return folded if len(folded) <= length else folded[: length - 1].rstrip() + "…"


def excerpt_rows(
    ranking: pa.Table, positions: Sequence[int], examples: Path, length: int = EXCERPT
) -> list[dict[str, Any]]:
    """Return ``rank``, ``score``, ``id`` and an excerpt of the ``text`` at positions of a ranking,
    from 0."""
    ranked = ranking.select(["rank", "score", "id"]).filter(ranking["rank"].is_valid())
    rows = ranked.sort_by("rank").take(positions)
    texts = read_texts_of(examples, rows["id"].to_pylist())
    shown = [excerpt(text, length) for text in texts]
    return rows.append_column("text", pa.array(shown, pa.string())).to_pylist()


def end_rows(root: Path, run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return rows of the table ``qualitative_ranking``, the first ten and the last ten of the
    ranking of a ``run`` (the cell and the selector). No example is at both ends; place 1 of the
    bottom is the last rank."""
    scores = read_table(paths.under(root, paths.SCORES, **run), schemas.SCORES)
    n = len(scores) - scores["rank"].null_count
    top, bottom = range(min(10, (n + 1) // 2)), range(n - 1, n - 1 - min(10, n // 2), -1)
    rows = excerpt_rows(scores, [*top, *bottom], paths.under(root, paths.EXAMPLES, **run))
    places = [*(("top", p + 1) for p in top), *(("bottom", n - p) for p in bottom)]
    pairs = zip(places, rows, strict=True)
    return [{**run, "end": end, "place": place, **row} for (end, place), row in pairs]


def refit_ranks(scores: pa.Table, refits: Iterable[Doubles]) -> tuple[list[str], Ranks]:
    """Return the ids (n1,) of the forget texts in the order of ``scores``, and ranks (R, n1) from
    1: a row by ``scores``, and one by the scores (n,) of each refit, the highest first, ties by id.
    In an unlabelled corpus, copies of examples come before all others."""
    forget = np.asarray(scores["rank"].is_valid())
    ranked = scores.filter(forget)
    ids = ranked["id"].to_numpy().astype(np.str_)
    ranks = [ranked["rank"].to_numpy().astype(np.int64)]
    is_other = np.ones(len(ids), dtype=np.bool_)
    if "posterior" in ranked.column_names:
        is_copy = pc.and_(pc.equal(ranked["domain"], FORGET), pc.equal(ranked["posterior"], 1.0))
        is_other = ~np.asarray(is_copy)
    for again in refits:
        ranks.append(np.argsort(np.lexsort((ids, -again[forget], is_other))) + 1)
    return ids.tolist(), np.stack(ranks)


def stability_columns(
    ids: Sequence[str], ranks: Ranks, budgets: Sequence[float]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the columns of the table ``stability`` from ``refit_ranks``, and a summary: the number
    of rankings R, and the mean and least Spearman correlation of the first with the others. Each
    budget has the mean and least share of its list that another lists (``expected_overlap``,
    ``least_overlap``), how many texts are ``surely`` in it, and how many are a ``toss_up``. All are
    None with R = 1."""
    total, n1 = ranks.shape
    summary: dict[str, Any] = {"rankings": total, "budgets": {}}
    correlations = [spearman(ranks[0], ranking) for ranking in ranks[1:]]
    if defined := [correlation for correlation in correlations if correlation is not None]:
        summary["spearman"] = {"mean": float(np.mean(defined)), "least": min(defined)}
    first, frequencies = np.argsort(ranks[0]), []
    for beta in budgets:
        listed = ranks <= (k := budget_size(beta, n1))
        frequencies.append(listed.mean(axis=0)[first])
        at_budget = dict.fromkeys(("expected_overlap", "least_overlap", "surely", "toss_up"))
        if total > 1:
            surely = int(listed.all(axis=0).sum())
            at_budget |= {"surely": surely, "toss_up": k - surely}
        if k and total > 1:
            overlaps = (listed[1:] & listed[0]).sum(axis=1) / k
            at_budget["expected_overlap"] = float(overlaps.mean())
            at_budget["least_overlap"] = float(overlaps.min())
        summary["budgets"][paths.beta(beta)] = at_budget
    columns = {
        "id": np.tile(np.array(ids, dtype=object)[first], len(budgets)),
        "rank": np.tile(ranks[0][first], len(budgets)),
        "beta": np.repeat(np.array(budgets, dtype=np.float64), n1),
        "frequency": np.concatenate(frequencies),
    }
    return columns, summary
