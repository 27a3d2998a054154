"""What is said of a mask beside its spans: its own verdict, and its certainty."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from mamushi.cli import main
from mamushi.io import schemas
from mamushi.io.files import read_json
from mamushi.io.tables import read_table, write_table
from mamushi_extras.tokens.masks import digest_of_spans
from tests.support.score_files import write_examples
from tests.support.stage_files import tokenize, write_base

BUDGETS = (0.1, 0.4)
TELLS = "mat"
"""The word of the forget texts."""
COMMON = "the cat sat on a dog and saw"


def made(root: Path, texts: int = 60) -> None:
    """Texts of which those of the forget domain have one word of their own."""
    write_base(root)
    rng, common = np.random.default_rng(0), COMMON.split()
    domains = ["forget" if i % 3 == 0 else "retain" for i in range(texts)]
    own = {"forget": f"{TELLS} ", "retain": ""}
    written = [own[domain] + " ".join(rng.choice(common, 5)) for domain in domains]
    ids = [f"t{i}" for i in range(texts)]
    write_examples(root / "examples.parquet", ids, domains, text=written)
    tokenize(root)
    nothing: dict[str, Any] = {name: [] for name in schemas.DUPLICATES.schema.names}
    write_table(root / "duplicates.parquet", schemas.DUPLICATES, nothing)


def manifests(root: Path, kind: str, settings: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Manifests at the two budgets, by the three stages."""
    files = [f"--{name}={root / name}.parquet" for name in ("examples", "tokens")]
    of = {"selector": "words", "kind": kind, "settings": settings, "seed": 0, "max_length": 16}
    scores = root / f"{kind}.parquet"
    words = ["token-scores", *files, f"--out={scores}"]
    given = {key: of[key] for key in ("kind", "settings", "seed", "max_length")} | {"model": "m"}
    assert main([*words, f"--settings={json.dumps({'selector': 'words', **given})}"]) == 0
    out = [root / f"{kind}-{beta}.json" for beta in BUDGETS]
    about = {**of, "dataset": "d", "model": "m", "budgets": BUDGETS}
    about |= {"compared": None, "whole": 2, **more}
    words = ["token-manifests", *files, f"--scores={scores}", "--out", *map(str, out)]
    words += [f"--duplicates={root / 'duplicates.parquet'}", f"--settings={json.dumps(about)}"]
    assert main(words) == 0
    found = []
    for path, beta in zip(out, BUDGETS, strict=True):
        found.append(read_json(path))
        spans = path.with_suffix(".spans.parquet")
        words = ["spans", f"--scores={scores}", f"--out={spans}"]
        assert main([*words, f"--settings={json.dumps({'beta': beta})}"]) == 0
        rows = read_table(spans, schemas.SPANS).to_pylist()
        assert found[-1]["spans_sha256"] == digest_of_spans(rows)
        assert found[-1]["masked"] == sum(row["stop"] - row["start"] for row in rows)
    return found


COUNTS = {"folds": 2, "prior": 30.0}


def test_a_mask_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    made(tmp_path)
    small, large = manifests(tmp_path, "token_unigram", COUNTS)
    assert (small["n_forget"], small["n_retain"], small["beta"]) == (20, 40, 0.1)
    assert small["separation"]["auc"] > 0.95
    assert small["judgement"]["ranking"].startswith("strong separation, AUC")
    # The word alone is masked, and no retain text has it.
    assert small["also_retain"]["estimate"] == small["retain_tokens"]["estimate"] == 0.0
    assert 0 < small["retain_tokens"]["upper_bound"] <= small["also_retain"]["upper_bound"]
    # With more, common words go as well, which the retain texts have, and which seeds decide.
    assert large["retain_tokens"]["estimate"] > 0.05
    assert large["also_retain"]["estimate"] > large["retain_tokens"]["estimate"]
    assert small["stability"]["rankings"] == 3
    assert small["stability"]["surely"] + small["stability"]["toss_up"] == small["masked"]
    assert small["stability"]["toss_up"] < large["stability"]["toss_up"]
    assert f"of {large['masked']} tokens are toss-ups" in large["judgement"]["list"]
    assert small["expected"]["withheld"] and small["expected"]["by"] is None
