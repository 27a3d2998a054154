"""Look at a table of texts and at a model, and write the configuration that ranks them.

Says what it sees before it writes: rows, columns, forget and retain texts, their lengths, copies.
What the workflow would refuse is refused here. At a terminal it asks for what is not given.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mamushi.errors import UserError

GROUP = "start"
BUDGETS = (0.1, 0.2, 0.3)
"""Shares of the forget texts; those that so few texts make nothing of are left out."""
COLUMNS = 12
"""Columns that are shown by name."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command, which ``mamushi rank`` has as well."""
    table = (
        "CSV, TSV or JSON Lines (also .gz, .zst, .zip), Parquet, a folder of such files, one that "
        "datasets saved, s3://bucket/key, or a data set's id on the hub"
    )
    parser.add_argument("data", nargs="?", metavar="DATA", help=table)
    forget = "what is true of the rows to rank for removal, such as "
    retain = "what is true of the rows to keep; rows of neither are left out (default: all others)"
    model = "the model that was trained on the texts: a folder, a .gguf file or its id on the hub"
    for option, metavar, about in (
        ("text", "COL", "column with the text"),
        ("forget", "EXPR", forget + '"toxic >= 0.5" or \'"my class" == 0\''),
        ("retain", "EXPR", retain),
        ("model", "MODEL", model),
        ("id", "COL", "column with an id (default: row numbers)"),
    ):
        parser.add_argument(f"--{option}", metavar=metavar, help=about)
    held = "share of the texts to hold out, to measure on what a removal buys (default: 0)"
    parser.add_argument("--evaluation", type=_share, default=0.0, metavar="SHARE", help=held)
    out, default = "configuration to write (default: mine.yaml)", Path("mine.yaml")
    parser.add_argument("--out", type=Path, default=default, metavar="FILE", help=out)
    force = "write over another configuration of that name"
    parser.add_argument("--force", action="store_true", help=force)


