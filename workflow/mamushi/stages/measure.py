"""What is asked of the models of a cell: perplexity of held-out texts, what they say, and what the
gold model makes of that."""

from typing import Any

from mamushi.config import grid
from mamushi.config.arms import UNLEARNED, Arm
from mamushi.config.kinds import Config, setting
from mamushi.config.sections import Evaluation, Prompts
from mamushi.io import paths
from mamushi.io.domains import EVALUATION
from mamushi.registry import additions
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._io import parquet, schemas
from mamushi.stages._models import Cell, OpenedArm, Trains, join_passes, open_arm

GPU = ("evaluate", "generate", "judge")


class Evaluate(OpenedArm):
    """How the model is opened and measured; ``trains`` is what unlearning trained of it, if it was
    unlearned, and ``rooms`` are modules of rooms that take part."""

    evaluation: Evaluation = setting("evaluation")
    trains: Trains | None = setting(
        lambda config, model, arm: (
            Trains.of(config, model=model) if Arm.parse(arm).unlearner else None
        ),
        default=None,
    )
    rooms: tuple[str, ...] = setting(
        lambda config: (
            [join.__module__ for join in additions("join_passes")]
            if config["evaluation"]["deep_tokens"]
            else []
        ),
        default=(),
    )


def evaluate(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    unlearned: Input | None = None,
    out: Output,
    nll: Output,
    settings: Evaluate,
    job: Job,
) -> None:
    """Measure a model of a cell on the held-out sets: base, endpoint, retrained or unlearned."""
    from mamushi.lm.perplexity import nll_table, perplexity_table, require_domains, text_nll
    from mamushi.lm.tokens import read_tokens

    length = settings.evaluation.max_length
    texts = read_tokens(tokens, examples, EVALUATION, length)
    require_domains(texts)
    model, accelerator = open_arm(model_card, trained, unlearned, settings.precision)
    reader = join_passes(model, accelerator, settings.trains, length, job)
    text_losses = text_nll(model, texts, job.execution.batch_tokens, accelerator, reader)
    table = perplexity_table(text_losses, texts.domains)
    parquet.write_table(nll, schemas.NLL, nll_table(text_losses, texts.ids), metadata=job.origin)
    parquet.write_table(out, schemas.PERPLEXITY, table, metadata=job.origin)


class Generate(OpenedArm):
    """How the model is opened, and the prompts."""

    probe: Prompts = setting("probe")


def generate(
    *,
    model_card: Input,
    trained: Input | None = None,
    unlearned: Input | None = None,
    out: Output,
    settings: Generate,
    job: Job,
) -> None:
    """Continue the prompts with a model, greedily."""
    from mamushi.lm.generate import continuations
    from mamushi.lm.loading import open_tokenizer

    tokenizer = open_tokenizer(model_card)
    model, accelerator = open_arm(model_card, trained, unlearned, settings.precision)
    probe = settings.probe
    table = continuations(model, tokenizer, probe.prompts, probe.new_tokens, accelerator)
    parquet.write_table(out, schemas.CONTINUATIONS, table, metadata=job.origin)


def judged_files(config: Config, cell: dict[str, Any]) -> list[str]:
    """Return what the models of a probed run said: its endpoints, then the unlearned ones."""
    probe = grid.axes(config, "probe")
    unlearned = grid.expand(probe, UNLEARNED) if cell in grid.cells(probe) else []
    names = ("base", "contaminated", "gold", *unlearned)
    return [paths.GENERATIONS.format(**cell, arm=arm) for arm in names]


class Judge(OpenedArm, Cell):
    """How the gold model is opened."""


def judge(
    *,
    generations: list[Input],
    model_card: Input,
    trained: Input,
    out: Output,
    settings: Judge,
    job: Job,
) -> None:
    """Let the gold model read what all models of a run said: the higher its log-likelihood of a
    text, the more that is like what a model says that never saw the forget domain."""
    from mamushi.evaluation.probes import answer_rows
    from mamushi.lm.generate import log_likelihoods
    from mamushi.lm.loading import open_tokenizer

    tokenizer = open_tokenizer(model_card)
    model, accelerator = open_arm(model_card, trained, None, settings.precision)
    rows: list[dict[str, Any]] = []
    for path in generations:
        said = parquet.read_table(path, schemas.CONTINUATIONS).to_pydict()
        tokens, batch = said["tokens"], job.execution.batch_tokens
        likely = log_likelihoods(model, said["prompt_tokens"], tokens, batch, accelerator)
        texts = [tokenizer.decode(ids, skip_special_tokens=True) for ids in tokens]
        arm = (paths.wildcards(paths.GENERATIONS, path.absolute()) or {})["arm"]
        answers = answer_rows(Arm.parse(arm), said, texts, likely.tolist())
        rows += [settings.cell | row for row in answers]
    rows.sort(key=lambda row: said["prompt"].index(row["prompt"]))
    parquet.write_table(out, schemas.GENERATIONS, rows, metadata=job.origin)
