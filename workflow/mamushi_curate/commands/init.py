"""Look at a table of texts and at a model, and write the configuration that ranks them.

What the workflow would refuse is refused here."""

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from cyclopts import Parameter

from mamushi.config.complete import complete
from mamushi.config.sections import Refits
from mamushi.errors import UserError, located
from mamushi.io import tabular
from mamushi.io.domains import FORGET, INFERENCE, RETAIN
from mamushi.io.files import write_text
from mamushi.registry import plugin
from mamushi_curate.commands import _options
from mamushi_extras.remote.urls import local_path

BUDGETS = (0.1, 0.2, 0.3)
"""Shares of the forget texts; those that so few texts make nothing of are left out."""
OF_CORPUS = (0.01, 0.05, 0.1)
"""The same of a corpus that nobody labelled."""
MINE = Path("mine.yaml")
BESIDE = ("like", "unlike", "terms", "screened")
"""In the place of --forget, by name: files beside a table in which nobody marked the domain."""
DATA_HELP = "CSV, TSV, JSON, lines of text (.gz, .zst, .zip), Parquet, a folder of these, or a URL."
Data = Annotated[str | None, Parameter(help=DATA_HELP)]
HEAD = """\
# Written by `mamushi init`. It stands alone: what is left out has its default, and the page Keys of
# `make docs` has all keys. `contaminated: true` says that a model has seen the texts; to retrain,
# name in its `base` the model (by its name here) that it was trained from.
"""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Table(_options.Cells):
    """What the configuration is written from, beside DATA."""

    text: str | None = None
    """Column with the text or a conversation; or as prompt,completion."""
    forget: str | None = None
    """What is true of the rows to rank, as 'toxic >= 0.5' or '`my class` == 0'."""
    retain: str | None = None
    """What is true of those to keep; of neither: left out. By default all others."""
    like: str | None = None
    """For --forget: a table of examples of a domain that no column of DATA marks."""
    terms: str | None = None
    """Or: a blocklist, a term or /regular expression/ a line."""
    unlike: str | None = None
    """Beside --like or --terms: a table of texts that are wanted."""
    like_text: str | None = None
    """Column with the text in these, else that of --text."""
    screened: str | None = None
    """The screen that let these texts through."""
    model: str | None = None
    """The model that was trained on the texts: a folder or its id on the hub."""
    embeddings: str | None = None
    """Or: a Parquet file with ids and their vectors; by default of the words."""
    id: str | None = None
    """Column with an id, else row numbers."""
    label: str | None = None
    """People's answers, of mamushi audit --merge, over the table's."""
    screen: float | None = None
    """Rank so many texts alone, or below 1 a share: those most like the examples."""
    fair: list[Literal["like", "unlike"]] | None = None
    """Which of like and unlike were drawn at random, so that shares can rest on them."""
    budgets: list[float] | None = None
    """Of the forget texts to list: 0.1 0.2 0.3 by default, of such a corpus 0.01 0.05 0.1."""
    selectors: list[str] | None = None
    """How to rank: by default stack; of tokens token_unigram; of a corpus mamushi_words."""
    judge: str | None = None
    """For cross_entropy in the place of --model: a smaller one, in a folder or on the hub."""
    evaluation: float | None = None
    """Share of the texts to hold out, to measure on what a removal buys."""
    windows: int | None = None
    """Divide long documents into windows of so many words, each ranked for itself."""
    part: Literal["whole", "without_system", "assistant"] | None = None
    """What of a conversation is ranked."""
    cut: bool = False
    """Cut windows out of their documents, which stay, in the place of whole documents."""
    out: Path = MINE
    """Configuration to write."""
    force: bool = False
    """Write over another configuration of that name."""


def run(data: Data = None, /, *, table: Table = Table()) -> tuple[int, Any]:
    """Write the configuration, and say what runs it."""
    write_configuration(data, table)
    named = "" if table.out == MINE else f" --configfile {shlex.quote(str(table.out))}"
    print(f"next: {(command := f'mamushi run removals{named}')}")
    content = yaml.safe_load(table.out.read_text(encoding="utf-8"))
    return 0, {"configuration": table.out, "content": content, "next": command}


