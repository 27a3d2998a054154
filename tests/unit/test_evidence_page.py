"""Families of claims, their verdicts, the archive, and the page that is made from it."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from mamushi.config import arms
from mamushi.errors import UserError
from mamushi.evaluation.paired import holm
from mamushi.io import paths, schemas
from mamushi.io.files import read_json, write_json
from mamushi.io.tables import write_table
from tests.support.grid_files import write_perplexity
from tests.support.score_files import unknown_texts

ROOT = Path(__file__).parents[2]
ARCHIVE = ROOT / "benchmarks" / "archive"
MODULES = ("archive", "families", "measures", "claims", "evidence", "report")
HELD, RANKED, TOKENS = 60, 30, 20
BUDGETS = (0.25, 0.5, 0.75)
SPEED = {"mamushi": 0.5, "random": 1.0, "lr_cos": 0.6, "coreset": 1.2, "anti_mamushi": 2.0}
"""A selector recovers budget ** speed of the gap."""


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The modules of the benchmarks, by name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield SimpleNamespace(**{name: __import__(name) for name in MODULES})
        for name in MODULES:
            sys.modules.pop(name, None)


def write_run(
    root: Path, seeds: range = range(4), speed: dict[str, float] = SPEED, whole: bool = True
) -> Path:
    """A folder of results as a run leaves it; without a ``whole`` NegGrad+ never gets halfway."""
    ids = [f"e{n:03d}" for n in range(2 * HELD)] + [f"i{n:03d}" for n in range(2 * RANKED)]
    domains = (["forget"] * HELD + ["retain"] * HELD) + (["forget"] * RANKED + ["retain"] * RANKED)
    examples = {
        "id": ids,
        "text": ["a secret text"] * len(ids),
        "domain": domains,
        "section": ["evaluation"] * 2 * HELD + ["inference"] * 2 * RANKED,
        "group": ["one", "one", *[None] * (len(ids) - 2)],
        "log_density_ratio": [None] * len(ids),
    }
    data = paths.under(root, paths.EXAMPLES, dataset="synthetic")
    write_table(data, schemas.EXAMPLES, examples)
    for seed in seeds:
        cell = {"dataset": "synthetic", "model": "tiny-llama", "seed": seed}
        for arm, share in (("beta0", 0.0), ("gold", 1.0)):
            write_arm(root, cell, arm, share)
        write_arm(root, cell, arms.whole("neggrad_plus"), 0.9 if whole else 0.3)
        for selector, exponent in speed.items():
            write_scores(root, cell, selector, ids[2 * HELD :], domains[2 * HELD :])
            for beta in BUDGETS:
                done = beta**exponent
                write_arm(root, cell, arms.retrained(selector, beta), done)
                unlearned = arms.unlearned("neggrad_plus", selector, beta)
                write_arm(root, cell, unlearned, 0.9 * done if whole else 0.3 * done)
    return root


def write_arm(root: Path, cell: dict[str, Any], arm: str, share: float) -> None:
    """A model that has recovered a share of the gap, with noise of its own."""
    rng = np.random.default_rng([cell["seed"], *arm.encode()])
    forget = 3 + 0.4 * (share + 0.01 * rng.normal()) + 0.02 * rng.normal(size=HELD)
    retain = 2.5 + 0.002 * rng.normal() + 0.02 * rng.normal(size=HELD)
    nll = np.concatenate([forget, retain]) * TOKENS
    table = {"id": [f"e{n:03d}" for n in range(2 * HELD)], "tokens": [TOKENS] * 2 * HELD}
    write_table(paths.under(root, paths.NLL, **cell, arm=arm), schemas.NLL, {**table, "nll": nll})
    mean = np.exp(forget.mean()), np.exp(retain.mean())
    write_perplexity(paths.under(root, paths.PERPLEXITY, **cell, arm=arm), *mean)
    card = {"settings": {"seed": cell["seed"], "role": arm.split("/", maxsplit=1)[0]}, "steps": 36}
    card |= {"inputs": {}, "versions": {"mamushi": "1"}, "removed": 0}
    write_json(paths.under(root, paths.CARD, **cell, arm=arm), card)


def write_scores(
    root: Path, cell: dict[str, Any], selector: str, ids: list[str], domains: list[str]
) -> None:
    rng = np.random.default_rng([cell["seed"], *selector.encode()])
    apart = {"mamushi": 3.0, "lr_cos": 1.0}.get(selector, 0.0)
    score = rng.normal(size=len(ids)) + apart * (np.array(domains) == "forget")
    table = {"id": ids, "domain": domains, "score": score, "fold": [0] * len(ids)}
    path = paths.under(root, paths.SCORES, **cell, selector=selector)
    write_table(path, schemas.SCORES, {**table, "rank": [None] * len(ids)})
    for beta in map(paths.beta, BUDGETS):
        listed = np.array(ids)[np.argsort(-score[:RANKED])[: int(float(beta) * RANKED)]]
        columns = {"id": listed, "score": [0.0] * len(listed), "rank": range(len(listed))}
        path = paths.under(root, paths.REMOVAL, **cell, selector=selector, beta=beta)
        write_table(path, schemas.REMOVALS, {**columns, **unknown_texts(len(listed))})


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of four seeds."""
    return write_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def packed(made: Path, tmp_path: Path) -> Path:
    """A copy of its archive."""
    return Path(shutil.copytree(made, tmp_path / "archive"))


