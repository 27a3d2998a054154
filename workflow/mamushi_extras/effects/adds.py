"""What this room adds to the core: the NLL without word frequencies, in the table of NLLs, and the
key ``evaluation.retain_margin``."""

from functools import partial
from typing import Any

from mamushi.config.kinds import Added, Positive, key
from mamushi.io.domains import EVALUATION, INFERENCE

MARGIN = key(0.02, "Nats a token over gold at which retain is preserved.")

config = Added({"evaluation.retain_margin": (Positive, MARGIN)})


def join_passes(*, accelerator: Any, lengths: tuple[int, int], job: Any, **opened: Any) -> Any:
    """Return what reads the logits of sampled held-out texts, where an evaluation asks for it and
    there are enough; else None."""
    if not (most := getattr(job.settings.evaluation, "deep_tokens", 0)):
        return None
    from mamushi.lm.tokens import read_tokens
    from mamushi_extras.effects.raking import LogitTables, plan_rakings

    read = partial(read_tokens, job.files["tokens"], job.files["examples"])
    texts = read(EVALUATION, lengths[1])
    rakings = plan_rakings(texts, read(INFERENCE, lengths[1]), most)
    return LogitTables(rakings, len(texts), accelerator) if rakings else None
