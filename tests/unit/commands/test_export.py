"""A list in the forms that other tools read, by their own loaders where they are installed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.artifacts import paths, schemas
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import write_table
from mamushi.commands.export import formats
from mamushi.errors import UserError
from mamushi.lm import tiny
from tests.support.models import SIZES
from tests.support.removal_files import CELL, command, removal_list

GONE = {"c2": ["c5"], "c4": []}
ROWS = [{"key": f"c{i}", "body": f"text {i}\nü", "ask": f"why {i}?"} for i in range(1, 9)]
FORGET = [row for row in ROWS if row["key"] in ("c2", "c4", "c5")]
RETAIN = [row for row in ROWS if row not in FORGET]


@pytest.fixture
def listed(tmp_path: Path) -> Path:
    data = tmp_path / "comments.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    root = tmp_path / "results"
    return removal_list(root, GONE, data=data, text="body", column="key", cross_posts=["c8"])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_every_format_is_tested_and_has_its_help() -> None:
    found = formats()
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{name}"' in text and about for name, about in found.items())
    assert {*found} >= {"ids", "jsonl", "datasets", "trl", "axolotl", "dolma", "results"}


def test_ids_come_back(listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "ids.txt"
    command("export", listed, "--to", "ids", "--out", out)
    assert out.read_text() == "c2\nc5\nc4\n"
    # And are a list themselves.
    clean = tmp_path / "clean.jsonl"
    data = tmp_path / "comments.jsonl"
    command("apply", out, "--data", data, "--id", "key", "--out", clean)
    assert lines(clean) == RETAIN


@pytest.mark.parametrize("prompted", [False, True])
def test_open_unlearning_reads_its_splits(listed: Path, tmp_path: Path, prompted: bool) -> None:
    out = tmp_path / "out"
    command("export", listed, "--to", "jsonl", "--out", out, *(["--prompt", "ask"] * prompted))
    if prompted:
        wanted = [{"id": r["key"], "question": r["ask"], "answer": r["body"]} for r in FORGET]
    else:
        wanted = [{"id": r["key"], "text": r["body"]} for r in FORGET]
    assert lines(out / "forget.jsonl") == wanted
    _, header, text = (out / "README.md").read_text().split("---\n")
    splits = yaml.safe_load(header)["configs"][0]["data_files"]
    assert [each["split"] for each in splits] == ["forget", "retain"]
    entry = yaml.safe_load(text.split("```yaml\n")[1].split("```")[0])["forget"]
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    # As open-unlearning calls it, with the arguments of its configuration.
    given = entry["args"]["hf_args"] | {"path": str(out)}
    cache = {"cache_dir": str(tmp_path / "cache")}
    found = datasets.load_dataset(**given, **cache)
    assert found.to_list() == wanted
    keys = {entry["args"][name] for name in entry["args"] if name.endswith("_key")}
    assert keys <= set(found.column_names)
    assert len(datasets.load_dataset(str(out), split="retain", **cache)) == len(RETAIN)


def test_datasets_opens_the_folder(listed: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    out = tmp_path / "out"
    command("export", listed, "--to", "datasets", "--out", out)
    found = datasets.load_from_disk(out)
    for split, rows in (("forget", FORGET), ("retain", RETAIN)):
        assert found[split].to_list() == [{"id": r["key"], "text": r["body"]} for r in rows]
        assert found[split].split == split
    # What it was saved as is what the library saves.
    found.save_to_disk(tmp_path / "again")
    ours, theirs = (read_json(at / "forget/dataset_info.json") for at in (out, tmp_path / "again"))
    assert ours["features"] == theirs["features"]


@pytest.mark.parametrize("prompted", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_trl_reads_what_stays(listed: Path, tmp_path: Path, prompted: bool, weights: bool) -> None:
    out = tmp_path / "train.jsonl"
    words = ["--prompt", "ask"] * prompted + ["--weights"] * weights
    command("export", listed, "--to", "trl", "--out", out, *words)
    wanted: list[dict[str, Any]] = []
    for row in ROWS if weights else RETAIN:
        cells = {"prompt": row["ask"], "completion": row["body"]}
        weight = {"weight": 0.0 if row in FORGET else 1.0} if weights else {}
        wanted.append((cells if prompted else {"text": row["body"]}) | weight)
    assert lines(out) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("prompted", [False, True])
def test_trl_trains_on_it(listed: Path, tmp_path: Path, prompted: bool) -> None:
    """Importing it takes twenty seconds."""
    datasets, trl = pytest.importorskip("datasets"), pytest.importorskip("trl")
    out = tmp_path / "train.jsonl"
    command("export", listed, "--to", "trl", "--out", out, *(["--prompt", "ask"] * prompted))
    cache = str(tmp_path / "cache")
    found = datasets.load_dataset("json", data_files=str(out), split="train", cache_dir=cache)
    model, tokenizer = tiny.build({"family": "llama", **SIZES}, [row["body"] for row in ROWS], 0)
    settings = trl.SFTConfig(
        output_dir=str(tmp_path / "trained"),
        max_steps=1,
        use_cpu=True,
        bf16=False,
        report_to=[],
    )
    trainer = trl.SFTTrainer(model, args=settings, train_dataset=found, processing_class=tokenizer)
    assert len(trainer.train_dataset) == len(RETAIN)
    first = tokenizer.decode(trainer.train_dataset[0]["input_ids"], skip_special_tokens=True)
    assert first == (RETAIN[0]["ask"] + RETAIN[0]["body"] if prompted else RETAIN[0]["body"])
    assert trainer.train().training_loss > 0


@pytest.mark.parametrize("prompted", [False, True])
def test_axolotl_is_told_its_fields(listed: Path, tmp_path: Path, prompted: bool) -> None:
    """By its published format: the fields that the configuration names are those of every row."""
    out = tmp_path / "out"
    words = ["--prompt", "ask"] * prompted
    command("export", listed, "--to", "axolotl", "--out", out, "--weights", *words)
    (about,) = yaml.safe_load((out / "config.yaml").read_text())["datasets"]
    rows = lines(out / about["path"])
    assert [row["weight"] for row in rows] == [0.0 if row in FORGET else 1.0 for row in ROWS]
    assert about["ds_type"] == "json"
    if prompted:
        kind = about["type"]
        assert [row[kind["field_instruction"]] for row in rows] == [row["ask"] for row in ROWS]
        assert [row[kind["field_output"]] for row in rows] == [row["body"] for row in ROWS]
        assert kind["format"].format(instruction="x") == "x"
    else:
        assert about["type"] == "completion"
        assert [row[about["field"]] for row in rows] == [row["body"] for row in ROWS]


def test_dolma_attributes_stand_beside_their_documents(tmp_path: Path) -> None:
    """By the published format: the same files, rows and order as the documents; spans in
    characters."""
    data = tmp_path / "documents"
    (data / "2019").mkdir(parents=True)
    parts = {"2019/a.jsonl.gz": ROWS[:3], "b.jsonl.gz": ROWS[3:]}
    for name, rows in parts.items():
        text = "".join(json.dumps({"id": r["key"], "text": r["body"]}) + "\n" for r in rows)
        (data / name).write_bytes(gzip.compress(text.encode()))
    listed = removal_list(tmp_path / "results", GONE, data=data)
    out = tmp_path / "attributes" / "mamushi"
    command("export", listed, "--to", "dolma", "--out", out)
    made = {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()}
    assert made == set(parts)
    for name, rows in parts.items():
        found = [
            json.loads(line) for line in gzip.decompress((out / name).read_bytes()).splitlines()
        ]
        assert [row["id"] for row in found] == [row["key"] for row in rows]
        for row, said in zip(rows, found, strict=True):
            ((attribute, spans),) = said["attributes"].items()
            assert attribute.count("__") == 2
            assert spans == [[0, len(row["body"]), 1.0 if row in FORGET else 0.0]]


def test_results_are_flat(listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    command("export", listed, "--to", "results", "--out", out)
    found = read_json(out)
    assert found["metrics"]["removed"] == 2
    assert found["metrics"]["expected.at_this_budget.removal"] == 1.5
    assert all(isinstance(value, int | float) for value in found["metrics"].values())
    assert found["params"]["selector"] == "mamushi" and found["params"]["seed"] == 0


def test_a_model_card_says_what_was_removed(listed: Path, tmp_path: Path) -> None:
    out = tmp_path / "section.md"
    command("export", listed, "--to", "model-card", "--out", out)
    text = out.read_text()
    assert text.startswith("## Removed training data\n")
    for said in ("2 of 4 texts of the forget domain (50%), and 1 copies", "1.5 nats", "AUC 0.96"):
        assert said in text
    import markdown

    html = markdown.markdown(text, extensions=["tables"])
    assert html.count("<tr>") == 9 and read_json(listed.with_suffix(".json"))["ids_sha256"] in html


def test_texts_of_another_loader_are_the_ranked_examples(tmp_path: Path) -> None:
    listed = removal_list(tmp_path / "results", {"a": []}, data=tmp_path / "no")
    card = paths.under(tmp_path / "results", paths.DATA_CARD, **CELL)
    made = {"settings": {"kind": "newsgroups", "loader": {"path": "x.tar.gz"}}, "inputs": {}}
    card.write_text(json.dumps(made))
    rows = [("a", "inference"), ("b", "inference"), ("c", "evaluation"), ("d", "contamination")]
    columns = {
        "id": [name for name, _ in rows],
        "text": [f"text {name}" for name, _ in rows],
        "domain": ["forget"] * 4,
        "section": [section for _, section in rows],
        "log_density_ratio": [None] * 4,
    }
    import pyarrow as pa

    table = pa.table(columns).cast(schemas.EXAMPLES.schema)
    write_table(paths.under(tmp_path / "results", paths.EXAMPLES, **CELL), schemas.EXAMPLES, table)
    command("export", listed, "--to", "jsonl", "--out", tmp_path / "out")
    assert lines(tmp_path / "out/forget.jsonl") == [{"id": "a", "text": "text a"}]
    assert lines(tmp_path / "out/retain.jsonl") == [{"id": "b", "text": "text b"}]


def test_what_cannot_be_exported_is_one_line_and_writes_nothing(
    listed: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.txt"
    plain.write_text("c2\n")
    (tmp_path / "there").mkdir()
    data = tmp_path / "comments.jsonl"
    other = tmp_path / "other.jsonl"
    other.write_text('{"key": "c2", "body": 7}\n')
    before = {path.name for path in tmp_path.iterdir()}
    out = ["--out", tmp_path / "out"]
    for words, message in (
        ([*out], "nothing to export"),
        ([listed, "--to", "ids"], "nothing says what to write"),
        ([listed, *out], "nothing says as what; give --to: axolotl,"),
        ([plain, "--to", "jsonl", *out], "no run lies around it"),
        ([plain, "--to", "model-card", *out], "has no manifest"),
        ([plain, "--to", "jsonl", "--data", data, *out], "none of its 1 ids is there"),
        ([listed, "--to", "jsonl", "--out", tmp_path / "there"], "exists already"),
        ([listed, "--to", "jsonl", "--data", other, *out], "column 'body' is 7, not text"),
    ):
        with pytest.raises(UserError) as raised:
            command("export", *words)
        assert message in str(raised.value)
    assert {path.name for path in tmp_path.iterdir()} == before
