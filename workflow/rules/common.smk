# What all rules share: the checked configuration, the words that a path may hold, the targets.
import gc
import inspect
import itertools
import json
import math
import operator
import shutil
from functools import cache, partial
from pathlib import Path

from snakemake.exceptions import IncompleteCheckpointException, WorkflowError
from snakemake.io import IOFile
from snakemake.logging import logger

from mamushi.artifacts import paths
from mamushi.configuration import counts, grid, layers, settings
from mamushi.configuration.complete import complete
from mamushi.configuration.sources import files, is_gguf
from mamushi.data import head
from mamushi.errors import UserError
from mamushi.registry import plugin, plugins
from mamushi.running import stage as stages
from mamushi_runs import environment, hooks, targets
from mamushi_runs.forecast import memory as gpu_memory
from mamushi_runs.forecast import sizes, work
from mamushi_runs.forecast.volumes import Volumes

# A grid of thousands of jobs makes millions of objects that stay; collecting among them at every
# 700th new one would cost a seventh of a dry run.
gc.set_threshold(200_000, 50, 100)


def explained(function, *args):
    """Call it; a user's mistake becomes Snakemake's one-line error instead of a traceback."""
    try:
        return function(*args)
    except UserError as error:
        raise WorkflowError(str(error)) from None


# Snakemake lists the files of the command line first, and lays them over its own.
laid = workflow.overwrite_configfiles
beneath = dict.fromkeys(reversed(workflow.configfiles[len(laid) :]))
explained(layers.check, [*reversed(beneath), *laid])
config.update(explained(complete, config))
explained(head.check, config)
hooks.read(workflow, config)

# The rule files in the order in which data flows.
STAGES = [
    *("data", "models", "endpoints", "embed", "select", "retrain", "evaluate"),
    *("unlearn", "probe", "left_models", "left", "evidence", "tables", "figures"),
]

# Configured names hold nothing that a path or a shell could read as something else.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
GRID = grid.comparison(config)
TINY = [model for model in config["models"] if grid.is_tiny(config, model)]
CELL = ("dataset", "model", "seed")
# The selectors whose scores are looked at: first the one that estimates the ratio, with which the
# page of the ranking opens, then the grid's.
SCORED = list(dict.fromkeys([config["removal"]["ratio"], *GRID["selectors"]]))
READY = [model for model in config["models"] if model not in TINY]
GGUF = [model for model in READY if is_gguf(config["models"][model])]
# What gives texts a vector, and is no language model.
VECTORS = [model for model in READY if "embeddings" in config["models"][model]]
ENCODERS = [model for model in READY if "kind" in config["models"][model]]
LANGUAGE = [model for model in config["models"] if model not in VECTORS + ENCODERS]


wildcard_constraints:
    dataset=NAME,
    model=NAME,
    selector=NAME,
    study=NAME,
    unlearner=NAME,
    list=NAME,
    seed=r"\d+",
    beta=r"0\.\d\d",
    endpoint="base|contaminated|gold|gold_matched|beta0",


# Priority of the jobs that find what is wrong with data and models: they start before any training,
# also before that of a dataset or model which is ready.
LOOK_FIRST = 100

# What every shell command finds around it; see there for why it is no parameter of the rules.
NEEDS = {name: counts.needs(config, name) for name in config["datasets"]}
# GPUs of a job by model, where it has several.
SEVERAL = explained(gpu_memory.several, config)
environment.give(
    PACKAGES,
    settings.as_json(config["execution"]),
    json.dumps(NEEDS),
    json.dumps(SEVERAL),
)


def signed(function):
    """The function with its signature beside it.

    Snakemake asks for the signature at every call, thousands of times in a dry run, and Python
    works it out anew each time unless it finds it there.
    """
    function.__signature__ = inspect.signature(function)
    return function


def command(name, **places):
    """The shell command of a stage: each of its files is the rule's input or output of that name,
    each other option a parameter; ``places`` says where that is not so."""
    roles = {role: f"{{{role}.NAME:q}}" for role in ("input", "output", "params")}
    words = stages.command(name, {**roles, **places})
    # `exec`: a shell around it would end at the first signal that SLURM sends to all processes of a
    # job, and the job with it, before a training loop has saved its state.
    return f"exec {words} --settings {{params.settings:q}} > {{log:q}} 2>&1"


