"""Judge a removal list by what is known of that list: how well its own ranking tells the domains
apart and what else the scores follow, how much of the list the retain domain would have put there
too, and how much of it is chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from mamushi.evidence.confounds import TextProperties, confound_rows
from mamushi.evidence.dependence import Dependence
from mamushi.evidence.verdict import STRONG, WEAK, auc_interval, auc_words, strength
from mamushi.io.tables import FORGET
from mamushi.selection.refits import WHOLE_REFIT, Refit

TAKE, CHECK, REFUSE, COMPARISON, UNKNOWN = "take", "check", "refuse", "comparison", "unknown"
ADVICE_WORDS = {
    TAKE: "act on it",
    CHECK: "check the list before deleting",
    REFUSE: "do not delete by this",
    COMPARISON: "a comparison, not to be acted on",
    UNKNOWN: "no verdict",
}
"""What to do with a list, in words."""

FOLLOWED = 0.3
"""The end of an interval, on a scale from -1 to 1, beyond which a score follows something else."""
MOST_NAMED = 3
"""Most of what a score follows that is named, the closest first."""
VAGUE = 0.8
"""A share that is known no better than so is not told."""
MOST_RETAIN = 0.5
"""The bound on the share of retain-like texts above which a list is to be checked."""
MOST_TOSSED = 0.25
"""The share of toss-ups above which a list is to be checked."""


def leading(lists: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return the selectors of ``lists`` (manifests by selector), the one to be acted on first.

    That is the selector whose scores estimate the ratio, else the first that is no comparison.
    Comparisons come last.
    """

    def place(name: str) -> tuple[bool, bool, str]:
        first = lists[name][0]
        return first["judgement"]["act"] == COMPARISON, first["expected"]["by"] != name, name

    return sorted(lists, key=place)


def separation(scores: pa.Table, refits: Sequence[Refit], texts: TextProperties) -> dict[str, Any]:
    """Return how well ``scores`` tell the domains apart, and what else they follow.

    ``auc`` has its interval by the groups of ``texts`` and over ``refits``, ``matched`` is the AUC
    among texts of one length. ``follows`` lists the confounds that scores follow within the forget
    domain. AUCs are None where retain texts have no score.
    """
    score = np.asarray(scores["score"].to_numpy(), dtype=np.float64)
    forget = np.asarray(scores["rank"].is_valid())
    nothing = dict.fromkeys(("auc", "auc_low", "auc_high", "matched", "matched_low"))
    separates: dict[str, Any] = {**nothing, "follows": []}
    rows = confound_rows(score, forget, texts, cross_fitted=scores["fold"].null_count == 0)
    if not np.isnan(score).any():
        whole = [scored.scores for part, _, scored in refits if part == WHOLE_REFIT]
        ends = auc_interval(score, forget, whole, texts.groups)
        separates |= dict(zip(("auc", "auc_low", "auc_high"), ends, strict=True))
        (row,) = [row for row in rows if row["measure"] == "auc_matched"]
        separates |= {"matched": row["estimate"], "matched_low": row["low"]}
    near = [(_beyond(row), row) for row in rows if row["domain"] == FORGET and row["apart"]]
    near = sorted((pair for pair in near if pair[0] >= FOLLOWED), key=lambda pair: -pair[0])
    keys = ("confound", "value", "measure", "estimate")
    separates["follows"] = [{key: row[key] for key in keys} for _, row in near[:MOST_NAMED]]
    return separates


def separation_by(texts: Dependence | None, separates: Mapping[str, Any]) -> dict[str, Any]:
    """Return a ``separation`` with the intervals that its AUCs have for ``texts`` that depend on
    each other: none if their groups are hidden."""
    if texts is None or separates["auc"] is None:
        return dict(separates)
    low, high = texts.ends(separates["auc"], separates["auc_low"], separates["auc_high"])
    matched_low, _ = texts.ends(separates["matched"] or 0.0, separates["matched_low"], None)
    return {**separates, "auc_low": low, "auc_high": high, "matched_low": matched_low}


def _beyond(row: Mapping[str, Any]) -> float:
    """Return how far the near end of an interval is from chance, on a scale from 0 to 1."""
    ends = [row["low"], row["high"]]
    if row["measure"] != "spearman":
        ends = [2 * end - 1 for end in ends]
    return float(min(map(abs, ends)))


