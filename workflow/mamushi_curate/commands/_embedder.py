"""What embeds the texts of `init`: a model, or vectors that were made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.config.sections import Shortened
from mamushi.errors import UserError, located
from mamushi.io import tabular
from mamushi.io.copies import display_url, local_path
from mamushi.io.model_files import positions_of, source_mistake
from mamushi_curate.commands import _places

BY_WORDS = {"words": 128}
"""The vectors of a table without a model, and without vectors."""


def find_vectors(source: str | None) -> dict[str, Any]:
    """Return where vectors lie, and in which columns; without a source, those of the words. Raises
    ``UserError`` for a file that has no columns of ids and of lists, or several."""
    if source is None:
        return dict(BY_WORDS)
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = local_path(source).expanduser()
    if not path.is_file():
        raise UserError(tabular.no_file(path), where=source, do="check the path")
    with located(source):
        schema = pq.read_schema(path)
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    lists = [field.name for field in schema if any(kind(field.type) for kind in kinds)]
    others = [name for name in schema.names if name not in lists]
    columns = {}
    for name, candidates in (("id", others), ("vector", lists)):
        if name not in candidates and len(candidates) != 1:
            do = f"name it so; the columns are {', '.join(map(repr, schema.names))}"
            raise UserError(f"no column {name!r}", where=source, do=do)
        columns[name] = name if name in candidates else candidates[0]
    return {"path": _places.as_configured(source), **columns}


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
    from mamushi.lm import loading

    commit = loading.fetch(source, None, "--model", weights=False)[1]
    return {"source": source} | ({"revision": commit} if commit else {})


def describe_model(model: Mapping[str, Any], examples: Any = None) -> str:
    """Return what a model is, and how it reads conversations among the ``examples``. Raises
    ``UserError`` for one whose configuration or tokenizer cannot be read."""
    if "words" in model.get("embeddings", {}):
        return "no --model: ranked by words alone, without tokens and what retraining would do"
    if "embeddings" in model:
        place = display_url(model["embeddings"]["path"])
        return f"{place}: vectors made elsewhere; no model is run, and no tokens are ranked"
    from mamushi.lm import loading
    from mamushi.lm.tokens import CHATS

    folder, _ = loading.fetch(model["source"], None, "--model", weights=False)
    kind, tokenizer = loading.check_config(folder)["model_type"], loading.read_tokenizer(folder)
    line = f"{model['source']}: {kind}, tokenizer with {len(tokenizer):,} tokens"
    if examples is not None and CHATS in examples.column_names:
        template = "their text" if tokenizer.chat_template is None else "its chat template"
        line += f"; conversations are read as {template}"
    positions, most = positions_of(str(folder)), Shortened().max_length
    return line if (positions or most) >= most else f"{line}; texts are cut at {positions} tokens"