def _share(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= float(text) < 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no share of at least 0 and below 1")


def run(args: argparse.Namespace) -> None:
    """Write ``args.out``, whole or not at all; one with the same content is kept.

    Raises ``UserError`` for a table or model that the workflow would refuse, for what is missing
    where nobody can be asked, and when another configuration stands there.
    """
    import tempfile

    import yaml

    from mamushi.artifacts.files import atomic

    if args.out.is_dir():
        raise UserError("is a folder", where=args.out, do="name a file in --out")
    with tempfile.TemporaryDirectory() as folder:
        means = "the table of texts (a file or folder)"
        table = _given(args, "data", means, lambda given: _find_table(given, Path(folder)))
        case = _case(args, table)
        config = yaml.safe_load(TEXT.format_map(case))
        case |= _describe(config, table, Path(folder))
    text = TEXT.format_map(case)
    there = args.out.read_bytes().decode("utf-8", "replace") if args.out.exists() else None
    if there == text:
        print(f"{args.out}: there already, with the same content")
        return
    if there is not None and not args.force:
        do = "name another file in --out, or write over it with --force"
        raise UserError("another configuration is there", where=args.out, do=do)
    with atomic(args.out) as part:
        part.write_text(text, encoding="utf-8")
    print(f"{args.out}: written; next: snakemake removals --configfile {args.out} --cores all")


TEXT = """\
# Written by `mamushi init`. It stands alone: what is left out has its default.
# All keys: the page Keys of `make docs`
#   snakemake removals --configfile {out} --cores all   # the lists
#   snakemake evidence --configfile {out} --cores all   # how many to remove

# Every combination of these lists is computed.
grid:
  datasets: [{dataset}]
  models: [{model}]
  seeds: [0] # of folds and networks
  budgets: {budgets} # shares of the {ranked} forget texts that are ranked
  selectors: [mamushi] # auto beside it tries other layers and the words as well

datasets:
  {dataset}:
    kind: table
    path: {path} # {rows} rows
    text: {text}
    id: {id}
    forget: {forget} # {n_forget} rows
    retain: {retain} # {others}
    sections: {sections}

models:
  {model}:
    source: {source}
    contaminated: true # it has seen the texts: it is the embedder as it is
    # base: clean # to retrain: the model (by name, here) that it was trained from
"""
"""The configuration, of a case's values as YAML on one line each."""


# What is not given ------------------------------------------------------------------------------


Checked = TypeVar("Checked")


def _given(
    args: argparse.Namespace,
    name: str,
    means: str,
    check: Callable[[str], Checked],
    known: str = "",
) -> Checked:
    """Return what ``check`` makes of an option; ask for it at a terminal until it is right.

    Raises ``UserError`` that names the option where there is no terminal.
    """
    option = "DATA" if name == "data" else f"--{name}"
    value: str | None = getattr(args, name)
    if value is not None:
        return check(value)
    if not sys.stdin.isatty():
        raise UserError(f"{option} is missing", do=f"give {means}{known}")
    with contextlib.suppress(ImportError):
        # Lets an answer be edited.
        import readline  # noqa: F401
    while True:
        try:
            # The question on lines of its own, which no editor of answers wraps.
            print(f"{option}: {means}{known}", flush=True)
            if value := input("> ").strip():
                found = check(value)
                setattr(args, name, value)
                return found
        except EOFError:
            raise UserError(f"{option} is missing", do=f"give {means}") from None
        except UserError as error:
            print(error)


# What there is ----------------------------------------------------------------------------------


class Table(NamedTuple):
    """The path that the configuration names, and where the table can be read now."""

    path: str
    local: Path
    columns: list[str]


def _find_table(given: str, folder: Path) -> Table:
    """Find the table; one in a bucket or on the hub is copied, the first to ``folder``."""
    from mamushi.artifacts import remote
    from mamushi.data import hub, readers

    if remote.is_remote(given):
        local = remote.fetch(given, folder)
        return Table(given, local, readers.columns(local))
    path = Path(given).expanduser()
    if not path.exists() and hub.is_id(given):
        path = hub.table(given)
    path = path.absolute()
    columns = readers.columns(path)
    if "$" in str(path):
        do = "a configuration takes that for an environment variable; give it a path without"
        raise UserError("a '$' in the path", where=path, do=do)
    return Table(str(path), path, columns)


def _find_model(given: str) -> str:
    """Return a model's source as YAML and, of one on the hub, its commit."""
    from mamushi.configuration.sources import source_mistake

    path = Path(given).expanduser()
    mistake = source_mistake(str(path)) if path.exists() else None
    if mistake:
        raise UserError(mistake, where=given)
    if path.is_dir() or (path.is_file() and given.lower().endswith(".gguf")):
        return _yaml(str(path.absolute()))
    if path.exists() or given.count("/") > 1 or given.endswith(".gguf") or given[0] in "./~":
        raise UserError("no such model", where=given, do="give a model's folder or .gguf file")
    from mamushi.lm import folders

    commit = folders.fetch(given, None, "--model", weights=False)[1]
    return _yaml(given) + (f"\n    revision: {_yaml(commit)}" if commit else "")


def _case(args: argparse.Namespace, table: Table) -> dict[str, Any]:
    """Return the values of the configuration, asked for where they are not given."""
    from mamushi.data.expression import parse
    from mamushi.data.readers import check_columns

    def check(*names: str | None) -> None:
        wanted = [name for name in names if name is not None]
        check_columns(table.local, table.columns, wanted)

    def column(name: str) -> str:
        check(name)
        return name

    def expression(text: str) -> str:
        check(*parse(text).names)
        return text

    known = f"; the columns are {_shown(table.columns)}"
    text = _given(args, "text", "the column with the text", column, known)
    example = 'an expression that is true of the rows to forget, such as "toxic >= 0.5"'
    forget = _given(args, "forget", example, expression, known)
    retain = None if args.retain is None else {"where": expression(args.retain)}
    check(args.id)
    source = _given(args, "model", "the model's folder, .gguf file or id on the hub", _find_model)
    held = args.evaluation
    shares = {"inference": round(1 - held, 6)} | ({"evaluation": held} if held else {})
    sections = (
        "held out to measure on, the rest is ranked"
        if held
        else "everything is ranked; {inference: 0.8, evaluation: 0.2} to measure as well"
    )
    return {
        "out": args.out.name,
        "dataset": _yaml(_name(Path(args.data).name, "texts")),
        "model": _yaml(_name(Path(args.model).name, "model")),
        "budgets": [*BUDGETS],
        "path": _yaml(table.path),
        "text": _yaml(text),
        "id": _yaml(args.id) if args.id else "null # row numbers, from 1",
        "forget": _yaml({"where": forget}),
        "retain": _yaml(retain),
        "sections": f"{_yaml(shares)} # {sections}",
        "source": source,
        # Counted later.
        **dict.fromkeys(("rows", "ranked", "n_forget", "others"), ""),
    }


def _shown(columns: list[str]) -> str:
    more = ", ..." if len(columns) > COLUMNS else ""
    return ", ".join(map(repr, columns[:COLUMNS])) + more


def _name(file: str, otherwise: str) -> str:
    """Return a name for a configuration, from that of a file."""
    from mamushi.artifacts.tabular import FORMATS, PACKED

    stem = Path(file)
    while stem.suffix.lower() in (*FORMATS, *PACKED, ".gguf"):
        stem = stem.with_suffix("")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem.name).strip("-._") or otherwise


