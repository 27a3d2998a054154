"""What is left in models after a deletion, beside gold: single forget texts, abilities, and what a
little training brings back."""

import os
import re
from pathlib import Path
from typing import Any

from mamushi.config import arms, grid
from mamushi.config.kinds import Config, refuse, setting
from mamushi.config.sections import Shortened
from mamushi.errors import UserError, located
from mamushi.io import paths
from mamushi.io.digests import content_digests
from mamushi.io.domains import EVALUATION, FORGET, INFERENCE
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet
from mamushi.stages._models import OpenedArm, Trains, join_passes, open_arm
from mamushi.stages.publish import Needs, Published
from mamushi_extras.left.adds import Relearning

TEXTS_AT_ONCE = 8  # Fixed, since likelihoods of padded texts depend on it by their last digits.
GPU = ("membership", "task_scores", "relearn")


class Membership(OpenedArm):
    """How the model is opened, how many texts it reads, and where they are cut."""

    texts: int = setting("left.texts")
    max_length: int = setting("evaluation.max_length")


def membership(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    unlearned: Input | None = None,
    out: Output,
    settings: Membership,
    job: Job,
) -> None:
    """Read single forget texts, from which membership inference starts: those that were there to be
    ranked, and those held out, the same for every model of a dataset. Raises ``UserError`` if a
    likelihood is not finite."""
    import numpy as np

    from mamushi.lm.perplexity import text_nll
    from mamushi.lm.tokens import concat, read_tokens, subset
    from mamushi_extras.left.relearning import choose_texts
    from mamushi_extras.left.schemas import LIKELIHOODS

    drawn, sections = [], []
    for section in (INFERENCE, EVALUATION):
        candidates = read_tokens(tokens, examples, section, settings.max_length, domains=[FORGET])
        drawn.append(subset(candidates, choose_texts(candidates, settings.texts, 0)))
        sections += [section] * len(drawn[-1])
    texts = concat(drawn)
    model, accelerator = open_arm(model_card, trained, unlearned, settings.precision)
    of_texts = text_nll(model, texts, job.execution.batch_tokens, accelerator)
    if not np.isfinite(of_texts.nll).all():
        raise UserError("the likelihood of a text is not finite: the model diverged")
    columns = {"id": texts.ids, "section": sections, "tokens": of_texts.tokens, "nll": of_texts.nll}
    parquet.write_table(out, LIKELIHOODS, columns, metadata=job.origin)


def arms_asked(config: Config) -> dict[str, list[str]]:
    """Return by model the arms that were trained on the ranked texts, or whose start was: a model
    that is ``contaminated`` before it comes has seen all there is."""
    axes, asked = grid.axes(config, "left"), {}
    for model in axes["models"]:
        asked[model] = ["base", "beta0"]
        if is_ready := config["models"][model].get("contaminated"):
            asked[model].append("contaminated")
        asked[model] += grid.expand(axes, arms.RETRAINED)
        if is_ready or arms.starting_endpoint(config, model) == "beta0":
            asked[model] += grid.expand(axes, arms.UNLEARNED)
    return asked


def model_files(axes: Config, pattern: str) -> list[str]:
    """Return what ``pattern`` has of every model of the axes; the base model, which is the same for
    every seed, has that of the first."""
    base = grid.expand({**axes, "seeds": axes["seeds"][:1]}, pattern, ["base"])
    names = ["contaminated", "beta0", "gold", arms.RETRAINED, arms.UNLEARNED]
    return base + grid.expand(axes, pattern, names)


def left(config: Config) -> Needs:
    """Return the files with scores of single forget texts under each model and the removal lists,
    and the settings of the tables made of them."""
    axes = grid.axes(config, "left")
    drawn = [name for name in axes["datasets"] if config["datasets"][name].get("draws")]
    one_draw = "membership asks models of all seeds about the same texts"
    refuse(
        grid.hindrances(config, axes)
        + [f"datasets.{name}.draws: {one_draw}; leave it out" for name in drawn]
    )
    files = model_files(axes, paths.MEMBERSHIP) + grid.expand(axes, paths.REMOVAL)
    return files, {"grid": axes, "arms": arms_asked(config)}


def task_digests(config: Config) -> dict[str, str]:
    """Return the digests of the files among the names of tasks, and of those that they name: data,
    or what they include. Their paths count from the current folder, or from that of the task."""
    files: list[str] = []
    for path in filter(os.path.isfile, config["tasks"]["names"]):
        words = re.findall(r"[^\s'\",\[\]{}]+", Path(path).read_text(encoding="utf-8"))
        places = [Path(folder, word) for word in words for folder in ("", Path(path).parent)]
        files += [path, *map(str, filter(Path.is_file, places))]
    return content_digests(dict.fromkeys(files))


class TaskScores(OpenedArm):
    """How the model is opened, and the tasks, with the digests of their files."""

    names: list[str] = setting("tasks.names")
    examples: int | None = setting("tasks.examples")
    inputs: dict[str, str] = setting(task_digests)


