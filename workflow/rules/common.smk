# What all rules share: the checked configuration, the words that a path may hold, and helpers with
# which rules say what they read.
import atexit
import gc
import re
from functools import cache, partial

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

from mamushi.config import arms, grid, selectors, sources
from mamushi.config.complete import complete
from mamushi.config.kinds import refuse
from mamushi.errors import UserError
from mamushi.io import paths
from mamushi.io.files import write_json
from mamushi.registry import plugins
from mamushi.running.stage import stages
from mamushi.stages.analyses import described_selectors
from mamushi.stages.measure import judged_files
from mamushi.stages.models import model_files
from mamushi.stages.publish import all_tables
from mamushi_cluster import hooks, record
from mamushi_cluster.resources import JobResources

# A grid of thousands of jobs makes millions of objects that live to the end. To look for garbage among
# them costs a dry run 15% at every 700th new one, and 10% once more as the interpreter ends.
gc.set_threshold(200_000, 50, 100)
atexit.register(gc.freeze)


def explained(function, *args):
    """Call a function; a user's mistake becomes Snakemake's one-line error instead of a traceback."""
    try:
        return function(*args)
    except UserError as error:
        raise WorkflowError(str(error)) from None


config.update(explained(complete, config))
if workflow.is_main_process:
    explained(record.require_forcerun, config, sys.argv)
if file := os.environ.get(hooks.CONFIG_TO):
    write_json(file, config)

# Configured names hold nothing that a path or a shell could read as something else.
NAME = r"[A-Za-z0-9][A-Za-z0-9._-]*"
GRID = config["grid"]
CELL = ("dataset", "model", "seed")
RATIO = config["removal"]["ratio"]
RANKED = selectors.leading_first(config)
MODELS, DATASETS = config["models"], config["datasets"]
TINY = [name for name in MODELS if "family" in MODELS[name]]


def only(names):
    """A wildcard constraint that matches these names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"


# Models of a cell.
ANY_ARM = re.sub(r"\?P<\w+>", "?:", arms.PATTERN.pattern)


wildcard_constraints:
    dataset=NAME,
    model=NAME,
    selector=NAME,
    study=NAME,
    unlearner=only(config["unlearners"]),
    list=NAME,
    seed=r"\d+",
    beta=arms.BETA,
    arm=ANY_ARM,


# Priority of the jobs that find what is wrong with data and models: they start before any training,
# also before that of a dataset or model which is ready.
LOOK_FIRST = 100

RESOURCES = explained(
    JobResources, config, workflow.resource_settings.overwrite_resources
)
on_gpu = RESOURCES.on_gpu

# What every shell command finds around it; see there why no parameter of the rules has them.
hooks.share(
    PACKAGES,
    MAMUSHI_EXECUTION=config["execution"],
    # Of models whose jobs have several.
    MAMUSHI_GPUS=RESOURCES.several,
)


def settings(stage, *names, **fixed):
    """A rule's one parameter: the JSON of a stage's settings for the wildcards of these names, made
    once for all jobs that share them: 2,160 models are retrained with 30 settings."""

    @cache
    def text(*values):
        wildcards = {k: int(v) if k == "seed" else v for k, v in zip(names, values)}
        return stages()[stage].settings_text(config, **fixed, **wildcards)

    return lambda wildcards: text(*[getattr(wildcards, name) for name in names])


def trained_files(arm, is_kept=config["keep_checkpoints"]):
    """Outputs of a job that trains `arm`. Where its tensors are not kept, they are deleted when all
    that reads them is there, and the job measures the model: see `evaluation_of`."""
    kinds = {"tensors": paths.TRAINED, "log_table": paths.TRAIN_LOG, "card": paths.CARD}
    kinds |= {"perplexity": paths.PERPLEXITY, "nll": paths.NLL}
    files = {kind: path.replace("{arm}", arm) for kind, path in kinds.items()}
    if is_kept:
        return {**files, "perplexity": [], "nll": []}
    return {**files, "tensors": temp(files["tensors"])}


def evaluation_of(arm):
    """How a job that trains `arm` is to measure it; nothing where that is a job of its own, as then a
    change of it trains nothing."""
    return [] if config["keep_checkpoints"] else settings("evaluate", "model", arm=arm)


# The files of an arm by their kinds, in any cell of a model.
files_of_arm = cache(partial(arms.arm_files, config))


def arm_files(*kinds, arm="{arm}"):
    """Inputs by their names: the files of these kinds that `arm`, in which wildcards may stand, is made
    and opened from; `examples` are its texts. One function, as a job calls each."""

    def find(wildcards):
        files = dict(files_of_arm(wildcards.model, arm.format(**wildcards)))
        files["examples"] = texts_of_seed(wildcards)
        return {kind: files.get(kind, []) for kind in kinds}

    return unpack(find)


def texts_of_seed(wildcards):
    """The texts of a dataset, or those that the seed draws where each seed draws its own."""
    return paths.DRAWN if DATASETS[wildcards.dataset].get("draws") else paths.EXAMPLES


def refits_of(*names):
    """The refits of these selectors, or of that of the wildcards; none of what is not refitted."""

    def find(wildcards):
        every = names or [wildcards.selector]
        refitted = [name for name in every if selectors.is_refitted(config, name)]
        return expand(paths.REFITS, selector=refitted, allow_missing=True)

    return find


def base_of(wildcards, pattern):
    """What a derived selector starts from."""
    base = selectors.parent_of(config, wildcards.selector)
    return pattern.replace("{selector}", base) if base else []


def figures_of(kind):
    """The figures that declare to be of the grid, evidence, unlearning or one cell."""
    return [name for name, figure in plugins("figure").items() if figure.of == kind]


def tables_of(category):
    """The result tables of a part of the report."""
    every = [made.names for made in all_tables().values() if made.category == category]
    return expand(paths.TABLE, table=[name for names in every for name in names])


def tables_and_figures(wildcards):
    """What is measured of the grid, where all of it can be; else says what hinders it. Refused is a
    model that is none."""
    explained(refuse, [grid.no_language_model(config, name) for name in GRID["models"]])
    if hindrances := grid.hindrances(config, GRID):
        logger.warning("\n".join(["Nothing is retrained or measured.", *hindrances]))
        return []
    return tables_of("Tables") + expand(paths.FIGURE, figure=figures_of("grid"))
