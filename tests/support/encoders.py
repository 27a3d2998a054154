"""A sentence encoder for tests, made on the spot."""

import importlib
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast


def save(folder: Path, words: Sequence[str]) -> Path:
    """A small BERT of these words with mean pooling and normalization, as sentence-transformers
    saves it, in a folder of this one."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    known = {word: i for i, word in enumerate([*special, *dict.fromkeys(words)])}
    tokenizer = Tokenizer(models.WordLevel(known, "[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(name, known[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, ends)
    names = ("pad", "unk", "cls", "sep")
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=8,
        **{f"{name}_token": token for name, token in zip(names, special, strict=True)},
    )
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    more = {"intermediate_size": 32, "max_position_embeddings": 16, "initializer_range": 0.5}
    bert = BertModel(BertConfig(vocab_size=len(known), **sizes, **more))
    bert.save_pretrained(folder / "bert")
    fast.save_pretrained(folder / "bert")
    package = importlib.import_module("sentence_transformers")
    kinds = importlib.import_module("sentence_transformers.models")
    first = kinds.Transformer(str(folder / "bert"), max_seq_length=8)
    parts = [first, kinds.Pooling(16), kinds.Normalize()]
    package.SentenceTransformer(modules=parts, device="cpu").save(str(folder / "encoder"))
    return folder / "encoder"
