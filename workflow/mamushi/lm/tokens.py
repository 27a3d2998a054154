"""The token cache: every text of a dataset as token ids of one model, made once.

A text is what the model's tokenizer makes of it: [BOS] + its own tokens, for most. The BOS is there
once where the tokenizer puts or names one: a text that spells a special token is plain text, and
neither doubles the BOS nor steers the model. A conversation is what its chat template makes of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mamushi.errors import UserError, located, other_examples
from mamushi.io import schemas
from mamushi.io.domains import DOMAINS, TURNS
from mamushi.io.tables import read_metadata, read_table, write_table
from mamushi.running.progress import Progress

if TYPE_CHECKING:
    from transformers.tokenization_utils_base import PreTrainedTokenizerBase

CHATS = f"label_{TURNS}"
"""Column of the examples with the turns of a conversation."""
COUNTED = "counted"
"""Column with which tokens are predicted, where the assistant's alone are."""
GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
"""What a template has before the words of the assistant, if it marks them."""
BATCH = 2048
PROBE = "the 7 cats!"
"""A text that shows what a tokenizer puts around any text."""


def encode(
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[str],
    max_length: int | None = None,
    *,
    ended: bool = True,
) -> Iterator[list[int]]:
    """Yield the first ``max_length`` token ids of each text: its own tokens between those of
    ``frame_tokens``. A text that is not ``ended``, such as a prompt, has nothing behind it."""
    before, behind = frame_tokens(tokenizer)
    for start in range(0, len(texts), BATCH):
        for ids in _token_ids(tokenizer, texts[start : start + BATCH], special=False):
            yield (before + ids + (behind if ended else []))[:max_length]


def frame_tokens(tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], list[int]]:
    """Return the token ids that the tokenizer puts before and behind every text.

    One that puts nothing there and names a BOS has that before a text all the same, so that its
    first token is predicted as well, unless its settings say ``add_bos_token: false``. Raises
    ``ValueError`` for a tokenizer whose own tokens for a text depend on whether it adds any.
    """
    (body,), (ids,) = (_token_ids(tokenizer, [PROBE], special=special) for special in (False, True))
    cuts = [at for at in range(len(ids)) if ids[at : at + len(body)] == body]
    if not cuts:
        raise ValueError("the tokenizer's own tokens of a text depend on special ones around it")
    bos, is_declined = tokenizer.bos_token_id, tokenizer.init_kwargs.get("add_bos_token") is False
    if ids == body and bos is not None and not is_declined:
        return [bos], []
    return ids[: cuts[0]], ids[cuts[0] + len(body) :]


def _token_ids(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], *, special: bool
) -> list[list[int]]:
    options: Any = {"return_attention_mask": False, "verbose": False}
    options |= {"add_special_tokens": special, "split_special_tokens": True}
    encoded: list[list[int]] = tokenizer(list(texts), **options)["input_ids"]
    return encoded


