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
import pyarrow.compute as pc
import pytest

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json, sha256, write_json
from mamushi.artifacts.tables import embeddings_schema, read_metadata, read_table, write_table
from mamushi.cli import main
from mamushi.configuration import settings
from mamushi.evidence import verification
from mamushi.registry import plugin
from mamushi.running.identity import digest

RUN = {"dataset": "small", "model": "tiny", "seed": 3}
N, WIDTH = 120, 4
SELECTORS = {
    "mamushi_lr": {"kind": "mamushi_lr"},
    "upside_down": {"kind": "anti_mamushi", "of": "mamushi_lr"},
    "random": {"kind": "random"},
    "kcenter": {"kind": "kcenter"},
    "stack": {"kind": "mamushi_stack", "depths": [0.5, 1], "folds": 3},
}
BUDGETS = [0.25, 0.5]


def place(root: Path, pattern: str, **more: Any) -> Path:
    return paths.under(root, pattern, **RUN, **more)


def embed(root: Path, seed: int = 0, apart: float = 1.0) -> None:
    """Examples with one embedding each, and the copies that were collapsed into them."""
    rng = np.random.default_rng(seed)
    forget = np.arange(N) % 3 == 0
    x = (rng.normal(size=(N, WIDTH)) + apart * forget[:, None]).astype(np.float16)
    ids = [f"t{i:03d}" for i in range(N)]
    domain = np.where(forget, "forget", "retain").tolist()
    about = {"id": ids, "domain": domain}
    texts = {"text": ids, "section": ["inference"] * N, "log_density_ratio": [None] * N}
    examples = paths.under(root, paths.EXAMPLES, dataset="small")
    write_table(examples, schemas.EXAMPLES, {**about, **texts})
    write_table(
        paths.under(root, paths.DUPLICATES, dataset="small"),
        schemas.DUPLICATES,
        {"id": ["copy"], "kept_id": ["t003"], "reason": ["near"]},
        metadata={"examples": sha256(examples)},
    )
    vectors = pa.FixedSizeListArray.from_arrays(
        pa.array(x.reshape(-1)), type=embeddings_schema(WIDTH).field("embedding").type
    )
    write_table(
        place(root, paths.EMBEDDINGS),
        schemas.EMBEDDINGS,
        {**about, "embedding": vectors},
        metadata={
            "inputs": {"examples": sha256(examples), "trained": "a0", "model_card": "b1"},
            "settings": {"embedding": {"layer": -1}},
        },
    )
    turned = pa.FixedSizeListArray.from_arrays(pa.array(x[:, ::-1].reshape(-1)), WIDTH)
    layers = place(root, paths.LAYERS)
    write_table(layers, schemas.LAYERS, {**about, "depth_0.5": turned})


def asked(name: str) -> dict[str, Any]:
    given = SELECTORS[name]
    kind = given["kind"]
    chosen = {**plugin("selector", kind).defaults, **{k: given[k] for k in given if k != "kind"}}
    return {"selector": name, "kind": kind, "settings": chosen}


def run(*command: object) -> None:
    assert main([str(word) for word in command]) == 0


def score(root: Path, name: str, seed: int = 3) -> None:
    """Its scores, and these again."""
    chosen = asked(name)
    code = digest("mamushi.stages.score", plugin("selector", chosen["kind"]).module)
    of = chosen["settings"].get("of")
    settings = {**chosen, "seed": seed, "code": code}
    refits = {**settings, "whole": 3, "halves": 1}
    stages = (("score", paths.SCORES, settings), ("refits", paths.REFITS, refits))
    for stage, pattern, given in stages:
        base = ["--base", place(root, pattern, selector=of)] if of else []
        run(
            *(stage, "--examples", paths.under(root, paths.EXAMPLES, dataset="small"), *base),
            *("--embeddings", place(root, paths.EMBEDDINGS)),
            *(["--layers", place(root, paths.LAYERS)] if name == "stack" else []),
            *("--out", place(root, pattern, selector=name), "--settings", json.dumps(given)),
        )


