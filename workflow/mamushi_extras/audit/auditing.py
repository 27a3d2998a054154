"""An audit of a removal list: a sample of texts, the page on which people read it, and what their
answers say of precision, recall, and the share of the domain before and after.

Texts are drawn at random within strata. Intervals are melded (Fay, Proschan and Brittain 2015): the
exact one-sided confidence distributions of each stratum's number of texts of the domain, of which a
lower limit takes the lower and an upper limit the upper one.

The majority of those who say yes or no decides; a text on which they are divided, or that was
passed over, is unsure. Texts behind the last that was answered are as if they had not been drawn.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mamushi.errors import UserError, located
from mamushi.io import paths, schemas
from mamushi.io.digests import fingerprint
from mamushi.io.files import read_json, read_plain_json, write_json, write_text
from mamushi.io.tables import FORGET, ranked_columns, read_table
from mamushi.selection.arrays import Doubles
from mamushi.selection.removals import digest_of_ids, read_texts_of
from mamushi_curate.removal import read_removal
from mamushi_extras.audit.adds import ANSWERED, NO, YES
from mamushi_extras.pages import ranking_page
from mamushi_extras.unlabelled.schemas import POSTERIOR

Ints = NDArray[np.int64]
UNSURE = "unsure"

TAIL = (1 - 0.95) / 2
DRAWS = 20_000  # Of the number of texts of the domain in each stratum, for an interval.
STRATUM_FLOOR = 4  # One answer in so many is spread evenly over the strata, for surprises.
NEAR = 6  # The stratum below the list's end has at most one in so many of the kept texts.
QUANTITIES = {
    "precision": "of the list is of the domain",
    "recall": "of the domain is on the list",
    "before": "of all texts is of the domain",
    "after": "of what is kept is of the domain",
}
PAGE = Path(__file__).parent / "page"
READERS = 2  # Answers to a text that an interval rests on.
ONE_READER = (
    "what one reader gets wrong is not known, so no share is told: give a second file as well, of "
    "another person, or of the same one who answers the page again under another name"
)
SOURCES = ("listed", "kept", "retain")  # Retain texts are labelled so, and nobody ranked them.
FORGET_TEXT, RETAIN_TEXT = 0.9, 0.05
"""How likely a labelled text is of the domain, by what it was labelled, since labels err."""


def draw_audit(path: Path, size: int, question: str, seed: int, folder: Path) -> dict[str, Any]:
    """Write the audit of a list, and its page."""
    removal = read_removal(path)
    windows = (removal.source or {}).get("windows")
    if windows and windows["action"] == "remove":
        do = "set windows.action to cut, and audit what is listed then"
        raise UserError("lists documents, and windows were ranked", where=path, do=do)
    examples, place = removal.of_run("examples"), removal.run or {}
    copies = defaultdict[str, list[str]](list)
    for row in removal.duplicates():
        copies[row["kept_id"]].append(row["id"])
    texts = read_ranked(place, [*removal.copies])
    texts["stratum"] = stratify(texts["source"].to_numpy(), texts["place"].to_numpy())
    strata = texts.groupby("stratum").agg(
        texts=("source", "size"), source=("source", "first"), likely=("likely", "mean")
    )
    strata["listed"] = strata["source"] == 0
    counts = allocate(strata, min(size, len(texts)))
    rng = np.random.default_rng(seed)
    drawn = texts.iloc[draw_sample(texts["stratum"].to_numpy(), counts, rng)]
    names = [SOURCES[number] for number in strata.pop("source")]
    strata = strata.assign(texts_of=names, drawn=counts, probability=counts / strata["texts"])
    ids, rows = drawn["id"].tolist(), strata.to_dict("records")
    shown = read_texts_of(examples, ids)
    sample = drawn[["id", "stratum"]].assign(copies=[copies[name] for name in ids])
    audit = {
        "list": {name: str(value) for name, value in place.items() if name != "root"},
        **{"ids_sha256": digest_of_ids([*removal.copies]), "texts_sha256": digest_of_ids(shown)},
        **{"question": question, "seed": seed, "strata": rows},
        **{"sample": sample.to_dict("records"), "earlier": read_earlier(examples, copies)},
    }
    to, page = folder / "audit.json", folder / "audit.html"
    if to.exists() and read_json(to) != audit:
        do = "name another folder in --out, or remove this one with its answers"
        raise UserError("another audit is there", where=to, do=do)
    data = {"audit": fingerprint(audit), **ranking_page.page_texts(ids, shown)}
    values = {"title": f"Audit of {place['dataset']}", "question": question, "data": data}
    write_json(to, audit)
    write_text(page, ranking_page.render("audit", PAGE, after="page", **values))
    print(f"{len(drawn):,} of {len(texts):,} texts are drawn")
    print(f"{page}: open it in a browser; every answer is kept there, and s saves them as a file")
    print(f"next: mamushi audit --merge answers-NAME.json --out {folder}")
    return {"page": page, "strata": rows}


def read_ranked(place: Mapping[str, Any], listed: Sequence[str]) -> pd.DataFrame:
    """Read the texts that were ranked with those of a list, a row each: ``id``, ``source`` in
    ``SOURCES``, ``place`` in the ranking, and how ``likely`` of the domain."""
    corpus = paths.under(pattern=paths.POSTERIOR, **place)
    if corpus.is_file():
        texts = read_table(corpus, POSTERIOR).to_pandas()
        texts = texts[texts["rank"].notna()].assign(source=1)
        texts["likely"] = texts["posterior"]
    else:
        scores = paths.under(pattern=paths.SCORES, **place)
        texts = read_table(scores, schemas.SCORES).to_pandas()
        texts["source"] = np.where(texts["domain"] == FORGET, 1, 2)
        texts["likely"] = np.where(texts["domain"] == FORGET, FORGET_TEXT, RETAIN_TEXT)
    texts.loc[texts["id"].isin(listed), "source"] = 0
    # Retain texts have no rank, and go by their scores, without one last.
    texts["place"] = texts["rank"].astype(float).fillna(-texts["score"]).fillna(np.inf)
    return texts[["id", "source", "place", "likely"]].copy()


def read_earlier(examples: Path, copies: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return an earlier audit's answers by the id of a text, the same for its copies."""
    column = f"label_{ANSWERED}"
    if column not in pq.read_schema(examples).names:
        return {}
    rows = ranked_columns(examples, column)
    pairs = zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True)
    return {same: said for name, said in pairs if said for same in (name, *copies.get(name, ()))}


