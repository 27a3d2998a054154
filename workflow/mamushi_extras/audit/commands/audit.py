"""Read a sample of texts, and learn a list's precision and recall.

With LIST: draws the texts, and writes a page on which people answer yes, no or unsure, which opens
offline. With --merge: joins the files that the page saved. Of texts that two people answered, or
one twice under two names, it gives precision, recall and the share of the domain before and after,
with 95% intervals. mamushi rank --label takes the answers as labels.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mamushi.errors import UserError

if TYPE_CHECKING:
    import pandas as pd

PAGE = Path(__file__).parents[1] / "page"
QUESTION, FOLDER = "Is this text of the domain that is to go?", Path("audit")
SIZE = 300
"""Texts that a person reads in an hour."""
READERS = 2
"""Answers to a text that an interval rests on: what one reader gets wrong, nothing shows."""
ONE_READER = (
    "what one reader gets wrong is not known, so no share is told: give a second file as well, of "
    "another person, or of the same one who answers the page again under another name"
)
SOURCES = ("listed", "kept", "retain")
"""What there is to draw from: retain texts are labelled ones that nobody ranked for removal."""
FORGET_TEXT, RETAIN_TEXT = 0.9, 0.05
"""How likely a labelled text is of the domain, by what it was labelled, since labels err."""


def run(
    list: Path | None = None,
    /,
    *,
    merge: Sequence[Path] = (),
    size: int = SIZE,
    question: str = QUESTION,
    seed: int = 0,
    out: Path = FOLDER,
) -> tuple[int, Any]:
    """Raises ``UserError`` for a list away from its run, another audit in the folder, and as
    ``auditing.read_answers``.

    :param list: A list of a run.
    :param merge: Or answers that the page saved, a file a person.
    :param size: Texts to read, the default in about an hour.
    :param question: What the page asks.
    :param seed: Of the sample.
    :param out: Folder of the audit.
    """
    if list is None and merge:
        return 0, merge_answers(out, merge)
    if list is None or merge:
        raise UserError("give a LIST or --merge")
    return 0, draw_audit(list, size, question, seed, out)


def draw_audit(path: Path, size: int, question: str, seed: int, folder: Path) -> dict[str, Any]:
    """Write the audit and its page."""
    import numpy as np

    from mamushi.io.digests import fingerprint
    from mamushi.io.files import read_json, write_json, write_text
    from mamushi.selection.removals import digest_of_ids, read_texts_of
    from mamushi_curate.listed import read_list
    from mamushi_extras.audit import auditing
    from mamushi_extras.pages import ranking_page

    listed = read_list(path)
    windows = (listed.rows or {}).get("windows")
    if windows and windows["action"] == "remove":
        do = "set windows.action to cut, and audit what is listed then"
        raise UserError("lists documents, and windows were ranked", where=path, do=do)
    examples, place = listed.of_run("examples"), listed.place or {}
    copies = defaultdict[str, list[str]](list)
    for row in listed.duplicates():
        copies[row["kept_id"]].append(row["id"])
    ranked = read_ranked(place, listed.ids)
    ranked["stratum"] = auditing.stratify(ranked["source"].to_numpy(), ranked["place"].to_numpy())
    strata = auditing.strata_of(ranked)
    counts = auditing.allocate(strata, min(size, len(ranked)))
    rng = np.random.default_rng(seed)
    drawn = ranked.iloc[auditing.sample(ranked["stratum"].to_numpy(), counts, rng)]
    names = [SOURCES[number] for number in strata.pop("source")]
    strata = strata.assign(texts_of=names, drawn=counts, probability=counts / strata["texts"])
    rows, texts = strata.to_dict("records"), read_texts_of(examples, drawn["id"].tolist())
    audit = {
        "list": {name: str(value) for name, value in place.items() if name != "root"},
        **{"ids_sha256": digest_of_ids(listed.ids), "texts_sha256": digest_of_ids(texts)},
        **{"question": question, "seed": seed, "strata": rows},
        "sample": [
            {"id": name, "stratum": stratum, "copies": copies[name]}
            for name, stratum in drawn[["id", "stratum"]].itertuples(index=False)
        ],
        "earlier": read_earlier(examples, copies),
    }
    to, page = folder / "audit.json", folder / "audit.html"
    if to.exists() and read_json(to) != audit:
        do = "name another folder in --out, or remove this one with its answers"
        raise UserError("another audit is there", where=to, do=do)
    shown = {"audit": fingerprint(audit), **ranking_page.page_texts(drawn["id"].tolist(), texts)}
    values = {"title": f"Audit of {place['dataset']}", "question": question}
    values["script"] = (PAGE / "audit.js").read_text(encoding="utf-8")
    values["data"] = ranking_page.json_in_html(shown)
    write_json(to, audit)
    write_text(page, ranking_page.render("audit", PAGE, after="page", **values))
    print(f"{len(drawn):,} of {len(ranked):,} texts are drawn")
    for row in rows:
        print(f"  {row['texts_of']:<16}{row['drawn']:>6,} of {row['texts']:,} texts")
    print(f"{page}: open it in a browser; every answer is kept there, and s saves them as a file")
    out = "" if folder == FOLDER else f" --out {shlex.quote(str(folder))}"
    print(f"next: mamushi audit --merge answers-NAME.json{out}")
    return {"page": page, "strata": rows}


def read_ranked(place: Mapping[str, Any], listed: Sequence[str]) -> pd.DataFrame:
    """Read the texts that were ranked with those of a list, a row each: ``id``, ``source`` in
    ``SOURCES``, ``place`` in the ranking, and how ``likely`` of the domain."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    from mamushi.io import paths, schemas
    from mamushi.io.tables import FORGET, read_table
    from mamushi_extras.unlabelled.schemas import POSTERIOR

    corpus = paths.under(pattern=paths.POSTERIOR, **place)
    if corpus.is_file():
        table = read_table(corpus, POSTERIOR)
        table = table.filter(table["rank"].is_valid())
        source, likely = np.ones(len(table), np.int64), table["posterior"].to_numpy()
    else:
        table = read_table(paths.under(pattern=paths.SCORES, **place), schemas.SCORES)
        forget = np.asarray(pc.equal(table["domain"], FORGET))
        source, likely = np.where(forget, 1, 2), np.where(forget, FORGET_TEXT, RETAIN_TEXT)
    source[np.asarray(pc.is_in(table["id"], pa.array(listed, pa.string())))] = 0
    by_score = pc.fill_null(pc.negate(table["score"]), np.inf)
    order = pc.coalesce(table["rank"].cast(pa.float64()), by_score).to_numpy()
    columns = {"id": table["id"].to_pylist(), "source": source, "place": order, "likely": likely}
    return pd.DataFrame(columns)


