"""Read a sample of texts, and learn a list's precision and recall.

With LIST: draws the texts and writes a page that opens offline, on which people answer yes, no or
unsure by key. How certain so many answers will be is said before. With --merge: joins the files
that the page saved and says how far people agree. Of texts that two people answered, or one twice
under two names, it gives precision, recall and the share of the domain before and after, with 95%
intervals. mamushi rank --label takes the answers as labels.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi.errors import UserError

_PAGE = Path(__file__).parents[1] / "page"
GROUP = "decide"
SIZE = 300
"""Texts that a person reads in an hour."""
READERS = 2
"""Answers to a text that an interval rests on: what one reader gets wrong, nothing shows."""
ONE_READER = (
    "what one reader gets wrong is not known, so no share is told: give a second file as well, of "
    "another person, or of the same one who answers the page again under another name"
)
_HALF = 0.05
"""Half the width of the intervals of which is said how many answers give them."""
_PARTS = ("listed", "kept", "retain")
"""What there is to draw from: retain texts are labelled ones that nobody ranked for removal."""
_SHOWN = 5
"""Texts on which people differ that are printed."""
FORGET_TEXT, RETAIN_TEXT = 0.9, 0.05
"""How likely a labelled text is of the domain, by what it was labelled, since labels err."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("list", nargs="?", type=Path, metavar="LIST", help="a list of a run")
    texts = "texts to read (default: %(default)s, about an hour)"
    parser.add_argument("--size", type=int, default=SIZE, metavar="N", help=texts)
    ask, default = "what the page asks", "Is this text of the domain that is to go?"
    parser.add_argument("--question", default=default, help=f"{ask} (default: {default})")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    files = "answers that the page saved, a file a person"
    parser.add_argument("--merge", nargs="+", type=Path, metavar="FILE", help=files)
    out = "folder of the audit (default: audit)"
    parser.add_argument("--out", type=Path, default=Path("audit"), metavar="FOLDER", help=out)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for a list away from its run, another audit in the folder, and as
    ``annotators`` for answers."""
    if (args.list is None) == (args.merge is None):
        do = "give LIST to draw an audit, or --merge and the files that its page saved"
        raise UserError("one of both is needed, a list or answers", do=do)
    if args.merge is not None:
        _merge(args.out, args.merge)
    else:
        _draw(args)


def _ranked(where: Mapping[str, Any], listed: Sequence[str]) -> tuple[list[str], Any, Any, Any]:
    """Read the n texts that were ranked with those of a list. Return their ids, of which part each
    is, as ``_PARTS`` has them, where it is in the ranking, and how likely of the domain, each (n,).
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from mamushi.io import paths, schemas
    from mamushi.io.tables import FORGET, read_table
    from mamushi_extras.unlabelled.schemas import POSTERIOR

    corpus = paths.under(pattern=paths.POSTERIOR, **where)
    if corpus.is_file():
        table = read_table(corpus, POSTERIOR)
        table = table.filter(table["rank"].is_valid())
        kept, likely = np.ones(len(table), np.int64), table["posterior"].to_numpy()
    else:
        table = read_table(paths.under(pattern=paths.SCORES, **where), schemas.SCORES)
        forget = np.asarray(pc.equal(table["domain"], FORGET))
        kept, likely = np.where(forget, 1, 2), np.where(forget, FORGET_TEXT, RETAIN_TEXT)
    going = np.asarray(pc.is_in(table["id"], pa.array(listed, pa.string())))
    if going.sum() < len(listed):
        path, do = paths.under(pattern=paths.REMOVAL, **where), "make it again with mamushi list"
        raise UserError("lists texts that are not ranked", where=path, do=do)
    by_score = pc.fill_null(pc.negate(table["score"]), np.inf)
    place = pc.coalesce(table["rank"].cast(pa.float64()), by_score).to_numpy()
    return table["id"].to_pylist(), np.where(going, 0, kept), place, likely