@pytest.fixture(scope="module")
def made(bench: Any, results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    archive = tmp_path_factory.mktemp("archive")
    bench.archive.pack(results, archive)
    return archive


@pytest.fixture(scope="module")
def family(bench: Any) -> Any:
    """The demo's, whose oracle the run has not."""
    return bench.families.read_families()["synthetic"]


# The archive --------------------------------------------------------------------------------------


def test_an_archive_gives_back_what_was_measured(bench: Any, packed: Path) -> None:
    run = bench.archive.read(packed)["synthetic", "tiny-llama"]
    assert run.nll.keys() == run.cards.keys()
    assert len(run.nll) == 4 * (3 + 2 * len(SPEED) * len(BUDGETS))
    mean = run.nll[2, "gold"][run.held_out.forget].sum() / run.tokens[run.held_out.forget].sum()
    assert run.cards[2, "gold"]["nll"][0] == pytest.approx(mean, rel=1e-6)
    assert run.cards[2, "gold"]["settings"] == {"role": "gold"}
    assert run.held_out.groups[0] == run.held_out.groups[1] != run.held_out.groups[2]
    assert len(np.unique(run.held_out.groups)) == 2 * HELD - 1
    listed, scores = run.lists[1, "mamushi", "0.50"], run.scores[1, "mamushi"]
    assert listed.sum() == RANKED // 2
    assert scores[listed].min() > scores[:RANKED][~listed[:RANKED]].max()
    assert b"secret" not in b"".join(path.read_bytes() for path in packed.iterdir())


@pytest.mark.parametrize(
    "name", ["synthetic-tiny-llama-held-out.parquet", "synthetic-tiny-llama.json"]
)
def test_a_damaged_archive_is_refused(bench: Any, packed: Path, name: str) -> None:
    path = packed / name
    body = path.read_bytes()
    place = body.index(b"36") if name.endswith("json") else len(body) // 2
    path.write_bytes(body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :])
    with pytest.raises(UserError, match=name):
        bench.archive.read(packed)


def test_seeds_of_several_runs_are_packed_beside_each_other(
    bench: Any, results: Path, made: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "archive"
    for number in (0, 2):
        part = write_run(tmp_path / str(number), range(number, number + 2))
        bench.archive.pack(part, archive)
    whole, both = (bench.archive.read(each)["synthetic", "tiny-llama"] for each in (made, archive))
    assert {seed for seed, _ in both.nll} == set(range(4))
    assert both.cards == whole.cards
    for name in ("nll", "scores", "lists"):
        one, other = getattr(whole, name), getattr(both, name)
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[key], other[key], equal_nan=True) for key in one)


def test_arms_that_were_trained_otherwise_are_not_packed_together(
    bench: Any, packed: Path, tmp_path: Path
) -> None:
    root = write_run(tmp_path / "results", range(4, 5))
    card = paths.under(
        root, paths.CARD, dataset="synthetic", model="tiny-llama", seed=4, arm="gold"
    )
    told = read_json(card)
    told["settings"]["training"] = {"epochs": 9}
    write_json(card, told)
    with pytest.raises(UserError, match="trained otherwise"):
        bench.archive.pack(root, packed)


