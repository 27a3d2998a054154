"""Data at a URL: fetched by the command that starts a run, and never asked for again."""

from pathlib import Path
from typing import Any

import yaml

from tests.support.servers import Site, serving
from tests.support.workflow import mamushi

TABLE = b"text,bad\n" + b"".join(b"a text of number %d,%d\n" % (n, n % 2) for n in range(60))
SIGNED = "X-Amz-Signature=s3cret"


def configuration(path: str) -> dict[str, Any]:
    """A grid of words alone, of a table at a URL."""
    forget, sections = {"where": "bad == 1"}, {"inference": 1.0}
    table = {"kind": "table", "path": path, "forget": forget, "sections": sections}
    grid = {"datasets": ["d"], "models": ["m"], "seeds": [0], "selectors": ["stack"]}
    models = {"m": {"embeddings": {"words": 16}}}
    return {"grid": grid | {"budgets": [0.1]}, "datasets": {"d": table}, "models": models}


def test_a_dry_run_asks_nobody_and_a_run_asks_once(tmp_path: Path) -> None:
    with serving(Site({"/texts.csv": TABLE})) as site:
        config = configuration(f"{site.url}/texts.csv?{SIGNED}")
        (tmp_path / "mine.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")

        def said(*words: str, status: int = 0) -> str:
            done = mamushi(tmp_path, "run", "data", *words, check=False)
            assert done.returncode == status, done.stdout + done.stderr
            return done.stdout + done.stderr

        assert "texts.csv: is not fetched; mamushi check" in said("-n", status=1)
        assert site.asked == []
        site.breaks_after = 1000
        assert "texts.csv: cannot be fetched" in said(status=2)
        site.breaks_after = None
        said()
        asked = len(site.asked)
        assert "Nothing to be done" in said()
        assert len(site.asked) == asked
    card = (tmp_path / "results/data/d/card.json").read_text(encoding="utf-8")
    assert f"{site.url}/texts.csv" in card and "results/remote" not in card
    every = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "mine.yaml"]
    assert not [path for path in every if b"s3cret" in path.read_bytes()]
