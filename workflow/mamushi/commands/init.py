"""Look at a table of texts and at a model, and write the configuration that ranks them.

Says what it sees before it writes: rows, columns, forget and retain texts, their lengths, copies.
What the workflow would refuse is refused here. At a terminal it asks for what is not given.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from mamushi.errors import UserError

GROUP = "start"
BUDGETS = (0.1, 0.2, 0.3)
"""Shares of the forget texts; those that so few texts make nothing of are left out."""
SELECTOR = "mamushi"
COLUMNS = 12
"""Columns that are shown by name."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command, which ``mamushi rank`` has as well."""
    parser.add_argument(
        "data",
        nargs="?",
        metavar="DATA",
        help="CSV, TSV or JSON Lines (also .gz, .zst, .zip), Parquet, a folder of such files, one "
        "that datasets saved, s3://bucket/key, or a data set's id on the hub",
    )
    parser.add_argument("--text", metavar="COL", help="column with the text")
    parser.add_argument(
        "--forget",
        metavar="EXPR",
        help='what is true of the rows to rank for removal, such as "toxic >= 0.5" or '
        "'\"my class\" == 0'",
    )
    parser.add_argument(
        "--retain",
        metavar="EXPR",
        help="what is true of the rows to keep; rows of neither are left out (default: all others)",
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="the model that was trained on the texts: a folder, a .gguf file or its id on the hub",
    )
    parser.add_argument("--id", metavar="COL", help="column with an id (default: row numbers)")
    parser.add_argument(
        "--evaluation",
        type=_share,
        default=0.0,
        metavar="SHARE",
        help="share of the texts to hold out, to measure on what a removal buys (default: 0)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("mine.yaml"),
        metavar="FILE",
        help="configuration to write (default: mine.yaml)",
    )
    parser.add_argument(
        "--force", action="store_true", help="write over another configuration of that name"
    )


