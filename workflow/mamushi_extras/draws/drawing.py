"""Draw the texts of a seed.

With one split, what is measured is about its texts. Where each seed draws its own, the spread over
seeds holds that of the draw, and an interval holds for another one.
"""

from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from mamushi.data.raw import Raw
from mamushi.data.splitting import split_sections, within_limits
from mamushi.errors import UserError
from mamushi.io.domains import EVALUATION, FORGET


def draw_examples(
    examples: pa.Table, most: Mapping[str, int | None], split_seed: int, seed: int
) -> pa.Table:
    """Return the examples that a seed draws, in their order: the training sections, split anew from
    the texts of both by the shares that they have, and the evaluation section, the same for all
    seeds; ``most`` texts of each domain in one. Raises ``UserError`` for a section that is left
    without a domain."""
    names = ("id", "domain", "section", "group")
    ids, domain, before, group = (examples[name].to_numpy() for name in names)
    held_out, by_seed = before == EVALUATION, (split_seed + 1 << 32) + seed
    ready = [EVALUATION if is_there else None for is_there in held_out]
    raw = Raw(ids, ids, domain == FORGET, ready, [""] * len(ids), ids, group=group)
    pooled = Counter(before[~held_out])
    shares = {name: n / pooled.total() for name, n in pooled.items()}
    section = split_sections(raw, shares, by_seed)
    within = within_limits(raw, section, most, by_seed)
    within[held_out] = within_limits(raw, section, most, split_seed)[held_out]
    there = {*zip(section[within], domain[within], strict=True)}
    for name, of in sorted({*zip(before, domain, strict=True)} - there):
        raise UserError(f"seed {seed} draws no {of} text for {name}", do="check the groups")
    column = pa.array(section, pa.string())
    drawn = examples.set_column(examples.column_names.index("section"), "section", column)
    return drawn.filter(pa.array(within))
