"""Look at a table of texts and at a model, and write the configuration that ranks them.

Says what it sees before it writes: rows, columns, forget and retain texts, copies. What the
workflow would refuse is refused here.
"""

import argparse
import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from mamushi.commands import _as_json
from mamushi.config.complete import complete
from mamushi.config.sections import Refits, Shortened
from mamushi.config.sources import unlabelled
from mamushi.errors import UserError, located
from mamushi.io import tabular
from mamushi.io.copies import display_url, is_remote, local_path
from mamushi.io.domains import FORGET, INFERENCE, RETAIN
from mamushi.io.files import write_text
from mamushi.io.model_files import positions, read_config, source_mistake
from mamushi.registry import load
from mamushi_curate.commands import _options
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
BY_WORDS = {"words": 128}
"""The vectors of a table without a model, and without vectors."""
MINE = Path("mine.yaml")
OPTIONS = """
text COL: column with the text or a conversation; or as prompt,completion
forget EXPR: what is true of the rows to rank, as 'toxic >= 0.5' or '`my class` == 0'
retain EXPR: what is true of those to keep; of neither: left out (default: all others)
like FILE: for --forget: a table of examples of a domain that no column of DATA marks
terms FILE: or: a blocklist, a term or /regular expression/ a line
unlike FILE: beside --like or --terms: a table of texts that are wanted
like-text COL: column with the text in these (default: that of --text)
screened FILE: the screen that let these texts through
model MODEL: the model that was trained on the texts: a folder or its id on the hub
embeddings FILE: or: a Parquet file with ids and their vectors (default: of the words)
id COL: column with an id (default: row numbers)
label FILE: people's answers, of mamushi audit --merge, over the table's
screen N: rank N texts alone, or below 1 a share: those most like the examples
fair NAME+: which of like and unlike were drawn at random, so that shares can rest on them
budgets SHARE+: of the forget texts to list (default: 0.1 0.2 0.3; of such a corpus 0.01 0.05 0.1)
selectors NAME+: how to rank (default: stack; of tokens token_unigram; of a corpus mamushi_words)
evaluation SHARE: share of the texts to hold out, to measure on what a removal buys (default: none)
windows WORDS: divide long documents into windows of so many words, each ranked for itself
part PART: what of a conversation is ranked: whole (default), without_system or assistant
"""
"""Of each its name, what it takes (+: several of these), and what it means."""
TYPES = {"N": float, "SHARE": float, "WORDS": int}
CHOICES = {"fair": ("like", "unlike"), "part": ("whole", "without_system", "assistant")}
EITHER = (("forget", "like", "terms"), ("model", "embeddings"))
"""Groups of which one may be given."""
BESIDE = ("like", "unlike", "terms", "screened")
"""In the place of --forget, by name: files beside a table in which nobody marked the domain."""
HEAD = """\
# Written by `mamushi init`. It stands alone: what is left out has its default, and the page Keys of
# `make docs` has all keys. `contaminated: true` says that a model has seen the texts; to retrain,
# name in its `base` the model (by its name here) that it was trained from.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command, which ``mamushi rank`` has as well."""
    table = (
        "CSV, TSV, JSON or lines of text (also .gz, .zst, .zip), Parquet, a folder of such files, "
        "one that datasets saved, a data set's id on the hub, or a URL: hf://datasets/, https://, "
        "s3://, gs://"
    )
    chosen = [parser.add_argument("data", nargs="?", metavar="DATA", help=table)]
    groups = {names: parser.add_mutually_exclusive_group() for names in EITHER}
    for name, metavar, several, meaning in re.findall(r"^(\S+) (\w+)(\+?): (.+)", OPTIONS, re.M):
        group = next((group for names, group in groups.items() if name in names), parser)
        kind: dict[str, Any] = {"type": TYPES.get(metavar, str), "choices": CHOICES.get(name)}
        nargs = "+" if several else None
        chosen += [
            group.add_argument(f"--{name}", metavar=metavar, nargs=nargs, help=meaning, **kind)
        ]
    cut = "cut windows out of their documents, which stay, in the place of whole documents"
    chosen += [parser.add_argument("--cut", action="store_true", default=None, help=cut)]
    chosen += _options.dialect(parser)
    # What the configuration is written from.
    parser.set_defaults(chosen=[option.dest for option in chosen])
    out = f"configuration to write (default: {MINE})"
    parser.add_argument("--out", type=_options.local_path, default=MINE, metavar="FILE", help=out)
    force = "write over another configuration of that name"
    parser.add_argument("--force", action="store_true", help=force)
    _as_json.argument(parser)