def task_scores(
    *,
    model_card: Input,
    trained: Input | None = None,
    unlearned: Input | None = None,
    out: Output,
    settings: TaskScores,
    job: Job,
) -> None:
    """Ask a model tasks of lm-evaluation-harness, as it is, at its defaults: numbers are those of
    its own command on the exported model, with probabilities in fp32. Raises what the harness does
    for an unknown task, and `datasets` where a task's data cannot be had."""
    from importlib.metadata import version

    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    from mamushi.lm.loading import open_tokenizer
    from mamushi_extras.left.schemas import TASK_SCORES

    model, accelerator = open_arm(model_card, trained, unlearned, settings.precision)
    if accelerator.num_processes > 1:
        raise UserError("lm-evaluation-harness reads no model that is cut over several GPUs")
    reader = HFLM(
        pretrained=model,
        tokenizer=open_tokenizer(model_card),
        mixed_precision_dtype="bfloat16" if settings.precision == "bf16" else None,
        softmax_dtype="float32",
        batch_size=TEXTS_AT_ONCE,
    )
    # Its own tasks are ten thousand files, which it reads all.
    manager = TaskManager(include_defaults=not all(map(os.path.isfile, settings.names)))
    options = {"limit": settings.examples, "task_manager": manager, "log_samples": False}
    with located("tasks.names"):
        answers = simple_evaluate(reader, tasks=settings.names, **options)
    rows, versions = list[dict[str, Any]](), answers["versions"]
    for task, metrics in answers["results"].items():
        about = {"task": task, "examples": metrics.get("sample_len")}
        about["version"] = str(versions[task]) if versions.get(task) is not None else None
        # Metrics are called `acc,none` and `acc_stderr,none`.
        for name, value in metrics.items():
            metric, _, answer_filter = name.partition(",")
            if answer_filter and not metric.endswith("_stderr") and not isinstance(value, str):
                error = metrics.get(f"{metric}_stderr,{answer_filter}")
                known = None if isinstance(error, str) or error is None else float(error)
                row = {"metric": metric, "filter": answer_filter, "value": value, "se": known}
                rows.append(about | row)
    origin = {**job.origin, "lm_eval": version("lm_eval")}
    parquet.write_table(out, TASK_SCORES, rows, metadata=origin)


def tasks(config: Config) -> Needs:
    """Return what all models reach in tasks. Raises ``UserError`` where no task is named."""
    refuse([] if config["tasks"]["names"] else ["tasks.names: names no task"])
    refuse(grid.hindrances(config, config["tasks"]))
    files = model_files(grid.axes(config, "tasks"), paths.TASK_ANSWERS)
    return files, {"files": files}


class Relearn(OpenedArm):
    """How the model is opened, how it is fine-tuned on a few texts, and what it is measured on."""

    seed: int
    trains: Trains = setting(lambda config, model: Trains.of(config, model=model))
    evaluation: Shortened = setting("evaluation")
    relearning: Relearning = setting("probe.relearning")


def relearn(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    unlearned: Input | None = None,
    out: Output,
    texts: Output,
    settings: Relearn,
    job: Job,
) -> None:
    """Fine-tune a model on a few forget examples, and measure how fast it learns the domain."""
    from mamushi.lm.perplexity import require_domains
    from mamushi.lm.tokens import read_tokens, subset
    from mamushi_extras.left.relearning import choose_texts, relearn
    from mamushi_extras.left.schemas import RELEARNED_TEXTS, RELEARNING_CURVE

    length, trains, seed = settings.evaluation.max_length, settings.trains, settings.seed
    held_out = read_tokens(tokens, examples, EVALUATION, length)
    require_domains(held_out)
    forget = read_tokens(tokens, examples, INFERENCE, trains.max_length, domains=[FORGET])
    few = subset(forget, choose_texts(forget, settings.relearning.examples, seed))
    how = (settings.precision, trains, seed)
    model, accelerator = open_arm(model_card, trained, unlearned, *how)
    if unlearned:
        join_passes(model, accelerator, trains, length, job)
    curve, of_texts = relearn(
        *(model, few, held_out, settings.relearning.model_dump()),
        seed=seed,
        accelerator=accelerator,
        batch_tokens=job.execution.batch_tokens,
    )
    parquet.write_table(texts, RELEARNED_TEXTS, of_texts, metadata=job.origin)
    parquet.write_table(out, RELEARNING_CURVE, curve, metadata=job.origin)


def relapse(config: Config) -> Needs:
    """Return the files that show how fast models relearn, and the settings of the tables made of
    them. Without relearning in the configuration there are no files."""
    refuse(grid.hindrances(config, config["probe"]))
    probe, starts = grid.axes(config, "probe"), grid.starting_endpoints(config, "probe")
    if not starts or config["probe"]["relearning"] is None:
        return [], {"grid": {**probe, "models": []}, "starts": {}}
    files = grid.expand(probe, paths.EXAMPLES) + grid.expand(probe, paths.NLL, ["gold"])
    for model, start in starts.items():
        axes = {**probe, "models": [model]}
        files += grid.expand(axes, paths.PERPLEXITY, [start])
        for pattern in (paths.RELEARNING, paths.RELEARNED):
            files += grid.expand(axes, pattern, [start, "gold", arms.RETRAINED, arms.UNLEARNED])
    return files, {"grid": probe, "starts": starts}


ROOM = "mamushi_extras.left"
TABLES = {
    "left": Published("What is left", ("membership",), f"{ROOM}.attacks", left),
    "tasks": Published("What is left", ("tasks",), f"{ROOM}.tasks", tasks),
    "relapse": Published("Unlearning", ("relapse",), f"{ROOM}.relapse", relapse),
}
