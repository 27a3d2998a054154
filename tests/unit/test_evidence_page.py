"""Claims and their verdicts on a run whose effects are known; the pages made from the archive."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from mamushi.config import arms
from mamushi.evaluation.intervals import holm
from mamushi.io import paths, schemas
from mamushi.io.files import write_json
from mamushi.io.tables import write_table
from studies.evidence import archive, claims, families, measures, page
from tests.support.grid_files import write_perplexity
from tests.support.score_files import unknown_texts, write_examples

HELD, RANKED, TOKENS = 60, 30, 20
BUDGETS = (0.25, 0.5, 0.75)
SPEED = {"mamushi": 0.5, "random": 1.0, "lr_cos": 0.6, "coreset": 1.2, "anti_mamushi": 2.0}
"""A selector recovers budget ** speed of the gap."""
CLAIMS = {
    "mamushi_random": ("recovered", "mamushi", "above", {"than": ["random"]}),
    "mamushi_lr_cos": ("recovered", "mamushi", "above", {"than": ["lr_cos"]}),
    "oracle_mamushi": ("recovered", "oracle", "above", {"than": ["mamushi"]}),
    "anti_mamushi_random": ("recovered", "anti_mamushi", "below", {"than": ["random"]}),
    "retain": ("retain", "mamushi", "not_above", {"than": ["gold"], "margin": 0.02}),
    "auc": ("auc", "mamushi", "above", {"than": ["lr_cos"]}),
    "random_mamushi": ("recovered", "random", "above", {"than": ["mamushi"]}),
    "lowest_sad": ("sad", "mamushi", "below", {"than": ["random", "lr_cos", "coreset"]}),
    "half_gap_retraining": ("half_gap", "mamushi", "below", {"than": ["random", "coreset"]}),
}
CELL = {"dataset": "made", "model": "tiny"}


@pytest.fixture
def family() -> Any:
    """What is claimed of the run below, which has no oracle."""
    stated = {
        name: {"says": f"{name}.", "measure": measure, "one": one, "expect": expect, **rest}
        for name, (measure, one, expect, rest) in CLAIMS.items()
    }
    settings = {"seeds": [0, 1, 2, 3], "budgets": [*BUDGETS], "chance": ["random"]}
    return msgspec.convert({**CELL, **settings, "claims": stated}, families.Family)


def write_run(root: Path) -> Path:
    """Write a folder of results of four seeds as a run leaves it."""
    ids = [f"e{n:03d}" for n in range(2 * HELD)] + [f"i{n:03d}" for n in range(2 * RANKED)]
    domains = (["forget"] * HELD + ["retain"] * HELD) + (["forget"] * RANKED + ["retain"] * RANKED)
    write_examples(
        *(paths.under(root, paths.EXAMPLES, dataset="made"), ids, domains),
        text=["a secret text"] * len(ids),
        section=["evaluation"] * 2 * HELD + ["inference"] * 2 * RANKED,
        group=["one", "one", *[None] * (len(ids) - 2)],
    )
    for seed in range(4):
        cell = {**CELL, "seed": seed}
        write_arm(root, cell, "beta0", 0.0)
        write_arm(root, cell, "gold", 1.0)
        for selector, exponent in SPEED.items():
            write_scores(root, cell, selector, ids[2 * HELD :], domains[2 * HELD :])
            for beta in BUDGETS:
                write_arm(root, cell, arms.retrained(selector, beta), beta**exponent)
    return root


def write_arm(root: Path, cell: dict[str, Any], arm: str, share: float) -> None:
    """Write a model that has recovered a share of the gap, with noise of its own."""
    rng = np.random.default_rng([cell["seed"], *arm.encode()])
    forget = 3 + 0.4 * (share + 0.01 * rng.normal()) + 0.02 * rng.normal(size=HELD)
    retain = 2.5 + 0.002 * rng.normal() + 0.02 * rng.normal(size=HELD)
    nll = np.concatenate([forget, retain]) * TOKENS
    table = {"id": [f"e{n:03d}" for n in range(2 * HELD)], "tokens": [TOKENS] * 2 * HELD}
    columns = {**table, "nll": nll, "deep": [None] * 2 * HELD}
    write_table(paths.under(root, paths.NLL, **cell, arm=arm), schemas.NLL, columns)
    mean = np.exp(forget.mean()), np.exp(retain.mean())
    write_perplexity(paths.under(root, paths.PERPLEXITY, **cell, arm=arm), *mean)
    card = {"settings": {"seed": cell["seed"], "role": arm.split("/", maxsplit=1)[0]}, "steps": 36}
    card |= {"inputs": {}, "versions": {"mamushi": "1"}, "removed": 0}
    write_json(paths.under(root, paths.CARD, **cell, arm=arm), card)


def write_scores(
    root: Path, cell: dict[str, Any], selector: str, ids: list[str], domains: list[str]
) -> None:
    """Write a ranking that separates the domains as far as its selector does, and its lists."""
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
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of a run of four seeds."""
    folder = tmp_path_factory.mktemp("archive")
    archive.pack(write_run(tmp_path_factory.mktemp("run")), folder)
    return folder