def run(args: argparse.Namespace) -> None:
    """Write the configuration, and say what runs it. Raises ``UserError`` as
    ``write_configuration``."""
    write_configuration(args)
    named = "" if args.out == MINE else f" --configfile {shlex.quote(str(args.out))}"
    print(f"next: {(command := f'mamushi run removals{named}')}")
    content = yaml.safe_load(args.out.read_text(encoding="utf-8"))
    _as_json.put({"configuration": args.out, "content": content, "next": command})


def write_configuration(args: argparse.Namespace) -> None:
    """Write ``args.out``; one with the same content is kept. Raises ``UserError`` for a table or
    model that the workflow would refuse, and when another configuration stands there."""
    if args.out.suffix.lower() not in (".yaml", ".yml"):
        raise UserError("is no name of a configuration", where=args.out, do="end it in .yaml")
    if args.data is None:
        raise UserError("DATA is missing", do="give the table of texts (a file or folder)")
    path = _options.fetched_place(args, "data")
    from mamushi_curate.tables import readers
    from mamushi_curate.tables.expression import columns_in

    columns = readers.columns(path, Dialect.of(vars(args)))
    if not args.text:
        do = f"give the column with the text; the columns are {', '.join(map(repr, columns))}"
        raise UserError("--text is missing", do=do)
    if not (args.forget or args.like or args.terms):
        do = "give an expression, 'toxic >= 0.5', or --like, a table of examples"
        raise UserError("--forget is missing", do=do)
    check_columns(path, columns, text_columns(args.text))
    for mark in filter(None, (args.forget, args.retain)):
        check_columns(path, columns, columns_in(mark), "text stands in quotes")
    for name in _options.FILE_OPTIONS:
        if is_remote(getattr(args, name)):
            _options.fetched_place(args, name)
    config = _configuration(args, path)
    _describe(config, columns, args.budgets)
    text = HEAD + yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
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
    files = {name: getattr(args, name) for name in (*BESIDE, "label")}
    files = {name: file and _options.as_configured(file) for name, file in files.items()}
    answers, screen = files.pop("label"), args.screen
    windows = {"words": args.windows, "action": "cut" if args.cut else "remove"}
    forget = {
        "where": args.forget,
        **files,
        "screen": int(screen) if screen and screen.is_integer() else screen,
        "fair": args.fair and sorted({*args.fair}),
        "text": args.like_text,
    }
    table = {
        "kind": "table",
        "path": _options.as_configured(args.data),
        "text": args.text,
        "id": args.id,
        "forget": _without_none(forget),
        "retain": args.retain and {"where": args.retain},
        "sections": {"inference": round(1 - (args.evaluation or 0), 6)},
        "part": args.part,
        "separator": args.separator,
        "answers": answers,
        "quote": "none" if args.quote == "none" else None,
        "windows": windows if args.windows is not None or args.cut else None,
    }
    if args.evaluation:
        table["sections"] |= {"evaluation": args.evaluation}
    embedder: dict[str, Any] = {"embeddings": find_vectors(args.embeddings)}
    if args.model:
        embedder = {**find_model(args.model), "contaminated": True}
    dataset = _name(path.name, "texts")
    model = _name(Path(args.embeddings or args.model or "words").name, "model")
    usual = usual_selectors(table, bool(args.model))
    settings = {} if args.selectors else _without_none(usual)
    grid = {"datasets": [dataset], "models": [model], "seeds": [0]}
    return {
        "grid": {**grid, "budgets": args.budgets, "selectors": args.selectors or [*usual]},
        "evidence": {"refits": Refits().model_dump()},
        **({"selectors": settings} if settings else {}),
        "datasets": {dataset: _without_none(table)},
        "models": {model: embedder},
    }


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def usual_selectors(table: Mapping[str, Any], has_model: bool) -> dict[str, Any]:
    """Return the selectors that suit a table, by name their settings, if any."""
    if unlabelled(table):
        return HITS if "terms" in table["forget"] else {EXAMPLES: None}
    return {LABELLED: None, **({_TOKENS: None} if has_model else {})}


def _name(file: str, otherwise: str) -> str:
    """Return a name for a configuration, from that of a file."""
    stem = Path(file)
    while stem.suffix.lower() in (*tabular.FORMATS, *tabular.PACKED):
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
    settings, table, size = config["datasets"][dataset], None, ""
    if most := settings["forget"].get("screen"):
        ranked = f"{most:,} texts" if most >= 1 else f"{most:.2%} of the texts"
        lines = [f"ranked: the {ranked} most like the examples"]
    else:
        raw, table, counts = examples_of_table(full, dataset)
        settle_budgets(config, dataset, chosen, counts)
        size = f"{counts.get('of_corpus', counts['read']):,} rows, "
        kind = "hits" if "terms" in settings["forget"] else "examples"
        lines = [f"columns: {', '.join(map(repr, columns))}", *_described_rows(raw, counts, kind)]
    print(f"{display_url(settings['path'])}: {size}{len(columns)} columns")
    print(*(f"  {line}" for line in lines), describe_model(model, table), sep="\n")