def read_earlier(examples: Path, copies: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return what was answered before about texts and their copies, by which they were ranked."""
    import pyarrow.parquet as pq

    from mamushi.io.tables import ranked
    from mamushi_extras.audit.answers import ANSWERED

    column = f"label_{ANSWERED}"
    if column not in pq.read_schema(examples).names:
        return {}
    rows = ranked(examples, column)
    pairs = zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True)
    answers = {name: answer for name, answer in pairs if answer}
    return {same: answers[name] for name in answers for same in (name, *copies.get(name, ()))}


def merge_answers(folder: Path, files: Sequence[Path]) -> dict[str, Any]:
    """Say what the answers mean, and write them as one file."""
    import numpy as np
    import pandas as pd

    from mamushi.io.files import read_json, write_json
    from mamushi_extras.audit import auditing
    from mamushi_extras.audit.answers import YES

    audit = read_json(folder / "audit.json")
    people = auditing.read_answers(files, audit)
    strata, sample = audit["strata"], audit["sample"]
    least = min(READERS, people.shape[1])
    merged = auditing.merge(people, least)
    codes = [drawn["stratum"] for drawn in sample][: len(merged)]
    every = (merged.notna(), merged == YES, merged == auditing.UNSURE)
    answers = np.array([np.bincount(codes, which, len(strata)) for which in every])
    read, yes, unknown = answers
    if missing := int((read <= unknown).sum()):
        by = " by two people" * (least > 1)
        problem = f"no yes or no yet{by} in {missing} of {len(strata)} strata"
        raise UserError(problem, where=folder, do="answer more texts")
    unsure, estimates = int(unknown.sum()), None
    print(f"{int(read.sum()):,} of {len(sample):,} texts, {unsure:,} of them unsure")
    if withheld := ONE_READER if least < READERS else None:
        print(f"  {yes.sum():,.0f} of them of the domain; {withheld}")
    else:
        rng = np.random.default_rng(audit["seed"])
        estimates = auditing.estimates(pd.DataFrame(strata), answers, rng)
        for name, (value, low, high) in estimates.items():
            print(f"  {name:<10}{value:.3f} [{low:.3f}, {high:.3f}]   {auditing.QUANTITIES[name]}")
    labels = dict(audit["earlier"])
    for drawn, answer in zip(sample, auditing.merge(people), strict=False):
        if answer != auditing.UNSURE:
            labels |= dict.fromkeys([drawn["id"], *drawn["copies"]], answer)
    out = folder / "merged.json"
    summary = {"annotators": [*people], "estimates": estimates, "withheld": withheld}
    write_json(out, {**summary, "unsure": unsure, "labels": labels})
    print(f"{out}: the answers as labels, for mamushi rank --label {out}")
    return {"merged": out, **summary, "unsure": unsure}