def write_configuration(data: str | None, table: Table) -> None:
    """Write ``table.out``; one with the same content is kept. Raises ``UserError`` for a table or
    model that the workflow would refuse, and when another configuration stands there."""
    out = table.out
    if out.suffix.lower() not in (".yaml", ".yml"):
        raise UserError("is no name of a configuration", where=out, do="end it in .yaml")
    if data is None:
        raise UserError("DATA is missing", do="give the table of texts")
    _options.check_one(required=False, forget=table.forget, like=table.like, terms=table.terms)
    _options.check_one(required=False, model=table.model, embeddings=table.embeddings)
    if not (table.text and (table.forget or table.like or table.terms)):
        from mamushi_curate.tables import readers
        from mamushi_curate.tables.lines import Dialect

        names = readers.columns(_options.fetch(data)[1], Dialect.of(vars(table)))
        do = "give the column with the text, and an expression, 'toxic >= 0.5', or --like, a table "
        do += f"of examples; the columns are {', '.join(map(repr, names))}"
        raise UserError(f"--{'forget' if table.text else 'text'} is missing", do=do)
    config = configuration({"data": data, **vars(table)})
    describe(config)
    text = HEAD + yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    written = out.read_bytes() if out.exists() else None
    if written not in (None, text.encode()) and not table.force:
        do = "name another file in --out, or write over it with --force"
        raise UserError("another configuration is there", where=out, do=do)
    if written != text.encode():
        write_text(out, text)
    print(f"{out}: written")