def only(names):
    """A wildcard constraint that matches these names and nothing else."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def params(function, *names):
    """A rule's one parameter: the JSON of a stage's settings for the wildcards of these names.

    Made when a job asks for it, and once for all jobs that share those wildcards: 2,160 models are
    retrained with 30 settings.
    """
    types = [int if name == "seed" else str for name in names]

    @cache
    def text(*values):
        typed = (kind(value) for kind, value in zip(types, values))
        return settings.as_json(function(config, *typed))

    return signed(lambda wildcards: text(*[getattr(wildcards, name) for name in names]))


def base_of(pattern):
    """The pattern's path for the model that retraining starts from.

    Mostly that is the model itself, and the pattern serves as it is: a function in its place
    would be called for each of thousands of jobs in every dry run.
    """
    if not any(config["models"][model].get("base") for model in READY):
        return pattern
    return lambda wildcards: pattern.format(
        dataset=getattr(wildcards, "dataset", ""),
        model=grid.base(config, wildcards.model),
    )


def of_endpoint(pattern):
    """The pattern's path for the model whose weights an endpoint has; see ``base_of``."""
    if not any(config["models"][model].get("base") for model in READY):
        return pattern
    return lambda wildcards: pattern.format(
        dataset=getattr(wildcards, "dataset", ""),
        model=grid.of_endpoint(config, wildcards.model, wildcards.endpoint),
    )


def of_start(pattern):
    """The pattern's path for the model from which unlearning starts; see ``base_of``."""
    if not any(config["models"][model].get("base") for model in READY):
        return pattern
    return lambda wildcards: pattern.format(
        dataset=wildcards.dataset,
        model=grid.of_endpoint(
            config, wildcards.model, grid.start(config, wildcards.model)
        ),
    )


def embedder(wildcards):
    """The tensors that make the base model the contaminated one; none where it is that already."""
    if config["models"][wildcards.model]["contaminated"]:
        return []
    return paths.TRAINED.format(endpoint="contaminated", **wildcards)


def taken(name):
    """What a selector with this action hands to retraining; nothing from others.

    Mostly there is none, and nothing serves as it is: see ``base_of``.
    """
    if all(grid.action(config, selector) != name for selector in config["selectors"]):
        return []
    return lambda wildcards: (
        grid.EDITS[name].format(**wildcards)
        if grid.action(config, wildcards.selector) == name
        else []
    )


def layers_read(wildcards):
    """The texts at other depths of the model, for a selector that reads them."""
    if not explained(settings.reads_layers, config, wildcards.selector):
        return []
    return paths.LAYERS.format(**wildcards)


def scored_before(wildcards):
    """The scores that a derived selector starts from."""
    return derived_from(paths.SCORES, wildcards)


def refitted_before(wildcards):
    """The refits that a derived selector starts from."""
    return derived_from(paths.REFITS, wildcards)


def derived_from(pattern, wildcards):
    name = explained(settings.derives, config, wildcards.selector)
    return pattern.format(**{**wildcards, "selector": name}) if name else []


def tensors_of(wildcards):
    """The trained tensors of an endpoint; none where it is a model's own weights."""
    if grid.as_it_is(config, wildcards.model, wildcards.endpoint):
        return []
    return paths.TRAINED.format(**wildcards)


def start_tensors(wildcards):
    """The trained tensors of the model from which unlearning starts, if any."""
    endpoint = grid.start(config, wildcards.model)
    if grid.as_it_is(config, wildcards.model, endpoint):
        return []
    return paths.TRAINED.format(endpoint=endpoint, **wildcards)


@signed
def kept_tensors(wildcards, output):
    """Where a job keeps its trained tensors, if it is to.

    Those that only ``keep_checkpoints`` asks for are no output of the rule: jobs that ran without
    it would lack one, and Snakemake looks for no change in a job with an output that it has no
    record of. What is derived from ``output`` does not count as a change either.
    """
    if "tensors" in output.keys():
        return output.tensors
    beside = os.path.join(os.path.dirname(output.card), "trained.safetensors")
    return beside if config["keep_checkpoints"] else []


def cores(large):
    """Threads: one for a tiny model, whose products are too small to share."""
    if not TINY:
        return large
    return signed(lambda wildcards: 1 if wildcards.model in TINY else large)


# GPUs of a job with a language model.
GPUS = signed(lambda wildcards: SEVERAL.get(wildcards.model, 1)) if SEVERAL else 1


