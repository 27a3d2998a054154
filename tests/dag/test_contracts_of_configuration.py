"""A change of a key runs again what it affects, and nothing else; every key has such a contract."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mamushi.config.complete import complete, declared
from mamushi.config.schema import Rule
from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi.registry import plugin, plugins
from mamushi.stages import _settings as settings
from tests.support.contract_grid import CONFIG, TARGETS, changed, write_raw
from tests.support.contracts import Contract, contracts
from tests.support.dry_runs import Snakemake

PLUGINS = {"datasets": "dataset", "selectors": "selector", "unlearners": "unlearner"}
"""Sections of the configuration whose entries have the settings of their kind."""

CONTRACTS = list(contracts())


# The keys -----------------------------------------------------------------------------------------


def keys(rule: Rule, at: tuple[str, ...] = ()) -> Iterator[str]:
    """The dotted keys that a schema knows; ``*`` for a name of the user's."""
    named = rule.get("additionalProperties")
    if rule.get("properties"):
        for key, setting in rule["properties"].items():
            yield from keys(setting, (*at, key))
    elif len(at) == 1 and isinstance(named, dict):
        for alternative in named.get("oneOf", [named]):
            yield from keys(alternative, (*at, "*"))
    else:
        yield ".".join(at)


def known() -> set[str]:
    """Every key of config.yaml: the schema's, and those of the plug-ins, ``section.<kind>.key``."""
    found = set(keys(declared()))
    for section, kind in PLUGINS.items():
        for name, found_plugin in plugins(kind).items():
            found |= {f"{section}.<{name}>.{key}" for key in found_plugin.settings}
    return found


def covered(contract: Contract, of: set[str]) -> set[str]:
    """The keys that a contract changes, as ``known`` names them."""
    return {key for path in leaves(contract.key, contract.value) for key in named(path, of)}


