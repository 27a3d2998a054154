"""What a stage is: a function whose signature names the files that it reads and writes.

A stage is a public function in a module of ``mamushi/stages``, or in ``stages.py`` of an extra,
whose parameters are keyword-only and end in ``settings`` and ``job``. An ``Input`` or ``Output`` is
a file, anything else another option of its command. What is heavy is imported inside the function,
since the Snakefile imports the modules. ``GPU`` in a module names its stages that compute on a
GPU; ``VERSION`` is raised when a change that ``identity`` does not see moves a number.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from mamushi.config.sections import Execution
from mamushi.errors import UserError
from mamushi.io.provenance import provenance
from mamushi.running import identity

Kind = TypeVar("Kind", bound=BaseModel)
PACKAGES = Path(__file__).parents[2]
FOLDERS = ("mamushi/stages/[!_]*.py", "mamushi_extras/*/stages.py")

Input = Annotated[Path, "input"]
"""A file on which the results depend."""
Output = Annotated[Path, "output"]
"""A file to write, or the folder of several."""


class Parameter(NamedTuple):
    """A file or another option of a stage. ``role`` is ``input``, ``output`` or ``option``."""

    name: str
    role: str
    kind: type
    is_list: bool
    default: Any

    @property
    def is_required(self) -> bool:
        """Tell whether a command has to name it."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Stage:
    """A stage by the name of its command."""

    name: str
    function: Callable[..., None]
    module: ModuleType

    @property
    def summary(self) -> str:
        """Return the first line about it."""
        return (self.function.__doc__ or "").partition("\n")[0]

    @property
    def entry(self) -> str:
        """Return the full name of its function."""
        return f"{self.module.__name__}.{self.function.__name__}"

    @property
    def is_on_gpu(self) -> bool:
        """Tell whether it computes on a GPU where there is one."""
        return self.function.__name__ in getattr(self.module, "GPU", ())

    @property
    def version(self) -> int:
        """Return what its results are a version of."""
        return getattr(self.module, "VERSION", 1)

    @cached_property
    def settings(self) -> Any:
        """Return the class of its settings."""
        return get_type_hints(self.function)["settings"]

    @cached_property
    def parameters(self) -> list[Parameter]:
        """Return its files and options, in the order of the signature."""
        hints = get_type_hints(self.function, include_extras=True)
        return [
            _parameter(name, hints[name], signature.default)
            for name, signature in inspect.signature(self.function).parameters.items()
            if name not in ("settings", "job")
        ]

    def settings_text(self, config: Mapping[str, Any], **wildcards: Any) -> str:
        """Return the settings of a job with these wildcards, and the identity of its code, as the
        one text that is compared and handed over."""
        settings = self.settings.of(config, **wildcards)
        plug_ins = settings.plug_ins() if hasattr(settings, "plug_ins") else ()
        code = {"code": identity.of_stage(self.entry, *plug_ins), "version": self.version}
        return json.dumps({**settings.model_dump(), **code}, sort_keys=True)


def _parameter(name: str, hint: Any, default: Any) -> Parameter:
    if get_origin(hint) in (Union, UnionType):
        (hint,) = [kind for kind in get_args(hint) if kind is not type(None)]
    is_list = get_origin(hint) is list
    if is_list:
        (hint,) = get_args(hint)
    role = "option"
    if get_origin(hint) is Annotated:
        hint, role = get_args(hint)
    return Parameter(name, role, hint, is_list, default)


@cache
def stages() -> Mapping[str, Stage]:
    """Return all stages by the names of their commands, which have dashes for underscores."""
    every: dict[str, Stage] = {}
    for path in sorted(path for folder in FOLDERS for path in PACKAGES.glob(folder)):
        module = importlib.import_module(".".join(path.relative_to(PACKAGES).with_suffix("").parts))
        for name, function in inspect.getmembers(module, inspect.isfunction):
            is_public = function.__module__ == module.__name__ and name[0] != "_"
            if is_public and "job" in inspect.signature(function).parameters:
                command = name.replace("_", "-")
                every[command] = Stage(command, function, module)
    return every


@dataclass(frozen=True)
class Job:
    """One run of a stage, with its files, options and settings."""

    stage: Stage
    arguments: Mapping[str, Any]
    settings: Any
    recorded: Mapping[str, Any]
    """The settings as they came."""
    execution: Execution
    """How to run; its defaults for a stage without a GPU."""

    @property
    def outputs(self) -> list[Path]:
        """Return what is to be written, the primary output first."""
        return [*self._files("output").values()]

    @property
    def inputs(self) -> list[Path]:
        """Return what the results depend on."""
        return [*self._files("input").values()]

    @cached_property
    def origin(self) -> Mapping[str, Any]:
        """Return what the results are made from: settings, digests of the inputs, versions. Raises
        ``UserError`` for a missing input."""
        return provenance(self.recorded, **self._files("input"))

    def run(self) -> None:
        """Run the stage, from its inputs as they are now."""
        assert self.origin
        self.stage.function(**self.arguments, settings=self.settings, job=self)

    def _files(self, role: str) -> dict[str, Path]:
        """Return the files by parameter; those of a list also by place."""
        files: dict[str, Path] = {}
        for parameter in self.stage.parameters:
            value = self.arguments.get(parameter.name)
            if parameter.role == role and parameter.is_list:
                files |= {f"{parameter.name}/{n}": path for n, path in enumerate(value or ())}
            elif parameter.role == role and value is not None:
                files[parameter.name] = value
        return files


def add_arguments(parser: argparse.ArgumentParser, stage: Stage) -> None:
    """Add the options of a stage to the parser of its command."""
    for parameter in stage.parameters:
        words: dict[str, Any] = {"type": parameter.kind, "help": parameter.role}
        if parameter.is_list:
            words["nargs"] = "+" if parameter.is_required else "*"
        elif parameter.default is None:
            # A rule without such a file leaves nothing behind the option.
            words["nargs"] = "?"
        words |= {"required": True} if parameter.is_required else {"default": parameter.default}
        parser.add_argument(f"--{parameter.name.replace('_', '-')}", **words)
    if stage.is_on_gpu:
        # No setting, because a change of it must run nothing again; the workflow hands it over in
        # the environment, where Snakemake does not look for changes.
        parser.add_argument(
            "--execution",
            default=os.environ.get("MAMUSHI_EXECUTION", "{}"),
            help="JSON: the section `execution` of the configuration (or $MAMUSHI_EXECUTION)",
        )
    summary = " ".join((stage.settings.__doc__ or "").split())
    parser.add_argument("--settings", required=True, help=f"JSON. {summary}")


def job_of(stage: Stage, options: argparse.Namespace) -> Job:
    """Return the job of parsed options. Raises ``UserError`` for settings that are not the
    stage's."""
    arguments = {name: getattr(options, name) for name in (p.name for p in stage.parameters)}
    settings = _from_json("settings", options.settings, stage.settings)
    execution = _from_json("execution", getattr(options, "execution", "{}"), Execution)
    return Job(stage, arguments, settings, json.loads(options.settings), execution)


def _from_json(option: str, text: str, kind: type[Kind]) -> Kind:
    try:
        return kind.model_validate_json(text, extra="ignore")
    except ValidationError as error:
        raise UserError(f"--{option}: {error}") from None
