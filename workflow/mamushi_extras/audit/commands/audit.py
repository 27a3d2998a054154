"""Read a sample of texts, and learn a list's precision and recall.

With LIST: draws the texts, and writes a page on which people answer yes, no or unsure, which opens
offline. With --merge: joins the files that the page saved. Of texts that two people answered, or
one twice under two names, it gives precision, recall and the share of the domain before and after,
with 95% intervals. mamushi rank --label takes the answers as labels.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mamushi.errors import UserError


def run(
    list: Path | None = None,
    /,
    *,
    merge: Sequence[Path] = (),
    size: int = 300,
    question: str = "Is this text of the domain that is to go?",
    seed: int = 0,
    out: Path = Path("audit"),
) -> tuple[int, Any]:
    """Raises ``UserError`` for a list away from its run, another audit in the folder, and answers
    of another audit.

    :param list: A list of a run.
    :param merge: Or answers that the page saved, a file a person.
    :param size: Texts to read, the default in about an hour.
    :param question: What the page asks.
    :param seed: Of the sample.
    :param out: Folder of the audit.
    """
    from mamushi_extras.audit.auditing import draw_audit, merge_answers

    if list is None and merge:
        return 0, merge_answers(out, merge)
    if list is None or merge:
        raise UserError("give a LIST or --merge")
    return 0, draw_audit(list, size, question, seed, out)
