"""Read a sample of texts, and learn a list's precision and recall.

With LIST: draws the texts and writes a page that opens offline, on which people answer yes, no or
unsure by key. How certain so many answers will be is told before. With --merge: joins the files
that the page saved, says how far people agree, and gives precision, recall and the share of the
domain before and after, with 95% intervals. mamushi rank --label takes the answers as labels.
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mamushi.evidence.auditing import Strata

GROUP = "decide"
LISTED = "listed"
SIZE, LEAST = 300, 20
"""Texts to read: some that a person reads in an hour, and the fewest that say anything."""
SIZES = (100, 300, 1000, 3000)
"""Numbers of answers of which is told what they give."""
SHOWN = 10
"""Disagreements that are printed."""
LABEL, OTHER = 0.8, 0.1
"""How probable the domain is by its text where nothing is known: of a forget text, of another."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("list", nargs="?", type=Path, metavar="LIST", help="a list of a run")
    many = parser.add_mutually_exclusive_group()
    texts = "texts to read (default: %(default)s, about an hour)"
    many.add_argument("--size", type=_size, default=SIZE, metavar="N", help=texts)
    points = "as many texts as give intervals of precision and recall of so many points up and down"
    many.add_argument("--points", type=_points, metavar="P", help=points)
    ask, default = "what the page asks", "Is this text of the domain that is to go?"
    parser.add_argument("--question", default=default, help=f"{ask} (default: {default})")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default: 0)")
    files = "answers that the page saved, a file a person"
    parser.add_argument("--merge", nargs="+", type=Path, metavar="FILE", help=files)
    out = "folder of the audit (default: audit)"
    parser.add_argument("--out", type=Path, default=Path("audit"), metavar="FOLDER", help=out)


def _size(text: str) -> int:
    with contextlib.suppress(ValueError):
        if int(text) >= LEAST:
            return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of at least {LEAST} texts")