def _draw(args: argparse.Namespace) -> None:
    """Write the audit and its page, and say what to expect."""
    import numpy as np

    from mamushi.commands import _removal_list
    from mamushi.io import paths
    from mamushi_extras.audit import auditing
    from mamushi_extras.windows.lists import CutList, DocumentList

    listed = _removal_list.read_list(args.list)
    if isinstance(listed, DocumentList) and not isinstance(listed, CutList):
        do = "set windows.action to cut, and audit what is listed then"
        raise UserError("lists documents, and windows were ranked", where=args.list, do=do)
    listed.of_run("examples")
    where = paths.wildcards(paths.REMOVAL, args.list.absolute()) or {}
    ids, part, place, likely = _ranked(where, listed.ids)
    codes = auditing.strata(part, place)
    design = auditing.Strata.of(codes, part == 0, likely)
    allocated = auditing.allocate(design, min(args.size, len(codes)))
    drawn = auditing.sample(codes, allocated, np.random.default_rng(args.seed))
    parts = part[np.unique(codes, return_index=True)[1]].tolist()
    rows = [
        {"texts_of": _PARTS[of], "texts": size, "drawn": n, "probability": n / size}
        | {"listed": of == 0, "likely": round(p, 6)}
        for of, size, n, p in zip(
            parts,
            design.sizes.tolist(),
            allocated.tolist(),
            design.likely.tolist(),
            strict=True,
        )
    ]
    html = _audit(args, listed, rows, [(ids[row], int(codes[row])) for row in drawn])
    wide = _say(design, allocated, parts, listed.manifest or {})
    _say_next(args, html, strata=rows, half_widths=wide)


def _audit(
    args: argparse.Namespace,
    listed: Any,
    strata: Sequence[Mapping[str, Any]],
    sample: Sequence[tuple[str, int]],
) -> Path:
    """Write an audit of a list and its page, with the ``sample`` of ids and strata to read. Return
    where the page is."""
    from mamushi.evidence.ranking import read_texts_of
    from mamushi.io import paths
    from mamushi.io.files import atomic, read_json, write_json
    from mamushi.selection.removals import digest_of_ids

    where = paths.wildcards(paths.REMOVAL, args.list.absolute()) or {}
    examples, copies = listed.all_copies()
    names = [name for name, _ in sample]
    texts = read_texts_of(examples, names)
    earlier = _earlier(examples, copies)
    audit = {
        "list": {name: str(value) for name, value in where.items() if name != "root"},
        **{"ids_sha256": digest_of_ids(listed.ids), "texts_sha256": digest_of_ids(texts)},
        **{"question": args.question, "seed": args.seed},
        "screen": (listed.manifest or {}).get("screen"),
        "strata": strata,
        "sample": [
            {"id": name, "stratum": stratum, "copies": copies(name)} for name, stratum in sample
        ],
        **({"earlier": earlier} if earlier else {}),
    }
    to, page = args.out / "audit.json", args.out / "audit.html"
    if to.exists() and read_json(to) != audit:
        do = "name another folder in --out, or remove this one with its answers"
        raise UserError("another audit is there", where=to, do=do)
    html = _page(f"Audit of {where['dataset']}", audit, names, texts)
    write_json(to, audit)
    with atomic(page) as file:
        file.write_text(html, encoding="utf-8", newline="\n")
    return page


def _earlier(examples: Path, copies: Callable[[str], Sequence[str]]) -> dict[str, str]:
    """Return what was answered before about texts and their copies, by which they were ranked."""
    import pyarrow.parquet as pq

    from mamushi.io.vectors import ranked
    from mamushi_extras.audit.answers import ANSWERED

    column = f"label_{ANSWERED}"
    if column not in pq.read_schema(examples).names:
        return {}
    rows = ranked(examples, column)
    pairs = zip(rows["id"].to_pylist(), rows[column].to_pylist(), strict=True)
    return {same: answer for name, answer in pairs if answer for same in (name, *copies(name))}


def _say_next(args: argparse.Namespace, page: Path, **expected: Any) -> None:
    """Print what to do with a page, and as JSON also what is ``expected`` of its answers."""
    print(f"{page}: open it in a browser; every answer is kept there, and s saves them as a file")
    named = "" if args.out == Path("audit") else f" --out {shlex.quote(str(args.out))}"
    print(f"next: mamushi audit --merge answers-NAME.json{named}")
    _as_json.put({"page": page, **expected})


def _page(title: str, audit: Mapping[str, Any], ids: Sequence[str], texts: Sequence[str]) -> str:
    """Return the page on which a person answers: one HTML file that opens offline."""
    from mamushi.io.provenance import fingerprint
    from mamushi_extras.pages import ranking_page

    shown = {"audit": fingerprint(audit), **ranking_page.page_texts(ids, texts)}
    return ranking_page.render(
        "audit",
        _PAGE,
        after="page",
        title=title,
        question=audit["question"],
        script=(_PAGE / "audit.js").read_text(encoding="utf-8"),
        data=ranking_page.json_in_html(shown),
    )


