"""Look at a table of texts and at a model, and write the configuration that ranks them.

Says what it sees before it writes: rows, columns, forget and retain texts, copies. What the
workflow would refuse is refused here.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mamushi.commands import _as_json
from mamushi.config.complete import complete
from mamushi.config.kinds import ConfigError
from mamushi.config.sections import Refits
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError
from mamushi.io.copies import display_url
from mamushi.io.domains import FORGET, INFERENCE, RETAIN
from mamushi.io.files import write_text
from mamushi.io.tabular import FORMATS, PACKED
from mamushi.registry import load
from mamushi_curate.commands import _embedder, _places, _row_options
from mamushi_curate.tables import readers
from mamushi_curate.tables.conversations import text_columns
from mamushi_curate.tables.lines import Dialect, check_columns

BUDGETS = (0.1, 0.2, 0.3)
"""Shares of the forget texts; those that so few texts make nothing of are left out."""
OF_CORPUS = (0.01, 0.05, 0.1)
"""The same of a corpus that nobody labelled."""
LABELLED = "stack"
"""How a table is ranked in which a column marks the domain; `mamushi` trains networks for it."""
EXAMPLES, HITS = "mamushi_words", {"mamushi_lr": {"solver": "newton-cholesky", "alpha": 1.0}}
"""How a corpus is ranked by examples, and by hits of terms, whose words find the same hits again:
few texts, and some of their kind among the rest, need a strong penalty (studies/unlabelled)."""
_TOKENS = "token_unigram"
"""How tokens are ranked beside the texts: without a training."""
OPTIONS = {
    "text": ("COL", "column with the text or a conversation; or as prompt,completion"),
    "forget": ("EXPR", "what is true of the rows to rank, as 'toxic >= 0.5' or '`my class` == 0'"),
    "retain": ("EXPR", "what is true of those to keep; of neither: left out (default: all others)"),
    "like": ("FILE", "for --forget: a table of examples of a domain that no column of DATA marks"),
    "terms": ("FILE", "or: a blocklist, a term or /regular expression/ a line"),
    "unlike": ("FILE", "beside --like or --terms: a table of texts that are wanted"),
    "like-text": ("COL", "column with the text in these (default: that of --text)"),
    "screened": ("FILE", "the screen that let these texts through"),
    "model": ("MODEL", "the model that was trained on the texts: a folder or its id on the hub"),
    "embeddings": ("FILE", "or: a Parquet file with ids and their vectors (default: of the words)"),
    "id": ("COL", "column with an id (default: row numbers)"),
    "label": ("FILE", "people's answers, of mamushi audit --merge, over the table's"),
}
"""By name, what an option takes, and what it means. Of a group one may be given."""
EITHER = (("forget", "like", "terms"), ("model", "embeddings"))
BESIDE = ("like", "unlike", "terms", "screened")
"""In the place of --forget, by name: files beside a table in which nobody marked the domain."""
HEAD = """\
# Written by `mamushi init`. It stands alone: what is left out has its default, and the page Keys of
# `make docs` has all keys. `contaminated: true` says that a model has seen the texts; to retrain,
# name in its `base` the model (by its name here) that it was trained from.
#   {removals}   # the lists
#   {evidence}   # how many to remove
"""


CHOSEN = (
    *("data", *(name.replace("-", "_") for name in OPTIONS), "screen", "fair", "budgets"),
    *("selectors", "evaluation", "windows", "cut", "part", "quote", "separator", "split", "config"),
)
"""What the configuration is written from, by name."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command, which ``mamushi rank`` has as well."""
    table = (
        "CSV, TSV, JSON or lines of text (also .gz, .zst, .zip), Parquet, a folder of such files, "
        "one that datasets saved, a data set's id on the hub, or a URL: hf://datasets/, https://, "
        "s3://, gs://"
    )
    parser.add_argument("data", nargs="?", metavar="DATA", help=table)
    _places.arguments(parser)
    groups = [parser.add_mutually_exclusive_group() for _ in EITHER]
    for name, (metavar, help_text) in OPTIONS.items():
        within = [group for group, names in zip(groups, EITHER, strict=True) if name in names]
        [*within, parser][0].add_argument(f"--{name}", metavar=metavar, help=help_text)
    screen = "rank N texts alone, or below 1 a share: those most like the examples"
    parser.add_argument("--screen", metavar="N", type=float, help=screen)
    drawn = "which of these two were drawn at random, like from the domain, unlike from the rest: "
    drawn += "shares and recall rest on it"
    parser.add_argument("--fair", nargs="+", choices=("like", "unlike"), help=drawn)
    shares = "shares of the forget texts to list (default: 0.1 0.2 0.3), or of such a corpus (0.01 "
    shares += "0.05 0.1)"
    parser.add_argument("--budgets", nargs="+", type=float, metavar="SHARE", help=shares)
    names = f"how to rank: mamushi, the paper's, trains networks (default: {LABELLED} and, of "
    names += f"tokens, {_TOKENS}; of a corpus {EXAMPLES} by examples and mamushi_lr by terms)"
    parser.add_argument("--selectors", nargs="+", metavar="NAME", help=names)
    held = "share of the texts to hold out, to measure on what a removal buys (default: none)"
    parser.add_argument("--evaluation", type=float, metavar="SHARE", help=held)
    words = "divide long documents into windows of so many words, each ranked for itself"
    parser.add_argument("--windows", type=int, metavar="WORDS", help=words)
    cut = "cut windows out of their documents, which stay, in the place of whole documents"
    parser.add_argument("--cut", action="store_true", default=None, help=cut)
    parts = "what of a conversation is ranked (default: whole)"
    parser.add_argument("--part", choices=("whole", "without_system", "assistant"), help=parts)
    _row_options.dialect(parser)
    out, default = "configuration to write (default: mine.yaml)", Path("mine.yaml")
    parser.add_argument("--out", type=Path, default=default, metavar="FILE", help=out)
    force = "write over another configuration of that name"
    parser.add_argument("--force", action="store_true", help=force)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Write the configuration, and say what runs it. Raises ``UserError`` as
    ``write_configuration``."""
    write_configuration(args)
    print(f"next: {(command := _next(args.out, 'removals'))}")
    content = yaml.safe_load(args.out.read_text(encoding="utf-8"))
    _as_json.put({"configuration": args.out, "content": content, "next": command})


def _next(out: Path, target: str) -> str:
    """Return the command that makes a target of a configuration."""
    named = "" if out == Path("mine.yaml") else f" --configfile {shlex.quote(str(out))}"
    return f"mamushi run {target}{named}"


def write_configuration(args: argparse.Namespace) -> None:
    """Write ``args.out``, whole or not at all; one with the same content is kept.

    Raises ``UserError`` for a table or model that the workflow would refuse, for what is missing,
    and when another configuration stands there.
    """
    if args.out.suffix.lower() not in (".yaml", ".yml"):
        do = "end it in .yaml; the table without the listed rows is written by mamushi apply"
        raise UserError("is no name of a configuration", where=args.out, do=do)
    if args.data is None:
        raise UserError("DATA is missing", do="give the table of texts (a file or folder)")
    path = _places.fetched_place(args, "data")
    columns = readers.columns(path, Dialect.of(vars(args)))
    if not args.text:
        do = f"give the column with the text; the columns are {', '.join(map(repr, columns))}"
        raise UserError("--text is missing", do=do)
    if not (args.forget or args.like or args.terms):
        do = "give an expression, 'toxic >= 0.5', or --like, a table of examples"
        raise UserError("--forget is missing", do=do)
    check_columns(path, columns, text_columns(args.text))
    for mark in filter(None, (args.forget, args.retain)):
        from mamushi_curate.tables.expression import columns_in

        check_columns(path, columns, columns_in(mark), "text stands in quotes")
    _places.fetch_beside(args)
    config = _configuration(args, path)
    try:
        _describe(config, columns, args.budgets)
    except ConfigError as error:
        raise UserError(error.lines[0]) from None
    commands = {name: _next(Path(args.out.name), name) for name in ("removals", "evidence")}
    text = HEAD.format(**commands) + yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    written = args.out.read_bytes().decode("utf-8", "replace") if args.out.exists() else None
    if written == text:
        print(f"{args.out}: there already, with the same content")
        return
    if written is not None and not args.force:
        do = "name another file in --out, or write over it with --force"
        raise UserError("another configuration is there", where=args.out, do=do)
    write_text(args.out, text)
    print(f"{args.out}: written")


def _configuration(args: argparse.Namespace, path: Path) -> dict[str, Any]:
    """Return the configuration that the options ask for, before the table is read."""
    model = Path(args.embeddings or args.model or "words").name
    held_out = args.evaluation or 0.0
    shares = {"inference": round(1 - held_out, 6), "evaluation": held_out}
    table: dict[str, Any] = {
        "kind": "table",
        "path": _places.as_configured(args.data),
        "text": args.text,
        "id": args.id,
        "forget": _marks(args),
        "retain": None if args.retain is None else {"where": args.retain},
        "sections": {name: share for name, share in shares.items() if share},
    }
    answers = args.label and _places.as_configured(args.label)
    more = {"part": args.part, "separator": args.separator, "answers": answers}
    more["quote"] = "none" if args.quote == "none" else None
    table |= {name: value for name, value in more.items() if value}
    if args.windows is not None or args.cut:
        table["windows"] = {"words": args.windows, "action": "cut" if args.cut else "remove"}
    embedder = (
        {**_embedder.find_model(args.model), "contaminated": True}
        if args.model
        else {"embeddings": _embedder.find_vectors(args.embeddings)}
    )
    dataset, model = _name(path.name, "texts"), _name(model, "model")
    usual = usual_selectors(table, bool(args.model))
    settings = {} if args.selectors else {name: own for name, own in usual.items() if own}
    grid = {"datasets": [dataset], "models": [model], "seeds": [0]}
    return {
        "grid": {**grid, "budgets": args.budgets, "selectors": args.selectors or [*usual]},
        "evidence": {"refits": Refits().model_dump()},
        **({"selectors": settings} if settings else {}),
        "datasets": {dataset: table},
        "models": {model: embedder},
    }


def usual_selectors(table: Mapping[str, Any], has_model: bool) -> dict[str, Any]:
    """Return the selectors that suit a table, by name their settings."""
    if unlabelled(table):
        return HITS if "terms" in table["forget"] else {EXAMPLES: {}}
    return {LABELLED: {}, **({_TOKENS: {}} if has_model else {})}


def _marks(args: argparse.Namespace) -> dict[str, Any]:
    """Return what marks the forget domain."""
    marks: dict[str, Any] = {} if args.forget is None else {"where": args.forget}
    for name in BESIDE:
        if file := getattr(args, name):
            marks[name] = _places.as_configured(file)
    if (most := args.screen) is not None:
        marks["screen"] = int(most) if most.is_integer() else most
    if args.fair:
        marks["fair"] = sorted({*args.fair})
    return marks | ({"text": args.like_text} if args.like_text else {})


def _name(file: str, otherwise: str) -> str:
    """Return a name for a configuration, from that of a file."""
    stem = Path(file)
    while stem.suffix.lower() in (*FORMATS, *PACKED):
        stem = stem.with_suffix("")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem.name).strip("-._") or otherwise


def examples_of_table(full: Mapping[str, Any], dataset: str) -> tuple[Any, Any, dict[str, Any]]:
    """Return the rows of a table of the completed configuration, and the examples and counts that
    ``build_examples`` makes of them but for near duplicates, which take minutes in a large table
    and are left to the run. Raises ``UserError`` as that and the loader do, and for numbers in the
    place of texts."""
    from mamushi.data.examples import build_examples

    settings, exact = full["datasets"][dataset], {**full["data"], "near_duplicates": None}
    raw = load("dataset", "table").load(settings, Path())
    refuse_numbers(raw.texts, settings)
    table, _, counts = build_examples(raw, settings["sections"], settings["limit"], exact)
    return raw, table, counts


def _describe(config: dict[str, Any], columns: list[str], chosen: list[float] | None) -> None:
    """Print what the table and the model are, and give the configuration budgets that suit them, if
    none were ``chosen``. A corpus that has a screen is read by the run alone: that takes long."""
    (dataset,), (model,) = config["datasets"], config["models"].values()
    # With budgets of a corpus as long as it is not known how many texts there are.
    config["grid"]["budgets"] = [*(chosen or OF_CORPUS)]
    full = complete(config)
    settings, table = full["datasets"][dataset], None
    if most := config["datasets"][dataset]["forget"].get("screen"):
        of = "documents" if settings.get("windows") else "texts"
        ranked = f"{most:,} {of}" if most >= 1 else f"{most:.2%} of the {of}"
        size, lines = "", [f"ranked: the {ranked} most like the examples"]
    else:
        raw, table, counts = examples_of_table(full, dataset)
        settle_budgets(config, dataset, chosen, counts)
        size, lines = _described_rows(settings, raw, counts)
        lines = [f"columns: {', '.join(map(repr, columns))}", *lines]
    print(f"{display_url(config['datasets'][dataset]['path'])}: {size}{len(columns)} columns")
    print(*(f"  {line}" for line in lines), _embedder.describe_model(model, table), sep="\n")


def _described_rows(
    settings: Mapping[str, Any], raw: Any, counts: Mapping[str, Any]
) -> tuple[str, list[str]]:
    """Return in words how many rows a table has, and lines of what its rows are."""
    forget, divided = int(raw.forget.sum()), settings.get("windows")
    of, unit = ("windows", "windows") if divided else ("rows", "texts")
    retain, neither = len(raw.ids) - forget, sum(raw.dropped.values())
    n_ranked = counts["sections"][INFERENCE]
    dropped = {step["step"]: sum(step["dropped"].values()) for step in counts["steps"]}
    gone = f"empty: {dropped['empty']:,}; copies: {dropped['exact_duplicates']:,}"
    if (corpus := counts.get("corpus")) is not None:
        rows, kind = counts["of_corpus"], "hits" if "terms" in settings["forget"] else "examples"
        lines = [f"{kind}: {n_ranked[FORGET]:,}; {gone}"]
        against = f"{corpus:,} {unit} of the corpus"
    else:
        left_out = f"; of neither, left out: {neither:,}" if neither else ""
        rows = counts["read"]
        lines = [
            f"forget: {forget:,} {of}; retain: {retain:,} {of}{left_out}",
            f"{gone}; in both domains, neither ranked nor listed: {dropped['cross_posts']:,}",
        ]
        against = f"{n_ranked[FORGET]:,} forget texts against {n_ranked[RETAIN]:,} retain texts"
    if roles := raw.extra_metadata.get("roles"):
        lines += [f"turns of: {', '.join(map(repr, roles))}"]
    if answers := raw.extra_metadata.get("answers"):
        lines += [f"answers: {', '.join(f'{n:,} {answer}' for answer, n in answers.items())}"]
    return f"{rows:,} {of}, ", [*lines, f"ranked: {against}"]


def settle_budgets(
    config: dict[str, Any],
    dataset: str,
    chosen: Sequence[float] | None,
    text_counts: Mapping[str, Any],
) -> dict[str, Any]:
    """Give a configuration the budgets that suit ``text_counts``, those of ``build_examples``, if
    none were ``chosen``, and return it completed: of few texts the least that takes one."""
    usual, most = BUDGETS, text_counts["sections"][INFERENCE][FORGET]
    if "corpus" in text_counts:
        usual, most = OF_CORPUS, text_counts["corpus"]
    fitting = [beta for beta in usual if round(beta * most, 9) >= 1]
    config["grid"]["budgets"] = [*(chosen or fitting or [math.ceil(100 / most) / 100])]
    return complete(config)


def refuse_numbers(texts: Sequence[str], settings: Mapping[str, Any]) -> None:
    """Raise ``UserError`` where a column of a table, by the settings of its loader, has numbers in
    the place of texts, or nothing."""

    def is_number(text: str) -> bool:
        with contextlib.suppress(ValueError):
            float(text or "nan")
            return True
        return not text.strip()

    if all(map(is_number, texts)):
        problem = f"column {settings['text']!r} holds numbers alone, or nothing"
        raise UserError(problem, where=settings["path"], do="name the column with the texts")
