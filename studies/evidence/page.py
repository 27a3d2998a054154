"""Make the pages of evidence: every number and word of their blocks, computed from the archive.

    python -m studies.evidence.page        # or: make evidence-page

A block of README or of a page in ``docs/science`` begins with ``<!-- made by
studies/evidence/page.py: NAME -->``, ends with ``<!-- end of NAME -->``, and is replaced. All
claims are also, with four digits, in ``numbers.txt``. ``tests/unit/test_evidence_page.py`` compares
both.
"""

import argparse
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from mamushi.config.arms import Arm
from mamushi.errors import UserError
from mamushi.evaluation.half_gap import crossing
from mamushi_extras.effects.contrasts import OVERSHOOTS, Effect
from studies.evidence.archive import Run, read
from studies.evidence.claims import CANNOT, Judged, Tried, claim_lines, judge
from studies.evidence.families import Family, read_families
from studies.evidence.measures import (
    BETA0,
    GOLD,
    HALF,
    RETRAINING,
    Absent,
    Doubles,
    Measured,
    over_seeds,
)
from studies.influence.judge import (
    ARCHIVE,
    ARMS,
    FAMILIES,
    GAP,
    LONGER,
    ONE_DRAW,
    UNLEARNED,
    by_seed_table,
    claimed_arms,
    claims_table,
    judges_table,
    read_claims,
    shares_table,
)

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
SCIENCE = ("evidence", "tokens", "influence", "cross-entropy")
PAGES = [ROOT / "README.md", *(ROOT / f"docs/science/{name}.md" for name in SCIENCE)]
NUMBERS = FOLDER / "numbers.txt"
BLOCK = "<!-- made by studies/evidence/page.py: {} -->"
END = "<!-- end of {} -->"
SOURCE = "<!-- numbers: none, they are made from the archive and held against it by a test -->"
NOTHING = "The archive has no run of it yet."

Archive = Mapping[tuple[str, str], Run]
SHARE, NATS, POINTS = "{:+.0%}", "{:+.4f}", "{:+.2f}"
SHOWN = {
    "recovered": SHARE,
    "deep": SHARE,
    "retain": NATS,
    "sad": POINTS,
    "auc": "{:+.3f}",
    "half_gap": SHARE,
    "saving": SHARE,
}
MEANS = {
    "recovered": "recovered",
    "deep": "recovered, deep",
    "retain": "retain NLL",
    "sad": "SAD",
    "auc": "AUC",
    "half_gap": "half-gap budget",
    "saving": "saving",
}


