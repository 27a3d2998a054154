"""What jobs take: by finished ones, or by operations and sizes."""

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch.utils.flop_counter import FlopCounterMode

from mamushi.config.complete import complete
from mamushi.lm import parameters, tiny
from mamushi_cluster import forecast
from mamushi_cluster.forecast import Job, core_hours, estimate, training_flop
from tests.support.models import TRAINING, training_of
from tests.support.workflow import ROOT

LOG = "results/logs/{rule}/{{dataset}}/{{model}}/seed{{seed}}/{{selector}}/beta{{beta}}.log"
TINY = {
    **{"hidden_size": 32, "layers": 4, "heads": 4, "key_value_heads": 4},
    **{"intermediate_size": 112, "vocabulary_size": 300, "max_positions": 16},
}


@pytest.fixture
def paper() -> dict[str, Any]:
    """The paper's configuration."""
    return complete(yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8")))


def job(rule: str, **at: str) -> Job:
    cell = {"dataset": "jigsaw", "model": "llama-3.1-8b", "seed": "0", **at}
    return Job(rule, cell, LOG.format(rule=rule) if "beta" in at else "", 1, 64000)


def test_the_papers_fine_tune_takes_what_the_paper_says_less_the_padding(
    paper: dict[str, Any],
) -> None:
    seconds, source = estimate(paper, job("endpoint", role="beta0"))
    # 105 minutes with 128 tokens to each text; Jigsaw's have 61.
    assert seconds is not None and source == "FLOP"
    assert (seconds - 35) / 60 * 128 / 61 == pytest.approx(105, abs=2)


def test_cross_entropies_take_one_training_or_two_of_each_fold(
    paper: dict[str, Any],
) -> None:
    sizes = {"forget": 300, "retain": 600}
    paper["datasets"]["jigsaw"]["sizes"] = {"contamination": sizes, "inference": sizes}
    twin = core_hours(paper, "cross_entropy", **job("").wildcards)
    paper["models"]["llama-3.1-8b"]["contaminated"] = True
    folds = core_hours(paper, "cross_entropy", **job("").wildcards)
    paper["cross_entropy"]["folds"] = 3
    more = core_hours(paper, "cross_entropy", **job("").wildcards)
    # 600 texts of the twin; 2 x 300 of two twins with 2 x 450 of the others; and twice as much.
    assert (more - folds) / (folds - twin) == pytest.approx((600 + 900) / 900)


def test_what_jobs_have_taken_here_goes_before_what_is_calculated(paper: dict[str, Any]) -> None:
    wanted = job("retrain", selector="random", beta="0.10")
    assert estimate(paper, wanted)[1] == "FLOP"
    forecast._seconds_of.cache_clear()
    for selector, seed, seconds in (("a", 0, 90.0), ("a", 1, 110.0)):
        log = Path(wanted.log.format(**{**wanted.wildcards, "selector": selector, "seed": seed}))
        log.parent.mkdir(parents=True)
        log.write_text(f"step 7\nmamushi finetune: took {seconds} s, {2 * seconds} s of CPU\n")
    assert estimate(paper, wanted) == (100.0, "2 finished here")


@pytest.mark.parametrize("family", ["llama", "gemma2"])
@pytest.mark.parametrize(
    "change",
    [
        *({}, {"trained_blocks": 1}, {"train_input_embedding": False}, {"method": "full"}),
        {"method": "lora", "lora": {"rank": 1, "alpha": 8, "dropout": 0, "target_modules": None}},
    ],
)
def test_operations_are_those_that_torch_counts(family: str, change: dict[str, Any]) -> None:
    model = tiny.build({"family": family, **TINY}, ["one two three four five"] * 4, seed=0)[0]
    training = training_of(TRAINING | change).model_dump()
    size = forecast.Size(
        model.num_parameters(), 32, 4, model.config.vocab_size, family == "gemma2", "counted"
    )
    ids = torch.arange(7, 9).repeat(8, 1)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(input_ids=ids)
    # Torch counts attention's products too, a few per cent here, and neither norms nor biases.
    assert 2.0 * size.multiplied * ids.numel() == pytest.approx(counter.get_total_flops(), rel=0.06)
    parameters.freeze(model, training_of(training))
    trained = model.num_parameters(only_trainable=True)
    assert size.n_trained(training) == pytest.approx(trained, rel=0.03)
    with FlopCounterMode(display=False) as counter:
        model(input_ids=ids).logits.sum().backward()
    counted = counter.get_total_flops()
    assert training_flop(size, training) * ids.numel() == pytest.approx(counted, rel=0.06)
