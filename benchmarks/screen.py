"""What a first look at a corpus costs that nobody labelled, and beside other programs.

    python -m benchmarks screen                    100,000 texts
    python -m benchmarks screen --texts 100000 1000000 10000000 --work /scratch/screen

Texts of 10 to 39 words of 50,000, by Zipf's law, in files of 25,000. In a hundredth, the domain,
each word is with 0.2 one of 1,000 of its own. 100 further texts of the domain are the examples, and
2% of the corpus pass. Of each stage `rss_gib_*` and `cpu_seconds_*` are as in `scale`; `slope_*` is
that of the logarithm of its CPU time in that of n, between one size and the next. `at_100m_*` goes
on along a straight line through the two largest sizes, and `error_100m` is by how much such a line
through the two before misses the largest.

`rate_*` are texts a second on one core, of 100,000 texts: the files read, and each text scored
after fits to the same texts, which are not timed. `auc_*`: of these scores, texts with a word of
the domain against the others. fastText is measured where it can be imported.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale import measured_run
from studies.lib.report import Report, arguments

PER_FILE, COMPARED, BLOCK = 25_000, 100_000, 8192
SHARE, OWN_WORDS, EXAMPLES, PASS = 0.01, 0.2, 100, 0.02
# Of letters alone, since programs divide words differently where digits are.
LETTERS = str.maketrans("0123456789", "klmnopqrst")
COMMON = np.array([f"w{np.base_repr(n, 20).lower().translate(LETTERS)}" for n in range(50_000)])
OF_DOMAIN = np.array([f"d{np.base_repr(n, 20).lower().translate(LETTERS)}" for n in range(1_000)])
ZIPF = np.cumsum(np.arange(1, len(COMMON) + 1) ** -1.2)

Scorer = Callable[[list[str]], Any]


def drawn(seed: Sequence[int], n: int, share: float) -> Iterator[str]:
    """Yield ``n`` texts, a share of them of the domain."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(10, 40, n)
    words = COMMON[np.searchsorted(ZIPF, rng.random(lengths.sum()) * ZIPF[-1])]
    special = np.repeat(rng.random(n) < share, lengths) & (rng.random(len(words)) < OWN_WORDS)
    words[special] = OF_DOMAIN[rng.integers(0, len(OF_DOMAIN), special.sum())]
    ends, flat = np.cumsum(lengths).tolist(), words.tolist()
    for start, stop in pairwise([0, *ends]):
        yield " ".join(flat[start:stop])


def prepare(n: int, folder: Path) -> None:
    """Write a corpus and the examples."""
    corpus = folder / f"corpus-{n}"
    corpus.mkdir(parents=True, exist_ok=True)
    for file, start in enumerate(range(0, n, PER_FILE)):
        with (corpus / f"part-{file:05}.jsonl").open("w", encoding="utf-8") as handle:
            for number, text in enumerate(drawn([0, file], min(PER_FILE, n - start), SHARE), start):
                handle.write(f'{{"id": "c{number}", "body": "{text}"}}\n')
    with (folder / "like.jsonl").open("w", encoding="utf-8") as handle:
        handle.writelines(json.dumps({"body": text}) + "\n" for text in drawn([1], EXAMPLES, 1.0))


def screened(report: Report, n: int, folder: Path, shards: int) -> dict[str, float]:
    """Return the CPU seconds of each stage from the files to the texts that are ranked."""
    source = {"kind": "table", "path": str(folder / f"corpus-{n}"), "text": "body", "id": "id"}
    forget = {"like": str(folder / "like.jsonl"), "screen": PASS}
    config = {
        "grid": {"datasets": ["made"], "models": ["words"], "seeds": [0], "selectors": ["lexical"]},
        "datasets": {"made": {**source, "forget": forget, "sections": {"inference": 1}}},
        "models": {"words": {"embeddings": {"words": 64}}},
        "execution": {"shards": shards},
    }
    with tempfile.TemporaryDirectory(dir=folder) as work:
        targets = ["results/data/made/examples.parquet"]
        return measured_run(report, n, Path(work), config, targets)


