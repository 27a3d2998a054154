"""Cells of a lab's table whose texts were ranked stage by stage, without Snakemake."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mamushi.cli import main
from mamushi.config.complete import complete
from mamushi.io import paths
from mamushi.running.stage import stages

TABLE = {
    **{"kind": "table", "path": "comments.csv", "text": "body", "id": "id"},
    **{"forget": {"where": "source == 'theirs'"}, "sections": {"inference": 1}},
}

FILES = ("EXAMPLES", "DUPLICATES", "DATA_CARD", "EMBEDDINGS", "MODEL_CARD", "TOKENS", "SCORES")
FILES += ("REMOVAL",)


def rank_cell(model: Mapping[str, Any] | None = None) -> Path:
    """Rank ``comments.csv`` of this folder by ``stack``, with the vectors of a model or of words;
    return the list of half of the forget texts. It lies where the pages have that of ``ours``."""
    config = complete(
        {
            "grid": {"datasets": ["comments"], "models": ["ours"], "selectors": ["stack"]},
            "datasets": {"comments": TABLE},
            "selectors": {"stack": {"kind": "stack"}},
            "models": {"ours": model or {"embeddings": {"words": 8}}},
        }
    )
    where = {"dataset": "comments", "model": "ours", "seed": 0, "selector": "stack"}
    where["beta"] = "0.50"
    at = {name: getattr(paths, name).format(**where) for name in FILES}
    for path in at.values():
        Path(path).parent.mkdir(parents=True, exist_ok=True)

    def run(stage: str, *options: str, **wildcards: Any) -> None:
        settings = stages()[stage].settings_text(config, **wildcards)
        assert main([stage, *options, "--settings", settings]) == 0

    examples = ["--examples", at["EXAMPLES"]]
    both = [*examples, "--duplicates", at["DUPLICATES"]]
    run("examples", *both, "--card", at["DATA_CARD"], "--cache", "cache", dataset="comments")
    out = ["--out", at["EMBEDDINGS"]]
    if model is None:
        run("import-embeddings", *both, *out, model="ours")
    else:
        card = ["--model-card", at["MODEL_CARD"]]
        run("model-card", "--out", at["MODEL_CARD"], model="ours")
        run("tokens", *examples, *card, "--out", at["TOKENS"])
        run("embed", *examples, "--tokens", at["TOKENS"], *card, *out, model="ours")
    scored = [*examples, "--embeddings", at["EMBEDDINGS"], "--out", at["SCORES"]]
    run("score", *scored, selector="stack", seed=0)
    ranked = [*both, "--scores", at["SCORES"], "--out", at["REMOVAL"]]
    run("remove", *ranked, beta="0.50")
    return Path(at["REMOVAL"])
