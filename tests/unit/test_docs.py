"""The documentation's commands, keys, files, links and templates are those that exist."""

import itertools
import json
import os
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import yaml
from markdown.extensions.toc import slugify

from mamushi import cli, registry
from mamushi.config.sections import Configuration, with_rooms
from mamushi.selection.pool import Pool
from mamushi.selection.scores import rank_forget
from mamushi.stages.publish import all_tables
from mamushi.unlearning.objective import Nll
from tests.support.pages import PAGES, module_of
from tests.support.score_files import write_scores
from tests.support.workflow import ROOT, output_of

DOCS = sorted(ROOT.glob("docs/**/*.md"))
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
KINDS = {"datasets": "dataset", "selectors": "selector", "unlearners": "unlearner"}

every_page = pytest.mark.parametrize(
    "page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES]
)


def blocks(text: str, language: str) -> list[str]:
    """The fenced blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def inline(text: str) -> list[str]:
    """What stands in backticks within the prose."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def commands(text: str) -> Iterator[list[str]]:
    """The words of every command in a block, and of those in the prose that name a program."""
    lines = "".join(blocks(text, "sh")).replace("\\\n", " ").splitlines()
    programs = r"(make|snakemake|pip|python -m|mamushi) "
    lines += [code for code in inline(text) if re.match(programs, code)]
    for line in lines:
        words = shlex.split(line, comments=True)
        while words and re.match(r"[A-Z_]+=", words[0]):
            words = words[1:]
        if words:
            yield words


# Commands -----------------------------------------------------------------------------------------

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def check_make(words: list[str]) -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    assert {word for word in words if "=" not in word} <= targets
    assert all(f"$({word.partition('=')[0]})" in MAKEFILE for word in words if "=" in word)


def check_snakemake(words: list[str]) -> None:
    from snakemake.cli import get_argument_parser

    args = get_argument_parser().parse_args(words)
    check_targets({*args.targets, *args.forcerun})
    assert all([*(ROOT / name).glob("profile*.yaml")] for name in args.profile or ())


