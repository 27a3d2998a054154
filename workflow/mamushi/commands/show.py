"""Show what was ranked: the lists with their counts, the verdict, the first texts and the last.

For each dataset, model and seed of a folder: what each ranking is worth, by its own AUC; its
removal lists, each with what it is worth and why; the texts that go first and those at a list's end
with profanity masked, the figure and the page. Then the tokens that selectors of tokens mask, with
what is known of each mask.
"""

import argparse
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.copies import is_remote, local_path
from mamushi.io.files import read_json

WIDTH = 88
"""Characters of a text."""
Manifest = Mapping[str, Any]
Cell = Mapping[str, str | int]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    help_text = "where the ranking was made, or its results folder (default: this one)"
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help=help_text)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Raises ``UserError`` where no list is, and for one whose ranking is missing or damaged."""
    inside = args.folder / paths.RESULTS
    show(inside if inside.is_dir() else args.folder, as_json=args.json)


def show(root: Path, *, texts: bool = True, tokens: bool = True, as_json: bool = False) -> None:
    """Print what was ranked in a results folder, with the first ``texts``, and masks of ``tokens``;
    ``as_json`` the manifests alone."""
    from mamushi.evidence.ranking import read_manifests

    lists, earlier = read_manifests(root, paths.MANIFEST)
    spans, _ = read_manifests(root, paths.SPANS_MANIFEST)
    if not (lists or earlier or spans):
        do = "make them with mamushi rank, or with mamushi run removals"
        raise UserError("no removal list in it", where=root, do=do)
    if as_json:
        _as_json.put([*spans, *lists])
        return
    cells = groupby(lists, itemgetter("dataset", "model", "seed"))
    blocks = ["\n".join(_cell(root, [*manifests], texts)) for _, manifests in cells]
    if spans and (tokens or not lists):
        blocks.append("\n".join(_masked(spans)))
    words = "is of an earlier ranking, and not to be acted on"
    blocks += [f"{manifest['path']}: {words}" for manifest in earlier]
    print("\n\n".join(blocks))


def _cell(root: Path, manifests: Sequence[Manifest], texts: bool) -> Iterator[str]:
    """Yield the lines of a dataset, model and seed."""
    from mamushi.evidence.advice import advised, first_budget, row_for_budget
    from mamushi.evidence.ranking import cut
    from mamushi.evidence.verdict import leading

    first, by_selector = manifests[0], groupby(manifests, itemgetter("selector"))
    lists = {selector: [*of_selector] for selector, of_selector in by_selector}
    cell: Cell = {name: first[name] for name in ("dataset", "model", "seed")}
    order = leading(lists)
    best = lists[order[0]]
    yield "{dataset}, {model}, seed {seed}".format(**cell)
    ranked = f"{first['n_forget']:,} forget texts, against {first['n_retain']:,} to keep"
    # Of a corpus, its manifest says what is known.
    yield from _named([*first.get("shown", [("ranked", ranked)]), ("cut", cut(root, cell))])
    for selector in order:
        yield from _ranking_lines(selector, lists[selector])
    if texts:
        longest = max(one["removed"] for one in best)
        yield from _texts(root, {**cell, "selector": order[0]}, longest)
    figure = paths.under(root, paths.CELL_FIGURE_PNG, **cell, figure="diagnostics")
    page = paths.under(root, paths.RANKING, **cell)
    found = {"figure": figure, "page": page}.items()
    yield from _named((name, path.is_file() and path) for name, path in found)
    if paths.under(root, paths.FRONTIER, **cell).is_file():
        at = "" if root == paths.RESULTS else f" --root {root}"
        yield f"  how many  mamushi advise --removal 0.5{at}"
    taken = row_for_budget(best, first_budget(advised(root, cell, order[0])))
    if _is_to_act_on(taken):
        yield f"  remove    mamushi apply {taken['path']} {table_options(root, cell)}"


def _named(lines: Iterable[tuple[str, object]]) -> Iterator[str]:
    return (f"  {name:<10}{words}" for name, words in lines if words)


def _ranking_lines(who: str, lists: Sequence[Manifest]) -> Iterator[str]:
    """Yield what a ranking is worth, and two lines for each of its lists; none for those of a
    comparison, of which nobody is to take one."""
    from mamushi.evidence.verdict import ADVICE_WORDS, COMPARISON, unit_of

    yield f"  {who}: {lists[0]['judgement']['ranking']}"
    for manifest in lists:
        if (judged := manifest["judgement"])["act"] == COMPARISON:
            continue
        if "masked" in manifest:
            count = f"spans     {manifest['masked']:,} of {manifest['tokens']:,} tokens"
        else:
            copies = f" and {manifest['copies']:,} copies" if manifest["copies"] else ""
            count = f"list      {manifest['removed']:,} {unit_of(manifest)}{copies}"
        yield f"  {count}: {manifest['path']}"
        yield f"            {ADVICE_WORDS[judged['act']]}: {judged['list']}"


def _masked(manifests: Sequence[Manifest]) -> Iterator[str]:
    """Yield what the spans of a folder mask and are worth, and the command that hands the first of
    them over."""
    yield "tokens to leave out of the loss, in the place of texts"
    names = itemgetter("dataset", "model", "seed", "selector")
    for who, spans in groupby(manifests, names):
        yield from _ranking_lines("{}, {}, seed {}, {}".format(*who), [*spans])
    for manifest in [*filter(_is_to_act_on, manifests)][:1]:
        yield f"  hand over mamushi export {manifest['path']} --to labels --out masked.jsonl"


def _is_to_act_on(manifest: Manifest) -> bool:
    from mamushi.evidence.verdict import COMPARISON, REFUSE

    return manifest["judgement"]["act"] not in (COMPARISON, REFUSE)


def table_options(root: Path, cell: Cell) -> str:
    """Return where `apply` finds the table that was ranked, and a name for what is left of it."""
    card, data = paths.under(root, paths.DATA_CARD, dataset=cell["dataset"]), "DATA"
    if card.is_file() and (made_with := read_json(card)["settings"])["kind"] == "table":
        data = made_with["loader"]["path"]
    path = local_path(data)
    if not is_remote(data) and not path.exists():
        return "--data DATA --out FILE"
    out = f"{path.name.partition('.')[0]}.clean{''.join(path.suffixes)}"
    return f"--data {shlex.quote(data)} --out {shlex.quote(out)}"


def _texts(root: Path, names: Cell, removed: int) -> Iterator[str]:
    """Yield the first of a ranking, and those around the end of its largest list."""
    from mamushi.evidence.ranking import glimpse, ranking_at, rows_at
    from mamushi.io import schemas
    from mamushi.io.tables import read_table

    ranking, selector = read_table(ranking_at(root, names), schemas.SCORES), names["selector"]
    total = len(ranking) - ranking["rank"].null_count
    examples = paths.under(root, paths.EXAMPLES, dataset=names["dataset"])
    top, end = glimpse(removed, total)
    yield f"  {selector}, first to go (rank, score, text)"
    for place, row in enumerate(rows_at(ranking, top + end, examples, WIDTH)):
        if place == len(top):
            yield f"  {selector}, where the largest list ends: {removed:,} of {total:,}"
        stays = "" if row["rank"] <= removed else "stays  "
        # A text may hold what a terminal would obey.
        shown = "".join(c if c.isprintable() else "\ufffd" for c in row["text"])
        yield f"  {row['rank']:>9,} {row['score']:>7.2f}  {stays}{shown}"