def _yaml(value: Any) -> str:
    """Return a value on one line of YAML."""
    import yaml

    line = yaml.safe_dump(
        value, allow_unicode=True, default_flow_style=True, sort_keys=False, width=1 << 30
    )
    return line.removesuffix("\n").removesuffix("\n...")


def _describe(config: dict[str, Any], table: Table, folder: Path) -> dict[str, Any]:
    """Print what the table and the model are; return counts and the budgets that suit them."""
    from mamushi.artifacts.domains import INFERENCE
    from mamushi.artifacts.tables import FORGET, RETAIN
    from mamushi.configuration import counts
    from mamushi.configuration.complete import ConfigError, complete
    from mamushi.data.examples import build
    from mamushi.registry import load

    (dataset,), (model,) = config["datasets"], config["models"].values()
    try:
        full = complete(config)
        settings = full["datasets"][dataset]
        raw = load("dataset", "table").load({**settings, "path": str(table.local)}, folder)
        # Near duplicates, which take minutes in a large table, are left to the run.
        exact = {**full["data"], "near_duplicates": None}
        examples, _, found = build(raw, settings["sections"], settings["limit"], exact)
        there = found["sections"][INFERENCE]
        fitting = [beta for beta in BUDGETS if round(beta * there[FORGET], 9) >= 1]
        config["grid"]["budgets"] = fitting or [*BUDGETS]
        counts.check(dataset, counts.needs(complete(config), dataset), there)
    except ConfigError as error:
        raise UserError(error.lines[0]) from None
    forget = int(raw.forget.sum())
    retain, neither = len(raw.ids) - forget, sum(raw.dropped.values())
    print(f"{table.path}: {found['read']:,} rows, {len(table.columns)} columns")
    print(f"  columns: {_shown(table.columns)}")
    left_out = f"; of neither, left out: {neither:,}" if neither else ""
    print(f"  forget: {forget:,} rows; retain: {retain:,} rows{left_out}")
    lengths = sorted(map(len, examples["text"].to_pylist()))
    ends = [lengths[int(share * (len(lengths) - 1))] for share in (0, 0.5, 0.9, 1)]
    print(
        "  characters: {:,} at least, {:,} in the median, {:,} at 90%, {:,} at most".format(*ends)
    )
    dropped = {step["step"]: sum(step["dropped"].values()) for step in found["steps"]}
    print(
        f"  empty: {dropped['empty']:,}; copies: {dropped['exact_duplicates']:,}; in both domains, "
        f"neither ranked nor listed: {dropped['cross_posts']:,}"
    )
    print(f"  ranked: {there[FORGET]:,} forget texts against {there[RETAIN]:,} retain texts")
    print(_describe_model(model))
    others = f"all others, {retain:,} rows"
    if settings["retain"] is not None:
        others = f"{retain:,} rows; {neither:,} rows of neither are left out"
    return {
        "budgets": config["grid"]["budgets"],
        "rows": f"{found['read']:,}",
        "ranked": f"{there[FORGET]:,}",
        "n_forget": f"{forget:,}",
        "others": others,
    }


def _describe_model(model: Mapping[str, Any]) -> str:
    """Return what a model is. Raises ``UserError`` for one whose configuration, tokenizer or
    weights cannot be read."""
    source = model["source"]
    if source.lower().endswith(".gguf"):
        return f"{source}: a GGUF file, whose model and tokenizer are converted by the run"
    from mamushi.lm import folders

    folder, commit = folders.fetch(source, None, "--model", weights=False)
    kind = str(folders.check_config(folder)["model_type"])
    tokens = len(folders.read_tokenizer(folder))
    if commit is None:
        folders.check_weights(folder)
    return f"{source}: {kind}, tokenizer with {tokens:,} tokens"