def check_targets(names: set[str]) -> None:
    files = [*ROOT.glob("workflow/**/*.smk"), ROOT / "workflow/Snakefile"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    rules = {*re.findall(r"^(?:use )?rule (?:\w+ as )?(\w+)(?::| with:)", text, re.M)}
    assert names <= rules | {*all_tables()}


def check_python(command: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    if "--" in options:
        check_snakemake(options[options.index("--") + 1 :])
        options = options[: options.index("--")]
    assert cli.main([command, "--help"]) == 0, f"no command {command}"
    said = capsys.readouterr().out
    for option in (word.partition("=")[0] for word in options if word.startswith("--")):
        assert re.search(rf"{option}\b(?!-)", said), f"{command} has no {option}"
    if command in ("run", "report", "plan"):
        targets = itertools.takewhile(lambda word: word[0] != "-", options)
        check_targets({*targets} - {"TARGET"})


@every_page
def test_commands_are_those_that_exist(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in commands(TEXTS[page]):
        match words:
            case ["make", *rest]:
                check_make(rest)
            case ["snakemake", *rest]:
                check_snakemake(rest)
            case ["python", "-m", module, *_] if module.startswith(("studies.", "benchmarks")):
                path = ROOT / module.replace(".", "/")
                assert path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()
            case ["python", "-m", "mamushi", *rest] | ["mamushi", *rest]:
                if rest and rest[0] not in ("STAGE", "COMMAND", "--help"):
                    check_python(rest[0], rest[1:], capsys)
            case ["pip", "install", package]:
                assert package.partition("[")[0] in ("mamushi-unlearn", ".")
            case ["export", given]:
                name = given.partition("=")[0]
                assert f"${{{name}}}" in (ROOT / "config.yaml").read_text(encoding="utf-8")
            case _:
                pytest.fail(f"unknown command {words}")


# Configuration ------------------------------------------------------------------------------------


@cache
def declared_keys() -> list[list[str]]:
    """The path of every key on the page of keys."""
    page = runpy.run_path(str(ROOT / "docs/keys.py"))["page"]()
    return [path.split(".") for path in re.findall(r"^\| `([^`]+)` \|", page, re.M)]


def known(keys: list[str]) -> bool:
    """Whether a section, or a plug-in's ``Settings``, has the key with this path."""
    if len(keys) > 2 and keys[0] in KINDS:
        plugins = registry.plugins(KINDS[keys[0]])
        chosen = [plugins[keys[1]]] if keys[1] in plugins else plugins.values()
        if any(keys[2] in plugin.settings for plugin in chosen):
            return True
    for path in [*declared_keys(), ["unlearning", "lists", "NAME"]]:
        if len(keys) <= len(path):
            pairs = zip(keys, path, strict=False)
            if all(part in ("NAME", key) for key, part in pairs):
                return True
    return False


def leaves(given: Any, above: tuple[str, ...] = ()) -> Iterator[list[str]]:
    """The path of every key that holds no mapping, down to where a plug-in's own setting begins."""
    if isinstance(given, dict) and not (len(above) > 2 and above[0] in KINDS):
        for key, value in given.items():
            yield from leaves(value, (*above, key))
    else:
        yield [*above]


def test_configuration_keys_are_those_that_exist() -> None:
    named = {code for text in TEXTS.values() for code in inline(text)}
    dotted = {code for code in named if re.fullmatch(r"[a-z_]+(\.[a-z0-9_]+)+", code)}
    sections = with_rooms(Configuration).model_fields
    keys = [code.split(".") for code in dotted if code.split(".")[0] in sections]
    assert len(keys) > 30
    keys += [
        path
        for text in TEXTS.values()
        for block in blocks(text, "yaml")
        for path in leaves(yaml.safe_load(block))
    ]
    assert not [".".join(path) for path in keys if not known(path)]
    for wrong in ("training.step", "selectors.mamushi.fold", "unlearning.training.stops"):
        assert not known(wrong.split("."))


# Files and links ----------------------------------------------------------------------------------


@every_page
def test_files_in_the_prose_exist(page: Path) -> None:
    new = {"workflow/report/areas.rst"}  # of a template
    folders = "workflow|tests|benchmarks|studies|profiles|docs|envs"
    for code in inline(TEXTS[page]):
        if re.fullmatch(rf"({folders})(/[a-zA-Z0-9_.+-]+)+", code) and code not in new:
            assert "NAME" in code or (ROOT / code).exists(), code


@every_page
def test_links_lead_somewhere_in_a_clone(page: Path) -> None:
    """Anchors between the pages of ``docs`` are checked when these are built."""
    for link in re.findall(r"\]\(((?!http)[^)\s]+)\)", TEXTS[page]):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.is_file(), link
        heads = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.M) if anchor else []
        assert not anchor or page in DOCS or anchor in {slugify(h, "-") for h in heads}, link


def test_the_map_of_the_code_names_what_is_there() -> None:
    layout = TEXTS[ROOT / "docs/guide/layout.md"]
    rows = re.findall(r"^\|[^|]+\| `(workflow/\S+\.py)` \| `(?:\w+\.)?(\w+)`", layout, re.M)
    assert len(rows) == 14
    for file, name in rows:
        code = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"^ *(?:def |class )?{name}\b(?:\(| = |:)", code, re.M), name


def test_pages_build_without_a_warning_and_open_offline(tmp_path: Path) -> None:
    words = ["mkdocs", "build", "--strict", "--site-dir", tmp_path]
    output_of(sys.executable, "-m", *words, cwd=ROOT)
    pages = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.html")]
    made = {path.stem for path in pages if path.parts[0] != "api"} - {"404"}
    assert made == {path.stem for path in DOCS}
    shown = (tmp_path / "guide/notebook.html").read_text(encoding="utf-8")
    assert all(part in shown for part in ("Ranking by mamushi_lr", "(800, 760)", "holds"))
    loaded = re.compile(r"""(?:<script|<link|<img)[^>]*(?:src|href)=["'](?:https?:)?//""")
    for path in tmp_path.rglob("*.html"):
        assert not loaded.search(path.read_text(encoding="utf-8")), path.name


# Templates ----------------------------------------------------------------------------------------


TEMPLATES = {path.stem: path for path in ROOT.glob("docs/templates/*.py")}


def test_the_template_of_a_selector_ranks() -> None:
    x = np.array([[0, 0], [3, 4], [0, 1], [0, 2], [0, 0]], dtype=np.float16)
    ids = np.array(list("abcde"), dtype=object)
    pool = Pool(ids, np.array([True, True, True, True, False]), x)
    template = module_of(TEMPLATES["far"])
    scored = template.score(pool, template.Settings().model_dump(), 0)
    assert scored.scores.tolist() == [0, 5, 1, 2, 0]
    assert ids[rank_forget(pool, scored)].tolist() == list("bdca")


def test_the_template_of_an_unlearner_has_a_gradient() -> None:
    sums = torch.tensor([2.0, 4.0], dtype=torch.float64, requires_grad=True)
    nll = Nll(sums, torch.tensor([1.0, 2.0]), step_tokens=3, step_texts=2)
    template = module_of(TEMPLATES["retain_only"])
    settings = template.Settings().model_dump()
    assert settings == {"learning_rate": 1e-5}
    loss = template.loss(nll, nll, settings)
    loss.backward()
    assert loss.item() == 2.0 and sums.grad is not None and sums.grad.tolist() == [1 / 3, 1 / 3]


def test_the_template_of_a_loader_reads(tmp_path: Path) -> None:
    (tmp_path / "forget.txt").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "retain.txt").write_text("three\n", encoding="utf-8")
    template = module_of(TEMPLATES["two_files"])
    settings = template.Settings().model_dump() | {"path": str(tmp_path)}
    raw = template.load(settings, tmp_path)
    assert raw.texts == ["one", "two", "three"] and raw.forget.tolist() == [True, True, False]


