"""What this room adds to the core: checks of what ranks tokens, or texts by theirs."""

from collections.abc import Iterator

from mamushi.config.complete import comparisons
from mamushi.config.kinds import Added, Config
from mamushi.config.selectors import kind_of, measured_table, parent_of, ranks_tokens
from mamushi.config.sources import is_unlabelled
from mamushi.registry import plugin


def check(full: Config) -> Iterator[str]:
    """Yield where tokens are ranked and texts are wanted, or a tokenizer; and where a model is to
    say by what texts are ranked, and there is none, or nobody labelled them."""
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
    for where, axes in comparisons(full):
        vectors = [model for model in axes["models"] if "embeddings" in full["models"][model]]
        corpora = [name for name in axes["datasets"] if is_unlabelled(full["datasets"][name])]
        for name in axes["selectors"]:
            pattern = measured_table(full, name)
            at = f"{where}.selectors: {name!r} is not allowed with"
            if vectors and "{model}" in (pattern or "") and not ranks_tokens(full, name):
                yield f"{at} models.{vectors[0]}, which has vectors and no weights"
            if corpora and pattern:
                yield f"{at} datasets.{corpora[0]}, which nobody labelled"


config = Added(check=check)
