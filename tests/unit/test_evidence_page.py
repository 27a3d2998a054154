"""Claims and their verdicts on the runs of the archive; the pages that are made from it."""

from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from mamushi_extras.effects.contrasts import holm
from studies.evidence import archive, claims, families, measures, page

ARCHIVE = page.FOLDER / "archive"


@pytest.fixture(scope="module")
def runs() -> Any:
    return archive.read(ARCHIVE)


@pytest.fixture
def run(runs: Any) -> Any:
    return runs["jigsaw", "smollm2_frozen"]


@pytest.fixture(scope="module")
def family() -> Any:
    return families.read_families()["jigsaw"]


def test_an_archive_has_what_was_measured_and_no_text(run: Any) -> None:
    seed, arm = next(iter(run.nll))
    mean = run.nll[seed, arm][run.held_out.forget].sum() / run.tokens[run.held_out.forget].sum()
    assert run.cards[seed, arm]["nll"][0] == pytest.approx(mean, rel=1e-6)
    for path in ARCHIVE.glob("*.parquet"):
        named = pq.read_schema(path)
        assert {f.name for f in named if f.type == "string"} <= {"id", "domain", "group"}


def test_one_correction_over_all_claims_whichever_measure(run: Any, family: Any) -> None:
    """A claim that was not tried is counted; the contrary of a confirmed one is contradicted."""
    stated = dict(family.claims)
    first = stated["mamushi_random"]
    stated["turned"] = msgspec.structs.replace(first, one="random", than=[first.one])
    stated["absent"] = msgspec.structs.replace(first, one="nobody")
    judged = claims.judge(msgspec.structs.replace(family, claims=stated), run)
    raw = np.array([claim.tried.p for claim in judged.values()])
    corrected = np.array([claim.p for claim in judged.values()])
    expected, tried = holm(np.nan_to_num(raw, nan=1.0)), ~np.isnan(raw)
    assert corrected[tried] == pytest.approx(expected[tried])
    words = {name: claim.word for name, claim in judged.items()}
    assert words["mamushi_random"] == "confirmed" and words["turned"] == "contradicted"
    assert words["absent"] == "cannot be told" and "not trained" in judged["absent"].tried.why


def test_a_claim_against_several_is_as_sure_as_the_hardest(run: Any, family: Any) -> None:
    measured, claim = measures.Measured(run, family), family.claims["mamushi_random"]

    def tried(*than: str, one: str = claim.one) -> Any:
        return claims.try_claim(msgspec.structs.replace(claim, one=one, than=[*than]), measured)

    rivals = ("random", "lr_cos", "coreset")
    hardest = max(tried(rival).sides[0] for rival in rivals)
    assert tried(*rivals).sides[0] == pytest.approx(hardest)
    # Against one it fails surely, and so the whole claim does: Bonferroni over its two.
    against = tried("random", claim.one, one="anti_mamushi")
    assert not against.towards and against.p < 0.05


def test_the_pages_and_the_numbers_are_those_of_the_archive(runs: Any) -> None:
    """Every number: a block that is made again is the block that stands there."""
    blocks = page.make_blocks(runs)
    for path in page.PAGES:
        text = path.read_text(encoding="utf-8")
        assert page.BLOCK.split(":")[0] in text, f"{path} has no block"
        assert page.replaced(text, blocks) == text, path
    assert "\n".join(page.numbers(runs)) + "\n" == page.NUMBERS.read_text(encoding="utf-8")