# A configured model is sized up once, and not for each job.
SIZES = {name: sizes.of(config, name) for name in config["models"]}
BILLIONS = {name: size.billions for name, size in SIZES.items() if name not in TINY}


def counted(dataset, section="inference"):
    """Texts of a section; 0 until they are counted. Snakemake asks for a job's resources again when
    it starts, and then they are."""
    try:
        with open(paths.DATA_CARD.format(dataset=dataset), encoding="utf-8") as file:
            return sum(json.load(file)["counts"]["sections"][section].values())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return 0


# Millions of texts by dataset: of its card, its sizes, or as its files are large.
MILLIONS = {name: Volumes(config).all_texts(name) / 1e6 for name in config["datasets"]}


def of_texts(start, each):
    """Megabytes or minutes that grow with each attempt: ``start``, and ``each`` for every million
    texts of the dataset."""

    def asked(wildcards, attempt):
        return attempt * math.ceil(start + each * MILLIONS[wildcards.dataset])

    return signed(asked)


def memory(small, large, each=0, texts=0):
    """Megabytes that grow with each attempt: ``small`` for a tiny model, else ``large`` and
    ``each`` for every billion parameters; and ``texts`` for every million texts."""
    return scaled(small, large, each, texts=texts)


def minutes(small, large, each=0, texts=None, shared=()):
    """Minutes, in the same way; those of a function ``texts`` in their place where they are more.

    The GPUs of a job share what grows with the model, where ``shared`` names a rule or two by whose
    steps it is reckoned how long they wait for each other's part of it, twice that."""

    def cut(wildcards, count):
        waits = max(minutes_to_exchange(rule, wildcards, count) for rule in shared)
        return large + each * BILLIONS[wildcards.model] / count + 2 * waits

    return scaled(
        small,
        large,
        each,
        texts=texts,
        together=max if callable(texts) else operator.add,
        cut=cut if shared else None,
    )


COSTS = work.Costs(config, Volumes(config))


def minutes_to_exchange(rule, wildcards, count):
    """Minutes that a job waits in all its steps for other GPUs' parts of the model."""
    training = config["models"][wildcards.model]["training"]
    step = gpu_memory.exchange(SIZES[wildcards.model], training, count)
    return COSTS.of(rule, dict(wildcards)).steps * step / 60


def memory_if_cut(wildcards, count):
    """Megabytes of a job whose model several GPUs share, none of which opens all of it: libraries
    and data, of each further process 4 GB, and a state that is written, with a tenth to spare.
    """
    training = config["models"][wildcards.model]["training"]
    state = work.STATE * SIZES[wildcards.model].trained(training)
    return 16000 + 4000 * (count - 1) + 1.1 * state / 1e6


def scaled(small, large, each, full=None, texts=None, together=operator.add, cut=None):
    """``full`` is in the place of ``each`` for a model of which all is trained; ``texts`` is for
    every million texts of the dataset, or ``texts(n, wildcards)`` what n texts that are ranked
    take, ``together`` with all else; ``cut(wildcards, count)`` is in the place of ``large`` and
    ``each`` where count GPUs share the model."""

    def asked(wildcards, attempt):
        if callable(texts):
            further = int(texts(counted(wildcards.dataset), wildcards))
        else:
            further = texts * MILLIONS[wildcards.dataset] if texts else 0
        if wildcards.model in TINY:
            return attempt * math.ceil(together(small, further))
        if cut and (count := SEVERAL.get(wildcards.model, 1)) > 1:
            return attempt * math.ceil(together(cut(wildcards, count), further))
        whole = (
            full and config["models"][wildcards.model]["training"]["method"] == "full"
        )
        more = (full if whole else each) * BILLIONS[wildcards.model]
        return attempt * math.ceil(together(large + more, further))

    return signed(asked)


# `execution.shards`: as many jobs share a table, each of which does the work of its rule on some of
# the texts, and that rule puts theirs together.
scattergather:
    texts=config["execution"]["shards"],


SHARD = signed(lambda wildcards: getattr(wildcards, "scatteritem", []))


def shards(table, made_with):
    """The shards that the rule of a table puts together; none where it makes the table itself, or
    a shard.

    How many they are has no part in what it holds, and a change of that must run nothing again: a
    table that was made with the same settings keeps its shards. By Snakemake's record of it alone,
    in which every job sees what the main process saw.
    """
    pattern = paths.SHARD.replace("{table}", Path(table).stem)

    def found(wildcards):
        if SHARD(wildcards):
            return []
        record = workflow.persistence.metadata(IOFile(table.format(**wildcards)))
        if record is not None and repr(made_with(wildcards)) in record.params:
            return [path for path in record.input if "/shards/" in path]
        parts = gather.texts(pattern, **wildcards)
        return parts if len(parts) > 1 else []

    return signed(found)


