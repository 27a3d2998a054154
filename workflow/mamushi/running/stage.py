"""What a stage is: a function whose signature names the files that it reads and writes.

A stage is a public function in a module of ``mamushi/stages``, or in ``stages.py`` of an extra,
whose parameters are keyword-only and end in ``settings`` and ``job``. An ``Input`` or ``Output`` is
a file, another ``Path`` an option of its command. What is heavy is imported inside the function,
since the Snakefile imports the modules. ``GPU`` in a module names its stages that compute on a
GPU; ``VERSION`` maps its stages to numbers, one of which is raised from 1 when a change that
``identity`` does not see moves a result.
"""

import inspect
import json
import os
from collections.abc import Callable, Mapping, Sequence
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
    """A file or another option of a stage. ``role`` is ``input``, ``output`` or ``option``; what
    ``is_required`` has no ``default``."""

    name: str
    role: str
    kind: type
    is_list: bool
    is_required: bool
    default: Any


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
        hints, parameters = get_type_hints(self.function, include_extras=True), []
        # The last two are the settings and the job.
        for name, parameter in [*inspect.signature(self.function).parameters.items()][:-2]:
            hint, default = hints[name], parameter.default
            if type(None) in get_args(hint):
                (hint,) = {*get_args(hint)} - {type(None)}
            if is_list := get_origin(hint) is list:
                (hint,) = get_args(hint)
            kind, role = get_args(hint) or (hint, "option")
            is_required = default is parameter.empty
            parameters.append(Parameter(name, role, kind, is_list, is_required, default))
        return parameters

    def settings_text(self, config: Mapping[str, Any], **wildcards: Any) -> str:
        """Return the settings of a job with these wildcards, and the identity of its code, as one
        text: the parameter ``settings`` of a rule, by which Snakemake sees what has changed."""
        settings, name = self.settings.of(config, **wildcards), self.function.__name__
        modules = [*getattr(settings, "rooms", ())]
        if settings.PLUGIN:
            kind, key = settings.PLUGIN
            modules.append(plugin(kind, getattr(settings, key)).code.__name__)
        version = getattr(self.module, "VERSION", {}).get(name, 1)
        code = {"code": identity.stage_digest(self.module.__name__, name, *modules)}
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
    files: Mapping[str, Any]
    settings: Any
    recorded: Mapping[str, Any]
    execution: Execution

    @cached_property
    def outputs(self) -> list[Path]:
        """Return what is to be written, the primary output first."""
        return [*self._files("output").values()]

    @cached_property
    def inputs(self) -> dict[str, Path]:
        """Return what the results depend on, by parameter; files of a list also by place."""
        return self._files("input")

    @cached_property
    def origin(self) -> Mapping[str, Any]:
        """Return what the results are made from: settings, digests of the inputs, versions. Raises
        ``UserError`` for a missing input."""
        return provenance(self.recorded, **self.inputs)

    def run(self) -> None:
        """Run the stage, from its inputs as they are now."""
        assert self.origin
        self.stage.function(**self.files, settings=self.settings, job=self)

    def _files(self, role: str) -> dict[str, Path]:
        files: dict[str, Path] = {}
        for name in (p.name for p in self.stage.parameters if p.role == role):
            value = self.files[name]
            if isinstance(value, Path):
                files[name] = value
            else:
                files |= {f"{name}/{place}": path for place, path in enumerate(value or ())}
        return files


def job_of(stage: Stage, /, settings: str = "", execution: str = "", **files: Any) -> Job:
    """Return the job of these files and options, a value or a list each, and of ``settings`` and
    ``execution`` as JSON, the latter else the workflow's. Raises ``UserError`` for arguments that
    do not fit, and for settings that are not the stage's."""
    every, wrong = dict[str, Any](), []
    for p in stage.parameters:
        value = files.pop(p.name, None)
        listed = value if isinstance(value, list) else [value]
        values = [p.kind(value) for value in listed if value is not None]
        if (p.is_required and not values) or (len(values) > 1 and not p.is_list):
            wrong.append(p.name)
        every[p.name] = (values if p.is_list else values[0]) if values else p.default
    if wrong := [*wrong, *files]:
        raise UserError(f"missing, several or unknown: {', '.join(wrong)}")
    how = execution or os.environ.get(EXECUTION, "{}")
    try:
        of_stage = stage.settings.model_validate_json(settings, extra="ignore")
        of_run = Execution.model_validate_json(how, extra="ignore")
    except ValidationError as error:
        raise UserError(f"settings of {stage.name}: {error}") from None
    return Job(stage, every, of_stage, json.loads(settings), of_run)


def read_words(words: Sequence[str]) -> dict[str, Any]:
    """Return the value or the list of each name in words ``--name value ...``, ``--name=value``."""
    files, values = dict[str, list[str]](), list[str]()
    for word in words:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            files[name.replace("-", "_")] = values = [value] if value else []
        else:
            values.append(word)
    return {name: values[0] if len(values) == 1 else values for name, values in files.items()}