def _described_rows(raw: Any, counts: Mapping[str, Any], kind: str) -> Iterator[str]:
    """Iterate over lines of what the rows of a table are; ``kind`` is that of a corpus."""
    forget, neither = int(raw.forget.sum()), sum(raw.dropped.values())
    ranked = counts["sections"][INFERENCE]
    gone = {step["step"]: sum(step["dropped"].values()) for step in counts["steps"]}
    copies = f"empty: {gone['empty']:,}; copies: {gone['exact_duplicates']:,}"
    if "corpus" in counts:
        yield f"{kind}: {ranked[FORGET]:,}; {copies}"
    else:
        left_out = f"; of neither, left out: {neither:,}" if neither else ""
        yield f"forget: {forget:,} rows; retain: {len(raw.ids) - forget:,} rows{left_out}"
        yield f"{copies}; in both domains, neither ranked nor listed: {gone['cross_posts']:,}"
    if roles := raw.extra_metadata.get("roles"):
        yield f"turns of: {', '.join(map(repr, roles))}"
    if answers := raw.extra_metadata.get("answers"):
        yield f"answers: {', '.join(f'{n:,} {answer}' for answer, n in answers.items())}"
    against = f"{ranked[FORGET]:,} forget texts against {ranked[RETAIN]:,} retain texts"
    yield (
        f"ranked: {counts['corpus']:,} of the corpus"
        if "corpus" in counts
        else f"ranked: {against}"
    )


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
    is_number = re.compile(r"\s*([-+]?[\d.]+(e[-+]?\d+)?|nan)?\s*", re.IGNORECASE).fullmatch
    if all(map(is_number, texts)):
        problem = f"column {settings['text']!r} holds numbers alone, or nothing"
        raise UserError(problem, where=settings["path"], do="name the column with the texts")


# What embeds the texts: a model, or vectors that were made elsewhere ------------------------------


def find_vectors(source: str | None) -> dict[str, Any]:
    """Return where vectors lie, and in which columns; without a source, those of the words. Raises
    ``UserError`` for a file that has no columns of ids and of lists, or several."""
    if source is None:
        return dict(BY_WORDS)
    import pyarrow.parquet as pq

    path = local_path(source).expanduser()
    if not path.is_file():
        raise UserError(tabular.no_file(path), where=source, do="check the path")
    with located(source):
        schema = pq.read_schema(path)
    lists = [field.name for field in schema if "list<" in str(field.type)]
    columns = {"id": [name for name in schema.names if name not in lists], "vector": lists}
    for name, candidates in columns.items():
        if name not in candidates and len(candidates) != 1:
            do = f"name it so; the columns are {', '.join(map(repr, schema.names))}"
            raise UserError(f"no column {name!r}", where=source, do=do)
    chosen = {name: name if name in names else names[0] for name, names in columns.items()}
    return {"path": _options.as_configured(source), **chosen}


def find_model(source: str) -> dict[str, str]:
    """Return a model's source and, of one on the hub, its commit. Raises ``UserError`` where there
    is none."""
    path = Path(source).expanduser()
    if path.exists() and (mistake := source_mistake(str(path))):
        raise UserError(mistake, where=source)
    if path.is_dir():
        return {"source": str(path.absolute())}
    if path.exists() or source.count("/") > 1 or source[0] in "./~":
        raise UserError("no such model", where=source, do="give a model's folder")
    from mamushi.lm import folders

    commit = folders.fetch(source, None, "--model", weights=False)[1]
    return {"source": source} | ({"revision": commit} if commit else {})


def describe_model(model: Mapping[str, Any], examples: Any = None) -> str:
    """Return what a model is, and how it reads conversations among the ``examples``. Raises
    ``UserError`` for one whose configuration or tokenizer cannot be read."""
    if "words" in model.get("embeddings", {}):
        return "no --model: ranked by words alone, without tokens and what retraining would do"
    if "embeddings" in model:
        place = display_url(model["embeddings"]["path"])
        return f"{place}: vectors made elsewhere; no model is run, and no tokens are ranked"
    from mamushi.lm import folders
    from mamushi.lm.tokens import CHATS

    folder, _ = folders.fetch(model["source"], None, "--model", weights=False)
    kind, tokenizer = folders.check_config(folder)["model_type"], folders.read_tokenizer(folder)
    line = f"{model['source']}: {kind}, tokenizer with {len(tokenizer):,} tokens"
    if examples is not None and CHATS in examples.column_names:
        template = "their text" if tokenizer.chat_template is None else "its chat template"
        line += f"; conversations are read as {template}"
    cut, most = positions(read_config(folder)), Shortened().max_length
    return line if (cut or most) >= most else f"{line}; texts are cut at {cut} tokens"