def test_the_analysis_of_the_page_runs(tmp_path: Path) -> None:
    """Its four files in a copy of the packages: Snakemake plans the rule, and the stage runs."""
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    for name in ("Snakefile", "config.yaml", "profiles", "envs"):
        (tmp_path / name).symlink_to(ROOT / name)
    room = tmp_path / "workflow/mamushi_extras/overlap"
    room.mkdir()
    code = blocks(TEXTS[ROOT / "docs/guide/adding.md"], "python")
    for name, text in zip(
        ("sharing.py", "schemas.py", "stages.py", "rules.smk"), code, strict=True
    ):
        (room / name).write_text(text, encoding="utf-8")
    for selector, scores in (("mamushi", [3.0, 2.0, 1.0]), ("random", [2.0, 3.0, 1.0])):
        write_scores(tmp_path / selector, ["a", "b", "c"], ["forget"] * 3, scores)

    def run(*words: str) -> str:
        env = os.environ | {"PYTHONPATH": str(tmp_path / "workflow")}
        return output_of(sys.executable, "-m", *words, cwd=tmp_path, env=env)

    cell = "results/runs/synthetic/tiny-llama/seed0/overlap/random.parquet"
    assert "rule overlap:" in run("snakemake", cell, "--profile", "profiles/demo", "--dry-run")
    settings = {"dataset": "d", "model": "m", "seed": 0, "selector": "random"}
    files = ("--scores", "random", "--ratio", "mamushi", "--out", "out.parquet")
    run("mamushi", "overlap", *files, "--settings", json.dumps(settings))
    assert pq.read_table(tmp_path / "out.parquet")["shared"].to_pylist() == [0, 1, 1]