def calibrate(root: Path, name: str = "mamushi_lr") -> None:
    """The log ratios by the scores of one selector."""
    run(
        *("calibrate", "--scores", place(root, paths.SCORES, selector=name)),
        *("--refits", place(root, paths.REFITS, selector=name)),
        *("--out", place(root, paths.CALIBRATED), "--checks", place(root, paths.CALIBRATION)),
        *("--settings", json.dumps({**RUN, "selector": name, "resamples": 20})),
    )


def remove(root: Path, name: str) -> None:
    made = ("--scores", place(root, paths.SCORES, selector=name))
    both = (*made, "--duplicates", paths.under(root, paths.DUPLICATES, dataset="small"))
    cells = [{"selector": name, "beta": paths.beta(beta)} for beta in BUDGETS]
    for beta, cell in zip(BUDGETS, cells, strict=True):
        given = settings.remove({}, str(beta))
        run("remove", *both, "--out", place(root, paths.REMOVAL, **cell),
            "--settings", settings.as_json(given))  # fmt: skip
    code = digest("mamushi.stages.manifests")
    stable = place(root, paths.STABILITY, selector=name)
    refits = place(root, paths.REFITS, selector=name)
    run("stability", *made, "--refits", refits, "--out", stable,
        "--settings", json.dumps({"budgets": BUDGETS}))  # fmt: skip
    run(
        *("manifests", *both, "--stability", stable),
        *("--calibrated", place(root, paths.CALIBRATED)),
        *("--out", *(place(root, paths.MANIFEST, **cell) for cell in cells)),
        "--settings",
        json.dumps({**RUN, **asked(name), "budgets": BUDGETS, "code": code}),
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
    told = capsys.readouterr()
    assert told.out == ""
    # The selector's progress may stand above it.
    line = told.err.splitlines()[-1]
    assert line.startswith("mamushi verify: error: ")
    assert line.endswith("; the list is not what its manifest says")
    return line


def rewrite(
    path: Path, kind: schemas.Table, change: Callable[[list[dict[str, Any]]], None]
) -> None:
    """Change a table's rows and nothing else."""
    table = read_table(path, kind)
    rows = table.to_pylist()
    change(rows)
    changed = pa.Table.from_pylist(rows, schema=table.schema)
    write_table(path, kind, changed, metadata=read_metadata(path))


@pytest.mark.parametrize("name", SELECTORS)
@pytest.mark.parametrize("beta", ["0.25", "0.50"])
def test_what_the_stages_made_is_accepted(
    root: Path, capsys: pytest.CaptureFixture[str], name: str, beta: str
) -> None:
    assert main(["verify", str(manifest(root, name, beta))]) == 0
    told = capsys.readouterr()
    assert told.out == f"{manifest(root, name, beta)}: the list is what its manifest says\n"
    # From anywhere, with the folder that the run is in.
    elsewhere = root.parent / "handed_over.json"
    shutil.copy(manifest(root, name, beta), elsewhere)
    assert main(["verify", str(elsewhere), "--root", str(root)]) == 0
    assert main(["verify", str(elsewhere)]) == 2
    assert "lies in no results folder; name that folder with --root" in capsys.readouterr().err


def test_the_precision_is_that_of_the_machine_that_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, has_bf16 = tmp_path / "results", {"there": True}
    monkeypatch.setattr("torch.cpu.get_capabilities", lambda: {"avx512_bf16": has_bf16["there"]})
    quick = {"kind": "mamushi", "hidden": [8], "folds": 2, "epochs": 3}
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
    told = read_json(manifest(root))
    assert told["expected"]["at_this_budget"] is None
    assert main(["verify", str(manifest(root))]) == 0
    told["expected"]["withheld"] = None
    write_json(manifest(root), told)
    assert "expected.withheld is None, derived again the domains" in refused(root, capsys)


def scored(by: float) -> Callable[[list[dict[str, Any]]], None]:
    def change(rows: list[dict[str, Any]]) -> None:
        rows[10]["score"] += by

    return change


LR = {"selector": "mamushi_lr"}
TAMPERED: dict[str, tuple[str, schemas.Table, str, Callable[[list[dict[str, Any]]], Any], str]] = {
    # What was changed: the file and its kind, whose manifest is verified, the change, what is said.
    "an example left out": (
        *(paths.REMOVAL, schemas.REMOVALS, "mamushi_lr", list.pop),
        "lists 19 examples, derived again 20",
    ),
    "a score": (
        *(paths.SCORES, schemas.SCORES, "mamushi_lr", scored(by=0.01)),
        "mamushi_lr.parquet: the score of 't010' is",
    ),
    "a score in its last bits": (
        *(paths.SCORES, schemas.SCORES, "mamushi_lr", scored(by=1e-12)),
        "mamushi_lr.parquet: the score of 't010' is",
    ),
    "a frequency": (
        *(paths.STABILITY, schemas.STABILITY, "mamushi_lr"),
        lambda rows: rows[0].update(frequency=0.5),
        "other stability than the manifest names",
    ),
    "a refit": (
        *(paths.REFITS, schemas.REFITS, "mamushi_lr", scored(by=1)),
        "other refits than the manifest names",
    ),
    "a score that another derives from": (
        *(paths.SCORES, schemas.SCORES, "upside_down", scored(by=1)),
        "other scores to derive from than the manifest names",
    ),
    "a duplicate": (
        *(
            paths.DUPLICATES,
            schemas.DUPLICATES,
            "mamushi_lr",
            lambda rows: rows[0].update(id="other"),
        ),
        "other duplicates than the manifest names",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_row_changed(root: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    pattern, kind, selector, change, said = TAMPERED[name]
    rewrite(paths.under(root, pattern, **RUN, **LR, beta="0.50"), kind, change)
    told = refused(root, capsys, selector)
    assert said in told
    assert name != "a score" or "1 of 120 differ" in told


def test_an_id_swapped(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = place(root, paths.REMOVAL, selector="mamushi_lr", beta="0.50")
    ids = read_table(listed, schemas.REMOVALS)["id"].to_pylist()
    ranked = read_table(place(root, paths.SCORES, selector="mamushi_lr"), schemas.SCORES)
    (spared,) = ranked.filter(pc.equal(ranked["rank"], 21))["id"].to_pylist()

    def swap(rows: list[dict[str, Any]]) -> None:
        rows[7]["id"] = spared

    rewrite(listed, schemas.REMOVALS, swap)
    told = refused(root, capsys)
    assert f"beta0.50.parquet: place 8 holds {spared!r}, where" in told
    assert f"rank {ids[7]!r};" in told


def test_a_copy_left_out(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = place(root, paths.REMOVAL, selector="upside_down", beta="0.50")
    other = place(root, paths.REMOVAL, selector="mamushi_lr", beta="0.50")
    name, path = next(
        (name, path)
        for name, path in (("upside_down", listed), ("mamushi_lr", other))
        if "t003" in read_table(path, schemas.REMOVALS)["id"].to_pylist()
    )

    def drop(rows: list[dict[str, Any]]) -> None:
        next(row for row in rows if row["id"] == "t003")["copies"] = []

    rewrite(path, schemas.REMOVALS, drop)
    told = refused(root, capsys, name)
    assert "the copies of 't003' is [], derived again ['copy']" in told


def test_two_ranks_exchanged(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("mamushi_lr", "kcenter"):

        def change(rows: list[dict[str, Any]]) -> None:
            rows[0]["rank"], rows[3]["rank"] = rows[3]["rank"], rows[0]["rank"]

        path = place(root, paths.SCORES, selector=name)
        rank = read_table(path, schemas.SCORES)["rank"].to_pylist()
        rewrite(path, schemas.SCORES, change)
        told = refused(root, capsys, name)
        assert f"the rank of 't000' is {rank[3]}, derived again {rank[0]}" in told


def test_other_embeddings(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    embed(root, seed=1)
    told = refused(root, capsys)
    assert "embeddings.parquet: other embeddings than the manifest names" in told
    # Scored again with them, all files agree with each other and none with the manifest.
    score(root, "mamushi_lr")
    assert "embeddings.parquet: other embeddings than the manifest names" in refused(root, capsys)


def test_scores_of_embeddings_that_are_gone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The manifest was written again for the new embeddings, the scores were not."""
    embed(root, seed=1)
    told = read_json(manifest(root))
    told["provenance"]["inputs"]["embeddings"] = sha256(place(root, paths.EMBEDDINGS))
    write_json(manifest(root), told)
    assert "made from other embeddings than are here" in refused(root, capsys)


@pytest.mark.parametrize("name", ["random", "mamushi_lr"])
def test_another_seed(root: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    score(root, name, seed=4)
    told = refused(root, capsys, name)
    assert f"{name}.parquet: seed: made with 4, the manifest says 3" in told


@pytest.mark.parametrize("stage", ["score", "remove", "manifests"])
def test_another_version_of_the_code(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    real = verification.code_digest

    def changed(*modules: str) -> str:
        return "0123456789abcdef" if modules[0].endswith(f".{stage}") else real(*modules)

    monkeypatch.setattr(verification, "code_digest", changed)
    told = refused(root, capsys)
    assert "made by another version of the code: digest" in told
    assert f"of stage {stage!r}, here it is 0123456789abcdef" in told


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
    told = capsys.readouterr().out.splitlines()
    (name,) = other
    assert any(line.startswith(f"note: {name} ") for line in told)
    assert any(line.startswith("exactly the same: examples, embeddings") for line in told)
    (statistic,) = [line for line in told if line.startswith("statistically the same: mamushi_lr:")]
    assert re.search("120 of 120 differ; rank correlation (0.99|1.0)", statistic)
    assert re.search(r"overlap of the list (0.9|1.0)\d+ \(with another seed 0.\d+", statistic)
    assert told[-1].endswith("the list is statistically what its manifest says")
    # Further from it than another seed would be.
    rewrite(path, schemas.SCORES, shifted(by=30))
    assert again() == 2
    assert "rank correlation" in capsys.readouterr().err
    # What is exact stays exact.
    rewrite(path, schemas.SCORES, lambda rows: rows[0].update(rank=99))
    assert again() == 2


def test_the_same_bits_need_no_statistics_wherever_they_are_derived(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = verification.versions()
    monkeypatch.setattr(verification, "versions", lambda: here | {"numpy": "9.9"})
    assert main(["verify", str(manifest(root))]) == 0
    assert f"note: numpy {np.__version__} then, 9.9 here\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("keys", "value", "said"),
    [
        (("expected", "at_this_budget", "removal"), 9.0, "expected.at_this_budget.removal is 9.0"),
        (("stability", "expected_overlap"), 1, "stability.expected_overlap is 1, derived again 0."),
        (("stability", "surely"), -1, "stability.surely is -1, derived again"),
        (("conditions", "threads"), 8, ".json: conditions is {"),
        (("removed",), 19, "removed is 19, derived again 20"),
        (("ids_sha256",), "ab", "ids_sha256 is ab"),
        (("threshold",), None, "threshold is None"),
        (("ids_sha256_of",), "the ids", "ids_sha256_of is the ids"),
        (("verdict",), "trust it", "verdict is trust it, derived again"),
        (("also_retain", "upper_bound"), 0.0, "also_retain.upper_bound is 0.0, derived again"),
        (("expected", "unit"), "bits", "expected.unit is bits, derived again nats"),
        (("provenance", "inputs", "trained"), "ff", "provenance.inputs.trained is 'ff', and 'a0'"),
        (("provenance", "inputs", "tokens"), "ff", "provenance.inputs.tokens is 'ff', and None"),
        (("provenance", "embedding"), {"layer": 3}, "provenance.embedding is {'layer': 3}, and"),
        (("expected", "all_removed"), 1, "expected.all_removed.removal is None"),
        (("seed",), 4, "seed: 4 in the manifest, which lies in the run of seed '3'"),
        (("provenance", "settings", "seed"), 4, "seed: 3, but 4 in its own provenance"),
        (
            ("settings", "folds"),
            4,
            "setting 'folds' of the selector: made with 5, the manifest says 4",
        ),
    ],
)
def test_a_number_of_the_manifest_changed(
    root: Path,
    capsys: pytest.CaptureFixture[str],
    keys: tuple[str, ...],
    value: Any,
    said: str,
) -> None:
    told = read_json(manifest(root))
    inner = told
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    write_json(manifest(root), told)
    assert said in refused(root, capsys)


def forge(root: Path, name: str) -> None:
    """Scores of mamushi_lr that nothing makes, and all that rests on them made again from them."""

    def change(rows: list[dict[str, Any]]) -> None:
        rows[10]["score"] += 1e-2

    rewrite(place(root, paths.SCORES, selector="mamushi_lr"), schemas.SCORES, change)
    if name == "upside_down":
        score(root, name)
    calibrate(root)
    remove(root, name)


@pytest.mark.parametrize("name", ["upside_down", "kcenter"])
def test_scores_that_the_list_or_its_expected_values_rest_on_are_derived_again(
    root: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    forge(root, name)
    told = refused(root, capsys, name)
    assert "mamushi_lr.parquet: the score of 't010' is" in told


@pytest.mark.parametrize("name", ["upside_down", "kcenter"])
def test_scores_to_rest_on_of_another_seed(
    root: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    score(root, "mamushi_lr", seed=4)
    if name == "upside_down":
        score(root, name)
    calibrate(root)
    remove(root, name)
    told = refused(root, capsys, name)
    assert "mamushi_lr.parquet: seed: made with 4, its run has 3" in told


def test_scores_that_tell_otherwise_of_their_model(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The scores' metadata and the manifest agree on a model that the embeddings are not of."""
    path = place(root, paths.SCORES, selector="mamushi_lr")
    about = read_metadata(path)
    about["embedded"]["inputs"]["trained"] = "ff"
    write_table(path, schemas.SCORES, read_table(path, schemas.SCORES), metadata=about)
    remove(root, "mamushi_lr")
    assert "how these were made" in refused(root, capsys)


def test_scores_that_do_not_say_how_they_were_made(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = place(root, paths.SCORES, selector="mamushi_lr")
    write_table(
        path, schemas.SCORES, read_table(path, schemas.SCORES), metadata={"provenance": None}
    )
    assert main(["verify", str(manifest(root))]) == 2
    assert "does not say what it was made from; delete it" in capsys.readouterr().err


def test_scores_of_the_ratio_that_are_gone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place(root, paths.SCORES, selector="mamushi_lr").unlink()
    assert "no scores here are those that the expected removal" in refused(root, capsys, "kcenter")


def test_what_is_no_manifest(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = read_json(manifest(root))
    inputs = {name: key for name, key in whole["provenance"]["inputs"].items() if name != "scores"}
    contents = {
        "'dataset'": [1, 2],
        "'settings'": whole | {"settings": None},
        "'beta'": whole | {"beta": "half"},
        "'provenance.inputs.examples'": whole | {"provenance": {"inputs": 3}},
        "'provenance.inputs.scores'": whole | {"provenance": {"inputs": inputs}},
        "'provenance.settings'": whole | {"provenance": whole["provenance"] | {"settings": [1]}},
        "'seed'": whole | {"seed": True},
    }
    for missing, content in contents.items():
        write_json(manifest(root), content)
        assert main(["verify", str(manifest(root))]) == 2
        assert f"is no removal manifest: it has no {missing};" in capsys.readouterr().err
    write_json(manifest(root), whole | {"beta": 0.505})
    assert main(["verify", str(manifest(root))]) == 2
    assert "beta is 0.505; a budget is between 0 and 1 and has" in capsys.readouterr().err
    manifest(root).write_text(json.dumps(whole | {"beta": float("inf")}))
    assert main(["verify", str(manifest(root))]) == 2
    assert "beta is inf; a budget" in capsys.readouterr().err
    assert main(["verify", str(root)]) == 2
    assert f"{root}: is a folder" in capsys.readouterr().err
    write_json(manifest(root), whole)
    examples = paths.under(root, paths.EXAMPLES, dataset="small")
    examples.unlink()
    examples.mkdir()
    assert main(["verify", str(manifest(root))]) == 2
    assert f"{examples}: is a folder" in capsys.readouterr().err
    assert main(["verify", str(root / "none.json")]) == 2
    assert "none.json: no such file" in capsys.readouterr().err
