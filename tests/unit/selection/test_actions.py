"""What is taken from a training in the place of whole texts: weights and spans."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_table, write_table
from mamushi.cli import main
from mamushi.selection.actions import highest_spans, removed_shares
from tests.support.score_files import domains, write_scores

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("k", [0, 1, 37.5, 80, 99, 100])
def test_the_shares_sum_to_the_budget_and_are_a_posterior(k: float) -> None:
    ratio = RNG.normal(1, 3, 100)
    shares = removed_shares(ratio, k)
    assert shares.sum() == pytest.approx(k, abs=1e-9)
    assert ((shares >= 0) & (shares <= 1)).all()
    if 0 < k < 100:
        # Under one prior: the log odds less the ratio are the same everywhere.
        prior = np.log(shares / (1 - shares)) - ratio
        np.testing.assert_allclose(prior, prior[0], atol=1e-6)


def test_the_highest_tokens_are_spans_in_their_texts() -> None:
    ratios = [np.array(each, np.float32) for each in ([5, 4, -1, 3], [], [0], [2, 9])]
    assert highest_spans(ratios, 0) == {}
    # A text's first token is not predicted: its ratios begin with the second, at 1.
    assert highest_spans(ratios, 4) == {0: [(1, 3), (4, 5)], 3: [(2, 3)]}
    assert highest_spans(ratios, 7) == {0: [(1, 5)], 2: [(1, 2)], 3: [(1, 3)]}


def scores_of(folder: Path, n1: int = 40, n2: int = 60) -> tuple[Path, Path]:
    forget = np.arange(n1 + n2) < n1
    score = 3 * (RNG.normal(0, 1, n1 + n2) + forget)
    ids = [f"t{i}" for i in range(n1 + n2)]
    scores, duplicates = folder / "scores.parquet", folder / "duplicates.parquet"
    write_scores(scores, ids, domains(forget), score, fold=np.arange(n1 + n2) % 5)
    copies = {"id": ["copy"], "kept_id": ["t0"], "reason": ["exact"]}
    write_table(duplicates, schemas.DUPLICATES, copies)
    return scores, duplicates


def weigh(folder: Path, beta: float) -> int:
    given = [f"--{name}={folder / name}.parquet" for name in ("scores", "duplicates")]
    settings = json.dumps({"beta": beta, "code": "digest"})
    return main(["weigh", *given, f"--out={folder / 'out.parquet'}", f"--settings={settings}"])


def test_the_weights_remove_as_much_as_the_list(tmp_path: Path) -> None:
    scores_of(tmp_path)
    assert weigh(tmp_path, 0.3) == 0
    found = read_table(tmp_path / "out.parquet", schemas.WEIGHTS)
    weight = np.array(found["weight"].to_pylist())
    assert len(found) == 40 and (1 - weight).sum() == pytest.approx(12)
    # By rank; a calibration has an offset for each fold, so only nearly in order.
    assert np.corrcoef(weight, np.arange(40))[0, 1] > 0.9
    copies = dict(zip(found["id"].to_pylist(), found["copies"].to_pylist(), strict=True))
    assert copies.pop("t0") == ["copy"] and not any(copies.values())


def test_weights_need_a_score_of_every_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores, _ = scores_of(tmp_path)
    table = read_table(scores, schemas.SCORES)
    unknown = pa.array([None] * 100, pa.float64())
    place = table.schema.get_field_index("score")
    write_table(scores, schemas.SCORES, table.set_column(place, table.schema.field(place), unknown))
    assert weigh(tmp_path, 0.3) == 2
    assert "has no score for some texts" in capsys.readouterr().err


@pytest.mark.parametrize(("beta", "tokens"), [(0.1, 0), (0.3, 2), (0.9, 8)])
def test_the_spans_of_a_budget(beta: float, tokens: int, tmp_path: Path) -> None:
    ratio, out = tmp_path / "ratio.parquet", tmp_path / "spans.parquet"
    columns = {"id": ["a", "b"], "ratio": pa.array([[1.0, 3.0, 2.0], [0.0] * 6])}
    columns["ratio"] = columns["ratio"].cast(pa.list_(pa.float32()))
    write_table(ratio, schemas.TOKEN_RATIO, columns)
    settings = json.dumps({"beta": beta, "code": "digest"})
    assert main(["spans", f"--ratio={ratio}", f"--out={out}", f"--settings={settings}"]) == 0
    found = read_table(out, schemas.SPANS).to_pylist()
    assert sum(row["stop"] - row["start"] for row in found) == tokens
    if tokens == 2:
        assert found == [{"id": "a", "start": 2, "stop": 4}]
