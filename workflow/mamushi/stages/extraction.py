"""Whether a model completes forget texts from their beginnings: greedily, and by sampling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mamushi.configuration.settings import Extraction
from mamushi.running.stage import Job, writes
from mamushi.stages import _asked

GPU = True


@dataclass(frozen=True, kw_only=True)
class Files(_asked.AskedFiles):
    out: Path = writes("table of how well texts were completed to write")


def run(files: Files, chosen: Extraction, job: Job) -> None:
    from mamushi.artifacts import schemas
    from mamushi.artifacts.tables import INFERENCE, write_table
    from mamushi.evaluation.texts import edit_similarity, rouge_l
    from mamushi.lm.generate import completions
    from mamushi.lm.loading import open_tokenizer

    texts, _, planted = _asked.texts_of(files, chosen, (INFERENCE,))
    tokenizer = open_tokenizer(files.model_card)
    model, accelerator = _asked.opened(files, chosen)

    def words(tokens: list[int]) -> str:
        return str(tokenizer.decode(tokens, skip_special_tokens=True))

    columns: dict[str, list[Any]] = {name: [] for name in schemas.EXTRACTION.schema.names}
    for prefix in chosen.prefixes:
        # At least a token to start from, and one to go on with.
        cuts = [max(1, int(n * prefix)) for n in texts.lengths.tolist()]
        rows = [texts[row] for row in range(len(texts))]
        said = completions(
            model,
            tokenizer,
            [row[:cut] for row, cut in zip(rows, cuts, strict=True)],
            [len(row) - cut for row, cut in zip(rows, cuts, strict=True)],
            chosen.samples,
            accelerator,
        )
        for i, found in enumerate(said):
            truth = rows[i][cuts[i] :].tolist()
            for sample, tokens in enumerate(found):
                whole = words(truth), words(tokens)
                row = {
                    "id": texts.ids[i],
                    "planted": planted[i],
                    "prefix": prefix,
                    "decoding": "sampled" if sample else "greedy",
                    "sample": sample,
                    "tokens": len(truth),
                    "exact": tokens == truth,
                    "rouge_l": rouge_l(whole[1], whole[0]),
                    "edit": edit_similarity(whole[1], whole[0]),
                }
                for name, value in row.items():
                    columns[name].append(value)
    if accelerator.is_main_process:
        write_table(files.out, schemas.EXTRACTION, columns, metadata=job.origin)
