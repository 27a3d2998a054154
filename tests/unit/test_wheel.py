"""The wheel has all that a run needs: users miss a profile or a rule file that is left out."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import packages_distributions

import pytest

from tests.support.workflow import ROOT

OUTSIDE = (
    "workflow/rules/",
    "workflow/report/",
    "workflow/Snakefile",
    "profiles/",
    "envs/mamushi.yaml",
)
"""What installs into share/mamushi, beside the packages."""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The files of a wheel that is built of what is tracked."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in tracked():
        target = folder / "source" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target)
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*pip, "--wheel-dir", folder, folder / "source"], check=True)
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        return set(wheel.namelist())


def tracked() -> list[str]:
    """List the files of the repository that are still there."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    if not listed:
        pytest.skip("no clone of the repository")
    parts = ("workflow/", "profiles/", "envs/")
    names = [name for name in listed if name.startswith(parts) or "/" not in name]
    return [name for name in names if (ROOT / name).is_file()]


def test_packages_profiles_and_rules_are_in_the_wheel(packed: set[str]) -> None:
    """The profile of the paper to the letter was not."""
    names = {name.removeprefix("workflow/") for name in tracked() if name.startswith("workflow/")}
    files = {name for name in names if name.startswith("mamushi")}
    assert not files - packed
    shared = {name.partition("/data/share/mamushi/")[2] for name in packed}
    needed = {name for name in tracked() if name.startswith(OUTSIDE) and name[-3:] != ".md"}
    assert "profiles/paper-literal/science.yaml" in needed
    assert not needed - shared
    assert {"Snakefile", "config.yaml"} <= shared


TRANSITIVE = {
    *("aiohttp", "annotated-types", "pydantic-core"),
    "snakemake-interface-executor-plugins",
}
"""Parts that fsspec[http], pydantic and Snakemake come in."""
ENGINES = {"datatrove"}
"""Whoever takes the door to it has it."""


def test_what_is_imported_is_required() -> None:
    """Nothing is there only because another package happens to need it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["lora"], *extras["remote"], *extras["tasks"]]
    names = (re.split(r"[\[<>=]", line)[0] for line in lines)
    required = {name.replace("_", "-") for name in names} | TRANSITIVE | ENGINES
    packages = packages_distributions()
    for path in sorted((ROOT / "workflow").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Import(names=names):
                    modules = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module), level=0):
                    modules = [module]
                case _:
                    continue
            for name in {module.partition(".")[0] for module in modules}:
                if name in sys.stdlib_module_names or name not in packages:
                    continue
                distributions = {entry.lower().replace("_", "-") for entry in packages[name]}
                assert distributions & (required | {"mamushi-unlearn"}), f"{path} imports {name}"
