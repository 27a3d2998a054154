"""The files of an audit: its sample and its page, what people answered, and what that means."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from mamushi.errors import UserError, located
from mamushi.io import paths, schemas
from mamushi.io.digests import fingerprint
from mamushi.io.files import read_json, read_plain_json, write_json, write_text
from mamushi.io.tables import FORGET, ranked, read_table
from mamushi.selection.removals import digest_of_ids, read_texts_of
from mamushi_curate.listed import read_list
from mamushi_extras.audit import auditing
from mamushi_extras.audit.answers import ANSWERED, YES
from mamushi_extras.audit.auditing import UNSURE
from mamushi_extras.pages import ranking_page
from mamushi_extras.unlabelled.schemas import POSTERIOR

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
    listed = read_list(path)
    windows = (listed.rows or {}).get("windows")
    if windows and windows["action"] == "remove":
        do = "set windows.action to cut, and audit what is listed then"
        raise UserError("lists documents, and windows were ranked", where=path, do=do)
    examples, place = listed.of_run("examples"), listed.place or {}
    copies = defaultdict[str, list[str]](list)
    for row in listed.duplicates():
        copies[row["kept_id"]].append(row["id"])
    texts = read_ranked(place, listed.ids)
    texts["stratum"] = auditing.stratify(texts["source"].to_numpy(), texts["place"].to_numpy())
    strata = texts.groupby("stratum").agg(
        texts=("source", "size"), source=("source", "first"), likely=("likely", "mean")
    )
    strata["listed"] = strata["source"] == 0
    counts = auditing.allocate(strata, min(size, len(texts)))
    rng = np.random.default_rng(seed)
    drawn = texts.iloc[auditing.sample(texts["stratum"].to_numpy(), counts, rng)]
    names = [SOURCES[number] for number in strata.pop("source")]
    strata = strata.assign(texts_of=names, drawn=counts, probability=counts / strata["texts"])
    ids, rows = drawn["id"].tolist(), strata.to_dict("records")
    shown = read_texts_of(examples, ids)
    sample = drawn[["id", "stratum"]].assign(copies=[copies[name] for name in ids])
    audit = {
        "list": {name: str(value) for name, value in place.items() if name != "root"},
        **{"ids_sha256": digest_of_ids(listed.ids), "texts_sha256": digest_of_ids(shown)},
        **{"question": question, "seed": seed, "strata": rows},
        **{"sample": sample.to_dict("records"), "earlier": read_earlier(examples, copies)},
    }
    to, page = folder / "audit.json", folder / "audit.html"
    if to.exists() and read_json(to) != audit:
        do = "name another folder in --out, or remove this one with its answers"
        raise UserError("another audit is there", where=to, do=do)
    data = {"audit": fingerprint(audit), **ranking_page.page_texts(ids, shown)}
    values = {
        "title": f"Audit of {place['dataset']}",
        "question": question,
        "script": (PAGE / "audit.js").read_text(encoding="utf-8"),
        "data": ranking_page.json_in_html(data),
    }
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
    """Return what was answered before about texts and their copies, by which they were ranked."""
    column = f"label_{ANSWERED}"
    if column not in pq.read_schema(examples).names:
        return {}
    rows = ranked(examples, column)
    pairs = zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True)
    return {same: said for name, said in pairs if said for same in (name, *copies.get(name, ()))}


def merge_answers(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Say what the answers mean, and write them as one file. Raises ``UserError`` for answers to
    another audit."""
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
    merged = auditing.merge(people, least)
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
        estimates = auditing.estimates(pd.DataFrame(strata), answers, rng)
        for name, (value, low, high) in estimates.items():
            print(f"  {name:<10}{value:.3f} [{low:.3f}, {high:.3f}]   {auditing.QUANTITIES[name]}")
    labels = dict(audit["earlier"])
    for drawn, answer in zip(sample, auditing.merge(people), strict=False):
        if answer != UNSURE:
            labels |= dict.fromkeys([drawn["id"], *drawn["copies"]], answer)
    out = folder / "merged.json"
    summary = {"annotators": [*people], "estimates": estimates, "withheld": withheld}
    write_json(out, {**summary, "unsure": unsure, "labels": labels})
    print(f"{out}: the answers as labels, for mamushi rank --label {out}")
    return {"merged": out, **summary, "unsure": unsure}