def _points(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 1 <= float(text) <= 50:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no number of points from 1 to 50")


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` for a list away from its run, another audit in the folder, and as
    ``annotators`` for answers."""
    from mamushi.errors import UserError

    if (args.list is None) == (args.merge is None):
        do = "give LIST to draw an audit, or --merge and the files that its page saved"
        raise UserError("one of both is needed, a list or answers", do=do)
    if args.merge is None:
        _draw(args)
    else:
        _merge(args.out, args.merge)


@dataclass(frozen=True)
class Frame:
    """All n texts of which some are drawn: ``part`` and ``place`` (n,) are as ``strata`` takes
    them, ``likely`` (n,) how probable each is of the domain; ``parts`` are in words. ``of`` says
    which list was read, ``copies`` what goes with a text, by id."""

    ids: list[str]
    part: NDArray[np.int64]
    place: NDArray[np.int64]
    likely: NDArray[np.float64]
    parts: Sequence[str]
    of: Mapping[str, str]
    examples: Path
    copies: Mapping[str, list[str]]


def _frame(path: Path) -> Frame:
    """Read all texts that were ranked with those of a list. Half of what is likely is the label,
    and half the calibrated ratio, where there is one that holds."""
    import numpy as np

    from mamushi.artifacts import paths, schemas
    from mamushi.artifacts.tables import FORGET, read_table
    from mamushi.commands import _removal_list
    from mamushi.errors import UserError
    from mamushi.evidence.manifest import read_calibrated
    from mamushi.selection.removals import digest

    listed = _removal_list.read(path)
    where = paths.wildcards(paths.REMOVAL, path.absolute())
    if where is None:
        do = "give it where the run wrote it: results/runs/.../removals/SELECTOR/betaB.parquet"
        raise UserError("is no list in the results of a run", where=path, do=do)
    scores = read_table(paths.under(pattern=paths.SCORES, **where), schemas.SCORES)
    ids, forget = scores["id"].to_pylist(), np.array(scores["domain"].to_pylist()) == FORGET
    going = set(listed.ids)
    by_score = np.argsort(np.argsort(-scores["score"].fill_null(-np.inf).to_numpy(), kind="stable"))
    own = np.where(forget, LABEL, OTHER)
    ratio = paths.under(pattern=paths.CALIBRATED, **where)
    if ratio.is_file():
        known = read_calibrated(ratio)
        if known.withheld is None and known.table["id"].equals(scores["id"]):
            prior = np.log(forget.sum() / (~forget).sum())
            own = 1 / (1 + np.exp(-known.table["log_ratio"].to_numpy() - prior))
    copies: dict[str, list[str]] = {}
    gone = read_table(paths.under(pattern=paths.DUPLICATES, **where), schemas.DUPLICATES)
    for row in gone.to_pylist():
        copies.setdefault(row["kept_id"], []).append(row["id"])
    names = ("dataset", "model", "seed", "selector", "beta")
    return Frame(
        ids,
        np.where([name in going for name in ids], 0, np.where(forget, 1, 2)),
        np.where(forget, scores["rank"].fill_null(0).to_numpy(), by_score),
        (forget + own) / 2,
        (LISTED, "forget, kept", "retain"),
        {name: where[name] for name in names} | {"ids_sha256": digest(listed.ids)},
        paths.under(pattern=paths.EXAMPLES, **where),
        copies,
    )


def _draw(args: argparse.Namespace) -> None:
    """Write the audit and its page, and say what to expect."""
    import numpy as np

    from mamushi.artifacts.files import atomic, write_json
    from mamushi.errors import UserError
    from mamushi.evidence import annotators, auditing, ranking

    frame = _frame(args.list)
    codes = auditing.strata(frame.part, frame.place)
    found = auditing.Strata.of(codes, frame.part == 0, frame.likely)
    size = auditing.answers_for(found, args.points / 100) if args.points else args.size
    given = auditing.allocate(found, min(size, len(codes)))
    drawn = auditing.sample(codes, given, np.random.default_rng(args.seed))
    ids = [frame.ids[row] for row in drawn]
    texts = ranking.texts_of(frame.examples, ids)
    audit = {
        **{"list": frame.of, "question": args.question, "seed": args.seed},
        "strata": _described(frame, codes, found, given),
        "sample": [
            {"id": name, "stratum": int(codes[row]), "copies": frame.copies.get(name, [])}
            for row, name in zip(drawn, ids, strict=True)
        ],
        "texts_sha256": annotators.digest({"texts": texts}),
    }
    audit["audit"] = annotators.digest(audit)
    to, page = args.out / "audit.json", args.out / "audit.html"
    if to.exists() and annotators.read_audit(to)["audit"] != audit["audit"]:
        do = "name another folder in --out, or remove this one with its answers"
        raise UserError("another audit is there", where=to, do=do)
    data = {"audit": audit["audit"], **ranking.shown(ids, texts)}
    html = ranking.render(
        "audit",
        after="page",
        title=f"Audit of {frame.of['dataset']}",
        question=args.question,
        script=(ranking.PAGE / "audit.js").read_text(encoding="utf-8"),
        data=ranking.json_in_html(data),
    )
    write_json(to, audit)
    with atomic(page) as part:
        part.write_text(html, encoding="utf-8", newline="\n")
    _say(found, audit["strata"])
    print(f"{page}: open it in a browser; every answer is kept there, and s saves them as a file")
    named = "" if args.out == Path("audit") else f" --out {shlex.quote(str(args.out))}"
    print(f"next: mamushi audit --merge answers-NAME.json{named}")


def _described(
    frame: Frame, codes: NDArray[np.int64], found: Strata, given: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """Return the strata: what they are, and with which probability a text of them is drawn."""
    rows: list[dict[str, Any]] = []
    for number, size in enumerate(found.sizes.tolist()):
        part = frame.parts[int(frame.part[codes == number][0])]
        place = sum(row["texts_of"] == part for row in rows) + 1
        drawn = int(given[number])
        row = {"texts_of": part, "place": place, "texts": size, "drawn": drawn}
        likely = round(float(found.likely[number]), 6)
        rows.append(row | {"probability": drawn / size, "likely": likely})
    return rows


def _say(found: Strata, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print what was drawn, and what so many answers will give."""
    from mamushi.evidence import auditing

    drawn = sum(row["drawn"] for row in rows)
    print(f"{drawn:,} of {found.sizes.sum():,} texts are drawn")
    for row in rows:
        of = f"{row['texts_of']} {row['place']}"
        print(f"  {of:<16}{row['drawn']:>6,} of {row['texts']:,} texts")
    print("answers   95% intervals to expect, in points up and down")
    for size in sorted({drawn, *(each for each in SIZES if each < found.sizes.sum())}):
        wide = auditing.expected(found, size)
        shown = ", ".join(f"{name} {100 * wide[name]:.1f}" for name in ("precision", "recall"))
        print(f"{size:>7,}   {shown}{', as drawn' * (size == drawn)}")
    print(f"{auditing.answers_for(found, 0.05):>7,}   for 5 points of both")


def _merge(folder: Path, files: Sequence[Path]) -> None:
    """Say what the answers mean, and write them as one file."""
    import numpy as np

    from mamushi.artifacts.files import write_json
    from mamushi.errors import UserError
    from mamushi.evidence import annotators, auditing

    audit = annotators.read_audit(folder / "audit.json")
    people = annotators.read_answers(files, audit)
    merged = annotators.merge([each["id"] for each in audit["sample"]], people)
    answers = annotators.counts(audit, merged)
    if missing := int((answers.read <= answers.unsure).sum()):
        what = f"no yes or no yet in {missing} of {len(audit['strata'])} strata"
        raise UserError(what, where=folder, do="answer more texts")
    rows = audit["strata"]
    found = auditing.Strata(
        np.array([row["texts"] for row in rows]),
        np.array([row["texts_of"] == LISTED for row in rows]),
        np.array([row["likely"] for row in rows]),
    )
    told = auditing.estimates(found, answers, np.random.default_rng(audit["seed"]))
    between = annotators.agreement(people)
    unsure = int(answers.unsure.sum())
    print(f"{len(merged):,} of {len(audit['sample']):,} texts, {unsure:,} of them unsure")
    for name, each in told.items():
        means = auditing.QUANTITIES[name]
        print(f"  {name:<10}{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]   {means}")
    for pair in between:
        print(_agreement(pair, people))
    copies = {each["id"]: each["copies"] for each in audit["sample"]}
    labels = {name: answer for name, answer in merged.items() if answer != annotators.UNSURE}
    labels |= {copy: labels[name] for name in [*labels] for copy in copies[name]}
    out = folder / "merged.json"
    values = {name: [each.value, each.low, each.high] for name, each in told.items()}
    about = {"audit": audit["audit"], "annotators": [*people], "estimates": values}
    write_json(out, about | {"agreement": between, "unsure": unsure, "labels": labels})
    print(f"{out}: the answers as labels, for mamushi rank --label {out}")


def _agreement(pair: Mapping[str, Any], people: Mapping[str, Mapping[str, str]]) -> str:
    one, other = pair["annotators"]
    if not pair["texts"]:
        return f"  {one!r} and {other!r} have no text in common"
    kappa = "none, since both always say one word"
    if pair["kappa"] is not None:
        kappa = f"{pair['kappa']:.2f}"
    lines = [
        f"  {one!r} and {other!r} agree on {pair['agree']:.1%} of {pair['texts']:,} texts; "
        f"Cohen's kappa {kappa}"
    ]
    for name in pair["differ"][:SHOWN]:
        lines.append(f"    {name!r}: {people[one][name]}, {people[other][name]}")
    if (more := len(pair["differ"]) - SHOWN) > 0:
        lines.append(f"    and {more:,} more, in merged.json")
    return "\n".join(lines)