def memory_of_texts(n, wildcards):
    """Megabytes of n texts: ids and tokens, and the block of vectors that is written."""
    depths = len(config["embedding"]["depths"])
    block = min(n, 131072) * SIZES[wildcards.model].hidden_size * 2 * (1 + depths)
    return (n * (400 + 4 * config["tokens"]["max_length"]) + block) / 1e6


def minutes_to_read(n, wildcards):
    """Minutes to read n texts, all as long as is kept, at 2e14 operations a second; by a tiny model
    at 1e10."""
    tiny = wildcards.model in TINY
    operations = (
        2 * SIZES[wildcards.model].parameters * config["embedding"]["max_length"]
    )
    share = int(getattr(wildcards, "scatteritem", "1").rpartition("-")[2])
    gpus = SEVERAL.get(wildcards.model, 1)
    return n / share * operations / (1e10 if tiny else 2e14 * gpus) / 60


def minutes_to_measure(n, wildcards):
    """The same for the perplexity of the held-out texts, which are not those that are ranked."""
    return minutes_to_read(counted(wildcards.dataset, "evaluation"), wildcards)


def memory_to_rank(n, wildcards):
    """Megabytes of n texts: ids, scores, and the two copies of its examples that an estimator of
    each fold has beside the others'. Networks make none, and read a matrix that is mapped.
    """
    selector = config["selectors"][wildcards.selector]
    most = min(n, selector.get("fit_sample") or n) * selector.get("folds", 0)
    copied = 0 if selector["kind"] == "mamushi" else 8 * most
    return (n * 1000 + copied * SIZES[wildcards.model].hidden_size) / 1e6


def minutes_to_rank(n, wildcards):
    """Minutes to rank n texts, as the plan reckons them: twice that, on the job's threads."""
    selector = work.selector(config, wildcards.selector)
    width = SIZES[wildcards.model].hidden_size
    threads = 1 if wildcards.model in TINY else 8
    return work.score_seconds(selector, n, n / 2, width) / threads / 30


def minutes_to_rank_again(n, wildcards):
    """Minutes of the refits: a pair of halves is as much work as a whole."""
    return sum(config["evidence"]["refits"].values()) * minutes_to_rank(n, wildcards)


# A job with a model has, in the memory of its node, the libraries and data (16 GB) and for every
# billion parameters 2 GB of bf16 weights, about 0.9 GB of fp32 tensors that are trained and, while a
# checkpoint is written, 2.6 GB of these with their moments: 5.5, and a tenth to spare. Where all is
# trained, these are 4 and 12: 18, and a tenth. A text is some sixty tokens of 4 bytes, twice while
# they are read, and an id.
MODEL_MEMORY = scaled(4000, 16000, 6000, full=20000, texts=1000, cut=memory_if_cut)
# At the paper's rate, on padded texts, 13 minutes for every billion: twice that.
TRAINING_MINUTES = minutes(60, 30, 26, shared=["contaminate", "beta0"])


