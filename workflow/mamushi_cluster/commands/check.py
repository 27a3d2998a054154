"""Look at configuration, tables and models as a run would, and run nothing.

It prints a line for each mistake. The exit code is 1 where there is one, else 0. Near duplicates,
vectors, a corpus that has a screen, and templates of conversations are left to the run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mamushi.errors import UserError, error_line
from mamushi_cluster.commands import _run
from mamushi_curate.commands import init


def run(*, configfile: _run.Files = None) -> tuple[int, Any]:
    """Print the mistakes of a configuration. Return 1 if there is one, else 0, and what was found.
    Raises ``UserError`` as ``_run.run_configs``."""
    files = _run.run_configs(configfile)
    seen: dict[str, str] = {}
    mistakes = [*dict.fromkeys(_mistakes(files, seen))]
    lines = mistakes or [f"no mistake found in {', '.join(map(str, files))}"]
    print(*(f"{name}: {words}" for name, words in seen.items()), *lines, sep="\n")
    return int(bool(mistakes)), {"mistakes": mistakes, "seen": seen}


def _mistakes(files: list[Path], seen: dict[str, str]) -> Iterator[str]:
    """Iterate over what is wrong, and note what was ``seen``."""
    from mamushi.config.complete import names_in_use

    try:
        _run.fetch(files, refresh=True)
        config = _run.check(files)
    except UserError as error:
        yield from str(error).splitlines()
        return
    for name in names_in_use(config, "datasets"):
        settings = config["datasets"][name]
        if settings["kind"] != "table" or "screen" in settings["forget"]:
            continue
        try:
            seen[f"datasets.{name}"] = init.ranked_texts(init.read_counts(config, name)[1])
        except UserError as error:
            yield f"datasets.{name}: {error}"
    for name in config["grid"]["models"]:
        source = config["models"][name].get("source")
        if source and Path(source).exists():
            try:
                seen[f"models.{name}"] = init.describe_model({"source": source})
            except Exception as error:
                yield f"models.{name}: {error_line(error)}"