def _share(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share of at least 0 and below 1")
    return found


def run(args: argparse.Namespace) -> None:
    """Write ``args.out``, whole or not at all; one with the same content is kept.

    Raises ``UserError`` for a table or model that the workflow would refuse, for what is missing
    where nobody can be asked, and when another configuration stands there.
    """
    import tempfile

    from mamushi.artifacts.files import atomic

    if args.out.is_dir():
        raise UserError("is a folder", where=args.out, do="name a file in --out")
    with tempfile.TemporaryDirectory() as folder:
        means = "the table of texts (a file or folder)"
        data = _given(args, "data", means, lambda given: _found(given, Path(folder)))
        case = _case(args, data)
        seen = _look(case, data, Path(folder))
    written = text_of(case, seen, args.out)
    there = _there(args.out)
    if there == written:
        print(f"{args.out}: there already, with the same content")
        return
    if there is not None and not args.force:
        do = "name another file in --out, or write over it with --force"
        raise UserError("another configuration is there", where=args.out, do=do)
    with atomic(args.out) as part:
        part.write_text(written, encoding="utf-8")
    print(f"{args.out}: written; next: snakemake removals --configfile {args.out} --cores all")


def _there(path: Path) -> str | None:
    """What a file holds; None where there is none."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


# What is not given ------------------------------------------------------------------------------


Checked = TypeVar("Checked")


def _given(
    args: argparse.Namespace,
    name: str,
    means: str,
    check: Callable[[str], Checked],
    known: str = "",
) -> Checked:
    """What ``check`` makes of an option; asked for at a terminal until it has nothing against it.

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
            value = input("> ").strip()
        except EOFError:
            raise UserError(f"{option} is missing", do=f"give {means}") from None
        if not value:
            continue
        try:
            found = check(value)
        except UserError as error:
            print(error)
            continue
        setattr(args, name, value)
        return found


# What there is ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """A table: the path that the configuration names, and where it can be read now."""

    path: str
    local: Path
    columns: list[str]


@dataclass(frozen=True)
class Case:
    """A configuration in the making, as plain values, and the names in it."""

    config: dict[str, Any]
    dataset: str
    model: str


def _found(given: str, folder: Path) -> Data:
    """The table that is meant; one in a bucket or on the hub is copied, the first to ``folder``."""
    from mamushi.artifacts import remote
    from mamushi.data import hub, readers

    if remote.is_remote(given):
        local = remote.fetch(given, folder)
        return Data(given, local, readers.columns(local))
    path = Path(given).expanduser()
    if not path.exists() and hub.is_id(given):
        path = hub.table(given)
    path = path.absolute()
    columns = readers.columns(path)
    if "$" in str(path):
        do = "a configuration takes that for an environment variable; give it a path without"
        raise UserError("a '$' in the path", where=path, do=do)
    return Data(str(path), path, columns)


def _case(args: argparse.Namespace, data: Data) -> Case:
    """The configuration of what is given, and asked for where it is not."""
    from mamushi.data.expression import parse
    from mamushi.data.readers import check_columns

    def among(column: str) -> str:
        check_columns(data.local, data.columns, [column])
        return column

    def expression(text: str) -> str:
        check_columns(data.local, data.columns, parse(text).names)
        return text

    known = f"; the columns are {_listed(data.columns)}"
    column = _given(args, "text", "the column with the text", among, known)
    example = 'an expression that is true of the rows to forget, such as "toxic >= 0.5"'
    forget = _given(args, "forget", example, expression, known)
    if args.retain is not None:
        expression(args.retain)
    if args.id is not None:
        among(args.id)
    means = "the model's folder, .gguf file or id on the hub"
    source, revision = _given(args, "model", means, _source)
    held = args.evaluation
    dataset = {
        "kind": "table",
        "path": data.path,
        "text": column,
        "id": args.id,
        "forget": {"where": forget},
        "retain": None if args.retain is None else {"where": args.retain},
        "sections": {"inference": round(1 - held, 6)} | ({"evaluation": held} if held else {}),
    }
    model = {"source": source} | ({"revision": revision} if revision else {})
    names = _name(Path(args.data).name, "texts"), _name(Path(args.model).name, "model")
    grid = {
        "datasets": [names[0]],
        "models": [names[1]],
        "seeds": [0],
        "budgets": [*BUDGETS],
        "selectors": [SELECTOR],
    }
    config = {
        "grid": grid,
        "datasets": {names[0]: dataset},
        "models": {names[1]: {**model, "contaminated": True}},
    }
    return Case(config, *names)


def _listed(columns: list[str]) -> str:
    more = ", ..." if len(columns) > COLUMNS else ""
    return ", ".join(map(repr, columns[:COLUMNS])) + more


def _name(file: str, otherwise: str) -> str:
    """A name for a configuration, from that of a file."""
    import re

    from mamushi.artifacts.tabular import FORMATS, PACKED

    stem = Path(file)
    while stem.suffix.lower() in (*FORMATS, *PACKED, ".gguf"):
        stem = stem.with_suffix("")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem.name).strip("-._") or otherwise


def _source(given: str) -> tuple[str, str | None]:
    """A model's source and, of one on the hub, its commit. What can be told at a glance is."""
    from mamushi.configuration.sources import source_mistake

    path = Path(given).expanduser()
    mistake = source_mistake(str(path)) if path.exists() else None
    if mistake:
        raise UserError(mistake, where=given)
    if path.is_dir() or (path.is_file() and given.lower().endswith(".gguf")):
        return str(path.absolute()), None
    if path.exists() or given.count("/") > 1 or given.endswith(".gguf") or given[0] in "./~":
        raise UserError("no such model", where=given, do="give a model's folder or .gguf file")
    from mamushi.lm import folders

    commit = folders.fetch(given, None, "--model", weights=False)[1]
    return given, commit