def shown(effect: Effect, form: str) -> str:
    """Return an estimate with its interval."""
    if not np.isfinite(effect.estimate):
        return str(effect.reason)
    estimate = form.format(effect.estimate)
    if np.isfinite((effect.low, effect.high)).all():
        return f"{estimate} [{form.format(effect.low)}, {form.format(effect.high)}]"
    return estimate


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown, below the comment that says where its numbers are from."""
    head = list(head)
    every = [head, ["---"] * len(head), *rows]
    return "\n".join([SOURCE, "", *("| " + " | ".join(row) + " |" for row in every)])


def runs(families: Mapping[str, Family], archive: Archive) -> str:
    """What the archive has."""
    rows = []
    for (dataset, model), run in archive.items():
        # That of all rankings first, which has the name of its dataset.
        of_run = [f for f in families.values() if (f.dataset, f.model) == (dataset, model)]
        if not of_run:
            continue
        family = families[dataset] if families.get(dataset) in of_run else of_run[0]
        measured = Measured(run, family)
        texts, groups = run.held_out.forget, len(np.unique(run.held_out.groups))
        models = sum(Arm.parse(arm).endpoint is None for _, arm in run.cards)
        steps = {
            run.cards[seed, arm].get("steps") for seed in measured.seeds for arm in (BETA0, GOLD)
        }
        rows.append(
            [
                f"{dataset}, `{model}`",
                f"{texts.sum()} + {(~texts).sum()}",
                f"{groups}",
                " to ".join(str(s) for s in sorted(steps)) or "-",
                f"{len(measured.seeds)} of {len(family.seeds)}",
                f"{models}",
            ]
        )
    head = ["run", "held-out texts", "independent", "steps", "complete seeds", "models"]
    return table(head, rows) if rows else NOTHING


QUARTER = 0.25
SHORT = {
    "token_unigram": "of the tokens, by `token_unigram`",
    "random": "by chance",
    "mamushi": "by `mamushi`",
    "auto": "by `auto`",
}
"""Whose quarter the shortest table has."""


def quarter(families: Mapping[str, Family], archive: Archive) -> str:
    """What a quarter of the forget texts, or of their tokens, recovers, on each dataset."""
    rows = []
    for family in families.values():
        run = archive.get((family.dataset, family.model))
        if run is None or not {"token_unigram", "mamushi"} <= {*family.selectors()}:
            continue
        measured = Measured(run, family)
        if not measured.seeds:
            continue
        with contextlib.suppress(Absent):
            beta0 = measured.nll(BETA0, ())
            effects = (
                measured.contrast(measured.nll(name, [QUARTER]), beta0, "recovered")
                for name in SHORT
            )
            rows.append([family.dataset, *(shown(effect, SHARE) for effect in effects)])
    return table(["a quarter", *SHORT.values()], rows) if rows else NOTHING


def verdicts(family: Family, run: Run) -> str:
    """The claims of a dataset, with their words."""
    judged, plain = judge(family, run), judge(family, run, net=False)
    rows = [
        [
            claim.tried.claim.says.removesuffix("."),
            MEANS[claim.tried.claim.measure],
            _difference(claim.tried),
            "-" if np.isnan(claim.p) else f"{claim.p:.2g}",
            f"**{claim.word}**" if claim.word != CANNOT else CANNOT,
            f"{_difference(plain[name].tried)} {plain[name].word}" if _is_net(claim) else "-",
        ]
        for name, claim in judged.items()
        if claim.tried.effects
    ]
    head = ["claim", "measure", "difference", "p (Holm)", "verdict", "of forget texts alone"]
    return table(head, rows)


def _is_net(claim: Judged) -> bool:
    return claim.tried.claim.measure in ("recovered", "deep")


def _difference(tried: Tried) -> str:
    rival, effect = tried.closest
    form, margin = SHOWN[tried.claim.measure], tried.claim.margin
    notes = [f"`{rival}`"] * (len(tried.effects) > 1)
    notes += [f"margin {form.format(margin).lstrip('+')}"] * (margin > 0)
    return shown(effect, form) + (f" ({', '.join(notes)})" if notes else "")


def selectors(family: Family, run: Run) -> str:
    """What each selector does, mean over the family's budgets."""
    measured = Measured(run, family)
    rows = []
    for name in family.selectors():
        try:
            cells = [
                *_shares(measured, partial(measured.nll, name, family.budgets)),
                shown(over_seeds(measured.sad(name, family.budgets)), "{:.2f}"),
                _auc(measured, name),
                _half_gap(measured, name, RETRAINING),
            ]
        except Absent:
            continue
        rows.append([f"`{name}`", *cells])
    head = ["selector", *_share_names(run), "SAD", "AUC", "half of the gap at"]
    return table(head, rows)


def _share_names(run: Run) -> list[str]:
    plain = ["recovered, forget texts alone", *["deep, forget texts alone"] * bool(run.deep)]
    return ["recovered", *plain, "retain NLL less gold's"]


def _shares(measured: Measured, nll: Callable[[str], Doubles]) -> list[str]:
    """What models recover, deep where the run has that, and their retain NLL; ``nll`` gives theirs
    (S, n) for a measure.

    Raises ``Absent``.
    """
    cells = []
    for measure, net in (
        ("recovered", True),
        ("recovered", False),
        ("deep", False),
        ("retain", False),
    ):
        if measure == "deep" and not measured.run.deep:
            continue
        of = replace(measured, net=net)
        against = of.nll(GOLD if measure == "retain" else BETA0, (), measure)
        effect = of.contrast(nll(measure), against, measure)
        far = measure != "retain" and effect.low > 1
        cells.append(shown(effect, SHOWN[measure]) + f", {OVERSHOOTS}" * far)
    return cells


def _half_gap(measured: Measured, name: str, by: str) -> str:
    """The budget that recovers half of the gap. Raises ``Absent``."""
    place = crossing(*measured.curves(name, by), HALF)
    ends = ["open" if end is None else f"{end:.2f}" for end in (place.low, place.high)]
    budget = "not reached" if place.budget is None else f"{place.budget:.2f}"
    return f"{budget} [{', '.join(ends)}]"


def _auc(measured: Measured, name: str) -> str:
    try:
        values = [float(above.mean()) for above, _ in measured.placements(name)]
    except Absent:
        return "-"
    return f"{min(values):.3f} to {max(values):.3f}"


def by_budget(family: Family, run: Run) -> str:
    """What each selector recovers at each of the family's budgets, and retain NLL less gold's;
    before that what claims are held against, such as what trains nothing."""
    measured = Measured(run, family)
    rows = []
    for name, budget in product(family.selectors(), family.budgets):
        with contextlib.suppress(Absent):
            shares = _shares(measured, partial(measured.nll, name, [budget]))
            rows.append([f"`{name}`", f"{budget:.2f}", *shares])
    for name in family.baselines():
        with contextlib.suppress(Absent):
            shares = _shares(measured, partial(measured.of_arms, [f"{name}/whole"]))
            rows.insert(0, [f"`{name}`", "all", *shares])
    return table(["selector", "budget", *_share_names(run)], rows)


