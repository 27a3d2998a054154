# What all rules share: the checked configuration, the words that a path may hold, and helpers with
# which rules say what they read and how they are run.
import json
from functools import cache, partial
from pathlib import Path

from snakemake.exceptions import IncompleteCheckpointException, WorkflowError
from snakemake.logging import logger

from mamushi.io import paths
from mamushi.io.files import read_json
from mamushi.config import arms, counts, grid, layers, questions
from mamushi.config.complete import complete
from mamushi.config.sources import files, is_gguf, unlabelled
from mamushi.data import rows
from mamushi.errors import UserError
from mamushi.registry import plugin, plugins
from mamushi.running import stage as stages
from mamushi.stages import _settings as settings
from mamushi.stages.models import model_files
from mamushi.stages.runtime import timed
from mamushi_runs import environment, hooks, inputs, internals, targets
from mamushi_runs.inputs import SHARD, answers_of
from mamushi_runs.resources import JobResources

internals.keep_garbage()
internals.compare_what_is_recorded()
internals.serialize_without_pandas()


def explained(function, *args):
    """Call it; a user's mistake becomes Snakemake's one-line error instead of a traceback."""
    try:
        return function(*args)
    except UserError as error:
        raise WorkflowError(str(error)) from None


# Snakemake lists the files of the command line first, and lays them over its own.
overriding = workflow.overwrite_configfiles
base_files = dict.fromkeys(reversed(workflow.configfiles[len(overriding) :]))
explained(layers.check, [*reversed(base_files), *overriding])
config.update(explained(complete, config))
explained(rows.check, config)
explained(arms.require_current)
hooks.read(workflow, config)

# The rule files in the order in which data flows.
STAGES = [
    *("data", "models", "endpoints", "embed", "select", "retrain", "evaluate"),
    *("unlearn", "questions", "evidence", "tables", "figures"),
]

# Configured names hold nothing that a path or a shell could read as something else.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
GRID = grid.comparison(config)
CELL = ("dataset", "model", "seed")
# The selectors whose scores are looked at: first the one that estimates the ratio, then the grid's.
# The page of the ranking has the grid's alone, and opens with the one to act on.
RATIO = config["removal"]["ratio"]
RANKED = settings.leading_first(config)
SCORED = list(dict.fromkeys([RATIO, *grid.of_texts(config, GRID)["selectors"]]))
TINY = [model for model in config["models"] if grid.is_tiny(config, model)]
READY = [model for model in config["models"] if model not in TINY]
GGUF = [model for model in READY if is_gguf(config["models"][model])]
VECTORS = [model for model in READY if "embeddings" in config["models"][model]]
CORPORA = [name for name in config["datasets"] if unlabelled(config["datasets"][name])]
LANGUAGE = [model for model in config["models"] if model not in VECTORS]


def only(names):
    """A wildcard constraint that matches these names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"


LABELLED = only(set(config["datasets"]) - {*CORPORA}) if CORPORA else NAME


wildcard_constraints:
    dataset=NAME,
    model=NAME,
    selector=NAME,
    study=NAME,
    unlearner=only(config["unlearners"]),
    list=NAME,
    seed=r"\d+",
    beta=r"0\.\d\d(?:\d{0,3}[1-9])?",
    arm=arms.kept(config),


# `execution.shards`: as many jobs share a table, each of which does the work of its rule on some of
# the texts, and that rule puts theirs together.
scattergather:
    texts=config["execution"]["shards"],


# Priority of the jobs that find what is wrong with data and models: they start before any training,
# also before that of a dataset or model which is ready.
LOOK_FIRST = 100

RESOURCES = explained(JobResources, config)
# What every shell command finds around it; see there for why it is no parameter of the rules.
NEEDS = {name: counts.needs(config, name) for name in config["datasets"]}
environment.give(
    PACKAGES,
    settings.as_json(config["execution"]),
    json.dumps(NEEDS),
    json.dumps(RESOURCES.several),
)


def command(name, **places):
    """The shell command of a stage: each of its files is the rule's input or output of that name,
    each other option a parameter; ``places`` says where that is not so."""
    roles = {role: f"{{{role}.NAME:q}}" for role in ("input", "output", "params")}
    words = stages.command(name, {**roles, **places})
    # `exec`: a shell around it would end at the first signal that SLURM sends to all processes of a
    # job, and the job with it, before a training loop has saved its state.
    return f"exec {words} --settings {{params.settings:q}} > {{log:q}} 2>&1"


def params(stage, *names, **given):
    """A rule's one parameter: the JSON of a stage's settings for the wildcards of these names.

    Made when a job asks for it, and once for all jobs that share those wildcards: 2,160 models are
    retrained with 30 settings.
    """
    types = [int if name == "seed" else str for name in names]

    @cache
    def text(*values):
        typed = {name: kind(value) for name, kind, value in zip(names, types, values)}
        return settings.as_json(settings.of(stage, config, **given, **typed))

    return internals.inspected(
        lambda wildcards: text(*[getattr(wildcards, name) for name in names])
    )


def table_reports(names, category):
    """The CSV files of result tables by their names, each with its place in the report."""
    folder = os.path.join(PACKAGES, "report")
    found = {}
    for name in names:
        # A figure of the same name has the caption of that name.
        own = f"{name}_table.rst"
        caption = own if os.path.exists(os.path.join(folder, own)) else f"{name}.rst"
        found[name] = report(
            paths.TABLE_CSV.replace("{table}", name),
            caption=f"../report/{caption}",
            category=category,
            labels={"table": name.replace("_", " ")},
        )
    return found


# Of `inputs` and `internals` for this configuration.
of_arm = partial(inputs.of_arm, config)
tensors_of = partial(inputs.tensors_of, config)
kept_tensors = inputs.kept_tensors(config)
shards = partial(inputs.shards, workflow, gather)


def only_asked(sections):
    """Constraints of the wildcards of models that all these sections name."""
    asked = questions.models(config, sections)
    return {name: only(values) for name, values in asked.items()}


# The rule of these datasets is a checkpoint this time. What depends on them is no reason to run
# before it, and compared with their content after it: Snakemake by itself runs all that depends on
# a job that runs.
REMADE = [
    dataset
    for dataset in config["datasets"]
    if explained(inputs.remade, config, dataset, NEEDS[dataset])
]


def made_of(pattern, dataset):
    """The path of a table of this dataset, which counts for nothing until it has been remade."""
    path = pattern.format(dataset=dataset)
    if dataset not in REMADE:
        return path
    try:
        checkpoints.examples.get(dataset=dataset)
    except IncompleteCheckpointException:
        return ancient(path)
    return path


def made(pattern):
    """The pattern's path for the dataset of the wildcards; see ``made_of`` and ``of_arm``."""
    if not REMADE:
        return pattern
    return internals.inspected(lambda wildcards: made_of(pattern, wildcards.dataset))
