"""Tokens by the log ratio of two language models, tuned on forget and on retain texts.

Score: log p(token | what is before it) under the model tuned on the contamination section's forget
texts, less the same under the one tuned on its retain texts. Neither has seen the texts that it
reads, so nothing is cross-fitted.
"""

from typing import Any

from mamushi.selection.tokens import Scores, TokenPool

SETTINGS: dict[str, Any] = {}

UNIT = "tokens"
READS_RATIO = True
"""It reads what the stage ``token_ratio`` makes of two models, which it trains."""


def score_tokens(pool: TokenPool, settings: dict[str, Any], seed: int) -> Scores:
    """The ratios as they are, in nats."""
    assert pool.ratio is not None
    return [pool.ratio.get(name) for name in pool.texts.ids]