@pytest.fixture
def run(whole: Path) -> Any:
    return archive.read(whole)["made", "tiny"]


def test_an_archive_gives_back_what_was_measured_and_no_text(run: Any, whole: Path) -> None:
    assert run.nll.keys() == run.cards.keys()
    assert len(run.nll) == 4 * (2 + len(SPEED) * len(BUDGETS))
    mean = run.nll[2, "gold"][run.held_out.forget].sum() / run.tokens[run.held_out.forget].sum()
    assert run.cards[2, "gold"]["nll"][0] == pytest.approx(mean, rel=1e-6)
    assert run.held_out.groups[0] == run.held_out.groups[1] != run.held_out.groups[2]
    listed, scores = run.lists[1, "mamushi", "0.50"], run.scores[1, "mamushi"]
    assert listed.sum() == RANKED // 2
    assert scores[listed].min() > scores[:RANKED][~listed[:RANKED]].max()
    assert b"secret" not in b"".join(path.read_bytes() for path in whole.iterdir())


def test_one_correction_over_all_claims_whichever_measure(run: Any, family: Any) -> None:
    """Also over those that were not tried, and half-gap budgets."""
    judged = claims.judge(family, run)
    raw = np.array([claim.tried.p for claim in judged.values()])
    assert np.isnan(judged["oracle_mamushi"].tried.p)
    assert "not trained" in judged["oracle_mamushi"].tried.why
    expected, tried = holm(np.nan_to_num(raw, nan=1.0)), ~np.isnan(raw)
    corrected = np.array([claim.p for claim in judged.values()])
    assert corrected[tried] == pytest.approx(expected[tried])
    assert np.nanmin(corrected) == pytest.approx(len(CLAIMS) * np.nanmin(raw))
    words = {name: claim.word for name, claim in judged.items()}
    sure = ("mamushi_random", "anti_mamushi_random", "half_gap_retraining", "auc", "retain")
    assert {words[name] for name in sure} == {"confirmed"}
    assert words["oracle_mamushi"] == "cannot be told"
    assert words["random_mamushi"] == "contradicted"


def test_a_claim_against_several_is_as_sure_as_the_hardest(run: Any, family: Any) -> None:
    measured, claim = measures.Measured(run, family), family.claims["mamushi_random"]

    def tried(*than: str, one: str = "mamushi") -> Any:
        return claims.try_claim(msgspec.structs.replace(claim, one=one, than=[*than]), measured)

    together = tried("random", "lr_cos", "coreset")
    assert together.p == pytest.approx(max(tried(s).p for s in ("random", "lr_cos", "coreset")))
    assert together.closest[0] == "lr_cos"
    # Against one it fails surely, and so the whole claim does: Bonferroni over its three.
    against = tried("random", "lr_cos", "mamushi", one="anti_mamushi")
    assert not against.towards and against.p < 0.05


def test_alike_is_shown_by_a_margin_and_not_by_a_large_p(run: Any, family: Any) -> None:
    measured = measures.Measured(run, family)
    claim = msgspec.structs.replace(family.claims["mamushi_lr_cos"], expect="alike", margin=0.2)
    tried = claims.try_claim(claim, measured)
    (effect,) = tried.effects.values()
    assert effect.p < 0.05 and tried.towards and tried.p < 0.05
    narrow = msgspec.structs.replace(claim, margin=0.01)
    assert not claims.try_claim(narrow, measured).towards


def test_the_pages_and_the_numbers_are_those_of_the_archive() -> None:
    """Every number: a block that is made again is the block that stands there."""
    runs = archive.read(page.FOLDER / "archive")
    blocks = page.make_blocks(runs)
    for path in page.PAGES:
        text = path.read_text(encoding="utf-8")
        assert page.BLOCK.split(":")[0] in text, f"{path} has no block"
        assert page.replaced(text, blocks) == text, path
    assert "\n".join(page.numbers(runs)) + "\n" == page.NUMBERS.read_text(encoding="utf-8")