def judge_list(
    separates: Mapping[str, Any],
    removed: int,
    at_budget: Mapping[str, Any],
    also_retain: Mapping[str, float | None],
    *,
    compared: str | None = None,
    reason: str | None = None,
    texts: str = "",
    unit: str = "texts",
    holds: str | None = None,
) -> dict[str, Any]:
    """Return what to do with a list of ``removed`` texts: a key of ``ADVICE_WORDS``, and words.

    ``separates`` is its ``separation``, ``at_budget`` has the number of rankings and the toss-ups,
    ``also_retain`` the share and its bound. ``compared`` says why it is a comparison, ``reason``
    why its scores carry no verdict, ``texts`` what is known of the dependence of the texts,
    ``unit`` what is listed, and ``holds`` what a list holds, where that is said in other words.
    """
    ranking = ranking_words(separates, compared, texts)
    listed = words_of_list(removed, at_budget, also_retain, unit, holds)
    act = CHECK if _doubted(separates, removed, at_budget, also_retain) else TAKE
    if separates["auc"] is None:
        act = UNKNOWN
    elif reason is not None or _lowest(separates) < WEAK:
        act = REFUSE
    listed = f"{reason}; {listed}" if reason else listed
    words = f"{ADVICE_WORDS[act]}: {ranking}; {listed}"
    if compared is not None:
        act, words = COMPARISON, ranking
    return {"act": act, "ranking": ranking, "list": listed, "words": words}


def _lowest(separates: Mapping[str, Any]) -> float:
    """Return the lower end of an AUC's interval; the AUC where that is withheld."""
    low = separates["auc_low"]
    return float(separates["auc"] if low is None else low)


def unit_of(metadata: Mapping[str, Any]) -> str:
    """Return what is ranked, by metadata of scores or a manifest: texts, or windows of them."""
    return "windows" if metadata.get("windows") else "texts"


def _doubted(
    separates: Mapping[str, Any],
    removed: int,
    at_budget: Mapping[str, Any],
    also_retain: Mapping[str, float | None],
) -> bool:
    """Tell whether something speaks for a look at a list before it is acted on."""
    bound, tossed = also_retain["upper_bound"], at_budget["toss_up"]
    low = [end for end in (separates["auc_low"], separates["matched_low"]) if end is not None]
    not_the_texts = {"words", "copies"} & {
        followed["confound"] for followed in separates["follows"]
    }
    return (
        bool(not_the_texts)
        or min(low, default=0.0) < STRONG
        or bound is None
        or bound > MOST_RETAIN
        or tossed is None
        or tossed > MOST_TOSSED * removed
    )


def ranking_words(
    separates: Mapping[str, Any], compared: str | None = None, texts: str = ""
) -> str:
    """Describe in words how good a ranking is, at any budget."""
    if compared is not None:
        return f"{ADVICE_WORDS[COMPARISON]}: {compared}"
    if separates["auc"] is None:
        return "the ranking has no score for retain texts, so it has no AUC"
    words = auc_words(*(separates[name] for name in ("auc", "auc_low", "auc_high")))
    if separates["auc_low"] is not None:
        words = f"{strength(separates['auc_low'])} separation, {words}"
    if separates["matched_low"] is not None and strength(separates["matched_low"]) != strength(
        separates["auc_low"]
    ):
        words += f", {separates['matched']:.2f} among texts of the same length"
    follows = [_follows(followed) for followed in separates["follows"]]
    words += f"; the scores follow {', '.join(follows)}" if follows else ""
    return f"{words}; {texts}" if texts else words


def words_of_list(
    removed: int,
    at_budget: Mapping[str, Any],
    also_retain: Mapping[str, float | None],
    unit: str = "texts",
    holds: str | None = None,
) -> str:
    """Describe in words how much of a list looks like texts to keep, since as many of these would
    have scored as high, and how many are toss-ups. ``holds`` replaces the first of the two.
    """
    if not removed:
        return "the list is empty"
    share, bound = also_retain["estimate"], also_retain["upper_bound"]
    words = "how much of it looks like texts to keep is not known"
    if share is not None and bound is not None and bound < VAGUE:
        words = f"{share:.0%} of it looks like texts to keep, at most {bound:.0%}"
    words = holds or words
    if at_budget["toss_up"] is None:
        return f"{words}; it was not refitted, so its toss-ups are not known"
    tossed, rankings = at_budget["toss_up"], at_budget["rankings"]
    words += f"; {tossed:,} of {removed:,} {unit} are toss-ups"
    return f"{words}: not all {rankings} rankings list them"


def _follows(followed: Mapping[str, Any]) -> str:
    nouns = {"words": "the number of words", "copies": "the number of copies"}
    name = nouns.get(followed["confound"], str(followed["confound"]).removeprefix("label_"))
    if followed["value"] is None:
        return f"{name} (rank correlation {followed['estimate']:.2f})"
    return f"{name} {followed['value']!r} (AUC {followed['estimate']:.2f})"