def configuration(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration that some options ask for, before the table is read. Raises
    ``UserError`` for a file or model that is not there."""
    option = options.get
    names = {name: option(name) for name in ("data", *BESIDE, "label", "embeddings")}
    files = {name: _options.fetch(value)[0] for name, value in names.items() if value}
    screen, held_out = option("screen"), option("evaluation")
    marks = {
        "where": option("forget"),
        **{name: files.get(name) for name in BESIDE},
        "screen": int(screen) if screen and screen.is_integer() else screen,
        "fair": sorted({*(option("fair") or ())}) or None,
        "text": option("like_text"),
    }
    forget = _without_none(marks)
    windows = {"words": option("windows"), "action": "cut" if option("cut") else "remove"}
    sections = {"inference": round(1 - held_out, 6), "evaluation": held_out} if held_out else None
    table = {
        "kind": "table",
        "path": files["data"],
        "text": option("text"),
        "id": option("id"),
        "group": option("group"),
        "forget": forget,
        "retain": option("retain") and {"where": option("retain")},
        "sections": sections or {"inference": 1},
        "part": option("part"),
        "separator": option("separator"),
        "answers": files.get("label"),
        "quote": "none" if option("quote") == "none" else None,
        "windows": windows if option("cut") or windows["words"] is not None else None,
    }
    source = option("model")
    dataset = _config_name(Path(files["data"]).name, "texts")
    model = _config_name(Path(option("embeddings") or source or "words").name, "model")
    models: dict[str, Any] = {model: {"embeddings": {"words": 128}}}
    if source:
        models[model] = {**find_model(source), "contaminated": True}
    elif "embeddings" in files:
        models[model] = {"embeddings": find_vectors(files["embeddings"])}
    usual = usual_selectors(forget, bool(source))
    chosen = option("selectors") or [*usual]
    settings = {} if option("selectors") else _without_none(usual)
    if judge := option("judge"):
        models[name := f"judge-{_config_name(Path(judge).name, 'model')}"] = find_model(judge)
        asked = [one for one in chosen if "judge" in plugin("selector", one).settings]
        if not asked:
            raise UserError("--judge: no selector asks one", do="add --selectors cross_entropy")
        settings |= {one: {"judge": name} for one in asked}
    grid = {"datasets": [dataset], "models": [model], "seeds": [0], "budgets": option("budgets")}
    return {
        "grid": {**_without_none(grid), "selectors": chosen},
        "evidence": {"refits": Refits().model_dump()},
        **({"selectors": settings} if settings else {}),
        "datasets": {dataset: _without_none(table)},
        "models": models,
    }


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def usual_selectors(forget: Mapping[str, Any], has_model: bool) -> dict[str, Any]:
    """Return the selectors that suit what marks a domain, by name their settings, if any. The words
    of terms find the same hits again: few texts, and some of their kind among the rest, need a
    strong penalty (studies/unlabelled)."""
    if "terms" in forget:
        return {"mamushi_lr": {"solver": "newton-cholesky", "alpha": 1.0}}
    if "like" in forget:
        return {"mamushi_words": None}
    return {"stack": None, **({"token_unigram": None} if has_model else {})}


def _config_name(file: str, otherwise: str) -> str:
    """Return a name for a configuration, from that of a file."""
    stem = Path(file)
    while stem.suffix.lower() in (*tabular.FORMATS, *tabular.PACKED):
        stem = stem.with_suffix("")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", stem.name).strip("-._") or otherwise


def describe(config: dict[str, Any]) -> None:
    """Print what the table and the model are, and give the configuration budgets that suit them, if
    it has none. A corpus that has a screen is read by the run alone: that takes long."""
    ((dataset, settings),), models = config["datasets"].items(), config["models"].values()
    full = complete(config)
    print(settings["path"])
    if "screen" in settings["forget"]:
        config["grid"].setdefault("budgets", [*OF_CORPUS])
        print("  ranked: the texts most like the examples, which the run finds")
    else:
        raw, counts = read_counts(full, dataset)
        settle_budgets(config, counts)
        forget = int(raw.forget.sum())
        said = f"forget: {forget:,} rows; retain: {len(raw.ids) - forget:,} rows"
        if "corpus" in counts:
            kind = "hits" if "terms" in settings["forget"] else "examples"
            said = f"{kind}: {counts['sections'][INFERENCE][FORGET]:,}; {len(raw.ids):,} texts"
        dropped = {step["step"]: sum(step["dropped"].values()) for step in counts["steps"]}
        for reason, rows in {**raw.dropped, **dropped}.items():
            said += f"; {reason}: {rows:,}" if rows else ""
        if roles := raw.extra_metadata.get("roles"):
            said += f"; turns of {', '.join(roles)}"
        print(f"  {said}\n  ranked: {ranked_texts(counts)}")
    print(*map(describe_model, models), sep="\n")


def read_counts(full: Mapping[str, Any], dataset: str) -> tuple[Any, dict[str, Any]]:
    """Read a table by the completed configuration. Return its rows, and the counts that
    ``build_examples`` makes of them. Near duplicates are not counted, for they take minutes in a
    large table. Raises ``UserError`` as the loader and ``build_examples`` do."""
    from mamushi.data.examples import build_examples

    settings, exact = full["datasets"][dataset], {**full["data"], "near_duplicates": None}
    raw = plugin("dataset", "table").code.load(settings, Path())
    return raw, build_examples(raw, settings["sections"], settings["limit"], exact)[2]


def ranked_texts(counts: Mapping[str, Any]) -> str:
    """Return in words how many texts are ranked."""
    if "corpus" in counts:
        return f"{counts['corpus']:,} texts of the corpus"
    ranked = counts["sections"][INFERENCE]
    return f"{ranked[FORGET]:,} forget texts against {ranked[RETAIN]:,} retain texts"


def settle_budgets(config: dict[str, Any], counts: Mapping[str, Any]) -> dict[str, Any]:
    """Give a configuration that has no budgets those that suit the counts of ``build_examples``, of
    few texts the least that takes one, and return it completed."""
    usual, most = BUDGETS, counts["sections"][INFERENCE][FORGET]
    if "corpus" in counts:
        usual, most = OF_CORPUS, counts["corpus"]
    fitting = [beta for beta in usual if round(beta * most, 9) >= 1]
    config["grid"].setdefault("budgets", fitting or [math.ceil(100 / most) / 100])
    return complete(config)


# What embeds the texts: a model, or vectors that were made elsewhere ------------------------------


def find_vectors(source: str) -> dict[str, Any]:
    """Return where vectors lie, and in which columns. Raises ``UserError`` for a file that has no
    columns of ids and of lists, or several."""
    import pyarrow.parquet as pq

    if not (path := local_path(source)).is_file():
        raise UserError(tabular.why_not_a_file(path), where=source)
    with located(source):
        schema = pq.read_schema(path)
    lists = [field.name for field in schema if "list<" in str(field.type)]
    columns = {"id": [name for name in schema.names if name not in lists], "vector": lists}
    for name, candidates in columns.items():
        if name not in candidates and len(candidates) != 1:
            do = f"name it so; the columns are {', '.join(map(repr, schema.names))}"
            raise UserError(f"no column {name!r}", where=source, do=do)
    chosen = {name: name if name in names else names[0] for name, names in columns.items()}
    return {"path": source, **chosen}


def find_model(source: str) -> dict[str, str]:
    """Return a model's source and, of one on the hub, its commit. Raises ``UserError`` where there
    is none."""
    path = Path(source).expanduser()
    if path.is_dir():
        return {"source": str(path.absolute())}
    from mamushi.lm import folders

    commit = folders.fetch(source, None, "--model", weights=False)[1]
    return {"source": source} | ({"revision": commit} if commit else {})


def describe_model(model: Mapping[str, Any]) -> str:
    """Return what a model is. Raises ``UserError`` for one whose configuration or tokenizer cannot
    be read."""
    if "embeddings" in model:
        return "no --model: no tokens are ranked, and what retraining would do is not predicted"
    from mamushi.lm import folders

    folder, _ = folders.fetch(model["source"], None, "--model", weights=False)
    kind, tokenizer = folders.check_config(folder)["model_type"], folders.read_tokenizer(folder)
    return f"{model['source']}: {kind}, tokenizer with {len(tokenizer):,} tokens"
