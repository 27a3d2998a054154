"""Show what was ranked: the lists with their counts, the verdict, the first texts and the last.

For each dataset, model and seed of a folder: what each ranking is worth, by its own AUC; its
removal lists, and the tokens that selectors of tokens mask, each with what it is worth and why; the
texts that go first and those at a list's end with profanity masked, the figure and the page.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from mamushi.config.sources import local_path
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.files import read_json

WIDTH = 88
"""Characters of a text."""
Manifest = Mapping[str, Any]
Cell = Mapping[str, str | int]


def run(folder: Path = Path(), /) -> tuple[int, Any]:
    """Raises ``UserError`` where no list is, and for one whose ranking is missing or damaged.

    :param folder: Where the ranking was made, or its results folder.
    """
    inside = folder / paths.RESULTS
    return 0, show(inside if inside.is_dir() else folder)


def show(root: Path, *, texts: bool = True) -> list[Manifest]:
    """Print what was ranked in a results folder, with the first ``texts``; return the manifests."""
    from mamushi.evidence.ranking import read_manifests

    lists, earlier = read_manifests(root, paths.MANIFEST)
    spans, _ = read_manifests(root, paths.SPANS_MANIFEST)
    if not (lists or earlier or spans):
        do = "make them with mamushi rank, or with mamushi run removals"
        raise UserError("no removal list in it", where=root, do=do)
    cell = itemgetter("dataset", "model", "seed")
    cells = groupby(sorted([*lists, *spans], key=cell), cell)
    blocks = ["\n".join(_cell_lines(root, [*manifests], texts)) for _, manifests in cells]
    words = "is of an earlier ranking, and not to be acted on"
    blocks += [f"{manifest['path']}: {words}" for manifest in earlier]
    print("\n\n".join(blocks))
    return [*spans, *lists]


def _cell_lines(root: Path, manifests: Sequence[Manifest], texts: bool) -> Iterator[str]:
    """Yield the lines of a dataset, model and seed."""
    from mamushi.evidence.ranking import cut
    from mamushi.evidence.verdict import order_lists

    first, lists, spans = manifests[0], dict[str, list[Manifest]](), dict[str, list[Manifest]]()
    for manifest in manifests:
        kind = spans if "masked" in manifest else lists
        kind.setdefault(manifest["selector"], []).append(manifest)
    cell: Cell = {name: first[name] for name in ("dataset", "model", "seed")}
    yield "{dataset}, {model}, seed {seed}".format(**cell)
    ranked = f"{first['n_forget']:,} forget texts, against {first['n_retain']:,} to keep"
    # Of a corpus, its manifest says what is known.
    yield from _name_value_lines(
        [*first.get("shown", [("ranked", ranked)]), ("cut", cut(root, cell))]
    )
    order = order_lists(lists)
    for selector, made in {**{name: lists[name] for name in order}, **spans}.items():
        yield from _ranking_lines(selector, made)
    if order:
        yield from _next_steps(root, {**cell, "selector": order[0]}, lists[order[0]], texts)
    masks = [manifest for made in spans.values() for manifest in made if _is_to_act_on(manifest)]
    for manifest in masks[:1]:
        yield f"  hand over mamushi export {manifest['path']} --to labels --out masked.jsonl"


def _next_steps(root: Path, names: Cell, lists: Sequence[Manifest], texts: bool) -> Iterator[str]:
    """Yield the texts that a selector lists, and where to go from there."""
    from mamushi.evidence.advice import choose_list

    if texts:
        yield from _text_lines(root, names, max(one["removed"] for one in lists))
    figure = paths.under(root, paths.CELL_FIGURE_PNG, **names, figure="diagnostics")
    files = {"figure": figure, "page": paths.under(root, paths.RANKING, **names)}.items()
    yield from _name_value_lines((name, path.is_file() and path) for name, path in files)
    if paths.under(root, paths.FRONTIER, **names).is_file():
        at = "" if root == paths.RESULTS else f" --root {root}"
        yield f"  how many  mamushi advise --removal 0.5{at}"
    chosen = choose_list(root, names, str(names["selector"]), lists)[0]
    if _is_to_act_on(chosen):
        yield f"  remove    mamushi apply {chosen['path']} {table_options(root, names)}"


def _name_value_lines(lines: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Yield an indented line for each pair of a name and a value, without empty values."""
    return (f"  {name:<10}{words}" for name, words in lines if words)


def _ranking_lines(who: str, lists: Sequence[Manifest]) -> Iterator[str]:
    """Yield the verdict on a selector's ranking, and two lines for each of its lists. A list that
    is only for comparison is left out."""
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


def _is_to_act_on(manifest: Manifest) -> bool:
    from mamushi.evidence.verdict import COMPARISON, REFUSE

    return manifest["judgement"]["act"] not in (COMPARISON, REFUSE)


def table_options(root: Path, cell: Cell) -> str:
    """Return where `apply` finds the table that was ranked, and a name for what is left of it."""
    card, data = paths.under(root, paths.DATA_CARD, dataset=cell["dataset"]), "DATA"
    if card.is_file() and (made_with := read_json(card)["settings"])["kind"] == "table":
        data = made_with["loader"]["path"]
    if not (path := local_path(data)).exists():
        return "--data DATA --out FILE"
    out = f"{path.name.partition('.')[0]}.clean{''.join(path.suffixes)}"
    return f"--data {shlex.quote(data)} --out {shlex.quote(out)}"


def _text_lines(root: Path, names: Cell, removed: int) -> Iterator[str]:
    """Yield excerpts of the five texts ranked first, and of four around the largest list's end."""
    from mamushi.evidence.ranking import excerpt_rows, ranking_path
    from mamushi.io import schemas
    from mamushi.io.tables import read_table

    ranking, selector = read_table(ranking_path(root, names), schemas.SCORES), names["selector"]
    total = len(ranking) - ranking["rank"].null_count
    examples = paths.under(root, paths.EXAMPLES, dataset=names["dataset"])
    top = [*range(min(5, total))]
    end = [place for place in range(removed - 2, removed + 2) if len(top) <= place < total]
    yield f"  {selector}, first to go (rank, score, text)"
    for place, row in enumerate(excerpt_rows(ranking, top + end, examples, WIDTH)):
        if place == len(top):
            yield f"  {selector}, where the largest list ends: {removed:,} of {total:,}"
        stays = "" if row["rank"] <= removed else "stays  "
        # A text may hold what a terminal would obey.
        shown = "".join(c if c.isprintable() else "\ufffd" for c in row["text"])
        yield f"  {row['rank']:>9,} {row['score']:>7.2f}  {stays}{shown}"
