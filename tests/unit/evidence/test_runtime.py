"""What a selection costs: what is timed, in which order, and the table that comes of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.cli import main
from mamushi.evidence import runtime
from mamushi.evidence.runtime import Selector, measure
from mamushi.registry import plugin
from mamushi.running.threads import WORKERS
from mamushi.selection.pool import Pool
from tests.support.score_files import domains, write_embeddings, write_examples, write_scores

N, WIDTH = 120, 8


def pool() -> Pool:
    rng = np.random.default_rng(0)
    forget = np.arange(N) % 3 == 0
    x = rng.normal(0, 1, (N, WIDTH)) + forget[:, None]
    ids = np.array([f"t{i:03d}" for i in range(N)], dtype=object)
    return Pool(ids, forget, x.astype(np.float16))


def default(kind: str, **settings: Any) -> Selector:
    return Selector(kind, {**plugin("selector", kind).defaults, **settings})


def test_selectors_take_turns_and_are_timed_with_what_they_derive_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    orders: list[Any] = []
    rank = runtime.rank
    monkeypatch.setattr(runtime, "rank", lambda *given: orders.append(rank(*given)))
    known = {
        "twice": default("anti_mamushi", of="back"),
        "back": default("anti_mamushi", of="norm"),
        "norm": default("l2_norm"),
    }
    found = measure(pool(), ["twice", "back", "norm"], known, 0, 2)
    assert list(found) == ["twice", "back", "norm"]
    assert all(seconds.shape == (2, 2) and (seconds >= 0).all() for seconds in found.values())
    norm = orders[2]
    for order, wanted in zip(orders, [norm, norm[::-1], norm] * 2, strict=True):
        np.testing.assert_array_equal(order, wanted)


SELECTORS = {
    "random": default("random"),
    "mamushi": default("mamushi", hidden=[8], folds=2, epochs=1, seeds_averaged=1),
    "anti_mamushi": default("anti_mamushi", of="anti_base"),
}
BASES = {"anti_base": default("anti_mamushi", of="mamushi")}


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The stage sets both for its process, which is this one.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv(WORKERS, "1")
    given = pool()
    about = given.ids.tolist(), domains(given.forget)
    write_examples(tmp_path / "examples.parquet", *about)
    write_embeddings(tmp_path / "embeddings.parquet", *about, given.embeddings)
    named = {
        key: [{"selector": name, "kind": one.kind, "settings": one.settings}
              for name, one in found.items()]
        for key, found in (("selectors", SELECTORS), ("bases", BASES))
    }  # fmt: skip
    run = {"dataset": "d", "model": "m", "seed": 1, "repeats": 2, "threads": 2, "code": "c"}
    files = [f"--{name}={tmp_path / name}.parquet" for name in ("examples", "embeddings")]
    out = tmp_path / "runtime.parquet"
    assert main(["runtime", *files, f"--out={out}", f"--settings={json.dumps(run | named)}"]) == 0
    assert os.environ[WORKERS] == "2"
    rows = {entry["selector"]: entry for entry in read_table(out, schemas.RUNTIME).to_pylist()}
    assert list(rows) == list(SELECTORS)
    for entry in rows.values():
        assert (entry["n_forget"], entry["n_retain"], entry["width"]) == (40, 80, WIDTH)
        assert (entry["threads"], entry["repeats"], entry["seed"]) == (2, 2, 1)
        assert entry["wall_seconds"] > 0 <= entry["cpu_seconds"]
    assert rows["anti_mamushi"]["wall_seconds"] > rows["random"]["wall_seconds"]
    stored = read_metadata(out)
    assert stored["conditions"]["device"] == "cpu"
    wall, _ = stored["seconds"]["random"]
    assert np.median(wall) == rows["random"]["wall_seconds"]


def test_without_repeats_run_times_are_those_of_the_logs(tmp_path: Path) -> None:
    """Nothing is run; what a selector derives from counts with it."""
    given = pool()
    about = given.ids.tolist(), domains(given.forget)
    names = ["random", "mamushi", "anti_mamushi", "anti_base"]
    took = {"random": "0.50 s, 0.25 s", "mamushi": "6.41 s, 5.98 s", "anti_base": "1.00 s, 1.00 s"}
    for name in names:
        write_scores(tmp_path / f"{name}.parquet", *about, np.arange(N))
        end = f"took {took[name]} of CPU" if name in took else "made from the same already"
        (tmp_path / f"{name}.log").write_text(f"5/5 folds, 100%\nmamushi score: {end}\n")
    given_ = [{"selector": name, "kind": name, "settings": SELECTORS[name].settings} for name in
              ("random", "mamushi")]  # fmt: skip
    turned = {"selector": "turned", "kind": "anti_mamushi", "settings": {"of": "mamushi"}}
    settings = {
        **{"dataset": "d", "model": "m", "seed": 1, "repeats": 0, "threads": 2, "bases": []},
        "selectors": [*given_, turned],
    }
    for kept, wanted in ((False, [7.41, 6.98]), (True, [None, None])):
        log = "anti_mamushi" if kept else "anti_base"
        files = [str(tmp_path / f"{name}") for name in ("random", "mamushi", log)]
        out = tmp_path / f"{log}.runtime.parquet"
        options = ["--scored", "random", "mamushi", "turned"]
        options += ["--scores", *(f"{file}.parquet" for file in files)]
        options += ["--logs", *(f"{file}.log" for file in files)]
        assert (
            main(["runtime", *options, f"--out={out}", f"--settings={json.dumps(settings)}"]) == 0
        )
        rows = {row["selector"]: row for row in read_table(out, schemas.RUNTIME).to_pylist()}
        assert rows["random"] == {
            **{"dataset": "d", "model": "m", "seed": 1, "selector": "random"},
            **{"n_forget": 40, "n_retain": 80, "width": None, "threads": None, "repeats": 0},
            **{"wall_seconds": 0.5, "cpu_seconds": 0.25},
        }
        found = [rows["turned"][name] for name in ("wall_seconds", "cpu_seconds")]
        assert found == pytest.approx(wanted)
