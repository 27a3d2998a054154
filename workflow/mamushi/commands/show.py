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
from mamushi.rooms import additions

GROUP = "decide"
SHOWN_FIGURE = "diagnostics"
"""The figure of a cell that shows how far the scores of the two domains are apart."""
WIDTH = 88
"""Characters of a text."""


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
    pattern = dict.fromkeys(("dataset", "model", "seed", "selector", "beta"), "*")
    from mamushi.evidence.ranking import is_earlier

    manifests = sorted(root.glob(str(paths.under("", paths.MANIFEST, **pattern))))
    spans = sorted(root.glob(str(paths.under("", paths.SPANS_MANIFEST, **pattern))))
    if not manifests and not spans:
        do = "make them with mamushi rank, or with mamushi run removals"
        raise UserError("no removal list in it", where=root, do=do)
    cells: dict[tuple[str, str, int], dict[str, list[dict[str, Any]]]] = {}
    earlier, current = [], [_judged(path) for path in spans] if as_json else []
    for path in manifests:
        manifest = _judged(path)
        if is_earlier(root, manifest, manifest.get("provenance", {}).get("inputs", {})):
            earlier.append(f"{manifest['path']}: is of an earlier ranking, and not to be acted on")
            continue
        current.append(manifest)
        cell = (manifest["dataset"], manifest["model"], manifest["seed"])
        cells.setdefault(cell, {}).setdefault(manifest["selector"], []).append(manifest)
    if as_json:
        _as_json.put(current)
        return 0
    shown = ["\n".join(_cell(root, *cell, cells[cell], texts)) for cell in sorted(cells)]
    if spans and (tokens or not manifests):
        shown.append("\n".join(_masked(spans)))
    if earlier:
        shown.append("\n".join(earlier))
    print("\n\n".join(shown))
    return 0


def _masked(manifests: Sequence[Path]) -> list[str]:
    """Return what the spans of a folder mask and are worth, and the command that hands the first of
    them over."""
    rankings: dict[str, list[Mapping[str, Any]]] = {}
    for path in manifests:
        manifest = _judged(path)
        cell = "{dataset}, {model}, seed {seed}".format(**manifest)
        who = f"{cell}, {manifest['selector']}"
        rankings.setdefault(who, []).append(manifest)
    lines = ["tokens to leave out of the loss, in the place of texts"]
    for who, lists in rankings.items():
        lines += _ranking(who, lists, _spans)
    useful = [spans for lists in rankings.values() for spans in lists if _to_act_on(spans)]
    for spans in useful[:1]:
        lines.append(f"  hand over mamushi export {spans['path']} --to labels --out masked.jsonl")
    return lines


def _spans(manifest: Mapping[str, Any]) -> str:
    share = f"{manifest['masked']:,} of {manifest['tokens']:,} tokens"
    return f"spans     {share}, in {manifest['texts']:,} of {manifest['n_forget']:,} texts"


def _list(manifest: Mapping[str, Any]) -> str:
    from mamushi.evidence.verdict import unit_of

    copies = f" and {manifest['copies']:,} copies of them" if manifest["copies"] else ""
    return f"list      {manifest['removed']:,} {unit_of(manifest)}{copies}"


def _to_act_on(manifest: Mapping[str, Any]) -> bool:
    from mamushi.evidence.verdict import COMPARISON, REFUSE

    return manifest["judgement"]["act"] not in (COMPARISON, REFUSE)


def _ranking(
    who: str, lists: Sequence[Mapping[str, Any]], line: Callable[[Mapping[str, Any]], str]
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
        lines.append(f"  {line(manifest)}: {manifest['path']}")
        lines.append(f"            {ADVICE_WORDS[judged['act']]}: {judged['list']}")
    return lines


def _judged(path: Path) -> dict[str, Any]:
    """Read a manifest, with the ``path`` of its list."""
    return {**read_json(path), "path": path.with_suffix(".parquet")}


def _cell(
    root: Path,
    dataset: str,
    model: str,
    seed: int,
    lists: Mapping[str, Sequence[Mapping[str, Any]]],
    texts: bool,
) -> list[str]:
    from mamushi.evidence.advice import advised, first_budget, take
    from mamushi.evidence.ranking import cut, ranking_at, read_ranking
    from mamushi.evidence.verdict import leading

    cell: dict[str, str | int] = {"dataset": dataset, "model": model, "seed": seed}
    best, *next_best = leading(lists)
    first = lists[best][0]
    ranked = f"{first['n_forget']:,} forget texts, against {first['n_retain']:,} to keep"
    facts = {"ranked": ranked}
    for describe in additions("describe_cell"):
        facts |= describe(first)
    lines = [f"{dataset}, {model}, seed {seed}"]
    lines += [f"  {name:<10}{words}" for name, words in facts.items()]
    if partly := cut(root, cell):
        lines.append(f"  cut       {partly}")
    for selector in (best, *next_best):
        lines += _ranking(selector, lists[selector], _list)
    if texts:
        ranking = read_ranking(ranking_at(root, {**cell, "selector": best}))
        examples = paths.under(root, paths.EXAMPLES, dataset=dataset)
        lines += _texts(best, ranking, max(listed["removed"] for listed in lists[best]), examples)
    figure = paths.CELL_FIGURE_PNG.replace("{figure}", SHOWN_FIGURE)
    for name, pattern in (("figure", figure), ("page", paths.RANKING)):
        if (path := paths.under(root, pattern, **cell)).is_file():
            lines.append(f"  {name:<10}{path}")
    if paths.under(root, paths.FRONTIER, **cell).is_file():
        root_option = "" if root == paths.RESULTS else f" --root {root}"
        lines.append(f"  how many  mamushi advise --removal 0.5{root_option}")
    half = advised(root, cell).get(best)
    manifest = take(lists[best], first_budget(half) if half else None)
    if _to_act_on(manifest):
        lines.append(f"  remove    mamushi apply {manifest['path']} {table_options(root, cell)}")
    return lines


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


def _texts(selector: str, ranking: Any, removed: int, examples: Path) -> list[str]:
    """Return the first of a ranking, and those around the end of its largest list."""
    from mamushi.evidence.ranking import excerpt, glimpse, read_texts_of

    count = len(ranking.ids)
    top, end = glimpse(removed, count)
    texts = read_texts_of(examples, [ranking.ids[p] for p in top + end])
    lines = [f"  {selector}, first to go (rank, score, text)"]
    for place, (position, text) in enumerate(zip(top + end, texts, strict=True)):
        if place == len(top):
            lines.append(f"  {selector}, where the largest list ends: {removed:,} of {count:,}")
        score = ranking.scores[position]
        stays = "" if position < removed else "stays  "
        # A text may hold what a terminal would obey.
        shown = "".join(c if c.isprintable() else "\ufffd" for c in excerpt(text, WIDTH))
        lines.append(f"  {position + 1:>9,} {score:>7.2f}  {stays}{shown}")
    return lines
