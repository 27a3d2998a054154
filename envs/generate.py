"""Make the environment files from the one lock file.

    python envs/generate.py            # envs/mamushi.yaml from requirements.lock
    python envs/generate.py --check    # only say whether it is up to date
    python envs/generate.py --lock     # first requirements.lock from the packages installed here

To upgrade: make a new virtual environment, `pip install -e '.[dev]'` in it, then run this with its
Python and `--lock`.
"""

import argparse
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
CONDA = ROOT / "envs" / "mamushi.yaml"
PYTHON = "3.11"

LOCK_HEADER = """\
# Every package of Mamushi, direct or not, at the version that was tested: Linux, Python 3.11 and
# later. The first part is for running it, on a cluster as well, the second for its tests. Made by
# `python envs/generate.py --lock`; change pyproject.toml instead, and make it again.
# Of torch only the version is pinned. pip adds the CUDA libraries that its build for your machine
# asks for; where pip is set up to find CPU builds (2.13.0+cpu), they satisfy the same pin.
"""
DEVELOPMENT = "# For development alone.\n"
CONDA_HEADER = """\
# Made from requirements.lock by `python envs/generate.py`: change that file instead.
#   conda env create --file envs/mamushi.yaml
"""
# What torch's build for a GPU brings along differs between machines. The reader of the driver's
# library is ours.
OF_THE_MACHINE = re.compile(r"nvidia-(?!ml-py$).*|cuda-.*|triton")


def canonical(name: str) -> str:
    """A package's name as the index spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needed(requirements: list[str]) -> dict[str, str]:
    """Installed versions of ``requirements`` and of everything that they require, by name."""
    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    waiting = [Requirement(line) for line in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonical(wanted.name)
        if OF_THE_MACHINE.fullmatch(name):
            continue
        try:
            package = distribution(name)
        except PackageNotFoundError:
            raise SystemExit(f"{name} is required but not installed here") from None
        found[name] = package.version.split("+")[0]
        for extra in ["", *wanted.extras]:
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            for line in package.requires or []:
                requirement = Requirement(line)
                if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                    waiting.append(requirement)
    return found


def lock() -> str:
    """The lock file for the packages that are installed in this environment."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras, run = project["optional-dependencies"], project["dependencies"]
    everything, run = needed([*run, *extras["dev"]]), needed([*run, *extras["slurm"]])
    parts = [run, {name: everything[name] for name in everything.keys() - run.keys()}]
    pins = ["".join(f"{name}=={part[name]}\n" for name in sorted(part)) for part in parts]
    return LOCK_HEADER + "\n" + pins[0] + "\n" + DEVELOPMENT + "\n" + pins[1]


def conda(locked: str) -> str:
    """The conda environment in which the workflow runs, for the text of a lock file."""
    run = locked.split(DEVELOPMENT, maxsplit=1)[0]
    pins = [line for line in run.splitlines() if line and not line.startswith("#")]
    return (
        CONDA_HEADER
        + "name: mamushi\nchannels:\n  - conda-forge\n  - nodefaults\ndependencies:\n"
        + f"  - python={PYTHON}\n  - pip\n  - pip:\n"
        + "".join(f"      - {pin}\n" for pin in pins)
    )


def main() -> int:
    """Write or check the files. Returns 1 when ``--check`` finds one that is out of date."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--lock", action="store_true", help="make requirements.lock first")
    args = parser.parse_args()
    if args.lock and not args.check:
        LOCK.write_text(lock(), encoding="utf-8")
    wanted = conda(LOCK.read_text(encoding="utf-8"))
    if args.check:
        if CONDA.is_file() and CONDA.read_text(encoding="utf-8") == wanted:
            return 0
        print(f"{CONDA}: out of date; run python envs/generate.py", file=sys.stderr)
        return 1
    CONDA.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
