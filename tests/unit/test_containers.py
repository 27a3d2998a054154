"""The container recipes install what the lock file says, and copy what the program needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.workflow import ROOT

DOCKER, APPTAINER, INSTALL = (
    ROOT / "envs" / name for name in ("Dockerfile", "mamushi.def", "install.sh")
)


def instructions(word: str) -> list[str]:
    """What follows a word in the Dockerfile."""
    return re.findall(rf"^{word} +(.*)$", DOCKER.read_text(encoding="utf-8"), re.MULTILINE)


def section(name: str) -> list[list[str]]:
    """The words of each line of a section of the Apptainer recipe; of its head with ''."""
    parts = re.split(r"^%(\w+)$", APPTAINER.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = dict(zip(["", *parts[1::2]], parts[::2], strict=True))[name]
    return [line.split() for line in found.splitlines() if line.strip() and line[0] != "#"]


def test_both_are_the_same_image() -> None:
    assert section("")[0] == ["Bootstrap:", "docker"]
    assert [["From:", *instructions("FROM")]] == section("")[1:]
    python = next(
        line
        for line in yaml.safe_load((ROOT / "envs/mamushi.yaml").read_text())["dependencies"]
        if str(line).startswith("python=")
    )
    assert instructions("FROM") == [f"{python.replace('=', ':')}-slim"]
    copied = [words for line in instructions("COPY") for words in [line.split()]]
    place = instructions("WORKDIR")[0]
    targets = {source: f"{place}/{source}" for *sources, _ in copied for source in sources}
    assert dict(section("files")) == targets
    assert [*sources_of(copied)] == [*targets]
    (run,) = instructions("RUN")
    assert section("post") == [[word.replace("envs/", f"{place}/envs/") for word in run.split()]]


def sources_of(copied: list[list[str]]) -> list[str]:
    """Each is copied to where it is expected: several into the folder, a folder under its name."""
    found: list[str] = []
    for *sources, target in copied:
        assert target == "./" or sources == [target]
        found += sources
    return found


def test_all_that_is_tracked_is_copied_or_has_no_part_in_running_it() -> None:
    sources = sources_of([line.split() for line in instructions("COPY")])
    assert all((ROOT / source).exists() for source in sources)
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    if not tracked:
        pytest.skip("no clone of the repository")
    left = {path.split("/")[0] for path in tracked} - {*sources}
    of_development = {"tests", "docs", "benchmarks", "results", "Makefile", "mkdocs.yml"}
    assert {name for name in left if name[0] != "."} - of_development <= {"CHANGELOG.md"}


def test_what_is_installed_is_the_lock_files_part_for_running(tmp_path: Path) -> None:
    (tmp_path / "envs").mkdir()
    shutil.copy(INSTALL, tmp_path / "envs")
    shutil.copy(ROOT / "requirements.lock", tmp_path)
    told = tmp_path / "told"
    pip = tmp_path / "bin" / "python"
    pip.parent.mkdir()
    pip.write_text(
        f'#!/bin/sh\necho "$PWD $*" >> {told}\n[ "$5" != --requirement ] || cat "$6" >> {told}\n'
    )
    pip.chmod(0o755)
    done = subprocess.run(
        ["sh", "envs/install.sh"],
        cwd=tmp_path,
        env={"PATH": f"{pip.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = told.read_text().splitlines()
    pins = {line for line in lines if "==" in line and line[0] != "#"}
    *_, conda = yaml.safe_load((ROOT / "envs/mamushi.yaml").read_text())["dependencies"]
    assert pins == {*conda["pip"]}
    # What builds the package without asking an index.
    assert any(pin.startswith("setuptools==") for pin in pins)
    assert lines[-1] == f"{tmp_path} -m pip install --no-cache-dir --no-deps " + (
        "--no-build-isolation --editable ."
    )


def test_no_recipe_names_a_package_index() -> None:
    for path in (DOCKER, APPTAINER, INSTALL):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"https?://|index-url|pypi|conda\.", text), path


def works(*words: str) -> bool:
    """Whether a program is there and answers."""
    if shutil.which(words[0]) is None:
        return False
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    return done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("program", ["docker", "apptainer"])
def test_the_image_is_built_and_runs(program: str, tmp_path: Path) -> None:
    if not works(program, "info" if program == "docker" else "version"):
        pytest.skip(f"no {program} that answers")
    image = "mamushi-test" if program == "docker" else str(tmp_path / "mamushi.sif")
    build = {
        "docker": ["build", "--file", str(DOCKER), "--tag", image, "."],
        "apptainer": ["build", image, str(APPTAINER)],
    }[program]
    subprocess.run([program, *build], cwd=ROOT, check=True)
    options = ["--rm"] if program == "docker" else []
    for command in (["mamushi", "--help"], ["snakemake", "--version"]):
        subprocess.run([program, "run", *options, image, *command], check=True)