def _look(case: Case, data: Data, folder: Path) -> dict[str, Any]:
    """What the table and the model are, said as it is found; and the budgets that suit them."""
    from mamushi.artifacts.domains import INFERENCE
    from mamushi.artifacts.tables import FORGET, RETAIN
    from mamushi.configuration import counts
    from mamushi.configuration.complete import complete
    from mamushi.data.examples import build
    from mamushi.registry import load

    full = _first(complete, case.config)
    settings = full["datasets"][case.dataset]
    raw = load("dataset", "table").load({**settings, "path": str(data.local)}, folder)
    # Near duplicates, which take minutes in a large table, are left to the run.
    exact = {**full["data"], "near_duplicates": None}
    table, _, found = build(raw, settings["sections"], settings["limit"], exact)
    there = found["sections"][INFERENCE]
    grid = case.config["grid"]
    fitting = [beta for beta in BUDGETS if round(beta * there[FORGET], 9) >= 1]
    grid["budgets"] = fitting or [*BUDGETS]
    needs = counts.needs(complete(case.config), case.dataset)
    _first(counts.check, case.dataset, needs, there)
    forget = int(raw.forget.sum())
    seen = {
        "rows": found["read"],
        "forget": forget,
        "retain": len(raw.ids) - forget,
        "neither": sum(raw.dropped.values()),
        "ranked": there[FORGET],
    }
    print(f"{data.path}: {seen['rows']:,} rows, {len(data.columns)} columns")
    print(f"  columns: {_listed(data.columns)}")
    print(f"  forget: {forget:,} rows; retain: {seen['retain']:,} rows", end="")
    print(f"; of neither, left out: {seen['neither']:,}" if seen["neither"] else "")
    lengths = sorted(map(len, table["text"].to_pylist()))
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
    print(_model(case.config["models"][case.model]))
    return seen


def _first(function: Callable[..., Any], *args: Any) -> Any:
    """Call it; of several mistakes in a configuration, the first is raised."""
    from mamushi.configuration.complete import ConfigError

    try:
        return function(*args)
    except ConfigError as error:
        raise UserError(error.lines[0]) from None


def _model(model: Mapping[str, Any]) -> str:
    """What a model is. Raises ``UserError`` for one whose configuration, tokenizer or weights
    cannot be read."""
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


# What is written --------------------------------------------------------------------------------


def _yaml(value: Any) -> str:
    """A value on one line of YAML."""
    import yaml

    line = yaml.safe_dump(
        value, allow_unicode=True, default_flow_style=True, sort_keys=False, width=1 << 30
    )
    return line.removesuffix("\n").removesuffix("\n...")


def text_of(case: Case, seen: Mapping[str, int], out: Path) -> str:
    """The configuration with its comments, as YAML."""

    def lines() -> Iterator[str]:
        grid, dataset = case.config["grid"], case.config["datasets"][case.dataset]
        model = case.config["models"][case.model]
        yield "# Written by `mamushi init`. It stands alone: what is left out has its default."
        yield "# All keys: the page Keys of `make docs`"
        yield f"#   snakemake removals --configfile {out.name} --cores all   # the lists"
        yield f"#   snakemake evidence --configfile {out.name} --cores all   # how many to remove"
        yield ""
        yield "# Every combination of these lists is computed."
        yield "grid:"
        about = {
            "budgets": f"shares of the {seen['ranked']:,} forget texts that are ranked",
            "seeds": "of folds and networks",
            "selectors": "auto beside it tries other layers and the words as well",
        }
        for key, value in grid.items():
            yield from _line(2, key, value, about.get(key))
        yield ""
        yield "datasets:"
        yield f"  {_yaml(case.dataset)}:"
        rows = {name: f"{count:,} rows" for name, count in seen.items()}
        notes = {
            "path": rows["rows"],
            "id": None if dataset["id"] else "row numbers, from 1",
            "forget": rows["forget"],
            "retain": f"{rows['retain']}; {rows['neither']} of neither are left out"
            if dataset["retain"]
            else f"all others, {rows['retain']}",
            "sections": "held out to measure on, the rest is ranked"
            if "evaluation" in dataset["sections"]
            else "everything is ranked; {inference: 0.8, evaluation: 0.2} to measure as well",
        }
        for key, value in dataset.items():
            yield from _line(4, key, value, notes.get(key))
        yield ""
        yield "models:"
        yield f"  {_yaml(case.model)}:"
        about = {"contaminated": "it has seen the texts: it is the embedder as it is"}
        for key, value in model.items():
            yield from _line(4, key, value, about.get(key))
        yield "    # base: clean # to retrain: the model (by name, here) that it was trained from"

    return "\n".join(lines()) + "\n"


def _line(indent: int, key: str, value: Any, comment: str | None) -> Iterator[str]:
    line = f"{' ' * indent}{key}: {_yaml(value)}"
    yield f"{line} # {comment}" if comment else line
