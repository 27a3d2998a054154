"""What a stage is: the files that it reads and writes, declared once, and a function.

A stage is a function ``NAME(files, settings, job)`` in a module of ``mamushi/stages``. What
``files`` is annotated with is a class each field of which is a file (``reads``, ``writes``) or
another option (``option``) of its command. What is heavy is imported inside the function, since the
Snakefile looks at the declarations. ``GPU = True`` in its module says that it computes on a GPU.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, dataclass_transform, get_type_hints

from mamushi.config.sections import Execution
from mamushi.errors import UserError
from mamushi.io.provenance import provenance

FOLDER = Path(__file__).parents[1] / "stages"
DEFINITION = re.compile(
    r'^def (\w+)\(files: \w+, settings: \w+, job: Job\).*\n    """(.*?)(?:"""|\n)', re.M
)


def reads(about: str, *, named_by: str | None = None, **more: Any) -> Any:
    """Declare a file, or a list of files, on which the results depend. The files of a list are
    recorded under the names that the field ``named_by`` lists."""
    return field(metadata={"about": about, "role": "input", "named_by": named_by}, **more)


def writes(about: str, **more: Any) -> Any:
    """Declare a file to write, a list of files, or the folder of several."""
    return field(metadata={"about": about, "role": "output"}, **more)


def option(about: str, **more: Any) -> Any:
    """Declare another option: names, or a place for what only saves time."""
    return field(metadata={"about": about, "role": "params"}, **more)


def root() -> Any:
    """Declare the folder of results, in which a stage finds its inputs by path."""
    return field(
        default=Path("results"),
        metadata={"about": "results folder (default: %(default)s)", "role": "root"},
    )


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Files:
    """The files of a stage. Every subclass is a frozen dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


@dataclass(frozen=True)
class Job:
    """One invocation of a stage."""

    stage: str
    origin: Mapping[str, Any]
    """What its results are made from: settings, digests of the inputs, versions."""
    execution: Execution
    """How to run; its defaults for a stage without a GPU."""


class Stage(NamedTuple):
    """A stage by its place, which is read and not imported, with the first line about it."""

    entry: str
    summary: str


@cache
def stages() -> dict[str, Stage]:
    """Return the stages by their commands: the function's name with dashes for underscores."""
    return {
        name.replace("_", "-"): Stage(f"mamushi.stages.{path.stem}.{name}", summary)
        for path in sorted(FOLDER.glob("[!_]*.py"))
        for name, summary in DEFINITION.findall(path.read_text(encoding="utf-8"))
    }


def entry(name: str) -> str:
    """Return the full name of a stage's function."""
    return stages()[name.replace("_", "-")].entry


class Loaded:
    """A stage whose module has been imported."""

    def __init__(self, name: str) -> None:
        place, _, function = entry(name).rpartition(".")
        module = importlib.import_module(place)
        self.run = getattr(module, function)
        self.about: str = self.run.__doc__
        self.gpu: bool = getattr(module, "GPU", False)
        self.files, self.settings = (
            getattr(module, self.run.__annotations__[each]) for each in ("files", "settings")
        )


def declared(stage: Loaded) -> list[tuple[str, str, str, Any]]:
    """Name, role, meaning and type of each field of the stage's files."""
    hints = get_type_hints(stage.files)
    return [
        (each.name, each.metadata["role"], each.metadata["about"], hints[each.name])
        for each in fields(stage.files)
    ]


def arguments(parser: argparse.ArgumentParser, stage: Loaded) -> None:
    """Add the options of a stage."""
    defaults = {each.name: each.default for each in fields(stage.files)}
    for name, _, about, kind in declared(stage):
        given: dict[str, Any] = {"help": about}
        if kind in (list[Path], list[str]):
            many = "+" if defaults[name] is MISSING else "*"
            given |= {"nargs": many, "type": Path if kind == list[Path] else str}
        elif kind in (Path | None, str | None):
            given |= {"nargs": "?", "type": Path if kind == Path | None else str}
        else:
            given["type"] = kind
        if defaults[name] is MISSING:
            given["required"] = True
        else:
            given["default"] = defaults[name]
        parser.add_argument(f"--{name.replace('_', '-')}", **given)
    if stage.gpu:
        # No setting, because a change of it must run nothing again; the workflow hands it over in
        # the environment, where Snakemake does not look for changes.
        parser.add_argument(
            "--execution",
            default=os.environ.get("MAMUSHI_EXECUTION", "{}"),
            help="JSON: the section `execution` of the configuration (or $MAMUSHI_EXECUTION)",
        )
    about = " ".join((stage.settings.__doc__ or "").split())
    parser.add_argument("--settings", required=True, help=f"JSON. {about}")


def command(name: str, places: Mapping[str, str]) -> str:
    """Return the words of a stage's command in a template: ``places`` has the place of an option by
    its name, or by its role with ``NAME`` for the name; an option without a place is left out."""
    words = [f"python -m mamushi {name}"]
    for option_name, role, _, _ in declared(Loaded(name)):
        place = places.get(option_name, places.get(role, "").replace("NAME", option_name))
        if place:
            words.append(f"--{option_name.replace('_', '-')} {place}")
    return " ".join(words)


@dataclass(frozen=True)
class Command:
    """A stage with what it was given."""

    name: str
    stage: Loaded
    files: Any
    settings: Any
    recorded: Mapping[str, Any]
    """The settings as they were given, which the origin of the results has."""
    execution: Any

    @property
    def outputs(self) -> list[Path]:
        """Return what is to be written, the primary output first."""
        return [path for role, _, path in _paths(self.stage, self.files) if role == "output"]

    @property
    def complete(self) -> bool:
        """Tell whether a job's origin names all inputs, so that results can be told to be current:
        what is found in a folder, or where a setting says, is not declared."""
        roles = {role for _, role, _, _ in declared(self.stage)}
        return "input" in roles and "root" not in roles

    def job(self) -> Job:
        """Return the job, by its inputs as they are now; raises ``UserError`` for one that is
        missing."""
        files = _paths(self.stage, self.files)
        inputs = {label: path for role, label, path in files if role == "input"}
        return Job(self.name, provenance(self.recorded, **inputs), self.execution)


def parse(name: str, args: argparse.Namespace) -> Command:
    """Return the command of parsed options. Raises ``UserError`` for settings that are not the
    stage's."""
    stage = Loaded(name)
    files = stage.files(**{each.name: getattr(args, each.name) for each in fields(stage.files)})
    recorded, settings = _typed("settings", args.settings, stage.settings)
    _, execution = _typed("execution", getattr(args, "execution", "{}"), Execution)
    return Command(name, stage, files, settings, recorded, execution)


def _typed(option: str, text: str, kind: type) -> tuple[dict[str, Any], Any]:
    """Return an object in JSON as it is and as its class."""
    import msgspec

    try:
        given = msgspec.json.decode(text, type=dict[str, Any])
        return given, msgspec.convert(given, kind)
    except msgspec.DecodeError as error:
        raise UserError(f"--{option}: {error}") from None


def _paths(stage: Loaded, files: Any) -> Iterator[tuple[str, str, Path]]:
    """Return role, label and path of each file that is given."""
    for each in fields(stage.files):
        value, role = getattr(files, each.name), each.metadata["role"]
        if isinstance(value, Path):
            yield role, each.name, value
        elif isinstance(value, Sequence) and role in ("input", "output"):
            by = each.metadata.get("named_by")
            labels = getattr(files, by) if by else [str(place) for place in range(len(value))]
            for label, path in zip(labels, value, strict=True):
                yield role, f"{each.name}/{label}", path