def test_models_that_were_measured_on_other_texts_are_refused(bench: Any, tmp_path: Path) -> None:
    root = write_run(tmp_path / "results", range(2))
    path = paths.under(root, paths.NLL, dataset="synthetic", model="tiny-llama", seed=1, arm="gold")
    table = {"id": [f"e{n:03d}" for n in range(2 * HELD)][::-1], "tokens": [TOKENS] * 2 * HELD}
    write_table(path, schemas.NLL, {**table, "nll": [1.0] * 2 * HELD})
    with pytest.raises(UserError, match="other texts"):
        bench.archive.pack(root, tmp_path / "archive")


# Verdicts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "interval", "towards", "word"),
    [
        (0.01, (0.1, 0.2), True, "confirmed"),
        (0.01, (-0.2, -0.1), False, "contradicted"),
        (0.06, (0.1, 0.2), True, "cannot be told"),
        (float("nan"), (0.1, 0.2), True, "cannot be told"),
        (0.01, (0.1, float("nan")), True, "cannot be told"),
        (0.01, (0.1, float("inf")), True, "cannot be told"),
    ],
)
def test_the_word(
    bench: Any, p: float, interval: tuple[float, float], towards: bool, word: str
) -> None:
    assert bench.claims.verdict(p, interval, towards=towards) == word


def test_one_correction_over_all_claims_whichever_measure(
    bench: Any, packed: Path, family: Any
) -> None:
    """Also over those that were not tried, and half-gap budgets."""
    run = bench.archive.read(packed)["synthetic", "tiny-llama"]
    judged = bench.claims.judge(family, run)
    counted = {name: each for name, each in judged.items() if name in family.claims}
    assert len({each.tried.claim.measure for each in counted.values()}) == 5
    raw = np.array([each.tried.p for each in counted.values()])
    assert np.isnan(counted["oracle_mamushi"].tried.p)
    expected = holm(np.nan_to_num(raw, nan=1.0))
    tried = ~np.isnan(raw)
    found = np.array([each.p for each in counted.values()])
    assert found[tried] == pytest.approx(expected[tried])
    least = np.nanargmin(raw)
    assert found[least] == pytest.approx(len(family.claims) * raw[least])
    words = {name: each.word for name, each in judged.items()}
    assert words["mamushi_random"] == words["anti_mamushi_random"] == "confirmed"
    assert words["half_gap_retraining"] == words["auc"] == words["retain"] == "confirmed"
    assert words["oracle_mamushi"] == "cannot be told"
    assert "not trained" in judged["oracle_mamushi"].tried.why


def test_the_wrong_side_is_contradicted(bench: Any, tmp_path: Path, family: Any) -> None:
    turned = {**SPEED, "mamushi": SPEED["random"], "random": SPEED["mamushi"]}
    found = bench.claims.opened(write_run(tmp_path / "results", speed=turned))
    judged = bench.claims.judge(family, found["synthetic", "tiny-llama"])
    assert judged["mamushi_random"].word == "contradicted"
    assert judged["mamushi_random"].tried.closest[1].high < 0


def test_a_budget_that_is_not_reached_tells_nothing(bench: Any, tmp_path: Path) -> None:
    """ "Confirmed: saves 50%" once rested on budgets whose intervals were open above."""
    root = write_run(tmp_path / "results", whole=False)
    run = bench.claims.opened(root)["synthetic", "tiny-llama"]
    family = bench.families.read_families()["synthetic-unlearning"]
    judged = bench.claims.judge(family, run)["half_gap_neggrad_plus"]
    assert judged.word == "cannot be told"
    reason = bench.measures.OPEN
    assert [each.reason for each in judged.tried.effects.values()] == [reason]


def test_a_claim_against_several_is_as_sure_as_the_hardest(
    bench: Any, packed: Path, family: Any
) -> None:
    run = bench.archive.read(packed)["synthetic", "tiny-llama"]
    measured = bench.measures.Measured(run, family)

    def tried(*than: str) -> Any:
        claim = msgspec.structs.replace(family.claims["mamushi_random"], than=list(than))
        return bench.claims.try_claim(claim, measured)

    single = [tried(name) for name in ("random", "lr_cos", "coreset")]
    together = tried("random", "lr_cos", "coreset")
    assert together.p == pytest.approx(max(each.p for each in single))
    assert together.closest[0] == "lr_cos"
    # Against one it fails surely, and so the whole claim does: Bonferroni over its three.
    claim = msgspec.structs.replace(family.claims["mamushi_random"], one="anti_mamushi")
    claim = msgspec.structs.replace(claim, than=["random", "lr_cos", "mamushi"])
    against = bench.claims.try_claim(claim, measured)
    assert not against.towards and against.p < 0.05