def _say(
    design: Any, allocated: Any, parts: Sequence[int], manifest: Mapping[str, Any]
) -> Mapping[str, float]:
    """Print what was drawn, what is known without answers, and what so many of them will give: half
    the widths of 95% intervals, which are returned."""
    from mamushi_extras.audit import auditing
    from mamushi_extras.unlabelled.corpus import list_words, share_text

    drawn = int(allocated.sum())
    print(f"{drawn:,} of {design.sizes.sum():,} texts are drawn")
    for of, size, n in zip(parts, design.sizes, allocated, strict=True):
        print(f"  {_PARTS[of]:<16}{n:>6,} of {size:,} texts")
    if "share" in manifest:
        print(
            f"before, {share_text(manifest['share'])} of the corpus is of the domain; of the list:"
        )
        print(f"  {list_words(manifest['precision'], manifest['recall'])}")
    wide = auditing.expected(design, drawn)
    ends = (f"{name} {100 * wide[name]:.1f}" for name in ("precision", "recall"))
    print(f"{drawn:,} answers: 95% intervals of {', '.join(ends)} points up and down, to expect")
    print(f"{auditing.answers_for(design, _HALF):,} answers: {100 * _HALF:.0f} points for both")
    return {name: float(wide[name]) for name in ("precision", "recall")}


def _merge(folder: Path, files: Sequence[Path]) -> None:
    """Say what the answers mean, and write them as one file."""
    import numpy as np

    from mamushi.io.files import read_json, write_json
    from mamushi_extras.audit import annotators, auditing

    audit = read_json(folder / "audit.json")
    people = annotators.read_answers(files, audit)
    strata, sample = audit["strata"], audit["sample"]
    order = [drawn["id"] for drawn in sample]
    merged = annotators.merge(order, people)
    least = min(READERS, len(people))
    answers = annotators.count_answers(audit, annotators.merge(order, people, least))
    if missing := int((answers.read <= answers.unsure).sum()):
        by = " by two people" * (least > 1)
        problem = f"no yes or no yet{by} in {missing} of {len(strata)} strata"
        raise UserError(problem, where=folder, do="answer more texts")
    withheld = ONE_READER if least < READERS else None
    estimates = None
    if not withheld:
        columns = (np.array([row[key] for row in strata]) for key in ("texts", "listed", "likely"))
        design = auditing.Strata(*columns)
        estimates = auditing.estimates(design, answers, np.random.default_rng(audit["seed"]))
    pairs, unsure = annotators.agreement(people), int(answers.unsure.sum())
    print(f"{int(answers.read.sum()):,} of {len(sample):,} texts, {unsure:,} of them unsure")
    for name, (value, low, high) in (estimates or {}).items():
        print(f"  {name:<10}{value:.3f} [{low:.3f}, {high:.3f}]   {auditing.QUANTITIES[name]}")
    if withheld:
        for part in dict.fromkeys(row["texts_of"] for row in strata):
            here = [place for place, row in enumerate(strata) if row["texts_of"] == part]
            yes, read = answers.yes[here].sum(), answers.read[here].sum()
            print(f"  {part:<10}{yes:,.0f} of {read:,.0f} yes")
        print(f"  {withheld}")
    if screen := audit["screen"]:
        passed = f"{screen['passed']:,} texts that passed the screen, of {screen['texts']:,}"
        print(f"  recall and share are of the {passed}")
    for pair in pairs:
        print(f"  {_agreement(pair)}")
    labels = {
        name: merged[drawn["id"]]
        for drawn in sample
        if merged.get(drawn["id"], annotators.UNSURE) != annotators.UNSURE
        for name in (drawn["id"], *drawn["copies"])
    }
    out = folder / "merged.json"
    summary = {
        "annotators": [*people],
        "agreement": pairs,
        "estimates": estimates,
        "withheld": withheld,
        "unsure": unsure,
    }
    write_json(out, summary | {"labels": {**audit.get("earlier", {}), **labels}})
    print(f"{out}: the answers as labels, for mamushi rank --label {out}")
    _as_json.put({"merged": out, **summary})


def _agreement(pair: Mapping[str, Any]) -> str:
    names, kappa = " and ".join(map(repr, pair["annotators"])), pair["kappa"]
    if not pair["texts"]:
        return f"{names} have no text in common"
    line = f"{names} agree on {pair['agree']:.1%} of {pair['texts']:,} texts"
    line += "" if kappa is None else f"; Cohen's kappa {kappa:.2f}"
    differ = ", ".join(map(repr, pair["differ"][:_SHOWN]))
    return line + (f"; they differ on {differ}" if differ else "")