def packed(rule, axis, values):
    """A rule's group, so that a cluster runs short jobs in packs.

    Jobs of a tiny model that differ in the wildcard ``axis`` alone, and have one of ``values``
    there, share a cluster job, in which they run one after the other, since each asks for the
    resource ``pack``, of which a profile gives a cluster job one. How many do is the size that
    a profile's ``group-components`` give the group ``pack``; without it there are no packs. Which
    they are depends on nothing else: Snakemake deals jobs out anew after each checkpoint, and a job
    that runs in one pack must not turn up in another.
    """
    if not TINY:
        return None
    places = {str(value): place for place, value in enumerate(values)}

    def pack(wildcards):
        size = workflow.group_settings.group_components.get("pack", 1)
        place = places.get(getattr(wildcards, axis))
        if size < 2 or place is None or wildcards.model not in TINY:
            return None
        # As many packs as are needed, and all of about the same size.
        number = place * -(-len(places) // size) // len(places)
        others = [value for name, value in wildcards.items() if name != axis]
        # No configured name holds a plus sign, so that no two packs have one name.
        name = "+".join([rule, *others, str(number)])
        # As Snakemake itself does for a group whose name has wildcards.
        workflow.parent_groupids[name] = "pack"
        return name

    return pack


def retrained_betas():
    """Every budget at which the configuration retrains, the grid's first."""
    budgets = [*grid.budgets(config), *sorted(config["unlearning"]["budgets"])]
    return dict.fromkeys(map(paths.beta, budgets))


def remade(dataset):
    """Whether a dataset's tables are there and are about to be made again, but only because of
    other raw files or other code: then they may well be the same.

    Where they stay, what the configuration takes of their texts is held against their counts.
    """
    try:
        with open(paths.DATA_CARD.format(dataset=dataset), encoding="utf-8") as file:
            card = json.load(file)
            before = card["settings"]
    except (OSError, ValueError, LookupError, TypeError):
        return False
    now = json.loads(settings.as_json(settings.examples(config, dataset)))
    changed = {key for key in {*before, *now} if before.get(key) != now.get(key)}
    if not changed and "counts" in card:
        there = card["counts"]["sections"].get("inference", {})
        explained(counts.check, dataset, NEEDS[dataset], there)
    return bool(changed) and changed <= {"inputs", "code"}


REMADE = [dataset for dataset in config["datasets"] if remade(dataset)]
"""Their rule is a checkpoint this time. What depends on them is no reason to run before it, and
compared with their content after it: Snakemake by itself runs all that depends on a job that runs."""


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
    """The pattern's path for the dataset of the wildcards; see ``made_of`` and ``base_of``."""
    if not REMADE:
        return pattern
    return signed(lambda wildcards: made_of(pattern, wildcards.dataset))


# What the figures show: see figures.smk.
SHOWN = {
    "grid": lambda config: GRID,
    "evidence": lambda config: GRID,
    "unlearning": settings.swept,
    "probe": settings.probed,
    "truth": lambda config: GRID,
    "left": settings.asked_left,
}
OF_CELL = {
    "scores": paths.SCORES.replace("{selector}", config["removal"]["ratio"]),
    "geometry": paths.GEOMETRY,
}


def drawn_from(of_cell):
    """The folder in which a figure finds what it shows."""
    return signed(
        lambda wildcards, input: "results" if of_cell else os.path.dirname(input[0])
    )


def drawn(config, *cell, name):
    """The settings of a figure, of one cell or of all that its tables hold."""
    if cell:
        return settings.figure_of_cell(config, name, *cell)
    return settings.figure(
        config, SHOWN[plugin("figure", name).literals["OF"]](config), name
    )


def examples():
    return expand(paths.EXAMPLES, dataset=GRID["datasets"])


def removals():
    return [
        *(*grid.removals(GRID), *grid.manifests(config, GRID)),
        *grid.edits(config, GRID),
    ]


@cache
def measurable():
    """Whether the grid can be retrained and measured; says what hinders it."""
    pairs = itertools.product(GRID["datasets"], GRID["models"])
    reasons = [grid.unmeasurable(config, *pair) for pair in pairs]
    hindered = [reason for reason in dict.fromkeys(reasons) if reason is not None]
    for reason in hindered:
        logger.warning(f"Nothing is retrained or measured. {reason}")
    return not hindered


def language_models():
    """Nothing to wait for: says before anything runs which model of the grid is none."""
    explained(grid.require_language_models, config, GRID)
    return []


def tables():
    steps = ["steps"] if grid.matched(config, GRID) else []
    truth = ["truth"] if grid.knows_truth(config, GRID) else []
    return (
        expand(paths.TABLE, table=(*settings.TABLES, "subgroups", *steps, *truth))
        if measurable()
        else []
    )


def figures():
    truth = settings.figures("truth") if grid.knows_truth(config, GRID) else []
    return (
        expand(paths.FIGURE, figure=[*settings.figures("grid"), *truth])
        if measurable()
        else []
    )


def studies():
    return expand(paths.STUDY_FIGURE, study=config["studies"])


def unlearning():
    tables = settings.UNLEARNING_TABLES + settings.PROBE_TABLES
    return [
        # Asked for by themselves: a table that reads what a checkpoint has chosen is not looked at
        # before the checkpoint is, and so would not notice that a sweep is missing.
        *(paths.SWEEP.format(**pair) for pair in grid.swept(config)),
        *expand(paths.TABLE, table=tables),
        *expand(
            paths.FIGURE,
            figure=settings.figures("unlearning") + settings.figures("probe"),
        ),
    ]


def evidence():
    tables = (*settings.EVIDENCE_TABLES, "qualitative_ranking")
    return [
        *expand(paths.TABLE, table=tables),
        *expand(paths.FIGURE, figure=settings.figures("evidence")),
        *(
            pattern.format(figure=figure, **run)
            for run in grid.shown(config)
            for figure in settings.figures("cell")
            for pattern in [paths.CELL_FIGURE]
        ),
        *(
            page.format(**run)
            for run in grid.shown(config)
            for page in (paths.RANKING, paths.RANKING_TABLE, paths.TRIAGE_CSV)
        ),
    ]


def measurements(study=None):
    axes = grid.comparison(config, study)
    explained(grid.require_measurable, config, axes)
    return grid.measurements(axes)


def first_sweep(pair):
    """A sweep at the configured budgets, with the ends that all selectors share."""
    return [
        *grid.ends(config, pair.dataset, pair.model, [pair.unlearner]),
        *grid.curve(config, {**pair}, config["unlearning"]["budgets"]),
    ]


def refined_sweeps():
    """All sweeps at the budgets that their checkpoints chose."""
    found = []
    for pair in grid.swept(config):
        with checkpoints.refine.get(**pair).output[0].open() as handle:
            found += grid.curve(config, pair, json.load(handle)["budgets"])
    return found


def retrained_curves():
    """The curves of retraining, which take part with the configured budgets."""
    axes = config["unlearning"]
    explained(grid.require_measurable, config, axes)
    return [
        path
        for pair in itertools.product(axes["datasets"], axes["models"])
        for path in [
            *grid.retrained(config, *pair),
            *grid.ends(config, *pair, axes["unlearners"]),
        ]
    ]


def probe_results():
    explained(grid.require_measurable, config, config["probe"])
    return grid.probes(config)


def left_models():
    explained(grid.require_measurable, config, grid.looked_at(config))
    return expand(paths.TABLE, table=left_model_tables())


def left_model_tables():
    tasks = ["utility_tasks"] if config["utility"]["tasks"] else []
    return [*settings.LEFT_MODEL_TABLES, *tasks]


def left_results():
    explained(grid.require_measurable, config, config["left"])
    return grid.left(config)


def left():
    return [
        *expand(paths.TABLE, table=settings.LEFT_TABLES),
        *expand(paths.FIGURE, figure=settings.figures("left")),
    ]


def unlearned_lists():
    explained(grid.require_lists, config)
    return grid.listed(config)


def require_paths():
    """Before the first job: every dataset and model that a job is about to read has a path."""
    jobs = list(workflow.dag.needrun_jobs())
    reading = ("model_card", "import_embeddings", "encode")
    explained(
        grid.require_paths,
        config,
        # Another workflow that imports the rules may put words before their names.
        sorted({j.wildcards.dataset for j in jobs if j.rule.name.endswith("examples")}),
        sorted({j.wildcards.model for j in jobs if j.rule.name.endswith(reading)}),
    )


def require_tasks():
    """Before the first job: the harness knows the tasks, where a job is about to run them."""
    if any(job.rule.name.endswith("tasks") for job in workflow.dag.needrun_jobs()):
        from mamushi.lm import harness

        explained(harness.require, config["utility"]["tasks"])


def delete_cache():
    """After the last job: what only saved time. A run that failed leaves it for the next one."""
    shutil.rmtree(paths.CACHE, ignore_errors=True)
    shutil.rmtree(paths.CLAIMS, ignore_errors=True)


def begin():
    """Before the first job of a run."""
    require_paths()
    require_tasks()
    # Each look of the scheduler for jobs to start sets a timer for another look a second later, so
    # that with every job that ends there is one more each second, and each asks for the sizes of
    # all inputs of all jobs that wait: after a few hundred jobs that takes a core for itself. The
    # number of jobs is limited by `jobs` and `cores`, and what of it goes by second helps nobody.
    workflow.scheduler.job_rate_limiter = None
    explained(hooks.begin, workflow, config)


def end(succeeded):
    """After the last job of a run."""
    if succeeded:
        delete_cache()
    hooks.end(workflow, config, succeeded=succeeded)


hooks.offer(begin, end)


onstart:
    begin()


onsuccess:
    end(succeeded=True)


onerror:
    end(succeeded=False)
