"""What selectors give depends on no number of threads or cores."""

import json
import sys

import pytest

from tests.support.workflow import ROOT, environment, output_of

SCRIPT = """
from mamushi.running.machine import limit_threads
limit_threads()
import hashlib, json, sys
import numpy as np
from mamushi.registry import plugin, plugins
from mamushi.selection.pool import Pool
from mamushi.selection.scores import rank_forget
from mamushi.selection.refits import make_refits

rng = np.random.default_rng(0)
forget = np.arange(800) % 3 == 0
x = rng.normal(0, 1, (800, 96)) + 0.1 * forget[:, None] * np.arange(96)
ids = np.array([f"t{i:04d}" for i in range(800)], dtype=object)
half = x.astype(np.float16)
texts = np.array([" ".join(rng.choice(list("abcdefgh"), 6)) for _ in ids], dtype=object)
pool = Pool(ids, forget, half, truth=x[:, 0], texts=texts)
few = {"epochs": 2, "folds": 3, "seeds_averaged": 2, "hidden": [64, 32], "batch_size": 400}
found = {}
for kind, known in plugins("selector").items():
    if kind == "anti_mamushi" or known.unit == "tokens" or not known.refits:
        continue
    settings = {**known.defaults, **{k: v for k, v in few.items() if k in known.defaults}}
    for part, number, scored in make_refits(pool, kind, settings, 0, 1, 0):
        bits = scored.scores.tobytes() + rank_forget(pool, scored).tobytes()
        found[f"{kind} {part}"] = hashlib.sha256(bits).hexdigest()
print(json.dumps(found))
"""


def digests(threads: int) -> dict[str, str]:
    env = environment(OMP_NUM_THREADS=str(threads), PYTHONPATH=str(ROOT / "workflow"))
    line, *_ = output_of(sys.executable, "-c", SCRIPT, env=env).splitlines()
    found: dict[str, str] = json.loads(line)
    return found


@pytest.mark.slow
def test_every_selector_gives_the_same_bits_with_any_number_of_threads() -> None:
    one = digests(1)
    assert digests(4) == one
