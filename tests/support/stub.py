"""What takes the place of ``mamushi/__main__.py`` where a run is to compute nothing.

It writes the outputs of a command as ``dry_runs.finish`` makes them up: each holds its own name.
"""

import json
import sys
from pathlib import Path

FINER = [0.3]
NO_OUTPUTS = ("--state", "--cache", "--trunk")
TABLES = {
    "tables": ["sad", "sad_summary", "sad_differences", "selection"],
    "half-gap": ["unlearning", "half_gap"],
    "probes": ["generations", "relearning"],
    "qualitative": ["qualitative_ranking"],
    "steps": ["steps"],
    "truth": ["truth"],
    "subgroups": ["subgroups"],
    "evidence": [
        *("frontier", "calibration", "advice", "diagnostics", "confounds"),
        *("geometry", "runtime", "paper"),
    ],
}
MODEL = "config.json model.safetensors tokenizer.json tokenizer_config.json generation_config.json"


def outputs(stage: str, words: list[str]) -> list[Path]:
    """The paths in a command's options that are not there yet, and those in the folders named."""
    found = []
    option = ""
    for word in words:
        option = word if word.startswith("--") else option
        if word.startswith("results/") and option not in NO_OUTPUTS:
            found.append(Path(word))
    made = [path for path in found if not path.exists()]
    if stage in TABLES:
        folder = Path(words[words.index("--out-folder") + 1])
        made += [folder / f"{name}.{end}" for name in TABLES[stage] for end in ("csv", "parquet")]
    if stage == "tables":
        made.append(folder / "sad_differences.rst")
    if stage == "base-model":
        folder = Path(words[words.index("--out") + 1])
        made += [folder / name for name in ["card.json", *MODEL.split(), "train_log.parquet"]]
    if stage == "figure":
        made += [path.with_suffix(".png") for path in made]
    return made


def main() -> None:
    stage, *words = sys.argv[1:]
    for path in outputs(stage, words):
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep = path.parts[1] == "sweeps"
        path.write_text(json.dumps({"budgets": FINER}) if sweep else f"{path}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