def test_alike_is_shown_by_a_margin_and_not_by_a_large_p(
    bench: Any, packed: Path, family: Any
) -> None:
    measured = bench.measures.Measured(
        bench.archive.read(packed)["synthetic", "tiny-llama"], family
    )
    claim = msgspec.structs.replace(family.claims["mamushi_lr_cos"], expect="alike", margin=0.2)
    found = bench.claims.try_claim(claim, measured)
    (effect,) = found.effects.values()
    assert effect.p < 0.05 and found.towards and found.p < 0.05
    narrow = msgspec.structs.replace(claim, margin=0.01)
    assert not bench.claims.try_claim(narrow, measured).towards


def test_errors_are_pooled_over_selectors_and_so_say_how_many_seeds_would(
    bench: Any, packed: Path, family: Any
) -> None:
    run = bench.archive.read(packed)["synthetic", "tiny-llama"]
    measured = bench.measures.Measured(run, family)
    by_sad, _ = bench.claims.efficiency(family, run)["intermediate"]
    assert by_sad.claim.expect == "below"
    # Five lists in four seeds, in place of four seeds; alone, these say nothing of the future.
    assert by_sad.effects["0.25"].seed_freedom == 4 * 3
    low, high = by_sad.needed(10)
    assert 4 < low < high
    alone = bench.claims.try_claim(family.claims["retain"], measured)
    assert alone.effects["gold"].seed_freedom == 3 and alone.needed(10) is None


def test_one_seed_tells_nothing_of_budgets_and_none_tells_nothing(
    bench: Any, tmp_path: Path, family: Any
) -> None:
    run = bench.claims.opened(write_run(tmp_path / "results", range(1)))["synthetic", "tiny-llama"]
    judged = bench.claims.judge(family, run)
    assert judged["half_gap_retraining"].word == judged["lowest_sad"].word == "cannot be told"
    later = msgspec.structs.replace(family, seeds=[7])
    assert {each.word for each in bench.claims.judge(later, run).values()} == {"cannot be told"}


def test_a_family_that_is_not_as_it_should_is_refused(bench: Any, tmp_path: Path) -> None:
    text = (ROOT / "benchmarks/families/synthetic.yaml").read_text()
    path = tmp_path / "synthetic.yaml"
    for old, new, said in (
        ("expect: above", "expect: more", "Invalid enum"),
        ("margin: 0.02", "limit: 0.02", "unknown field"),
        ("margin: 0.02", "budget: 0.5", "need a margin"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises(UserError, match=said):
            bench.families.read_families(tmp_path)


# The page -----------------------------------------------------------------------------------------


def kept(bench: Any) -> Any:
    return bench.evidence.opened_archive(ARCHIVE)


def test_the_pages_and_the_numbers_are_those_of_the_archive(bench: Any) -> None:
    found = kept(bench)
    blocks = bench.evidence.made(found)
    for path in bench.evidence.PAGES:
        page = path.read_text(encoding="utf-8")
        assert bench.evidence.replaced(page, blocks) == page, path
    assert "\n".join(bench.evidence.numbers(found)) + "\n" == bench.evidence.NUMBERS.read_text()


def test_a_number_that_is_changed_by_hand_is_found(bench: Any, packed: Path) -> None:
    blocks = bench.evidence.made(bench.archive.read(packed))
    begin = bench.evidence.BLOCK.format("synthetic claims")
    page = f"Before.\n\n{begin}\n{bench.evidence.END.format('synthetic claims')}\n\nAfter.\n"
    whole = bench.evidence.replaced(page, blocks)
    assert "**confirmed**" in whole and whole.startswith("Before.") and whole.endswith("After.\n")
    assert bench.evidence.replaced(whole, blocks) == whole
    assert bench.evidence.replaced(whole.replace("**confirmed**", "confirmed"), blocks) == whole
    with pytest.raises(UserError, match="no block is called"):
        bench.evidence.replaced(page.replace("synthetic claims", "other"), blocks)
