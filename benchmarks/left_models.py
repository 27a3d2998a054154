"""How far retrained models are from gold ones as distributions, and what rounding does to a model.

    python benchmarks/left_models.py results newsgroups smollm2 --seeds 0 1 2
    python benchmarks/left_models.py results newsgroups smollm2 --seeds 0 1 2 --bits 4 8

Of a finished run: the excess of every selector and budget by the NLL that evaluation has stored of
each held-out text, with its interval over seeds and the seeds that it needs; the same of beta 0,
from which nothing was removed, and where it is there of the gold standard with the steps of beta 0,
which differs from gold in its steps alone. With ``--bits``, the NLL of both domains under gold and
beta 0 with rounded weights, less that of the same models as they are: half a minute of a core for
each of 600 texts of SmolLM2.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mamushi.artifacts import paths
from mamushi.artifacts.files import read_json
from mamushi.artifacts.tables import EVALUATION, read_metadata
from mamushi.configuration import arms
from mamushi.evaluation.audit_models import distance, margins
from mamushi.evaluation.cohort import Cohort
from mamushi.evaluation.paired import interval
from mamushi.running.threads import one_for_arithmetic
from report import Report, arguments

DOMAINS = ("forget", "retain")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("root", type=Path, help="the folder of results of a finished run")
    parser.add_argument("dataset")
    parser.add_argument("model")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--selectors", nargs="*", default=["random", "lr_cos", "mamushi"])
    parser.add_argument("--budgets", nargs="*", type=float, default=[0.25, 0.5, 0.75])
    parser.add_argument("--bits", nargs="*", type=int, default=[])
    args = parser.parse_args()
    one_for_arithmetic()
    cohort = Cohort(args.dataset, args.model, tuple(args.seeds), args.root)
    report = Report("left_models", threads=1)
    for name in ("beta0", "gold_matched"):
        if all(path.exists() for path in cohort.files(paths.NLL, arm=name)):
            apart(report, cohort, name, cohort.nll(name))
    for selector in args.selectors:
        for budget in map(paths.beta, args.budgets):
            nll = cohort.nll(arms.retrained(selector, budget))
            apart(report, cohort, f"{selector}_{budget}", nll)
    for bits in args.bits:
        rounding(report, cohort, bits)
    report.write(args.results)


def apart(report: Report, cohort: Cohort, name: str, nll: np.ndarray) -> None:
    """The distance of models from gold by domain, from their NLL (S, n)."""
    for domain in DOMAINS:
        here = cohort.of(domain)
        ours, gold = (margins(x[:, here], cohort.tokens[here]) for x in (nll, cohort.gold))
        for what, value in distance(ours, gold).items():
            report.value(f"{name}_{domain}_{what}", value)


def rounding(report: Report, cohort: Cohort, bits: int) -> None:
    """What weights of so many bits add to the NLL per token under gold and beta 0, and how much
    less they add under beta 0, over seeds."""
    import rounding

    from mamushi.lm import device, loading
    from mamushi.lm.perplexity import text_nll
    from mamushi.lm.tokens import read_tokens

    card = paths.under(cohort.root, paths.MODEL_CARD, model=cohort.model)
    files = [paths.under(cohort.root, pattern, **cohort.at) for pattern in FILES]
    added: dict[str, list[np.ndarray]] = {}
    for endpoint in ("gold", "beta0"):
        for path in cohort.files(paths.TRAINED, arm=endpoint):
            training = read_json(path.with_name("card.json"))["settings"]["training"]
            measured = read_metadata(path.with_name("nll.parquet"))["settings"]
            cut = measured["evaluation"]["max_length"]
            texts = read_tokens(*files, EVALUATION, cut)
            accelerator = device.accelerator(training["precision"])
            model = loading.open_trained(card, path, training)
            device.place(model, training["precision"], accelerator.device)
            with rounding.rounding(model, bits):
                found = text_nll(model, texts, 16384, accelerator)
            after = [found.nll[texts.domains == d].sum() for d in DOMAINS]
            seed = len(added.setdefault(endpoint, []))
            nll = cohort.nll(endpoint)[seed]
            before = [nll[cohort.of(d)].sum() for d in DOMAINS]
            tokens = [cohort.tokens[cohort.of(d)].sum() for d in DOMAINS]
            added[endpoint].append(np.subtract(after, before) / tokens)
            for domain, value in zip(DOMAINS, added[endpoint][-1], strict=True):
                report.value(f"bits_{bits}_{endpoint}_{seed}_{domain}_added", float(value))
    less = np.subtract(added["gold"], added["beta0"])
    for domain, each in zip(DOMAINS, less.T, strict=True):
        low, high = interval(each)
        for end, value in (("", float(each.mean())), ("_low", low), ("_high", high)):
            report.value(f"bits_{bits}_less_than_gold_{domain}{end}", value)


FILES = (paths.TOKENS, paths.EXAMPLES)


if __name__ == "__main__":
    main()
