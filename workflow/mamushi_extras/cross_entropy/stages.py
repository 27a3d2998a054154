"""The cross-entropies of two models: one that has learned the domain, and its clean twin."""

from mamushi.config.kinds import setting
from mamushi.config.sections import Training
from mamushi.running.stage import Input, Job, Output
from mamushi.stages._models import Cell, checkpoint_of, open_arm

GPU = ("cross_entropy",)


class CrossEntropyOf(Cell):
    """How models are trained, each text in the same step by all, and on how many folds."""

    training: Training = setting(
        lambda config, model: config["models"][model]["training"] | {"steps": "aligned"}
    )
    folds: int = setting("cross_entropy.folds")


def cross_entropy(
    *,
    examples: Input,
    tokens: Input,
    model_card: Input,
    trained: Input | None = None,
    out: Output,
    settings: CrossEntropyOf,
    job: Job,
) -> None:
    """Measure of each token of the inference section its NLL under the clean twin, less that under
    the contaminated model, which is ``trained``; without that, cross-fitted. A killed run of the
    same origin goes on from its state, with the models that it had measured. Raises ``UserError``
    as ``minimize_nll``, ``stratified_folds`` and ``require_finite``."""
    import pyarrow as pa
    from accelerate import PartialState

    from mamushi.io.domains import RETAIN
    from mamushi.io.tables import write_table
    from mamushi.lm.perplexity import token_nll
    from mamushi_extras.cross_entropy.measuring import Trainings, require_finite
    from mamushi_extras.cross_entropy.schemas import TOKEN_CROSS_ENTROPY
    from mamushi_extras.tokens.masks import read_token_pool, split_by_text

    training = settings.training
    pool = read_token_pool(examples, tokens, training.max_length)
    how = training, job.execution, settings.seed, checkpoint_of(out, job)
    trainings = Trainings(model_card, *how)
    texts, others, fold = pool.texts, pool.contamination, pa.nulls(len(pool.texts), pa.int16())
    if trained:
        twin = trainings.nll("twin", others, others.domains == RETAIN, texts)
        model, accelerator = open_arm(model_card, trained, None, training.precision)
        contaminated = token_nll(model, texts, job.execution.batch_tokens, accelerator)
        values = twin - require_finite(contaminated, "contaminated")
    else:
        values, fold = trainings.cross_fit(pool, settings.folds)
    columns = {"id": texts.ids, "domain": texts.domains, "fold": fold}
    columns["cross_entropy"] = split_by_text(values, texts)
    write_table(out, TOKEN_CROSS_ENTROPY, columns, metadata={"provenance": job.origin})
    PartialState().wait_for_everyone()
    for path in out.parent.glob(f"{out.name}.*"):
        path.unlink(missing_ok=True)
