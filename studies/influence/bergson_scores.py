"""Score the texts of a bank by bergson (github.com/EleutherAI/bergson): TrackStar, EK-FAC, MAGIC.

    pip install --no-deps --target SITE bergson==2.5.1 torchopt simple-parsing jaxtyping natsort \\
        ml-dtypes petname optree graphviz docstring-parser wadler-lindig pandas
    PYTHONPATH=workflow:SITE python -m studies.influence.bergson_scores results jigsaw --seed 3 \\
        --out peers

Blocks below the trained ones never move. So bergson is given a model of the trained blocks alone,
in fp32, whose input embedding has a row for every token of every text: what enters those blocks
there. Its labels are the tokens. The query is the NLL of the forget texts that ``influence`` has as
targets. TrackStar and EK-FAC score beta 0's linear layers; MAGIC trains once more, in beta 0's
order and by its settings, and goes back through all steps. Writes ``bergson_{method}.safetensors``
with a score of each ranked text (n,), higher where the training on it lowers that NLL more.
"""

from __future__ import annotations

import argparse
import copy
import shutil
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from numpy.typing import NDArray
from safetensors.numpy import save_file
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel

from mamushi.io.tables import FORGET
from mamushi.lm.batches import examples_of_step
from mamushi.lm.tokens import TokenSet, joined
from mamushi.unlearning.trunk import starting_from
from studies.influence.bank import MODEL, Bank

METHODS = ("trackstar", "trackstar_unit", "ekfac", "magic")
Doubles = NDArray[np.float64]


def last_blocks(bank: Bank, texts: TokenSet) -> PreTrainedModel:
    """Return a model of the trained blocks as they are, norm and head, whose vocabulary are the
    tokens of the texts, one after another."""
    count, config = bank.training["trained_blocks"], copy.deepcopy(bank.model.config)
    config.num_hidden_layers, config.tie_word_embeddings = count, False
    small = AutoModelForCausalLM.from_config(
        config, dtype=torch.float32, attn_implementation="eager"
    )
    body, of_small = bank.model.base_model, small.base_model
    of_small.layers.load_state_dict(body.layers[-count:].state_dict())
    of_small.norm.load_state_dict(body.norm.state_dict())
    small.get_output_embeddings().load_state_dict(bank.model.get_output_embeddings().state_dict())
    assert bank.trunk is not None
    states = bank.trunk.hidden(texts.ids.tolist(), texts.lengths.tolist()).float()
    with torch.no_grad():
        small.get_input_embeddings().weight[: len(states)] = states
    return small


def dataset_of(texts: TokenSet, start: int) -> Dataset:
    """Return texts, whose first token is the ``start``-th of the small model's vocabulary."""
    places = np.arange(start, start + len(texts.tokens))
    return Dataset.from_dict(
        {
            "input_ids": [part.tolist() for part in np.split(places, texts.offsets[1:-1])],
            "labels": [texts[row].tolist() for row in range(len(texts))],
            "length": texts.lengths.tolist(),
        }
    )


def export(bank: Bank, seed: int, base: Path, folder: Path) -> None:
    """Write the models before and after beta 0's training, with the tokenizer of ``base``, the
    ranked texts and the targets."""
    targets = bank.targets(seed)[FORGET]
    every = joined([bank.ranked, targets])
    for name in ("start", "beta0"):
        if name == "start":
            bank.reset()
        else:
            with starting_from(bank.trunk, bank.model):
                bank.train(seed, bank.ranked)
        last_blocks(bank, every).save_pretrained(folder / name)
        for path in base.glob("tokenizer*"):
            shutil.copy(path, folder / name)
    dataset_of(bank.ranked, 0).save_to_disk(folder / "ranked")
    dataset_of(targets, len(bank.ranked.tokens)).save_to_disk(folder / "targets")


