"""What a configuration says of selectors of tokens."""

from __future__ import annotations

from collections.abc import Iterator

from mamushi.config.checks import comparisons
from mamushi.config.kinds import Config
from mamushi.config.sections import axes_sections
from mamushi.config.selectors import base_selectors, of_tokens
from mamushi.registry import plugin


def check_tokens(full: Config) -> Iterator[str]:
    """Yield where tokens are ranked and texts are wanted, or a tokenizer is not there."""
    for name, definition in full["selectors"].items():
        for key, base in base_selectors(definition):
            if of_tokens(full, base):
                at = f"selectors.{name}.{key}"
                yield f"{at}: {base!r} ranks tokens; name a selector of texts"
    lists = {"evidence.compared": {**full["grid"], "selectors": full["evidence"]["compared"]}}
    lists |= {f"{where}.selectors": axes for where, axes in comparisons(full)}
    for at, axes in lists.items():
        where = at.partition(".")[0] if at.partition(".")[0] in axes_sections() else None
        for place, name in enumerate(axes["selectors"]):
            if not of_tokens(full, name):
                continue
            vectors = [model for model in axes["models"] if "embeddings" in full["models"][model]]
            if where in ("unlearning", "probe"):
                yield from _check_unlearned(full, where, f"{at}[{place}]", name)
            elif where is not None or at == "evidence.compared":
                words = "is not allowed, since it ranks tokens and lists no text"
                yield f"{at}[{place}]: {name!r} {words}"
            elif vectors:
                words = f"ranks tokens, and models.{vectors[0]} has vectors alone and no tokenizer"
                yield f"{at}[{place}]: {name!r} {words}; leave one of them out"


def _check_unlearned(full: Config, where: str, at: str, name: str) -> Iterator[str]:
    """Check that tokens can be unlearned: by loss, and in texts that are as long as where they were
    ranked."""
    for unlearner in full[where]["unlearners"]:
        if not plugin("unlearner", full["unlearners"][unlearner]["kind"]).trains:
            yield (
                f"{at}: {name!r} ranks tokens, and {unlearner!r} unlearns whole texts alone; "
                f"leave one of them out of {where}"
            )
    models = [full["models"][model] for model in full[where]["models"]]
    longest = max(model.get("training", full["training"])["max_length"] for model in models)
    if longest > full["unlearning"]["max_length"]:
        yield (
            f"{at}: {name!r} ranks the tokens of texts of {longest} tokens (training.max_length); "
            "unlearning.max_length is to be as many"
        )
