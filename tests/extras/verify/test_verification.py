"""The verifier on files that the stages themselves made: accepted as they are, else named."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from mamushi.cli import main
from mamushi.io import paths, schemas
from mamushi.io.files import read_json, sha256, write_json
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.registry import plugin
from mamushi.running.identity import of_stage
from mamushi.running.stage import stages
from mamushi_extras.verify import verification
from tests.support.row_changes import Rows, drop_copies, exchange_ranks, rewrite, scored, update
from tests.support.score_files import ROWS, domains, write_embeddings, write_examples

RUN = {"dataset": "small", "model": "tiny", "seed": 3}
N, WIDTH = 120, 4
SELECTORS = {
    "mamushi_lr": {"kind": "mamushi_lr"},
    "upside_down": {"kind": "anti_mamushi", "of": "mamushi_lr"},
    "random": {"kind": "random"},
    "kcenter": {"kind": "kcenter"},
    "linear": {"kind": "linear", "depths": [0.5, 1], "folds": 2},
}
BUDGETS = [0.25, 0.5]


def place(root: Path, pattern: str, **more: Any) -> Path:
    return paths.under(root, pattern, **RUN, **more)


def embed(root: Path, seed: int = 0, apart: float = 1.0, **more: Any) -> None:
    """Examples with one embedding each, and the copies that were collapsed into them."""
    rng = np.random.default_rng(seed)
    forget = np.arange(N) % 3 == 0
    x = (rng.normal(size=(N, WIDTH)) + apart * forget[:, None]).astype(np.float16)
    about = {"id": [f"t{i:03d}" for i in range(N)], "domain": domains(forget)}
    examples = place(root, paths.EXAMPLES)
    write_examples(examples, *about.values(), **more)
    write_table(
        place(root, paths.DUPLICATES),
        schemas.DUPLICATES,
        {"id": ["copy"], "kept_id": ["t003"], "reason": ["near"], "text_sha256": ["0" * 16]},
        metadata={"examples": sha256(examples), "rows": ROWS},
    )
    origin = {
        "inputs": {"examples": sha256(examples), "trained": "a0", "model_card": "b1"},
        "settings": {"embedding": {"layer": -1}},
    }
    write_embeddings(place(root, paths.EMBEDDINGS), *about.values(), x, metadata=origin)
    turned = pa.FixedSizeListArray.from_arrays(pa.array(x[:, ::-1].reshape(-1)), WIDTH)
    layers = place(root, paths.LAYERS)
    write_table(layers, schemas.LAYERS, {**about, "depth_0.5": turned})


def asked(name: str) -> dict[str, Any]:
    given = SELECTORS[name]
    kind = given["kind"]
    values = {**plugin("selector", kind).defaults, **{k: given[k] for k in given if k != "kind"}}
    return {"selector": name, "kind": kind, "settings": values}


def run(*command: object) -> None:
    assert main([str(word) for word in command]) == 0


def score(root: Path, name: str, seed: int = 3) -> None:
    """Its scores, and these again."""
    definition = asked(name)
    code = of_stage(stages()["score"].entry, plugin("selector", definition["kind"]).module)
    of = definition["settings"].get("of")
    settings = {**definition, "seed": seed, "code": code}
    refits = {**settings, "whole": 3, "halves": 1}
    pairs = (("score", paths.SCORES, settings), ("refits", paths.REFITS, refits))
    for stage, pattern, given in pairs:
        base = ["--base", place(root, pattern, selector=of)] if of else []
        run(
            *(stage, "--examples", place(root, paths.EXAMPLES), *base),
            *("--embeddings", place(root, paths.EMBEDDINGS)),
            *(["--layers", place(root, paths.LAYERS)] if name == "linear" else []),
            *("--out", place(root, pattern, selector=name), "--settings", json.dumps(given)),
        )


def calibrate(root: Path, name: str = "mamushi_lr", *, refitted: bool = True) -> None:
    """The log ratios by the scores of one selector."""
    again = ["--refits", place(root, paths.REFITS, selector=name)] if refitted else []
    run(
        *("calibrate", "--scores", place(root, paths.SCORES, selector=name), *again),
        *("--examples", place(root, paths.EXAMPLES)),
        *("--embeddings", place(root, paths.EMBEDDINGS)),
        *("--out", place(root, paths.CALIBRATED), "--checks", place(root, paths.CALIBRATION)),
        *("--settings", json.dumps({**RUN, "selector": name, "resamples": 20})),
    )


def remove(root: Path, name: str, *, refitted: bool = True) -> None:
    made = ("--scores", place(root, paths.SCORES, selector=name))
    both = (*made, "--duplicates", place(root, paths.DUPLICATES))
    both += ("--examples", place(root, paths.EXAMPLES))
    cells = [{"selector": name, "beta": paths.beta(beta)} for beta in BUDGETS]
    for beta, cell in zip(BUDGETS, cells, strict=True):
        given = stages()["remove"].settings_text({}, beta=str(beta))
        run("remove", *both, "--out", place(root, paths.REMOVAL, **cell),
            "--settings", given)  # fmt: skip
    code = of_stage(stages()["manifests"].entry)
    compared = {"compared": {"upside_down": "upside down", "random": "chance"}.get(name)}
    compared |= {"by_chance": name == "random"}
    stable = place(root, paths.STABILITY, selector=name)
    again = ["--refits", place(root, paths.REFITS, selector=name)] if refitted else []
    run("stability", *both, *again, "--out", stable,
        "--settings", json.dumps({"budgets": BUDGETS}))  # fmt: skip
    run(
        *("manifests", *both, "--stability", stable),
        *("--calibrated", place(root, paths.CALIBRATED)),
        *("--out", *(place(root, paths.MANIFEST, **cell) for cell in cells)),
        "--settings",
        json.dumps({**RUN, **asked(name), **compared, "budgets": BUDGETS, "code": code}),
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "results"
    embed(root)
    for name in SELECTORS:
        score(root, name)
    calibrate(root)
    for name in SELECTORS:
        remove(root, name)
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "results")
    return tmp_path / "results"


def manifest(root: Path, name: str = "mamushi_lr", beta: str = "0.50") -> Path:
    return place(root, paths.MANIFEST, selector=name, beta=beta)


def refused(root: Path, capsys: pytest.CaptureFixture[str], name: str = "mamushi_lr") -> str:
    """The one line that says what differs."""
    capsys.readouterr()
    assert main(["verify", str(manifest(root, name))]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    # The selector's progress may stand above it.
    line = printed.err.splitlines()[-1]
    assert line.startswith("mamushi verify: error: ")
    assert line.endswith("; the list is not what its manifest says")
    return line


@pytest.mark.parametrize("name", SELECTORS)
def test_what_the_stages_made_is_accepted(
    root: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["verify", str(manifest(root, name))]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{manifest(root, name)}: the list is what its manifest says\n"


def test_each_list_says_its_own_verdict_or_that_it_has_none(root: Path) -> None:
    """And not that of the scores by which the ratio is estimated."""
    found = {name: read_json(manifest(root, name)) for name in SELECTORS}
    aucs = {name: each["separation"]["auc"] for name, each in found.items()}
    for name in ("mamushi_lr", "linear", "upside_down"):
        stored = read_metadata(place(root, paths.SCORES, selector=name))
        assert aucs[name] == pytest.approx(stored["details"]["auc"], abs=1e-12)
    for name in ("mamushi_lr", "linear"):
        assert f" separation, AUC {aucs[name]:.2f} [" in found[name]["verdict"]
    assert len({aucs[name] for name in ("mamushi_lr", "linear", "upside_down")}) == 3
    assert aucs["random"] is aucs["kcenter"] is None
    acts = {name: each["judgement"]["act"] for name, each in found.items()}
    assert (acts["random"], acts["upside_down"]) == ("comparison", "comparison")
    assert acts["kcenter"] == "unknown" and acts["mamushi_lr"] not in ("comparison", "unknown")
    assert found["upside_down"]["verdict"] == "a comparison, not to be acted on: upside down"
    assert {each["expected"]["by"] for each in found.values()} == {"mamushi_lr"}
    own = found["mamushi_lr"]
    assert f"at most {own['also_retain']['upper_bound']:.0%}" in own["verdict"]
    assert f"{own['stability']['toss_up']} of {own['removed']} texts are toss-ups" in own["verdict"]


def test_without_refits_a_list_says_what_is_missing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place(root, paths.REFITS, selector="mamushi_lr").unlink()
    calibrate(root, refitted=False)
    remove(root, "mamushi_lr", refitted=False)
    found = read_json(manifest(root))
    assert found["stability"] == {
        **{"rankings": 1, "expected_overlap": None, "least_overlap": None},
        **{"surely": None, "toss_up": None},
    }
    assert found["judgement"]["act"] == "check"
    assert "it was not refitted, so its toss-ups are not known" in found["verdict"]
    assert found["separation"]["auc"] is not None
    assert found["expected"]["at_this_budget"] is None
    assert found["expected"]["withheld"].startswith("nothing was refitted (evidence.refits.whole")
    capsys.readouterr()
    assert main(["verify", str(manifest(root))]) == 0


def test_a_manifest_elsewhere_is_of_no_run(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    elsewhere = root.parent / "handed_over.json"
    shutil.copy(manifest(root, "random", "0.25"), elsewhere)
    assert main(["verify", str(elsewhere)]) == 2
    assert "lies in no results folder" in capsys.readouterr().err


def test_the_precision_is_that_of_the_machine_that_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, has_bf16 = tmp_path / "results", {"there": True}
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": has_bf16["there"]})
    quick = {"kind": "mamushi", "hidden": [8], "folds": 2, "epochs": 3, "seeds_averaged": 2}
    monkeypatch.setitem(SELECTORS, "mlp", quick)
    embed(root)
    for name in ("mamushi_lr", "mlp"):
        score(root, name)
    calibrate(root)
    remove(root, "mlp")
    scored = place(root, paths.SCORES, selector="mlp")
    there = read_table(scored, schemas.SCORES)["score"].to_pylist()
    assert read_metadata(scored)["details"]["resolved"] == {"precision": "bf16"}
    has_bf16["there"] = False
    assert main(["verify", str(manifest(root, "mlp"))]) == 0
    scored.unlink()
    score(root, "mlp")
    assert read_metadata(scored)["details"]["resolved"] == {"precision": "fp32"}
    assert read_table(scored, schemas.SCORES)["score"].to_pylist() != there


def test_what_is_withheld_is_verified_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "results"
    embed(root, apart=0.0)
    score(root, "mamushi_lr")
    calibrate(root)
    remove(root, "mamushi_lr")
    content = read_json(manifest(root))
    assert content["expected"]["at_this_budget"] is None
    assert main(["verify", str(manifest(root))]) == 0
    content["expected"]["withheld"] = None
    write_json(manifest(root), content)
    assert "expected.withheld is None, but 'the domains" in refused(root, capsys)


def test_folds_by_group_are_drawn_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "results"
    groups = [f"g{row // 6}-{row % 3 == 0}" for row in range(N)]
    embed(root, group=groups)
    score(root, "mamushi_lr")
    calibrate(root)
    remove(root, "mamushi_lr")
    folds = read_table(place(root, paths.SCORES, selector="mamushi_lr"), schemas.SCORES)["fold"]
    assert len({*zip(groups, folds.to_pylist(), strict=True)}) == len({*groups})
    assert main(["verify", str(manifest(root))]) == 0
    assert "the list is what its manifest says" in capsys.readouterr().out


LIST, SCORED = (paths.REMOVAL, schemas.REMOVALS), (paths.SCORES, schemas.SCORES)
REFITTED, STABLE = (paths.REFITS, schemas.REFITS), (paths.STABILITY, schemas.STABILITY)
COPIES = (paths.DUPLICATES, schemas.DUPLICATES)


@pytest.mark.parametrize(
    ("kind", "whose", "verified", "change", "said"),
    [
        (LIST, "mamushi_lr", "mamushi_lr", list.pop, "number of examples is 19, but 20 derived"),
        (LIST, "random", "random", update(id="t999"), "the id of 't999' is 't999', but "),
        (
            LIST,
            "upside_down",
            "upside_down",
            drop_copies,
            "the copies of 't003' is [], but ['copy']",
        ),
        (SCORED, "mamushi_lr", "mamushi_lr", scored(0.01), ": the score of 't010' is"),
        (SCORED, "mamushi_lr", "mamushi_lr", scored(1e-12), ", and 1 of 120 differ"),
        (SCORED, "mamushi_lr", "mamushi_lr", exchange_ranks, "the rank of 't000' is"),
        (SCORED, "kcenter", "kcenter", exchange_ranks, "the rank of 't000' is"),
        (SCORED, "mamushi_lr", "upside_down", scored(1), "other scores to derive from than"),
        (STABLE, "mamushi_lr", "mamushi_lr", update(frequency=0.5), "other stability than the man"),
        (REFITTED, "mamushi_lr", "mamushi_lr", scored(1), "other refits than the manifest names"),
        (COPIES, "mamushi_lr", "mamushi_lr", update(id="other"), "other duplicates than the man"),
    ],
)
def test_a_row_changed(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    kind: tuple[str, schemas.Table],
    whose: str,
    verified: str,
    change: Callable[[Rows], Any],
    said: str,
) -> None:
    pattern, table = kind
    rewrite(place(root, pattern, selector=whose, beta="0.50"), table, change)
    assert said in refused(root, capsys, verified)


def test_other_embeddings(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    embed(root, seed=1)
    assert "embeddings.parquet: other embeddings than the manifest names" in refused(root, capsys)
    # The manifest is written again for the new embeddings, the scores are not.
    content = read_json(manifest(root))
    content["provenance"]["inputs"]["embeddings"] = sha256(place(root, paths.EMBEDDINGS))
    write_json(manifest(root), content)
    assert "made from other embeddings than are here" in refused(root, capsys)


@pytest.mark.parametrize("name", ["random", "mamushi_lr"])
def test_another_seed(root: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    score(root, name, seed=4)
    assert f"{name}.parquet: seed is 4, but 3 by the manifest" in refused(root, capsys, name)


@pytest.mark.parametrize("stage", ["score", "remove", "manifests"])
def test_another_version_of_the_code(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    real = verification.of_stage

    def changed(*modules: str) -> str:
        return "0123456789abcdef" if modules[0].endswith(f".{stage}") else real(*modules)

    monkeypatch.setattr(verification, "of_stage", changed)
    line = refused(root, capsys)
    assert "made by another version of the code: digest" in line
    assert f"of stage {stage!r}, here it is 0123456789abcdef" in line


def shifted(by: float) -> Callable[[list[dict[str, Any]]], None]:
    """Scores as another machine rounds them, with the ranks that follow."""

    def change(rows: list[dict[str, Any]]) -> None:
        rng = np.random.default_rng(0)
        for row in rows:
            row["score"] += by * rng.normal()
        ranked = sorted((r for r in rows if r["rank"]), key=lambda r: (-r["score"], r["id"]))
        for rank, row in enumerate(ranked, start=1):
            row["rank"] = rank

    return change


OTHERS = {"numpy": "9.9"}, {"processor": "another"}, {"device": "a GPU"}


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_scores_of_another_machine_are_compared_statistically(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    other: dict[str, str],
) -> None:
    def again() -> int:
        calibrate(root)
        remove(root, "mamushi_lr")
        capsys.readouterr()
        return main(["verify", str(manifest(root))])

    path = place(root, paths.SCORES, selector="mamushi_lr")
    rewrite(path, schemas.SCORES, shifted(by=1e-3))
    assert again() == 2
    for name in ("versions", "conditions"):
        here = getattr(verification, name)()
        if other.keys() <= here.keys():
            monkeypatch.setattr(verification, name, lambda here=here: here | other)
    assert again() == 3
    lines = capsys.readouterr().out.splitlines()
    (name,) = other
    assert any(line.startswith(f"note: {name} ") for line in lines)
    assert any(line.startswith("exactly the same: examples, embeddings") for line in lines)
    (statistic,) = [line for line in lines if line.startswith("statistically the same: mamushi_lr")]
    assert re.search("120 of 120 differ; rank correlation (0.99|1.0)", statistic)
    assert re.search(r"overlap of the list (0.9|1.0)\d+ \(with another seed 0.\d+", statistic)
    assert lines[-1].endswith("the list is statistically what its manifest says")
    # Further from it than another seed would be.
    rewrite(path, schemas.SCORES, shifted(by=30))
    assert again() == 2
    assert "rank correlation" in capsys.readouterr().err
    # What is exact stays exact.
    rewrite(path, schemas.SCORES, lambda rows: rows[0].update(rank=99))
    assert again() == 2


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("expected", "at_this_budget", "removal"), 9.0, "expected.at_this_budget.removal is 9.0"),
        (("expected", "unit"), "bits", "expected.unit is 'bits', but 'nats' derived again"),
        (("expected", "all_removed"), 1, "expected.all_removed is 1, but {"),
        (("stability", "expected_overlap"), 1, "stability.expected_overlap is 1, but 0."),
        (("stability", "surely"), -1, "stability.surely is -1, but "),
        (("conditions", "threads"), 8, ".json: conditions.threads is 8, but "),
        (("removed",), 19, "removed is 19, but 20 derived again"),
        (("ids_sha256",), "ab", "ids_sha256 is 'ab'"),
        (("threshold",), None, "threshold is None"),
        (("verdict",), "trust it", "verdict is 'trust it', but "),
        (("judgement", "act"), "refuse", "judgement.act is 'refuse', but "),
        (("separation", "auc"), 0.99, "separation.auc is 0.99, but 0."),
        (("also_retain", "upper_bound"), 0.0, "also_retain.upper_bound is 0.0, but "),
        (("provenance", "inputs", "trained"), "ff", "provenance.inputs.trained is 'ff', but 'a0'"),
        (("provenance", "inputs", "tokens"), "ff", "provenance.inputs.tokens is 'ff', but None by"),
        (("provenance", "embedding"), {"layer": 3}, "provenance.embedding"),
        (("seed",), 4, "seed is '4', but '3' by the folder that it lies in"),
        (("provenance", "settings", "seed"), 4, "seed is 3, but 4 by its own provenance"),
        (("settings", "folds"), 4, "settings.folds is 5, but 4 by the manifest"),
    ],
)
def test_a_number_of_the_manifest_changed(
    root: Path, capsys: pytest.CaptureFixture[str], keys: tuple[str, ...], value: Any, said: str
) -> None:
    content = read_json(manifest(root))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    write_json(manifest(root), content)
    assert said in refused(root, capsys)


@pytest.mark.parametrize("name", ["upside_down", "kcenter"])
@pytest.mark.parametrize("what", ["another score", "another seed"])
def test_scores_that_the_list_or_its_expected_values_rest_on_are_derived_again(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, what: str
) -> None:
    """Scores of mamushi_lr that nothing makes, and all that rests on them made again from them."""
    if what == "another seed":
        score(root, "mamushi_lr", seed=4)
    else:
        path = place(root, paths.SCORES, selector="mamushi_lr")
        rewrite(path, schemas.SCORES, scored(by=1e-2))
    if name == "upside_down":
        score(root, name)
    calibrate(root)
    remove(root, name)
    said = "seed is 4, but 3 by its run" if what == "another seed" else "the score of 't010' is"
    assert f"mamushi_lr.parquet: {said}" in refused(root, capsys, name)


def test_scores_that_do_not_say_how_they_were_made_or_are_gone(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place(root, paths.SCORES, selector="mamushi_lr")
    table = read_table(path, schemas.SCORES)
    path.unlink()
    assert "no scores here are those that the expected values" in refused(root, capsys, "kcenter")
    write_table(path, schemas.SCORES, table, metadata={"provenance": None})
    assert main(["verify", str(manifest(root))]) == 2
    assert "does not say what it was made from; delete it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataset": None}, "is no removal manifest: Expected `str`, got `null` - at `$.dataset`"),
        ({"settings": None}, "Expected `object`, got `null` - at `$.settings`"),
        ({"beta": "half"}, "Expected `float`, got `str` - at `$.beta`"),
        ({"beta": 2.0}, "Expected `float` <= 1.0 - at `$.beta`"),
        ({"beta": 0.5000005}, "beta is 0.5000005; a budget has at most six decimals"),
        ({"seed": True}, "Expected `int`, got `bool` - at `$.seed`"),
        ({"provenance": {"inputs": {}}}, "missing required field `settings` - at `$.provenance`"),
    ],
)
def test_what_is_no_manifest(
    root: Path, capsys: pytest.CaptureFixture[str], change: dict[str, Any], said: str
) -> None:
    write_json(manifest(root), read_json(manifest(root)) | change)
    assert main(["verify", str(manifest(root))]) == 2
    assert said in capsys.readouterr().err
