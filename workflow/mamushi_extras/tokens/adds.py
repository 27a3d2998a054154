"""What this room adds to the core: spans of tokens, in the format that trainers read."""

from collections.abc import Iterator

from mamushi.config.complete import comparisons
from mamushi.config.kinds import Added, Config
from mamushi.config.selectors import kind_of, parent_of, ranks_tokens
from mamushi.registry import plugin


def check(full: Config) -> Iterator[str]:
    """Yield where tokens are ranked and texts are wanted, or a tokenizer."""
    for name in full["selectors"]:
        if (base := parent_of(full, name)) and ranks_tokens(full, base):
            at = f"selectors.{name}.{kind_of(full, name).derives}"
            yield f"{at}: {base!r} ranks tokens; name a selector of texts"
    compared = {**full["grid"], "selectors": full["evidence"]["compared"]}
    lists = {f"{where}.selectors": axes for where, axes in comparisons(full)}
    for key, axes in {"evidence.compared": compared, **lists}.items():
        where = key.partition(".")[0]
        unlearners = axes["unlearners"] if where in ("unlearning", "probe") else ()
        kinds = {name: full["unlearners"][name]["kind"] for name in unlearners}
        edits = [name for name in unlearners if not plugin("unlearner", kinds[name]).trains]
        vectors = [model for model in axes["models"] if "embeddings" in full["models"][model]]
        wants = [f"{name!r} unlearns whole texts alone" for name in edits]
        wants += [f"models.{model} has vectors alone" for model in vectors]
        if where not in ("grid", "studies", "unlearning", "probe"):
            wants.append(f"{where} needs lists of texts")
        for place, name in enumerate(axes["selectors"] if wants else ()):
            if ranks_tokens(full, name):
                yield f"{key}[{place}]: {name!r} ranks tokens, and {wants[0]}"


config = Added(check=check)