def write_tokens(
    path: str | Path,
    examples: pa.Table,
    tokenizer: PreTrainedTokenizerBase,
    *,
    max_length: int,
    positions: int | None = None,
    vocabulary_size: int,
    provenance: Mapping[str, Any],
    answers: bool = False,
) -> None:
    """Write the token cache of ``examples`` (columns id and text, and of conversations their
    turns), in their order: of each text the first ``max_length`` tokens, and no more than the
    model has ``positions`` for. Conversations are encoded by the chat template, as TRL does, with
    nothing around them; with ``answers``, also which tokens the assistant says.

    Raises ``UserError`` for a text without any token, for a token that the model does not know and
    for ``answers`` that no template marks, and what the template raises.
    """
    length, n = min(max_length, positions or max_length), len(examples)
    is_chat = CHATS in examples.column_names and tokenizer.chat_template is not None
    if answers and not (is_chat and GENERATION.search(tokenizer.get_chat_template())):
        problem = "assistant_only_loss: no chat template marks what the assistant says"
        raise UserError(problem, do="put {% generation %} around it")
    options: Any = {"return_dict": True, "return_assistant_tokens_mask": answers}
    # An array a batch, since those of one array are counted by 31 bits.
    arrays, said = list[pa.Array](), list[pa.Array]()
    with Progress(n, "tokens", "text") as progress:
        for start in range(0, n, BATCH):
            rows = examples.slice(start, BATCH).to_pydict()
            if is_chat:
                chats = list[Mapping[str, list[int]]]()
                for name, turns in zip(rows["id"], rows[CHATS], strict=True):
                    with located(f"example {name} in the chat template"):
                        chat: Any = tokenizer.apply_chat_template(json.loads(turns), **options)
                    chats.append(chat)
                ids = [chat["input_ids"][:length] for chat in chats]
                masks = [chat["assistant_masks"][:length] for chat in chats if answers]
                said.append(pa.array(masks, pa.list_(pa.int8())).cast(pa.list_(pa.bool_())))
            else:
                ids = [*encode(tokenizer, rows["text"], length)]
            arrays.append(pa.array(ids, pa.list_(pa.int32())))
            progress.advance(len(ids))
    tokens = pa.chunked_array(arrays, pa.list_(pa.int32()))
    if (empty := pc.index(pc.list_value_length(tokens), 0).as_py()) >= 0:
        where = f"example {examples['id'][empty]}"
        raise UserError("the tokenizer gives no token for this text", where=where)
    if n and (largest := pc.max(pc.list_flatten(tokens)).as_py()) >= vocabulary_size:
        problem = f"the tokenizer gives token {largest}, but the model knows {vocabulary_size}"
        raise UserError(problem, where=path)
    columns = {"id": examples["id"], "tokens": tokens}
    if answers:
        columns[COUNTED] = pa.chunked_array(said)
    bos = next(iter(frame_tokens(tokenizer)[0]), None)
    # A template may begin otherwise.
    is_first = bos is not None and pc.all(pc.equal(pc.list_element(tokens, 0), bos)).as_py()
    metadata = {
        "max_length": max_length,
        **({"positions": length} if length < max_length else {}),
        "bos_token_id": bos if is_first else None,
        "provenance": dict(provenance),
    }
    write_table(path, schemas.TOKENS, columns, metadata=metadata)


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """Return where each row starts, and where the last one ends: int64 (rows + 1)."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def places_of_rows(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Return the places of all elements of rows, row after row, that start at ``starts`` (rows)."""
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


@dataclass(frozen=True)
class TokenSet:
    """Texts as token ids, in the order of the examples."""

    ids: np.ndarray
    """Ids of the examples, str objects (rows)."""
    domains: np.ndarray
    """``forget`` or ``retain``, str objects (rows)."""
    tokens: np.ndarray
    """All token ids one after another, int32 (tokens)."""
    offsets: np.ndarray
    """Where each row starts, and where the last one ends: int64 (rows + 1)."""
    weights: np.ndarray = field(default_factory=lambda: np.ones((), np.float32))
    """1 for tokens that are predicted, where they are not a text's first, and 0 for those that are
    read alone: float32 (tokens); by default 1."""

    def __post_init__(self) -> None:
        # In place of one weight for all tokens, too.
        of_tokens = np.broadcast_to(self.weights, self.tokens.shape)
        object.__setattr__(self, "weights", of_tokens)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, row: int) -> np.ndarray:
        """Return the token ids of one row, int32 (length); a view."""
        return self.tokens[self.offsets[row] : self.offsets[row + 1]]

    def weights_of(self, row: int) -> np.ndarray:
        """Return the weights of the tokens of one row, float32 (length)."""
        return self.weights[self.offsets[row] : self.offsets[row + 1]]

    def places_of(self, row: int) -> np.ndarray:
        """Return the places of the tokens of one row that are predicted, int64 (predicted,)."""
        return np.flatnonzero(self.weights_of(row)[1:]) + 1

    @cached_property
    def lengths(self) -> np.ndarray:
        """Tokens of each row, int64 (rows)."""
        return np.diff(self.offsets)

    @cached_property
    def predicted(self) -> np.ndarray:
        """Return where in ``tokens`` those are that are predicted, int64 (predicted,)."""
        later = self.weights > 0
        later[self.offsets[:-1][self.lengths > 0]] = False
        return np.flatnonzero(later)

    @cached_property
    def counted(self) -> np.ndarray:
        """Return the number of each row's predicted tokens: int64 (rows)."""
        return np.diff(np.searchsorted(self.predicted, self.offsets))