def by_gradients(folder: Path, method: str) -> Doubles:
    """Return what bergson's pipelines TrackStar, with or without unit gradients, or EK-FAC give."""
    from bergson import config
    from bergson.cli.trackstar import trackstar
    from bergson.config.config import TrackstarIndexConfig
    from bergson.data import load_scores
    from bergson.hessians.pipeline import hessian_pipeline

    run = folder / method
    query = config.QuerySetConfig(dataset=str(folder / "targets"), aggregation="mean")
    options: dict[str, Any] = {
        "run_path": str(run),
        "overwrite": True,
        "model": str(folder / "beta0"),
        "data": config.DataConfig(dataset=str(folder / "ranked")),
        "token_batch_size": 512,
    }
    if method == "ekfac":
        hessian = config.HessianConfig(method="kfac", ev_correction=True)
        pipeline = config.HessianPipelineConfig(query=query)
        index = config.IndexConfig(**options)
        hessian_pipeline(index, hessian, config.ScoreConfig(), config.PreprocessConfig(), pipeline)
    else:
        unit = config.PreprocessConfig(unit_normalize=method == "trackstar_unit")
        trackstar(
            TrackstarIndexConfig(**options),
            config.TrackstarConfig(query=query, preprocess_cfg=unit),
        )
    return np.asarray(load_scores(run / "scores")[:], dtype=np.float64)[:, 0]


def by_magic(bank: Bank, seed: int, folder: Path) -> Doubles:
    """Return what MAGIC gives of a training from the start with beta 0's batches and settings."""
    from bergson.magic.cli import compute_query_gradients
    from bergson.magic.data_stream import DataStream
    from bergson.magic.trainer import BackwardState, Trainer
    from bergson.utils.math import weighted_causal_lm_ce
    from torchopt import adamw
    from torchopt.pytree import tree_iter

    model = AutoModelForCausalLM.from_pretrained(folder / "start", attn_implementation="eager")
    model.loss_function = partial(weighted_causal_lm_ce, reduction="mean")
    for frozen in (model.get_input_embeddings(), model.get_output_embeddings()):
        assert isinstance(frozen, nn.Module)
        frozen.requires_grad_(False)
    training = bank.training
    size, rate = training["batch_size"], training["learning_rate"]
    texts = Dataset.load_from_disk(folder / "ranked")
    order = [examples_of_step(step, len(texts), size, seed) for step in range(bank.steps)]
    ordered = texts.select(np.concatenate(order))
    longest = max(texts["length"])
    ordered = ordered.add_column("doc_ids", [[int(r)] * longest for r in np.concatenate(order)])
    optimizer = adamw(
        lambda step: rate,
        betas=training["betas"],
        eps=training["epsilon"],
        eps_root=1e-17,  # Bergson's: a root has no slope at 0.
        weight_decay=training["weight_decay"],
    )
    trainer, state = Trainer.initialize(model, optimizer)
    stream = DataStream(ordered, size, weight_shape=(len(texts),))
    checkpoints = str(folder / "checkpoints")
    state = trainer.train(state, stream, inplace=True, save_dir=checkpoints)
    targets = DataStream(Dataset.load_from_disk(folder / "targets"), 10)
    gradient, _ = compute_query_gradients(state, model, targets)
    stream.requires_grad = True
    moments = [
        torch.zeros_like(buffer)
        for buffer in tree_iter(state.opt_state)
        if isinstance(buffer, torch.Tensor) and buffer.is_floating_point()
    ]
    backward = BackwardState(gradient, moments, torch.zeros_like(stream.weights))
    backward = trainer.backward(checkpoints, stream, backward, state, inplace=True)
    return -backward.weight_grads.detach().double().numpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="the folder of results with texts and tokens")
    parser.add_argument("dataset")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    args = parser.parse_args()
    bank = Bank(args.source, args.dataset, args.out)
    results = bank.folder / f"seed{args.seed}"
    folder = results / "bergson"
    if not (folder / "targets").is_dir():
        export(bank, args.seed, args.source / "base" / MODEL, folder)
    for method in args.methods:
        began = time.process_time()
        of = (
            by_magic(bank, args.seed, folder) if method == "magic" else by_gradients(folder, method)
        )
        save_file({method: of}, results / f"bergson_{method}.safetensors")
        print(f"{method}: {time.process_time() - began:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
