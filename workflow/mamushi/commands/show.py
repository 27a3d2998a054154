"""Show what was ranked: the lists with their counts, the verdict, the first texts and the last.

For each dataset, model and seed of a folder: what each ranking is worth, by its own AUC; its
removal lists, each with what it is worth and why; the texts that go first and those at a list's end
with profanity masked, the figure and the page. Then the tokens that selectors of tokens mask, with
what is known of each mask.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mamushi.commands import _as_json
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.copies import is_remote, local_path
from mamushi.io.files import read_json

SHOWN_FIGURE = "diagnostics"
"""The figure of a cell that shows how far the scores of the two domains are apart."""
WIDTH = 88
"""Characters of a text."""
Manifest = Mapping[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    help_text = "where the ranking was made, or its results folder (default: this one)"
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help=help_text)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> int:
    """Raises ``UserError`` where no list is, and for one whose ranking is missing or damaged."""
    inside = args.folder / paths.RESULTS
    return show(inside if inside.is_dir() else args.folder, as_json=args.json)


def show(root: Path, *, texts: bool = True, tokens: bool = True, as_json: bool = False) -> int:
    """Print what was ranked in a results folder, with the first ``texts``, and masks of ``tokens``;
    ``as_json`` the manifests alone. Return 0, for other commands."""
    from mamushi.evidence.ranking import read_manifests

    lists, earlier = read_manifests(root, paths.MANIFEST)
    spans, _ = read_manifests(root, paths.SPANS_MANIFEST)
    if not (lists or earlier or spans):
        do = "make them with mamushi rank, or with mamushi run removals"
        raise UserError("no removal list in it", where=root, do=do)
    if as_json:
        _as_json.put([*spans, *lists])
        return 0
    cells: dict[tuple[str, str, int], dict[str, list[Manifest]]] = {}
    for manifest in lists:
        cell = (manifest["dataset"], manifest["model"], manifest["seed"])
        cells.setdefault(cell, {}).setdefault(manifest["selector"], []).append(manifest)
    shown = [_cell(root, *cell, cells[cell], texts) for cell in sorted(cells)]
    if spans and (tokens or not lists):
        shown.append(_masked(spans))
    words = "is of an earlier ranking, and not to be acted on"
    shown.append([f"{manifest['path']}: {words}" for manifest in earlier])
    print("\n\n".join("\n".join(lines) for lines in shown if lines))
    return 0


def _masked(manifests: Sequence[Manifest]) -> list[str]:
    """Return what the spans of a folder mask and are worth, and the command that hands the first of
    them over."""
    rankings: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        who = "{dataset}, {model}, seed {seed}, {selector}".format(**manifest)
        rankings.setdefault(who, []).append(manifest)
    lines = ["tokens to leave out of the loss, in the place of texts"]
    for who, spans in rankings.items():
        lines += _ranking(who, spans, _spans)
    for manifest in [*filter(_is_to_act_on, manifests)][:1]:
        lines.append(
            f"  hand over mamushi export {manifest['path']} --to labels --out masked.jsonl"
        )
    return lines


def _spans(manifest: Manifest) -> str:
    share = f"{manifest['masked']:,} of {manifest['tokens']:,} tokens"
    return f"spans     {share}, in {manifest['texts']:,} of {manifest['n_forget']:,} texts"


def _list(manifest: Manifest) -> str:
    from mamushi.evidence.verdict import unit_of

    copies = f" and {manifest['copies']:,} copies of them" if manifest["copies"] else ""
    return f"list      {manifest['removed']:,} {unit_of(manifest)}{copies}"


def _is_to_act_on(manifest: Manifest) -> bool:
    from mamushi.evidence.verdict import COMPARISON, REFUSE

    return manifest["judgement"]["act"] not in (COMPARISON, REFUSE)


def _ranking(
    who: str, lists: Sequence[Manifest], described: Callable[[Manifest], str]
) -> list[str]:
    """Return what a ranking is worth, and two lines for each of its lists; of a comparison, of
    which nobody is to take one, where they are."""
    from mamushi.evidence.verdict import ADVICE_WORDS, COMPARISON

    judged = lists[0]["judgement"]
    lines = [f"  {who}: {judged['ranking']}"]
    if judged["act"] == COMPARISON:
        return [*lines, f"            its lists: {lists[0]['path'].parent}"]
    for manifest in lists:
        judged = manifest["judgement"]
        lines.append(f"  {described(manifest)}: {manifest['path']}")
        lines.append(f"            {ADVICE_WORDS[judged['act']]}: {judged['list']}")
    return lines


def _cell(
    root: Path,
    dataset: str,
    model: str,
    seed: int,
    lists: Mapping[str, Sequence[Manifest]],
    texts: bool,
) -> list[str]:
    from mamushi.evidence.advice import advised, first_budget, take
    from mamushi.evidence.ranking import cut
    from mamushi.evidence.verdict import leading

    cell: dict[str, str | int] = {"dataset": dataset, "model": model, "seed": seed}
    order = leading(lists)
    best, first = lists[order[0]], lists[order[0]][0]
    facts = {"ranked": f"{first['n_forget']:,} forget texts, against {first['n_retain']:,} to keep"}
    facts |= first.get("shown", {})
    if partly := cut(root, cell):
        facts["cut"] = partly
    lines = [f"{dataset}, {model}, seed {seed}", *_lines(facts)]
    for selector in order:
        lines += _ranking(selector, lists[selector], _list)
    if texts:
        lines += _texts(root, {**cell, "selector": order[0]}, max(one["removed"] for one in best))
    figure = paths.CELL_FIGURE_PNG.replace("{figure}", SHOWN_FIGURE)
    pages = {"figure": figure, "page": paths.RANKING}
    files = {name: paths.under(root, pattern, **cell) for name, pattern in pages.items()}
    lines += _lines({name: path for name, path in files.items() if path.is_file()})
    if paths.under(root, paths.FRONTIER, **cell).is_file():
        root_option = "" if root == paths.RESULTS else f" --root {root}"
        lines += _lines({"how many": f"mamushi advise --removal 0.5{root_option}"})
    half = advised(root, cell).get(order[0])
    manifest = take(best, first_budget(half) if half else None)
    if _is_to_act_on(manifest):
        lines += _lines({"remove": f"mamushi apply {manifest['path']} {table_options(root, cell)}"})
    return lines


def _lines(facts: Mapping[str, Any]) -> list[str]:
    return [f"  {name:<10}{words}" for name, words in facts.items()]


def table_options(root: Path, cell: Mapping[str, str | int]) -> str:
    """Return where `apply` finds the table that was ranked, and a name for what is left of it."""
    try:
        card = paths.under(root, paths.DATA_CARD, dataset=cell["dataset"])
        made_with = read_json(card)["settings"]
    except UserError:
        made_with = {"kind": None}
    data = made_with["loader"]["path"] if made_with["kind"] == "table" else "DATA"
    path = local_path(data)
    if not is_remote(data) and not path.exists():
        return "--data DATA --out FILE"
    out = f"{path.name.partition('.')[0]}.clean{''.join(path.suffixes)}"
    return f"--data {shlex.quote(data)} --out {shlex.quote(out)}"


def _texts(root: Path, names: Mapping[str, str | int], removed: int) -> list[str]:
    """Return the first of a ranking, and those around the end of its largest list."""
    from mamushi.evidence.ranking import excerpt, glimpse, ranking_at, read_ranking, read_texts_of

    ranking, selector = read_ranking(ranking_at(root, names)), names["selector"]
    examples = paths.under(root, paths.EXAMPLES, dataset=names["dataset"])
    count = len(ranking.ids)
    top, end = glimpse(removed, count)
    texts = read_texts_of(examples, [ranking.ids[p] for p in top + end])
    lines = [f"  {selector}, first to go (rank, score, text)"]
    for place, (position, text) in enumerate(zip(top + end, texts, strict=True)):
        if place == len(top):
            lines.append(f"  {selector}, where the largest list ends: {removed:,} of {count:,}")
        stays = "" if position < removed else "stays  "
        # A text may hold what a terminal would obey.
        shown = "".join(c if c.isprintable() else "\ufffd" for c in excerpt(text, WIDTH))
        lines.append(f"  {position + 1:>9,} {ranking.scores[position]:>7.2f}  {stays}{shown}")
    return lines