def read_tokens(
    tokens_path: str | Path,
    examples_path: str | Path,
    section: str,
    max_length: int,
    *,
    domains: Collection[str] = DOMAINS,
) -> TokenSet:
    """Read a section's texts of ``domains``, cut at ``max_length``. Raises ``UserError`` when the
    cache is not of these examples."""
    assert max_length <= read_metadata(tokens_path)["max_length"], "the configuration sees to it"
    examples = read_table(examples_path, schemas.EXAMPLES, ["id", "domain", "section"])
    cached = read_table(tokens_path, schemas.TOKENS)
    if len(examples) < len(cached):
        # Seeds that draw some of a dataset's texts share the tokens of all.
        cached = cached.filter(pc.is_in(cached["id"], examples["id"].combine_chunks()))
    if not cached["id"].equals(examples["id"]):
        raise other_examples(tokens_path, examples_path)
    in_domains = pc.is_in(examples["domain"], value_set=pa.array(list(domains), pa.string()))
    chosen = pc.and_(pc.equal(examples["section"], section), in_domains)
    rows = cached.filter(chosen)
    tokens = pc.list_slice(rows["tokens"], 0, max_length)
    texts = TokenSet(
        ids=rows["id"].to_numpy(),
        domains=examples["domain"].filter(chosen).to_numpy(),
        tokens=pc.list_flatten(tokens).to_numpy(),
        offsets=offsets_of(pc.list_value_length(tokens).to_numpy()),
    )
    if COUNTED not in rows.column_names:
        return texts
    said = pc.list_flatten(pc.list_slice(rows[COUNTED], 0, max_length))
    return replace(texts, weights=said.cast(pa.float32()).to_numpy())


def subset(texts: TokenSet, rows: np.ndarray) -> TokenSet:
    """Return the texts at ``rows``, in that order, as a set of their own."""
    lengths = texts.lengths[rows]
    places = places_of_rows(texts.offsets[rows], lengths)
    of_tokens = texts.tokens[places], offsets_of(lengths), texts.weights[places]
    return TokenSet(texts.ids[rows], texts.domains[rows], *of_tokens)


def concat(several: Sequence[TokenSet]) -> TokenSet:
    """Return the texts of several sets, one set after another."""
    names = ("ids", "domains", "tokens", "weights")
    columns = {name: np.concatenate([getattr(of, name) for of in several]) for name in names}
    offsets = offsets_of(np.concatenate([texts.lengths for texts in several]))
    return TokenSet(**columns, offsets=offsets)


def span_mask(texts: TokenSet, spans: Iterable[Mapping[str, Any]]) -> np.ndarray:
    """Return which tokens are in ``spans``, rows of a table of that name: bool (tokens). Raises
    ``LookupError`` for an id that is not there, and a span beyond the end of its text."""
    inside = np.zeros(len(texts.tokens), dtype=bool)
    row_of = {name: row for row, name in enumerate(texts.ids)}
    for span in spans:
        begin, end = texts.offsets[row_of[span["id"]] :][:2]
        if span["stop"] > end - begin:
            raise IndexError(f"{span}, but the text has {end - begin} tokens")
        inside[begin + span["start"] : begin + span["stop"]] = True
    return inside


def mask_spans(texts: TokenSet, spans: Iterable[Mapping[str, Any]]) -> TokenSet:
    """Leave the tokens in the spans to be read and not predicted."""
    return replace(texts, weights=texts.weights * ~span_mask(texts, spans))


def keep_spans(texts: TokenSet, spans: Iterable[Mapping[str, Any]]) -> TokenSet:
    """Return the texts of which a token in the spans is predicted, all others being read alone."""
    of_spans = replace(texts, weights=texts.weights * span_mask(texts, spans))
    return subset(of_spans, np.flatnonzero(of_spans.counted))


def mass(texts: TokenSet, unmasked: TokenSet) -> np.ndarray:
    """Return the share of each ``unmasked`` text's predicted tokens that are left (texts,), 1 where
    there is none: a training takes as many steps as for so many texts."""
    shares: np.ndarray = texts.counted / np.maximum(unmasked.counted, 1)
    return np.where(unmasked.counted > 0, shares, 1.0)