def unlearning(family: Family, run: Run) -> str:
    """Half-gap budgets by each unlearner that the run has."""
    measured, rows = Measured(run, family), []
    ways = dict.fromkeys(Arm.parse(arm).unlearner for _, arm in sorted(run.cards))
    for by, name in product(filter(None, ways), family.selectors()):
        with contextlib.suppress(Absent):
            rows.append([by, f"`{name}`", _half_gap(measured, name, by)])
    return table(["by", "selector", "half of the gap at"], rows) if rows else NOTHING


OF_FAMILY: dict[str, Callable[[Family, Run], str]] = {
    "claims": verdicts,
    "budgets": by_budget,
    "selectors": selectors,
    "unlearning": unlearning,
}


def make_blocks(archive: Archive) -> dict[str, str]:
    """Return every block of the page, by name."""
    families = read_families()
    blocks = {"runs": runs(families, archive), "quarter": quarter(families, archive)}
    for of, family in families.items():
        run = archive.get((family.dataset, family.model))
        ready = run is not None and Measured(run, family).seeds
        for name, block in OF_FAMILY.items():
            blocks[f"{of} {name}"] = block(family, run) if run and ready else NOTHING
    return blocks | influence_blocks()


NET = ["recovered", "deep", "after relearning"]
OF_FORGET = [f"{name}, forget texts alone" for name in NET]
RETAIN_NATS = "retain NLL less gold's, thousandths"


def influence_blocks() -> dict[str, str]:
    """Return the blocks of the families of claims about influence."""
    file = read_claims()
    datasets, seeds = file["datasets"], file["seeds"]
    rows = {dataset: list(shares_table(dataset, seeds)) for dataset in datasets}
    head = ["", "seeds", *NET, *OF_FORGET, RETAIN_NATS]
    blocks = {f"influence {dataset}": table(head, rows[dataset]) for dataset in datasets}
    for block, suffix, compared in (("unlearned", ONE_DRAW, UNLEARNED), ("epochs", LONGER, ARMS)):
        by_seed = [
            [dataset, *row]
            for dataset in datasets
            if (ARCHIVE / f"{dataset}{suffix}.parquet").is_file()
            for row in by_seed_table(f"{dataset}{suffix}", compared, range(10))
        ]
        blocks[f"influence {block}"] = table(["", "", *OF_FORGET, RETAIN_NATS], by_seed)
    head = ["", "measure", "is", *datasets]
    for family in FAMILIES:
        blocks[f"influence claims {family}"] = table(head, claims_table(file, family))
    names = [f"{', '.join(NET)} (seeds)", *datasets]
    blocks["influence judges"] = table(names, list(judges_table(file)))
    by_name = [{name: cells for name, *cells in rows[dataset]} for dataset in datasets]
    compared = {GAP, *(ARMS[arm] for arm in claimed_arms() if arm in ARMS)}
    first = [
        [name, *("; ".join(cells[name][1:4]) for cells in by_name)]
        for name in by_name[0]
        if name in compared
    ]
    blocks["influence first"] = table(["; ".join(NET), *datasets], first)
    return blocks


def replaced(page: str, blocks: Mapping[str, str]) -> str:
    """Return a page with its blocks made again. Raises ``UserError`` for one that is not made."""
    for name in re.findall(re.escape(BLOCK).replace(r"\{\}", "(.*?)"), page):
        if name not in blocks:
            raise UserError(f"no block is called {name!r}", do="correct its name")
        begin, end = BLOCK.format(name), END.format(name)
        inside = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.S)
        if not inside.search(page):
            raise UserError(f"block {name!r} has no end", do=f"add {end}")
        page = inside.sub(lambda _: f"{begin}\n\n{blocks[name]}\n\n{end}", page)  # noqa: B023
    return page


def numbers(archive: Archive) -> Iterator[str]:
    """Yield the lines of the file of results: versions, and each claim with four digits."""
    yield "# command python -m studies.evidence.page"
    for (dataset, model), run in archive.items():
        for versions in run.versions:
            listed = " ".join(f"{name} {version}" for name, version in versions.items())
            yield f"# {dataset}/{model} made with {listed}"
    yield from (" ".join(line) for line in claim_lines(archive))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, nargs="?", default=FOLDER / "archive")
    archive = read(parser.parse_args().archive)
    blocks = make_blocks(archive)
    for path in PAGES:
        page = replaced(path.read_text(encoding="utf-8"), blocks)
        path.write_text(page, encoding="utf-8")
    NUMBERS.write_text("\n".join(numbers(archive)) + "\n", encoding="utf-8")
    print(*PAGES, NUMBERS, sep="\n")


if __name__ == "__main__":
    main()
