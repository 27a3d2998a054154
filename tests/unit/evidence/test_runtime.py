"""What a selection costs: what is timed, in which order, and the table that comes of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mamushi.artifacts import schemas
from mamushi.artifacts.tables import read_metadata, read_table
from mamushi.cli import main
from mamushi.errors import UserError
from mamushi.evidence import runtime
from mamushi.evidence.runtime import Selector, Timing, hardware, measure, row, selections
from mamushi.registry import plugin
from mamushi.running.threads import WORKERS
from mamushi.selection.pool import Pool
from tests.support.score_files import domains, write_embeddings, write_examples

N, WIDTH = 120, 8
RATIO = np.linspace(-3.0, 3.0, N)


def pool(truth: bool = False) -> Pool:
    rng = np.random.default_rng(0)
    forget = np.arange(N) % 3 == 0
    x = rng.normal(0, 1, (N, WIDTH)) + forget[:, None]
    ids = np.array([f"t{i:03d}" for i in range(N)], dtype=object)
    return Pool(ids, forget, x.astype(np.float16), truth=RATIO if truth else None)


def default(kind: str, **settings: Any) -> Selector:
    return Selector(kind, {**plugin("selector", kind).defaults, **settings})


def test_a_derived_selector_is_timed_with_what_it_derives_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran = []
    real = runtime.load

    def load(kind: str, name: str) -> Any:
        module = real(kind, name)

        class Recorded:
            @staticmethod
            def score(*args: Any) -> Any:
                ran.append(name)
                return module.score(*args)

        return Recorded

    monkeypatch.setattr(runtime, "load", load)
    named = {
        "twice": default("anti_mamushi", of="back"),
        "back": default("anti_mamushi", of="norm"),
        "norm": default("l2_norm"),
    }
    calls, _ = selections(pool(), named, 0)
    orders = {name: call() for name, call in calls.items()}
    assert ran == ["l2_norm", "anti_mamushi", "anti_mamushi", "l2_norm", "anti_mamushi", "l2_norm"]
    np.testing.assert_array_equal(orders["twice"], orders["norm"])
    np.testing.assert_array_equal(orders["back"], orders["norm"][::-1])


def test_the_oracle_is_timed_where_the_truth_is_known() -> None:
    named = {
        "oracle": default("oracle"),
        "back": default("anti_mamushi", of="oracle"),
        "random": default("random"),
    }
    calls, left_out = selections(pool(), named, 0)
    assert (list(calls), left_out) == (["random"], ["back", "oracle"])
    calls, left_out = selections(pool(truth=True), named, 0)
    assert (list(calls), left_out) == (["oracle", "back", "random"], [])
    forget = np.flatnonzero(pool().forget)
    np.testing.assert_array_equal(calls["oracle"](), forget[::-1])
    with pytest.raises(UserError, match=r"no selector to time: all need the true density ratio"):
        selections(pool(), {"oracle": default("oracle")}, 0)


def test_the_selectors_take_turns() -> None:
    ran: list[str] = []
    found = measure({"b": lambda: ran.append("b"), "a": lambda: ran.append("a")}, 3)
    assert ran == ["b", "a"] * 3
    assert list(found) == ["b", "a"]
    assert all(len(one.wall) == len(one.cpu) == len(one.peak) == 3 for one in found.values())
    with pytest.raises(ValueError, match="repeats"):
        measure({}, 0)


def test_waiting_costs_wall_time_and_work_costs_both() -> None:
    def work() -> None:
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass

    found = measure({"wait": lambda: time.sleep(0.05), "work": work}, 2)
    assert (found["wait"].wall >= 0.05).all()
    assert (found["wait"].cpu < 0.04).all()
    assert (found["work"].cpu >= 0.05).all()
    assert (found["work"].wall >= 0.045).all()


@pytest.mark.skipif(hardware()["memory_by"] != "VmHWM", reason="the peak cannot be reset here")
def test_the_peak_is_that_of_the_call_and_not_of_an_earlier_one() -> None:
    found = measure(
        {"large": lambda: np.ones(64 * 2**20 // 8).sum(), "small": lambda: np.ones(8).sum()}, 2
    )
    assert found["large"].peak == pytest.approx([64, 64], abs=4)
    assert (found["small"].peak < 4).all()


def test_where_the_peak_cannot_be_reset_the_growth_of_the_largest_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runtime, "PROC", tmp_path / "absent")
    assert 0 <= measure({"any": lambda: None}, 1)["any"].peak[0] < 4
    assert hardware()["memory_by"] == "ru_maxrss"


def test_a_row_has_medians_half_ranges_and_the_largest_peak() -> None:
    timing = Timing(np.array([1.0, 2, 3, 4, 100]), np.array([2.0] * 5), np.array([5.0, 7, 1, 0, 2]))
    assert row(timing) == {
        "wall_seconds": 3.0, "wall_spread": 1.0, "cpu_seconds": 2.0, "cpu_spread": 0.0,
        "peak_mib": 7.0,
    }  # fmt: skip
    once = row(Timing(np.array([1.5]), np.array([1.0]), np.array([0.0])))
    assert (once["wall_seconds"], once["wall_spread"]) == (1.5, 0.0)


SELECTORS = {
    "random": default("random"),
    "mamushi": default("mamushi", hidden=[8], folds=2, epochs=1, seeds_averaged=1),
    "anti_mamushi": default("anti_mamushi", of="anti_base"),
    "kcenter": default("kcenter"),
    "oracle": default("oracle"),
}


BASES = {"anti_base": default("anti_mamushi", of="mamushi")}


def timed(folder: Path, threads: int = 1) -> int:
    """Time the selectors on texts of which no exact ratio is known."""
    given = pool()
    about = given.ids.tolist(), domains(given.forget)
    write_examples(folder / "examples.parquet", *about)
    write_embeddings(folder / "embeddings.parquet", *about, given.embeddings)
    named = {
        key: [{"selector": name, "kind": one.kind, "settings": one.settings}
              for name, one in found.items()]
        for key, found in (("selectors", SELECTORS), ("bases", BASES))
    }  # fmt: skip
    run = {"dataset": "d", "model": "m", "seed": 1, "repeats": 2, "threads": threads, "code": "c"}
    files = [f"--{name}={folder / name}.parquet" for name in ("examples", "embeddings")]
    out = f"--out={folder / 'runtime.parquet'}"
    return main(["runtime", *files, out, f"--settings={json.dumps({**run, **named})}"])


def test_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The stage sets it for its process, which is this one.
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert timed(tmp_path) == 0
    table = read_table(tmp_path / "runtime.parquet", schemas.RUNTIME)
    rows = {entry["selector"]: entry for entry in table.to_pylist()}
    assert list(rows) == [name for name in SELECTORS if name != "oracle"]
    for entry in rows.values():
        assert (entry["n_forget"], entry["n_retain"], entry["width"]) == (40, 80, WIDTH)
        assert (entry["threads"], entry["repeats"], entry["seed"]) == (1, 2, 1)
        assert entry["wall_seconds"] > 0
        assert min(entry[f"{k}_{s}"] for k in ("wall", "cpu") for s in ("seconds", "spread")) >= 0
        assert entry["peak_mib"] >= 0
    assert rows["mamushi"]["wall_seconds"] > rows["random"]["wall_seconds"]
    assert rows["anti_mamushi"]["wall_seconds"] > rows["random"]["wall_seconds"]
    about = read_metadata(tmp_path / "runtime.parquet")
    assert about["left_out"] == ["oracle"]
    assert set(about["hardware"]) == {"cpu", "cores", "memory_gib", "system", "memory_by"}
    assert about["hardware"]["cores"] >= 1
    assert about["provenance"]["versions"]["numpy"] == np.__version__
    assert np.median(about["seconds"]["random"]["wall"]) == rows["random"]["wall_seconds"]


def test_the_threads_are_networks_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def measured(calls: Any, repeats: int) -> dict[str, Timing]:
        seen.append(os.environ[WORKERS])
        return {name: Timing(*np.ones((3, repeats))) for name in calls}

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    monkeypatch.setenv(WORKERS, "1")
    monkeypatch.setattr(runtime, "measure", measured)
    assert timed(tmp_path, threads=2) == 0
    assert seen == ["2"]
