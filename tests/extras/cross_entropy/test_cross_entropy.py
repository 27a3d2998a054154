"""Differences of cross-entropies: what they are, how a killed job goes on, what they find."""

import json
from pathlib import Path

import numpy as np
import pytest

from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.io import schemas
from mamushi.io.tables import read_table
from mamushi.selection.metrics import auc
from mamushi_extras.cross_entropy.schemas import TOKEN_CROSS_ENTROPY
from tests.extras.influence.test_measuring import nll
from tests.support.models import TRAINING
from tests.support.score_files import write_examples
from tests.support.stage_files import (
    EXECUTION,
    WORDS,
    command,
    finetuning,
    opened,
    texts_of,
    tokenize,
    write_base,
)
from tests.support.steps import kill_at

TEXTS = 96
ALIGNED = {**TRAINING, "steps": "aligned"}


def is_typical(number: int) -> bool:
    """Whether this text has the domain's words; each other forget text has the retain texts'."""
    return number % 6 == 0


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base model, texts of two sections, of which a third are of the forget domain, and models
    that the stage ``finetune`` trains on one section: on all of it, and on its retain texts."""
    root, rng = tmp_path_factory.mktemp("base"), np.random.default_rng(1)
    write_base(root)
    words = (WORDS[6:], WORDS[:6])
    texts = [" ".join(rng.choice(words[is_typical(n)], rng.integers(4, 10))) for n in range(TEXTS)]
    write_examples(
        root / "examples.parquet",
        [f"t{number:02d}" for number in range(TEXTS)],
        ["retain" if number % 3 else "forget" for number in range(TEXTS)],
        text=texts,
        section=["contamination"] * (TEXTS // 2) + ["inference"] * (TEXTS // 2),
    )
    tokenize(root)
    for name, domains in (("contaminated", ["forget", "retain"]), ("twin", ["retain"])):
        how = finetuning(section="contamination", domains=domains, training=ALIGNED)
        beside = {kind: root / f"{name}.{kind}" for kind in ("log_table", "card")}
        tensors = root / f"{name}.safetensors"
        assert main(command("finetune", how, **texts_of(root), **beside, tensors=tensors)) == 0
    return root


def measure(base: Path, out: Path, *, trained: bool = True, batch_tokens: int = 64) -> int:
    settings = {"dataset": "d", "model": "m", "seed": 0, "folds": 2, "training": ALIGNED}
    model = base / "contaminated.safetensors" if trained else None
    line = command("cross-entropy", settings, **texts_of(base), trained=model, out=out)
    execution = {**EXECUTION, "batch_tokens": batch_tokens}
    return main([*line, f"--execution={json.dumps(execution)}"])


def scores(out: Path) -> list[list[float]]:
    column: list[list[float]] = read_table(out, TOKEN_CROSS_ENTROPY)["cross_entropy"].to_pylist()
    return column


def test_it_is_what_a_plain_loop_over_both_models_gives_by_batches_of_any_size(
    base: Path, tmp_path: Path
) -> None:
    outs = [tmp_path / f"{size}.parquet" for size in (1, 64, 4096)]
    for out in outs:
        assert measure(base, out, batch_tokens=int(out.stem)) == 0
    table = read_table(outs[0], TOKEN_CROSS_ENTROPY)
    tokens = read_table(base / "tokens.parquet", schemas.TOKENS).to_pylist()[TEXTS // 2 :]
    assert table["id"].to_pylist() == [row["id"] for row in tokens]
    assert table["fold"].null_count == len(table)
    twin, contaminated = (
        opened(base / "card.json", base / f"{name}.safetensors")
        for name in ("twin", "contaminated")
    )
    for out in outs:
        for row, measured in zip(tokens, scores(out), strict=True):
            ids = np.array(row["tokens"])
            expected = (nll(twin, ids) - nll(contaminated, ids)).detach().numpy()
            assert np.abs(expected - measured).max() < 1e-5
    assert {*tmp_path.iterdir()} == {*outs}


# Of 24 steps of the one twin, and of 12 of each model of two folds.
@pytest.mark.parametrize(("trained", "call"), [(True, 7), (False, 5), (False, 18), (False, 47)])
def test_a_killed_one_goes_on_to_equal_bits(
    trained: bool, call: int, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    computed = kill_at(monkeypatch, 10_000)
    assert measure(base, whole, trained=trained) == 0
    steps = len(computed)
    with monkeypatch.context() as patch:
        kill_at(patch, call, UserError)
        assert measure(base, out, trained=trained) == 2
    assert not out.exists() and len([*tmp_path.glob("out.parquet.*-state")]) == 1
    computed.clear()
    assert measure(base, out, trained=trained) == 0
    # What was computed is not computed again.
    assert len(computed) == steps - call + 1
    assert scores(whole) == scores(out)
    assert {*tmp_path.iterdir()} == {whole, out}


@pytest.mark.parametrize("trained", [True, False])
def test_texts_with_the_words_of_the_domain_go_first(
    trained: bool, base: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.parquet"
    assert measure(base, out, trained=trained) == 0
    table = read_table(out, TOKEN_CROSS_ENTROPY)
    sums, numbers = np.array([*map(sum, scores(out))]), np.arange(TEXTS // 2, TEXTS)
    forget = np.array(table["domain"].to_pylist()) == "forget"
    typical = np.array([*map(is_typical, numbers.tolist())])
    assert auc(sums[forget], typical[forget]) > 0.95
    # Among texts of the same words it says nothing: both domains are scored alike.
    alike = auc(sums[~typical], forget[~typical])
    assert 0.2 < alike < 0.8
    if not trained:
        folds = np.array(table["fold"].to_pylist())
        assert {*np.bincount(folds[forget]), *np.bincount(folds[~forget])} == {8, 16}