def compared(report: Report, folder: Path, n: int) -> None:
    """Measure this program and others on the same files, fitted to the same texts."""
    from sklearn.metrics import roc_auc_score

    from mamushi_extras.unlabelled.screening import CorpusShard, fit_to_sample

    files = sorted((folder / f"corpus-{n}").iterdir())[: COMPARED // PER_FILE]
    loader = {"path": str(files[0]), "text": "body", "id": "id", "labels": [], "section": None}
    like = str(folder / "like.jsonl")
    settings = {**loader, "section_values": {}, "retain": None, "forget": {"like": like}}
    shard = CorpusShard(files, settings)
    sample = shard.sample()
    examples = [*drawn([1], EXAMPLES, 1.0)]
    texts, labels = [*examples, *sample.texts], np.repeat([1, 0], [EXAMPLES, len(sample.texts)])
    screen = fit_to_sample(sample, settings)

    def by_mamushi() -> np.ndarray:
        return np.concatenate([scored.scores[:, 0] for scored in shard.score(screen)])

    def lines(scorer: Scorer) -> np.ndarray:
        scores = []
        for file in files:
            with file.open(encoding="utf-8") as handle:
                rows = (json.loads(line)["body"] for line in handle)
                while block := list(islice(rows, BLOCK)):
                    scores.append(scorer(block))
        return np.concatenate(scores)

    measured: dict[str, Callable[[], Any]] = {"mamushi": by_mamushi}
    for name, scorer in peers(texts, labels, folder):
        measured[name] = lambda scorer=scorer: lines(scorer)
    taken: dict[str, list[float]] = {name: [] for name in measured}
    truth = np.concatenate([*map(of_domain, files)])
    for turn in range(3):
        for name, scored_by in measured.items():
            began = time.process_time()
            scores = scored_by()
            taken[name].append(time.process_time() - began)
            if not turn:
                report.value(f"auc_{name}", float(roc_auc_score(truth, scores)))
    for name, seconds in taken.items():
        report.value(f"rate_{name}", len(truth) / float(np.median(seconds)))


def of_domain(file: Path) -> np.ndarray:
    """Tell which texts of a file have a word of the domain."""
    with file.open(encoding="utf-8") as handle:
        return np.array([" d" in f" {json.loads(line)['body']}" for line in handle])


def peers(texts: list[str], labels: np.ndarray, folder: Path) -> Iterator[tuple[str, Scorer]]:
    """Yield what other programs fit to texts, and what scores texts by it."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
    from sklearn.linear_model import LogisticRegression, SGDClassifier
    from sklearn.pipeline import make_pipeline

    words = {"alternate_sign": False, "norm": None}
    for name, model in (
        ("sklearn_lr", LogisticRegression(class_weight="balanced", max_iter=200)),
        ("sklearn_sgd", SGDClassifier(loss="log_loss", class_weight="balanced", random_state=0)),
    ):
        steps = HashingVectorizer(**words), TfidfTransformer(sublinear_tf=True), model
        yield name, make_pipeline(*steps).fit(texts, labels).decision_function
    try:
        import fasttext
    except ImportError:
        return
    train = folder / "fasttext.txt"
    rows = (f"__label__{label} {text}\n" for label, text in zip(labels, texts, strict=True))
    train.write_text("".join(rows), encoding="utf-8")
    model = fasttext.train_supervised(str(train), thread=1, verbose=0, epoch=25)

    def probabilities(block: list[str]) -> list[float]:
        # What `predict` calls: it fails with numpy 2, and gives wrong numbers for several texts.
        pairs = (model.f.predict(f"{text}\n", 2, -1.0, "strict") for text in block)
        return [{label: chance for chance, label in pair}["__label__1"] for pair in pairs]

    yield "fasttext", probabilities


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--texts", nargs="+", type=int, default=[100_000], help="numbers of texts")
    parser.add_argument("--shards", type=int, default=4, help="jobs that share the files")
    parser.add_argument("--work", type=Path, help="a folder whose corpora stay there")
    args = parser.parse_args()
    report = Report("screen", threads=1)
    by_size: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as temporary:
        work = (args.work or Path(temporary)).resolve()
        for n in args.texts:
            if not (work / f"corpus-{n}").exists():
                prepare(n, work)
            by_size.append(screened(report, n, work, args.shards))
            if len(by_size) == 1:
                beside = Report("screen-peers", threads=1)
                compared(beside, work, n)
                print(beside.write(args.results))
    pairs = zip(pairwise(args.texts), pairwise(by_size), strict=True)
    for (small, large), (before, after) in pairs:
        for stage, seconds in after.items():
            slope = math.log(seconds / before[stage]) / math.log(large / small)
            report.value(f"slope_{stage}_n{large}", slope)
    if len(by_size) > 2:
        extrapolated(report, args.texts[-3:], by_size[-3:])
    print(report.write(args.results))


def extrapolated(report: Report, sizes: list[int], by_size: list[dict[str, float]]) -> None:
    """Report what a hundred million texts would take."""

    def line(first: int, stage: str, n: int) -> float:
        x, y = sizes[first : first + 2], [seconds[stage] for seconds in by_size[first : first + 2]]
        return y[1] + (n - x[1]) * (y[1] - y[0]) / (x[1] - x[0])

    predicted = {stage: line(1, stage, 10**8) for stage in by_size[-1]}
    for stage, seconds in {**predicted, "all": sum(predicted.values())}.items():
        report.value(f"at_100m_cpu_seconds_{stage}", seconds)
    missed = sum(line(0, stage, sizes[2]) for stage in by_size[-1]) / sum(by_size[-1].values()) - 1
    report.value("error_100m", missed)


if __name__ == "__main__":
    main()
