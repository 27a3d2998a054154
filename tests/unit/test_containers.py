"""The container recipes install what the lock file says, and copy what the program needs."""

import shutil
from pathlib import Path

import yaml

from tests.support.workflow import ROOT, output_of

DOCKER, APPTAINER, INSTALL = (
    ROOT / "envs" / name for name in ("Dockerfile", "mamushi.def", "install.sh")
)


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
    output_of("sh", "envs/install.sh", cwd=tmp_path, env={"PATH": f"{pip.parent}:/usr/bin:/bin"})
    lines = told.read_text().splitlines()
    pins = {line for line in lines if "==" in line and line[0] != "#"}
    *_, conda = yaml.safe_load((ROOT / "envs/mamushi.yaml").read_text())["dependencies"]
    assert pins == {*conda["pip"]}
    # What builds the package without asking an index.
    assert any(pin.startswith("setuptools==") for pin in pins)
    assert lines[-1] == f"{tmp_path} -m pip install --no-cache-dir --no-deps " + (
        "--no-build-isolation --editable ."
    )
