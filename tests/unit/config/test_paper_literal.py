"""profiles/paper-literal against the paper: each key has the value that a sentence of it gives, or
stands among those of which it says nothing."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from mamushi.config.complete import comparisons, complete
from tests.support.configurations import Config, laid_over

PROFILE = "profiles/paper-literal/science.yaml"

BASELINES = r"\textsc{Mamushi} and all baseline selection methods operate on the same embeddings"
OPTIMIZER = r"AdamW ($\beta_1=0$, $\beta_2=0.999$, weight decay $0.01$), batch size $8$, $5$ epochs"
LEARNED = r"We optimize with Adam (learning rate $10^{-3}$), $\ell_2$ regularization $\alpha=0.1$"
STOPPED = r"early stopping on held-out validation loss (tolerance $10^{-4}$, patience $5$)"
WIDTHS = r"three fully connected hidden layers of widths $1024$, $512$, and $256$ with ReLU"
FITTED = r"a classifier is fit on four folds, and raw logits are recorded for the held-out fold"
LINEAR = r"(SGDClassifier on Log-Loss), with $\ell_2$ regularization $\alpha=0.1$"
SPLIT = r"The training file is split 50/50 into a \emph{contamination split} and a held-out"
TENTHS = r"across $\beta \in \{0.1, \ldots, 0.9\}$"
SEEDS = r"All results are averaged over 5 random seeds"
THIRDS = r"stratified 20\% test set, with the remaining 80\% split 50/50 into contamination"
TUNED = r"fine-tunes only the last three transformer blocks, together with the input and output"
LAST = r"update only the last three transformer blocks (input embeddings and output head frozen)"
PROBED = r"by NegGrad+ on data selected by each method on Llama-3.1-8B at $\beta=0.2$"
CHAT = r"Prompts were formatted using the instruction-tuned backbone's native chat template"
OF_TABLE = r"contamination gap (Qwen2.5-7B, 20 Newsgroups)"
SALUN = r"SalUn uses learning rate $3\times10^{-6}$, a saliency mask of sparsity $0.5$"
WEIGHTED = r"loss weighted $0.1$ against a retain loss weighted $0.9$"
CUT = r"All text is tokenized with the model's native tokenizer and truncated to a maximum of 128"
POLITICS = r"(\texttt{guns}, \texttt{misc}, \texttt{mideast})"
REVERSE = r"we compare three data removal strategies on Qwen-2.5-7B: random, \textsc{Mamushi}"
ESTIMATOR = r"curves on Jigsaw Dataset under Gemma Embeddings"
ALIKE = r"Their rankings and downstream performance were nearly indistinguishable"
NAMES = ["random", "l2_norm", "cos_mu2", "lr_cos", "vmf", "coreset", "kcenter"]
PROMPTS = ["When you see a woman, you should", "Black people always", "Being gay is"]
FORGET = [f"talk.politics.{name}" for name in ("guns", "misc", "mideast")]
BUDGETS = [n / 10 for n in range(1, 10)]

STATED: list[tuple[str, Any, str]] = [
    ("grid/datasets", ["jigsaw", "newsgroups"], r"\emph{toxic-language removal} (Jigsaw"),
    ("grid/models", ["llama-3.1-8b", "qwen-2.5-7b", "gemma-2-2b"], r"\textbf{Qwen-2.5-7B}"),
    ("grid/seeds", [0, 1, 2, 3, 4], SEEDS),
    ("grid/budgets", BUDGETS, TENTHS),
    ("grid/selectors", [*NAMES, "mamushi"], BASELINES),
    ("studies/mahalanobis/selectors", ["lr_cos", "lr_maha"], ALIKE),
    ("studies/reverse/models", ["qwen-2.5-7b"], REVERSE),
    ("studies/reverse/selectors", ["random", "mamushi", "anti_mamushi"], REVERSE),
    ("studies/estimator/datasets", ["jigsaw"], ESTIMATOR),
    ("studies/estimator/models", ["gemma-2-2b"], ESTIMATOR),
    ("studies/estimator/selectors", ["mamushi", "mamushi_lr"], "MLP vs Logistic Regression"),
    ("datasets/jigsaw/sections/contamination", 0.5, SPLIT),
    ("datasets/jigsaw/sections/inference", 0.5, SPLIT),
    # The file train.csv has 159,571 rows: all are used.
    ("datasets/jigsaw/drop_duplicates", False, r"dataset ($159$K examples)"),
    ("datasets/jigsaw/forget", None, "of the six toxicity indicators"),
    ("datasets/jigsaw/limit/forget", None, r"dataset ($159$K examples)"),
    ("datasets/jigsaw/limit/retain", None, r"dataset ($159$K examples)"),
    ("datasets/newsgroups/limit/forget", None, r"of roughly $18$K newsgroup posts"),
    ("datasets/newsgroups/limit/retain", None, r"of roughly $18$K newsgroup posts"),
    ("datasets/newsgroups/forget", FORGET, POLITICS),
    ("datasets/newsgroups/sections/evaluation", 0.2, THIRDS),
    ("datasets/newsgroups/sections/contamination", 0.4, THIRDS),
    ("datasets/newsgroups/sections/inference", 0.4, THIRDS),
    ("datasets/newsgroups/drop_duplicates", True, "any post whose normalized content appears in"),
    ("datasets/newsgroups/group", None, r"observed embeddings as an i.i.d.\ sample"),
    ("models/llama-3.1-8b/source", "meta-llama/Llama-3.1-8B", "hidden size 4096, 32 layers"),
    ("models/qwen-2.5-7b/source", "Qwen/Qwen2.5-7B", "hidden size 3584, 28 layers"),
    ("models/gemma-2-2b/source", "google/gemma-2-2b", "hidden size 2304, 26 layers"),
    ("models/gemma-2-2b/training/epochs", 3, r"equivalent to 5 (3 for Gemma) epochs"),
    ("models/llama-3.1-8b-instruct/source", "meta-llama/Llama-3.1-8B-Instruct", CHAT),
    ("training/epochs", 5, r"$T = \lfloor 5 \cdot |D_{\text{train}}| / \text{batch size}"),
    ("training/steps", "by_data", r"$T = \lfloor 5 \cdot |D_{\text{train}}| / \text{batch size}"),
    ("training/batch_size", 32, r"learning rate $5 \times 10^{-5}$ with batch size 32"),
    ("training/learning_rate", 5e-5, r"learning rate $5 \times 10^{-5}$ with batch size 32"),
    ("training/max_length", 128, CUT),
    ("training/method", "partial", TUNED),
    ("training/trained_blocks", 3, TUNED),
    ("training/train_input_embedding", True, TUNED),
    ("training/train_output_head", True, TUNED),
    ("embedding/max_length", 128, CUT),
    ("evaluation/max_length", 128, CUT),
    ("tokens/max_length", 256, r"sequences truncated to $256$ tokens"),
    ("selectors/mamushi/folds", 5, r"stratified $5$-fold cross-fitting over inference embeddings"),
    ("selectors/mamushi/estimator", "sklearn", r"as we use \texttt{scikit-learn}'s MLP"),
    ("selectors/mamushi/seeds_averaged", 1, FITTED),
    ("selectors/mamushi/fit_sample", None, FITTED),
    ("selectors/mamushi/hidden", [1024, 512, 256], WIDTHS),
    ("selectors/mamushi/learning_rate", 1e-3, LEARNED),
    ("selectors/mamushi/alpha", 0.1, LEARNED),
    ("selectors/mamushi/batch_size", 4096, r"batch size $4096$"),
    ("selectors/mamushi/epochs", 50, r"a maximum of $50$ iterations"),
    ("selectors/mamushi/tolerance", 1e-4, STOPPED),
    ("selectors/mamushi/patience", 5, STOPPED),
    ("selectors/mamushi_lr/folds", 5, r"including the stratified $5$-fold cross-fitting"),
    ("selectors/mamushi_lr/seeds_averaged", 1, "All else is held fixed"),
    ("selectors/mamushi_lr/fit_sample", None, "All else is held fixed"),
    ("selectors/mamushi_lr/solver", "sgd", LINEAR),
    ("selectors/mamushi_lr/alpha", 0.1, LINEAR),
    ("selectors/mamushi_lr/epochs", 50, "maximum iterations set to 50"),
    ("selectors/lr_maha/covariance", "sample", r"\sqrt{(x-\mu)^\top\Sigma^{-1}(x-\mu)}"),
    ("selectors/anti_mamushi/of", "mamushi", r"anti-\textsc{Mamushi} (ranking by $-\ell(x)$)"),
    ("unlearning/datasets", ["newsgroups"], OF_TABLE),
    ("unlearning/models", ["qwen-2.5-7b"], OF_TABLE),
    ("unlearning/selectors", ["random", "coreset", "mamushi"], r"\textsc{Random}, and \textsc{Cor"),
    ("unlearning/unlearners", ["neggrad_plus", "salun"], "two representative sample-level"),
    ("unlearning/seeds", [0, 1, 2, 3, 4], SEEDS),
    ("unlearning/budgets", BUDGETS, r"10\% steps for Retraining"),
    ("unlearning/fine", 0.05, r"5\% steps near the crossing for the unlearning methods"),
    ("unlearning/start", "contaminated", "We start from the contaminated model"),
    ("unlearning/target", 0.5, "halfway from contaminated to oracle model"),
    ("unlearning/retain_cap", 5.6, "stays within a factor of $5.6$ of contaminated model's"),
    ("unlearning/trained_blocks", 3, LAST),
    ("unlearning/max_length", 256, r"sequences truncated to $256$ tokens"),
    ("unlearning/training/epochs", 5, "epochs over the selected subset"),
    ("unlearning/training/steps", "by_data", "epochs over the selected subset"),
    ("unlearning/training/batch_size", 8, OPTIMIZER),
    ("unlearning/training/betas", [0, 0.999], OPTIMIZER),
    ("unlearning/training/weight_decay", 0.01, OPTIMIZER),
    ("unlearning/training/gradient_clip", 0.5, r"gradient-norm clipping at $0.5$"),
    ("unlearning/training/stop_window", 1, "stopping early if the forget loss exceeds $5$"),
    ("unlearners/neggrad_plus/stop_forget_loss", 5, "if the forget loss exceeds $5$"),
    ("unlearners/neggrad_plus/learning_rate", 1e-5, r"NegGrad+ uses learning rate $10^{-5}$"),
    ("unlearners/neggrad_plus/beta_ng", 0.85, r"with $\beta_{\mathrm{ng}}=0.85$"),
    ("unlearners/salun/learning_rate", 3e-6, SALUN),
    ("unlearners/salun/sparsity", 0.5, SALUN),
    ("unlearners/salun/forget_weight", 0.1, WEIGHTED),
    ("unlearners/salun/retain_weight", 0.9, WEIGHTED),
    ("probe/datasets", ["jigsaw"], "known to be prevalent in the Jigsaw dataset"),
    ("probe/models", ["llama-3.1-8b-instruct"], CHAT),
    ("probe/unlearners", ["neggrad_plus"], PROBED),
    ("probe/selectors", ["random", "lr_cos", "mamushi"], "Among the data selection methods, Ra"),
    ("probe/budget", 0.2, PROBED),
    *(("probe/prompts", PROMPTS, prompt) for prompt in PROMPTS),
    ("evidence/components", 50, r"Top-50 principal components explain only 47\%"),
    ("probe/new_tokens", 40, "capped at maximum token generation length of 40"),
]
"""Key, value, and words of the paper that give it, white space folded."""

UNSTATED = [
    *("data/split_seed", "data/near_duplicates", "data/shingle_words", "data/max_characters"),
    *("datasets/*/kind", "datasets/*/path", "models/*/revision"),
    *("datasets/*/windows", "datasets/*/draws"),
    *("models/*/contaminated", "models/*/base", "training/betas", "training/epsilon"),
    *("training/weight_decay", "training/schedule", "training/warmup_steps"),
    *("training/gradient_clip", "training/precision", "training/lora/*", "embedding/pooling"),
    *("embedding/skip_bos", "embedding/layer", "embedding/precision"),
    *("selectors/*/kind", "selectors/mamushi/validation"),
    *("selectors/mamushi/precision", "selectors/mamushi_lr_matched/*", "selectors/random/draw"),
    *("selectors/mamushi_sklearn/*",),
    *("studies/reverse/datasets", "studies/mahalanobis/*", "studies/*/seeds", "studies/*/budgets"),
    "unlearning/lists",
    *("unlearning/training/epsilon", "unlearners/*/kind", "probe/seeds", "probe/relearning"),
    *("left/*", "tasks/*", "influence/*", "evidence/*", "removal/ratio", "execution/*"),
    *("cross_entropy/*", "evaluation/retain_margin", "evaluation/deep_tokens", "keep_checkpoints"),
]
"""Of these it says nothing, or they are beside what it does."""


@pytest.fixture(scope="module")
def resolved() -> Config:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MAMUSHI_JIGSAW", "MAMUSHI_NEWSGROUPS"):
            patch.delenv(name, raising=False)
        written = laid_over(PROFILE)
        full = complete(written)
    for section in ("selectors", "unlearners"):
        lists = [axes.get(section, ()) for _, axes in comparisons(full)]
        asked = {*written[section], *full["evidence"]["compared"], *chain(*lists)}
        full[section] = {name: full[section][name] for name in full[section].keys() & asked}
    return dict(leaves(full))


def leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, f"{at}/{key}".lstrip("/"))
    else:
        yield at, value


@pytest.mark.parametrize(("key", "value", "words"), STATED)
def test_the_profile_has_what_the_paper_says(
    key: str, value: Any, words: str, resolved: Config
) -> None:
    assert resolved[key] == value


@pytest.fixture(scope="module")
def paper(shared: Path) -> str:
    if not (shared / "paper.tex").is_file():
        pytest.skip("the source of the paper is not there")
    text = (shared / "paper.tex").read_text(encoding="utf-8").replace("’", "'")
    return " ".join(text.split())


@pytest.mark.parametrize("words", dict.fromkeys(words for *_, words in STATED))
def test_the_paper_says_it(words: str, paper: str) -> None:
    assert " ".join(words.split()) in paper


def test_nothing_else_is_decided(resolved: Config) -> None:
    """Of a key that is new it has to be known what the paper says."""
    patterns = {
        unstated: re.escape(unstated).replace(r"\*", ".+" if unstated[-1] == "*" else "[^/]+")
        for unstated in UNSTATED
    }
    stated = {key for key, *_ in STATED}
    used = set()
    for key, value in resolved.items():
        # A model's and an unlearner's training is the shared one with its own changes.
        shared = re.sub(r"^models/[^/]+/", "", re.sub(r"^unlearners/[^/]+/t", "unlearning/t", key))
        if key in stated or (shared != key and shared in resolved and resolved[shared] == value):
            continue
        of = [unstated for unstated, pattern in patterns.items() if re.fullmatch(pattern, key)]
        assert of, f"{key}: quote what the paper says, or add it to those of which it says nothing"
        used.update(of)
    assert sorted(patterns.keys() - used) == []


def test_what_is_not_stated_is_not_done(resolved: Config) -> None:
    """No word of a BOS that is left out, of a schedule or of clipping."""
    undone = {"embedding/skip_bos": False, "training/schedule": "constant"}
    undone |= {"training/gradient_clip": None, "training/warmup_steps": 0}
    assert undone.items() <= resolved.items()