def leaves(at: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(f"{at}.{key}", item)
    else:
        yield at


def named(path: str, of: set[str]) -> Iterator[str]:
    section, *rest = path.split(".")
    spellings = [path]
    if section in ("studies", "models", *PLUGINS):
        # A kind may have dots in none of its keys, and no name of CONFIG has one.
        entry, *inner = rest
        spellings = [".".join([section, "*", *inner])]
        if section in PLUGINS:
            kind = CONFIG.get(section, {}).get(entry, {}).get("kind", entry)
            spellings.append(".".join([section, f"<{kind}>", *inner]))
    for spelling in spellings:
        yield from (key for key in of if f"{spelling}.".startswith(f"{key}."))


def test_every_key_has_a_contract() -> None:
    of = known()
    held = set().union(*(covered(contract, of) for contract in CONTRACTS))
    assert of - held == set()


def test_no_contract_is_about_an_unknown_key() -> None:
    of = known()
    assert [contract.key for contract in CONTRACTS if not covered(contract, of)] == []


# The contracts ------------------------------------------------------------------------------------


def test_the_small_grid_has_every_rule(snakemake: Snakemake, finished: Path) -> None:
    seen = snakemake.look(finished, targets=TARGETS)
    # What a GGUF file runs: test_gguf_source.py. A matched gold has a contract of its own.
    # And what of models that are no language models: tests/dag/test_vectors.py.
    others = {"convert", "import_embeddings"}
    # And of the target `left`: test_left.py.
    others |= {"left_tables", "membership"}
    others |= {name for name in seen["rules"] if name.endswith("_and_left")}
    # And of a corpus that nobody labelled: tests/end_to_end/test_corpus.py.
    others |= {"posterior", "corpus_manifest"}
    # What only a shard runs: test_shards.py.
    others |= {"embed_shard", "embed_layers_shard"}
    assert set(seen["all"]) - set(TARGETS) == set(seen["rules"]) - others
    assert seen["needed"] == {}


@pytest.mark.parametrize(
    "contract",
    [
        pytest.param(
            each, id=f"{each.key}={each.value}"[:60], marks=() if each.first else pytest.mark.slow
        )
        for each in CONTRACTS
    ],
)
def test_a_change_runs_what_it_affects(
    snakemake: Snakemake, finished: Path, contract: Contract
) -> None:
    # A file that is laid over another may not say that a dataset is of another kind.
    laid = "config" if contract.key == "datasets.made" else "change"
    change = {laid: changed(contract.key, contract.value)}
    seen = snakemake.look(finished, targets=TARGETS, **change)
    assert seen["begin"] == contract.runs
    # Nothing is left in a state in which the next change would go unnoticed.
    assert seen["blind"] == {}


def test_a_seed_runs_its_cells_alone(snakemake: Snakemake, finished: Path) -> None:
    change = {"grid": {"seeds": [0, 1, 2]}}
    runs = snakemake.look(finished, targets=TARGETS, change=change)["runs"]
    assert {wildcards["seed"] for _, wildcards in runs if "seed" in wildcards} == {"2"}


def test_a_selector_runs_itself_and_what_derives_from_it(
    snakemake: Snakemake, finished: Path
) -> None:
    change = {"selectors": {"mamushi": {"folds": 4}}}
    runs = snakemake.look(finished, targets=TARGETS, change=change)["runs"]
    for rule in ("score", "remove", "retrain"):
        selectors = {wildcards["selector"] for name, wildcards in runs if name == rule}
        assert selectors == {"mamushi", "anti_mamushi", "auto"}  # which has its networks


ANOTHER_TEXT = {"datasets": {"mine": {"text": "text"}}}


def test_a_dataset_runs_itself_alone(snakemake: Snakemake, finished: Path) -> None:
    runs = snakemake.look(finished, targets=TARGETS, change=ANOTHER_TEXT)["runs"]
    assert {wildcards["dataset"] for _, wildcards in runs if "dataset" in wildcards} == {"mine"}


def test_kept_checkpoints_hide_no_later_change(snakemake: Snakemake, finished: Path) -> None:
    change = {"evaluation": {"max_length": 64}}
    without = snakemake.would_run(finished, targets=TARGETS, change=change)
    kept = snakemake.would_run(
        finished, targets=TARGETS, change=change | {"keep_checkpoints": True}
    )
    assert kept == without


# What is no setting -------------------------------------------------------------------------------


def test_text_from_the_command_line_is_no_change(snakemake: Snakemake, finished: Path) -> None:
    config = {
        "training": {"learning_rate": "5.0e-5", "epochs": "5", "train_output_head": "true"},
        "evaluation": {"max_length": "128"},
    }
    assert snakemake.would_run(finished, targets=TARGETS, config=config) == {}
    config["evaluation"]["max_length"] = "64"
    assert snakemake.would_run(finished, targets=TARGETS, config=config)["evaluate"] == 21


def test_the_order_of_keys_is_no_change(snakemake: Snakemake, finished: Path) -> None:
    def backwards(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: backwards(value[key]) for key in reversed(value)}
        return value

    own = finished / "config.yaml"
    text = own.read_text(encoding="utf-8")
    try:
        own.write_text(yaml.safe_dump(backwards(CONFIG), sort_keys=False), encoding="utf-8")
        assert own.read_text(encoding="utf-8") != text
        assert snakemake.would_run(finished, targets=TARGETS) == {}
    finally:
        own.write_text(text, encoding="utf-8")


def test_threads_and_resources_are_no_change(snakemake: Snakemake, finished: Path) -> None:
    resources = {"overwrite_threads": {"retrain": 2}, "max_threads": 2, "cores": 16}
    assert snakemake.would_run(finished, targets=TARGETS, resources=resources) == {}


def test_the_caches_are_no_input(snakemake: Snakemake, finished: Path) -> None:
    for name in (
        "cache/trunk/made/tiny/seed0/1.safetensors",
        "downloads/newsgroups/20news.pkz",
    ):
        write_raw(finished / "results" / name, "made again")
    assert snakemake.would_run(finished, targets=TARGETS) == {}


# Files that the user gives ------------------------------------------------------------------------

FILES = {
    "raw/mine.csv": "examples 1",
    "raw/agreed.txt": "unlearn_list 6",
    "raw/ours/model.safetensors": "model_card 1",
    "raw/clean/tokenizer.json": "model_card 1",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_counts_by_its_content(snakemake: Snakemake, finished: Path, name: str) -> None:
    path = finished / name
    text = path.read_text(encoding="utf-8")
    try:
        path.touch()
        assert snakemake.would_run(finished, targets=TARGETS) == {}
        # As old as the one before it, and of its size.
        write_raw(path, re.sub("more|agreed|ours|clean", lambda word: word[0].upper(), text))
        assert snakemake.look(finished, targets=TARGETS)["begin"] == FILES[name]
    finally:
        write_raw(path, text)


def test_a_remade_dataset_is_compared_before_anything_runs_on_it(
    snakemake: Snakemake, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever rule reads its tables: other raw files, or other code, may make the same of it."""
    monkeypatch.chdir(finished)
    own, card = Path("raw/mine.csv"), Path(paths.DATA_CARD.format(dataset="mine"))
    text, said, date = own.read_text(encoding="utf-8"), card.read_bytes(), card.stat().st_mtime
    made = json.loads(settings.as_json(settings.of("examples", complete(CONFIG), dataset="mine")))

    everything = snakemake.would_run(finished, targets=TARGETS, change=ANOTHER_TEXT)

    def needed(**changes: Any) -> dict[str, int]:
        write_json(card, {"settings": {**made, **changes}})
        os.utime(card, (date, date))
        return snakemake.would_run(finished, targets=TARGETS)

    try:
        assert needed() == {}
        write_raw(own, f"\ufeff{text}")
        assert needed() == {"examples": 1}
        assert needed(code="before") == {"examples": 1}
        assert needed(limit=7) == everything
        card.write_text("{", encoding="utf-8")
        assert snakemake.would_run(finished, targets=TARGETS) == everything
    finally:
        write_raw(own, text)
        card.write_bytes(said)
        os.utime(card, (date, date))


def test_every_plugin_with_settings_is_on_the_small_grid() -> None:
    """Else a contract about its settings would be about nothing that exists."""
    used = {name for study in CONFIG["studies"].values() for name in study["selectors"]}
    used |= {*CONFIG["grid"]["selectors"], *CONFIG["unlearning"]["unlearners"]}
    kinds = used | {entry["kind"] for entry in CONFIG["datasets"].values()}
    for kind in PLUGINS.values():
        for name in plugins(kind):
            assert name in kinds or not plugin(kind, name).settings
