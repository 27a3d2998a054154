"""What a stage is: a function whose signature names the files that it reads and writes.

A stage is a public function in a module of ``mamushi/stages``, or in ``stages.py`` of an extra,
whose parameters are keyword-only and end in ``settings`` and ``job``. An ``Input`` or ``Output`` is
a file, another ``Path`` an option of its command. What is heavy is imported inside the function,
since the Snakefile imports the modules. ``GPU`` in a module names its stages that compute on a
GPU; ``VERSION`` maps its stages to numbers, one of which is raised from 1 when a change that
``identity`` does not see moves a result.
"""

import argparse
import inspect
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from pydantic import ValidationError

from mamushi.config.sections import Execution
from mamushi.errors import UserError
from mamushi.io.digests import provenance
from mamushi.registry import find_files, import_file, plugin
from mamushi.running import identity

EXECUTION = "MAMUSHI_EXECUTION"
"""The variable in which the workflow hands over how to run: no setting, because a change of it must
run nothing again, and Snakemake does not look for changes there."""

Input = Annotated[Path, "input"]
"""A file on which the results depend."""
Output = Annotated[Path, "output"]
"""A file to write, or the folder of several."""


class Parameter(NamedTuple):
    """A file or another option of a stage. ``role`` is ``input``, ``output`` or ``option``;
    ``default`` is ``inspect.Parameter.empty`` where a command has to name it."""

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
    def is_on_gpu(self) -> bool:
        """Tell whether it computes on a GPU where there is one."""
        return self.function.__name__ in getattr(self.module, "GPU", ())

    @cached_property
    def settings(self) -> Any:
        """Return the class of its settings."""
        return get_type_hints(self.function)["settings"]

    @cached_property
    def parameters(self) -> list[Parameter]:
        """Return its files and options, in the order of the signature."""
        hints = get_type_hints(self.function, include_extras=True)
        parameters = []
        for name, signature in inspect.signature(self.function).parameters.items():
            if name not in ("settings", "job"):
                hint = hints[name]
                if type(None) in get_args(hint):
                    (hint,) = {*get_args(hint)} - {type(None)}
                if is_list := get_origin(hint) is list:
                    (hint,) = get_args(hint)
                kind, role = get_args(hint) or (hint, "option")
                parameters.append(Parameter(name, role, kind, is_list, signature.default))
        return parameters

    def settings_text(self, config: Mapping[str, Any], **wildcards: Any) -> str:
        """Return the settings of a job with these wildcards, and the identity of its code, as the
        one text that is compared and handed over."""
        settings, name = self.settings.of(config, **wildcards), self.function.__name__
        modules = [*getattr(settings, "rooms", ())]
        if settings.PLUGIN:
            kind, key = settings.PLUGIN
            modules.append(plugin(kind, getattr(settings, key)).module)
        version = getattr(self.module, "VERSION", {}).get(name, 1)
        code = {"code": identity.of_stage(self.module.__name__, name, *modules)}
        return json.dumps({**settings.model_dump(), **code, "version": version}, sort_keys=True)


@cache
def stages() -> Mapping[str, Stage]:
    """Return all stages by the names of their commands, which have dashes for underscores."""
    every: dict[str, Stage] = {}
    for path in find_files("mamushi/stages/[!_]*.py", "mamushi_*/*/stages.py"):
        module = import_file(path)
        for name, function in sorted(vars(module).items()):
            # By its type alone: modules that are imported when they are used stand there as well.
            is_own = type(function) is FunctionType and function.__module__ == module.__name__
            if is_own and name[0] != "_" and "job" in inspect.getfullargspec(function).kwonlyargs:
                command = name.replace("_", "-")
                every[command] = Stage(command, function, module)
    return every


@dataclass(frozen=True)
class Job:
    """One run of a stage, with its files, options and settings; ``recorded`` are these as they
    came."""

    stage: Stage
    arguments: Mapping[str, Any]
    settings: Any
    recorded: Mapping[str, Any]
    execution: Execution

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
        for name in (
            parameter.name for parameter in self.stage.parameters if parameter.role == role
        ):
            value = self.arguments[name]
            if isinstance(value, Path):
                files[name] = value
            else:
                files |= {f"{name}/{place}": path for place, path in enumerate(value or ())}
        return files


def add_arguments(parser: argparse.ArgumentParser, stage: Stage) -> None:
    """Add the options of a stage to the parser of its command."""
    for p in stage.parameters:
        words: dict[str, Any] = {"required": True} if p.is_required else {"default": p.default}
        if p.is_list or p.default is None:
            # A rule without such a file leaves nothing behind the option.
            words["nargs"] = "+" if p.is_required else "*" if p.is_list else "?"
        parser.add_argument(f"--{p.name.replace('_', '-')}", type=p.kind, help=p.role, **words)
    how = f"JSON: the section `execution` of the configuration (or ${EXECUTION})"
    parser.add_argument("--execution", default=os.environ.get(EXECUTION, "{}"), help=how)
    summary = " ".join((stage.settings.__doc__ or "").split())
    parser.add_argument("--settings", required=True, help=f"JSON. {summary}")


def job_of(stage: Stage, options: argparse.Namespace) -> Job:
    """Return the job of parsed options. Raises ``UserError`` for settings that are not the
    stage's."""
    try:
        settings = stage.settings.model_validate_json(options.settings, extra="ignore")
        execution = Execution.model_validate_json(options.execution, extra="ignore")
    except ValidationError as error:
        raise UserError(f"settings of {stage.name}: {error}") from None
    arguments = {p.name: getattr(options, p.name) for p in stage.parameters}
    return Job(stage, arguments, settings, json.loads(options.settings), execution)