def merge_answers(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Write people's answers as one file of labels. Print and return the estimates that rest on
    them. Raises ``UserError`` for answers to another audit."""
    audit, answers_of = read_json(folder / "audit.json"), dict[str, Any]()
    strata, sample = audit["strata"], audit["sample"]
    for path in files:
        with located(path):
            content = read_plain_json(path)
            if content["audit"] != fingerprint(audit):
                raise UserError("answers another audit", where=path, do="name its folder in --out")
            answers_of[content["annotator"]] = content["answers"]
    # A row per text in the order of reading, a column per annotator.
    people = pd.DataFrame(answers_of, index=[drawn["id"] for drawn in sample], dtype=object)
    least = min(READERS, people.shape[1])
    merged = agreed_answers(people, least)
    codes = [drawn["stratum"] for drawn in sample][: len(merged)]
    every = (merged.notna(), merged == YES, merged == UNSURE)
    answers = np.array([np.bincount(codes, which, len(strata)) for which in every])
    read, yes, unknown = answers
    if missing := int((read <= unknown).sum()):
        problem = f"no yes or no by {least} people yet in {missing} of {len(strata)} strata"
        raise UserError(problem, where=folder, do="answer more texts")
    unsure, estimates = int(unknown.sum()), None
    withheld = ONE_READER if least < READERS else None
    print(f"{int(read.sum()):,} of {len(sample):,} texts, {unsure:,} of them unsure")
    if withheld:
        print(f"  {yes.sum():,.0f} of them of the domain; {withheld}")
    else:
        rng = np.random.default_rng(audit["seed"])
        estimates = estimate(pd.DataFrame(strata), answers, rng)
        for name, (value, low, high) in estimates.items():
            print(f"  {name:<10}{value:.3f} [{low:.3f}, {high:.3f}]   {QUANTITIES[name]}")
    labels = dict(audit["earlier"])
    for drawn, answer in zip(sample, agreed_answers(people), strict=False):
        if answer != UNSURE:
            labels |= dict.fromkeys([drawn["id"], *drawn["copies"]], answer)
    out = folder / "merged.json"
    summary = {"annotators": [*people], "estimates": estimates, "withheld": withheld}
    write_json(out, {**summary, "unsure": unsure, "labels": labels})
    print(f"{out}: the answers as labels, for mamushi rank --label {out}")
    return {"merged": out, **summary, "unsure": unsure}


def stratify(source: Ints, place: Ints | Doubles) -> Ints:
    """Return the stratum of each of n texts, from 0, those of the list first. ``source`` (n,) is 0
    for texts of the list, ``place`` (n,) the order in which the texts of a source would go. The
    list is halved; what is kept is cut below its first texts, as many as the list has, and where it
    is of one source, a second time."""
    codes = np.empty(len(source), dtype=np.int64)
    sources, strata = np.unique(source), list[Ints]()
    for number in sources:
        members = np.flatnonzero(source == number)
        members = members[np.argsort(place[members], kind="stable")]
        near = min(int((source == 0).sum()), len(members) // NEAR)
        ends = [len(members) // 2] if number == 0 else [near, 4 * near][: 4 - len(sources)]
        strata += filter(len, np.split(members, ends))
    for code, members in enumerate(strata):
        codes[members] = code
    return codes


def allocate(strata: pd.DataFrame, answers: int) -> Ints:
    """Return how many of so many ``answers`` each stratum gets (h,): as many as narrows the
    intervals of precision and recall most (Neyman), and no fewer than a floor. What is likely
    counts as much as answers spread evenly: also where nothing is likely something may be."""
    sizes, listed, likely = (strata[name].to_numpy() for name in ("texts", "listed", "likely"))
    worth = answers / len(strata)
    share = (likely * worth + 0.5) / (worth + 1)
    total = sizes @ share
    recall = sizes[listed] @ share[listed] / total
    of_precision = np.where(listed, sizes / max(sizes[listed].sum(), 1), 0.0)
    of_recall = np.where(listed, 1 - recall, recall) * sizes / total
    need = np.hypot(of_precision, of_recall) * np.sqrt(share * (1 - share))
    counts = np.minimum(sizes, max(2, answers // (STRATUM_FLOOR * len(strata))))
    for _ in range(min(answers, int(sizes.sum())) - int(counts.sum())):
        # To where it takes most off the variance, which is need^2 / answers (Wright 2012).
        takes_off = np.where(counts < sizes, need**2 / (counts * (counts + 1.0)), -1.0)
        counts[takes_off.argmax()] += 1
    return np.asarray(counts, dtype=np.int64)


def draw_sample(codes: Ints, counts: Ints, rng: np.random.Generator) -> Ints:
    """Return which texts to read, in an order by chance: ``counts`` (h,) of each stratum."""
    members = (np.flatnonzero(codes == stratum) for stratum in range(len(counts)))
    drawn = [rng.choice(rows, n, replace=False) for rows, n in zip(members, counts, strict=True)]
    return np.asarray(rng.permutation(np.concatenate(drawn)))


def estimate(
    strata: pd.DataFrame, answers: Doubles, rng: np.random.Generator
) -> dict[str, tuple[float, float, float]]:
    """Return each of ``QUANTITIES`` with the ends of its 95% interval, from ``answers`` (3, h): how
    many texts of each stratum were read, how many of them are of the domain, and of how many nobody
    can say. These are left out of the value; each limit takes one for what is worse."""
    read, yes, unsure = answers
    sizes, listed = strata["texts"].to_numpy(), strata["listed"].to_numpy()

    def draw_counts(seen: Doubles, shift: int) -> Doubles:
        """Draw the number of texts of the domain in each stratum (DRAWS, h). Among texts that
        nobody read it is beta-binomial, as order statistics of a sample without replacement. A
        shift of 0 gives the exact distribution of the lower limit, 1 that of the upper one."""
        a, b = seen + shift, read - seen + 1 - shift
        share = rng.beta(np.maximum(a, 1e-9), np.maximum(b, 1e-9), (DRAWS, len(read)))
        share = np.where(a <= 0, 0.0, np.where(b <= 0, 1.0, share))
        return np.asarray(seen + rng.binomial(np.rint(sizes - read).astype(int), share))

    def quantities(numbers: Doubles, of_kept: Doubles) -> list[Doubles]:
        """Return ``QUANTITIES`` of numbers of texts (..., h). Recall is the lower, the fewer listed
        and the more kept texts are of the domain: it takes numbers ``of_kept`` texts by others."""
        of_all = np.where(listed, numbers, of_kept)
        return [
            numbers[..., listed].sum(-1) / sizes[listed].sum(),
            of_all[..., listed].sum(-1) / of_all.sum(-1),
            numbers.sum(-1) / sizes.sum(),
            numbers[..., ~listed].sum(-1) / sizes[~listed].sum(),
        ]

    low, high = draw_counts(yes, 0), draw_counts(yes + unsure, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        numbers = sizes * (yes / (read - unsure))
        ends = quantities(numbers, numbers), quantities(low, high), quantities(high, low)
    return {
        name: (
            float(value),
            float(np.quantile(np.nan_to_num(lowest, nan=0.0), TAIL)),
            float(np.quantile(np.nan_to_num(highest, nan=1.0), 1 - TAIL)),
        )
        for name, value, lowest, highest in zip(QUANTITIES, *ends, strict=True)
    }


def agreed_answers(people: pd.DataFrame, least: int = 1) -> pd.Series:
    """Return one answer for each of the first texts, in reading order, that ``least`` people have
    reached: yes or no where ``least`` more people say so than say the opposite, else unsure."""
    places = np.arange(1, len(people) + 1)[:, None] * people.notna().to_numpy()
    reached = np.sort(places.max(axis=0))
    count = reached[-least] if len(reached) >= least else 0
    margin = ((people == YES).sum(axis=1) - (people == NO).sum(axis=1))[:count]
    merged = np.select([margin >= least, margin <= -least], [YES, NO], UNSURE)
    return pd.Series(merged, margin.index, dtype=object)
