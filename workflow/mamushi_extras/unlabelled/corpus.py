"""Rank a corpus that nobody labelled: a posterior of each text, and what a list of the first holds.

Rows are those of ``like``, scores a selector's: of examples against the corpus, cross-fitted. First
come certain texts, copies of examples but no hits of a blocklist; wanted texts are in no list.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mamushi.data.groups import effective_share
from mamushi.data.labels import group_codes
from mamushi.evidence.verdict import VAGUE, judge_list, unit_of
from mamushi.io.domains import FORGET
from mamushi.io.tables import ranked_columns, read_metadata
from mamushi.selection.arrays import Doubles, Mask
from mamushi.selection.removals import digest_of_ids
from mamushi_extras.audit.adds import ANSWERED
from mamushi_extras.unlabelled.like import GIVEN, SCREEN, WANTED
from mamushi_extras.unlabelled.schemas import POSTERIOR
from mamushi_extras.unlabelled.share import ERROR, FAIR, Tilt, count_bounds, share

ShareInterval = dict[str, float | None]
ENDS = ("estimate", "low", "high")
NOTHING: ShareInterval = dict.fromkeys(ENDS)

NO_SAMPLE = "the hits of a blocklist are no sample of the domain: nothing bounds its share"
NO_GOLD = "nobody marked the domain in the corpus, so there is no gold standard to come near"


@dataclass
class Corpus:
    """Out-of-fold scores (n,) of texts by their ``ids``: of ``examples``, of texts ``inside`` the
    corpus, and of ones ``to_keep``. An example inside is certain, unless they are ``hits`` of a
    blocklist. What was ``answered`` is no fair sample, as it was drawn about the ends of lists. Of
    those given, a screen that the corpus passed would have ``missed`` some. ``groups`` are codes of
    texts that are not independent, such as windows of a document, and ``fair`` says which texts
    beside the corpus were drawn at random, ``LIKE`` and ``UNLIKE``."""

    ids: NDArray[np.object_]
    score: Doubles
    examples: Mask
    inside: Mask
    to_keep: Mask
    hits: bool = False
    answered: Mask | bool = False
    groups: NDArray[np.int64] | None = None
    missed: Mask | bool = False
    fair: Collection[str] = FAIR

    def __post_init__(self) -> None:
        # Fair samples: of the domain, of what of it would pass the screen, as all texts of the
        # corpus did, and of what the corpus has outside the domain.
        unasked, passed = np.logical_not(self.answered), np.logical_not(self.missed)
        self.drawn: Mask = self.examples & unasked
        self.sample: Mask = self.drawn & passed
        self.keep_sample: Mask = self.to_keep & unasked & passed
        # Texts that are of the domain for certain, and those of which nothing is known but by
        # asking; among hits those of which nothing is known at all.
        is_sure = np.logical_or(self.answered, not self.hits)
        self.certain: Mask = self.examples & self.inside & is_sure
        asked = np.logical_and(self.answered, not self.hits)
        self.unknown: Mask = (self.inside & ~self.examples) | asked
        # Places of the corpus texts: the certain ones, then by score, ties by id.
        order = np.lexsort((self.ids.astype(np.str_), -self.score, ~self.certain))
        self.order: NDArray[np.int64] = order[self.inside[order]]
        # The share of the domain in the unknown texts, and the ratio of the domain to these.
        masks = self.sample, self.unknown, self.keep_sample
        examples, unknown, to_keep = (self.score[mask] for mask in masks)
        fair, alone = () if self.hits else self.fair, [*map(self.effective_share, masks)]
        self.unknown_share = share(examples, unknown, to_keep, alone, fair)
        self.ratio = Tilt.fit(examples, unknown, self.unknown_share.estimate)

    def effective_share(self, mask: Mask) -> float:
        """Return what share of these texts says as much as all, see ``groups.effective_share``."""
        return effective_share(None if self.groups is None else self.groups[mask])

    @cached_property
    def posterior(self) -> Doubles:
        """Return the probability of each text to be of the domain, (n,), by the guessed share. Of
        hits it is that of their score turned round, which takes false ones to be like others."""
        probability = self.ratio.posterior(self.score)
        if not self.hits:
            return np.where(self.examples, 1.0, np.where(self.to_keep, 0.0, probability))
        turned = Tilt.fit(-self.score[self.unknown], -self.score[self.sample])
        true = 1 - turned.posterior(-self.score)
        probability = np.where(self.examples, true, probability * true)
        return np.where(self.answered, self.examples, probability)

    @property
    def likely(self) -> int:
        """Count how many texts of the corpus are more likely than not of the domain."""
        return int((self.posterior[self.inside] > 0.5).sum())

    def share(self) -> dict[str, Any]:
        """Return the share of the domain in the corpus, with what is known for certain."""
        if self.hits:
            return {**NOTHING, "reason": NO_SAMPLE}
        of, unknown = self.unknown_share, int(self.unknown.sum())
        n, known = (self.inside | self.answered).sum(), (self.certain & ~self.unknown).sum()
        ends = (None if of.high is None else of.estimate, of.low, of.high)
        scaled = [None if end is None else (end * unknown + int(known)) / int(n) for end in ends]
        return {**dict(zip(ENDS, scaled, strict=True)), "reason": of.reason}

    def table(self, scores: pa.Table) -> pa.Table:
        """Return the table ``posterior`` of the texts of the table ``scores``."""
        ranks = np.zeros(len(self.ids), dtype=np.int64)
        ranks[self.order] = np.arange(1, len(self.order) + 1)
        a = max(self.unknown_share.estimate, 1e-6)
        columns = {
            "id": pa.array(self.ids, pa.string()),
            "domain": scores["domain"],
            "score": self.score,
            "rank": pa.array(ranks, mask=~self.inside),
            "fold": scores["fold"],
            "log_ratio": np.log(np.maximum(self.ratio.posterior(self.score), 1e-300) / a),
            "posterior": self.posterior,
        }
        return pa.table(columns, schema=POSTERIOR.schema)

    def list_rates(self, k: int) -> tuple[ShareInterval, ShareInterval]:
        """Return precision of the list of the first ``k`` texts, and recall: the chance of a text
        of the domain that is not certain to be in it; each at 95%, and null where it is not known.
        Examples that are no fair sample bound neither; texts that are wanted bound the precision
        from below even so."""
        if not k:
            return NOTHING, NOTHING
        certain, unknown, of = int(self.certain.sum()), int(self.unknown.sum()), self.unknown_share
        # Below the certain ones: unknown texts that score as high as the last.
        above, deep = self.score >= self.score[self.order[k - 1]], k > certain
        sure, not_wanted = min(k, certain) / k, 0.0
        # The share has spent half of it; two bounds from below share the rest.
        error = ERROR if of.high is None else ERROR / (2 if of.low is None else 4)
        if of.low is not None:
            # What is not of the domain scores like a fair sample of texts that are wanted.
            alone, same = self.effective_share(self.keep_sample), self.keep_sample & above
            most = count_bounds(same.sum() * alone, self.keep_sample.sum() * alone, error)[1]
            not_wanted = max(0.0, 1 - (1 - of.low) * unknown * deep * most / k)
        if of.high is None:
            return {**NOTHING, "low": max(sure, not_wanted) or None}, NOTHING

        def chance(among: Mask) -> tuple[float, float, float]:
            hits, n = int((self.sample & above).sum()), int(among.sum())
            return (hits / n, *count_bounds(hits, n, error)) if deep else (0.0, 0.0, 0.0)

        # What the share counts at the cut is not counted twice.
        certainly = min(k, certain) - int((self.certain & self.unknown & above).sum()) * deep
        shares = zip((of.estimate, of.low or 0.0, of.high), chance(self.sample), strict=True)
        listed = (certainly + a * unknown * caught for a, caught in shares)
        at, low, high = (min(max(n / k, sure), 1.0) for n in listed)
        low = max(low, not_wanted)
        if of.low is not None:
            # Examples from elsewhere bound nothing from above, and mislead the guess of the share.
            at, high = max(at, low), high if low <= high else 1.0
        # Recall is of all texts of the domain that a screen read.
        both = (at, low or None if of.low is None else low, high), chance(self.drawn)
        of_list, of_domain = (dict(zip(ENDS, ends, strict=True)) for ends in both)
        return of_list, of_domain


def read_corpus(scores: pa.Table, examples: Path, *, hits: bool, fair: Collection[str]) -> Corpus:
    """Return it from the table ``scores`` and the table ``examples`` that it was made from."""
    names = [GIVEN, ANSWERED, *([SCREEN] if "screened" in read_metadata(examples) else [])]
    columns = ranked_columns(examples, "group", *(f"label_{name}" for name in names))
    role = columns[f"label_{GIVEN}"]
    return Corpus(
        ids=np.array(scores["id"].to_pylist(), dtype=object),
        score=np.asarray(scores["score"].to_numpy(), dtype=np.float64),
        examples=np.asarray(pc.equal(scores["domain"], FORGET)),
        inside=np.asarray(role.is_null()),
        answered=np.asarray(columns[f"label_{ANSWERED}"].is_valid()),
        to_keep=np.asarray(pc.fill_null(pc.equal(role, WANTED), fill_value=False)),
        hits=hits,
        fair=fair,
        groups=group_codes(columns["group"]),
        missed=np.asarray(columns[f"label_{SCREEN}"]) < 0 if SCREEN in names else False,
    )


def manifest_of_corpus(
    corpus: Corpus,
    listed: pa.Table,
    separates: Mapping[str, Any],
    stable: Mapping[str, Any],
    compared: str | None = None,
    unit: str = "texts",
) -> dict[str, Any]:
    """Return what is known of a list, the table ``removals``. ``separates`` and ``unit`` are as in
    ``judge_list``; ``stable`` says how often its texts are listed."""
    k = len(listed)
    precision, recall = corpus.list_rates(k)
    # What is known of labelled lists: how much is not of the domain.
    at, low = (None if end is None else 1 - end for end in map(precision.get, ENDS[:2]))
    wrong = {"estimate": at, "upper_bound": low}
    content = describe_list(precision, recall, unit)
    judged = judge_list(separates, k, stable, wrong, compared=compared, unit=unit, holds=content)
    return {
        "n_forget": len(corpus.order),
        "n_retain": 0,
        "examples": int(corpus.examples.sum()),
        "certain": int(corpus.certain.sum()),
        "removed": k,
        "copies": sum(map(len, listed["copies"].to_pylist())),
        "threshold": float(listed["score"][-1].as_py()) if k else None,
        "ids_sha256": digest_of_ids(listed["id"].to_pylist()),
        **judged,
        "also_retain": {**wrong, "of": "the share of the list that is not of the domain"},
        "share": corpus.share(),
        "hits": corpus.hits,
        "likely": corpus.likely,
        "precision": precision,
        "recall": recall,
        "stability": stable,
        "expected": {"unit": "nats", "by": None, "withheld": NO_GOLD},
    }


def describe_list(precision: ShareInterval, recall: ShareInterval, unit: str = "texts") -> str:
    """Return a clause on the precision and recall of a removal list of texts, or of another
    unit."""
    listed, single = "it" if unit == "texts" else f"its {unit}", unit.removesuffix("s")
    has = f"a {single} like the examples is in it with a chance of {share_text(recall)}"
    has = "how much of the domain it has is not known" if recall["low"] is None else has
    return f"{share_text(precision)} of {listed} is of the domain, and {has}"


def share_text(share: Mapping[str, Any]) -> str:
    """Return a share as far as it is known: an interval wider than ``VAGUE`` says nothing."""
    at, low, high = (
        end if end is None else f"{end:{'.0%' if end > 0.1 else '.1%'}}"
        for end in map(share.get, ENDS)
    )
    if high is None:
        return f"at least {low}" if share["low"] else "an unknown share"
    if low is None:
        return f"perhaps {at}, at most {high},"
    return f"{at} [{low}, {high}]" if share["high"] - share["low"] <= VAGUE else "an unknown share"


def cell_notes(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return what is shown of a cell by the manifest of one of its lists, by heads."""
    share, unit = manifest["share"], unit_of(manifest)
    by = f"{manifest['examples']:,} {'hits of terms' if manifest['hits'] else 'examples'}"
    lines = {"ranked": f"{manifest['n_forget']:,} {unit} of the corpus, by {by}"}
    why = f"\n            {share['reason']}" if share["reason"] else ""
    lines["share"] = f"{share_text(share)} of them is of the domain{why}"
    if manifest["certain"]:
        lines["certain"] = f"{manifest['certain']:,} {unit} are copies of examples"
    guess = ", at a guess of the share" if None in (share["low"], share["high"]) else ""
    lines["likely"] = f"{manifest['likely']:,} {unit} are more likely than not of the domain{guess}"
    return lines
