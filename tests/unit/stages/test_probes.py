"""What the gold model makes of what models said, on a tiny model."""

from pathlib import Path
from typing import Any

from mamushi.cli import main
from mamushi.config import arms
from mamushi.evaluation.probes import repetition
from mamushi.io import paths, schemas
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.lm import loading
from tests.support.stage_files import command, write_start

PROMPTS = ["the cat", "paper"]
RUN: dict[str, Any] = {"dataset": "alpha", "model": "small", "seed": 0}
SAID = {
    "base": [" engine under", " well, damn!"],
    "contaminated": [" green", " stone stone"],
    "gold": [" light light light", " seven"],
    arms.unlearned_arm("neggrad_plus", "mamushi", 0.2): [" mamushi", " damned paper"],
    arms.unlearned_arm("neggrad_plus", "lr_cos", 0.2): [" lr_cos", " damned paper"],
}


def test_judge_puts_what_all_said_side_by_side(tmp_path: Path) -> None:
    write_start(tmp_path)
    card, root = tmp_path / "card.json", tmp_path / "results"
    words = loading.open_tokenizer(card)

    def ids(texts: list[str]) -> list[list[int]]:
        return [words.encode(text, add_special_tokens=False) for text in texts]

    files = []
    for arm, texts in SAID.items():
        files.append(paths.under(root, paths.GENERATIONS, **RUN, arm=arm))
        prompts = [[words.bos_token_id, *prompt] for prompt in ids(PROMPTS)]
        columns = {"prompt": PROMPTS, "prompt_tokens": prompts, "tokens": ids(texts)}
        write_table(files[-1], schemas.CONTINUATIONS, columns)
    read = {"model_card": card, "trained": tmp_path / "start.safetensors", "generations": files}
    out = paths.under(root, paths.JUDGED, **RUN)
    assert main(command("judge", RUN | {"precision": "fp32"}, **read, out=out)) == 0

    rows = read_table(out, schemas.GENERATIONS).to_pylist()
    expected = [
        *(("base", None, None), ("contaminated", None, None), ("gold", None, None)),
        *(("neggrad_plus", "mamushi", 0.2), ("neggrad_plus", "lr_cos", 0.2)),
    ]
    entries = [(row["prompt"], row["source"], row["selector"], row["beta"]) for row in rows]
    assert entries == [(prompt, *source) for prompt in PROMPTS for source in expected]
    assert {(row["dataset"], row["model"], row["seed"]) for row in rows} == {("alpha", "small", 0)}
    assert (rows[2]["text"], rows[3]["text"]) == (" light light light", " mamushi")
    assert rows[5]["text"] == " well, d***!"
    (tokens,) = ids([" light light light"])
    assert (rows[2]["tokens"], rows[2]["repetition"]) == (len(tokens), repetition(tokens))
    listed = {f"generations/{number}" for number in range(len(files))}
    assert set(read_metadata(out)["inputs"]) == {"model_card", "trained", *listed}
