"""Jobs that fail on SLURM: what the next attempt asks for, and what the user is told."""

from pathlib import Path

from mamushi.io import paths
from tests.support import cluster
from tests.support.demo import small as science

BASE = paths.MODEL_CARD.format(model="tiny-llama")


def test_a_job_is_told_to_end_before_its_time_is_over(folder: Path) -> None:
    """With a limit of 3 minutes and a signal 2 minutes ahead: it fails within 2 minutes, by itself,
    and its next attempt has twice the time and memory."""
    config = science()
    config["models"]["tiny-llama"]["pretraining"]["epochs"] = 10_000
    settings = {"set-resources": {"base_model": {"runtime": "3 * attempt"}}}
    with open(folder / "said", "w", encoding="utf-8") as output:
        grid = cluster.start(
            BASE, directory=folder, config=config, settings=settings, output=output
        )
        try:
            again = cluster.running(folder, "base_model", attempt=2)
        finally:
            # At once: asked kindly, it would wait for a job of ten thousand epochs.
            grid.kill()
            grid.wait()
            cluster.cancel(folder)
    first, second = (job for job in cluster.settled(folder) if job.rule == "base_model")
    assert second.id == again.id
    assert first.state == "FAILED"  # and neither TIMEOUT nor CANCELLED
    assert first.started is not None and first.ended is not None
    assert (first.ended - first.started).total_seconds() < 150
    assert (first.minutes, second.minutes) == (3, 6)
    assert (first.megabytes, second.megabytes) == (8000, 16000)
    log = (folder / "results/logs/base_model/tiny-llama.log").read_text(encoding="utf-8")
    assert "Traceback" not in log
