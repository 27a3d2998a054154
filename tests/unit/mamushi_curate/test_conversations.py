"""Conversations in every form and every kind of file: what is ranked of them, what is refused."""

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mamushi.config.complete import complete
from mamushi.data.raw import Raw
from mamushi.errors import UserError, error_line
from mamushi.io.domains import TURNS
from mamushi_curate.tables.conversations import Conversations
from mamushi_curate.tables.loaders import table


class Form(NamedTuple):
    """How the conversation of a row is kept: ``--text``, its cells, and its text by part."""

    text: str
    cells: Callable[[int], dict[str, Any]]
    whole: str
    without_system: str
    assistant: str
    is_template: bool = True


def messages(number: int) -> list[dict[str, Any]]:
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"What is {number}?"},
        {"role": "assistant", "content": "A number."},
    ]


def sharegpt(number: int) -> list[dict[str, Any]]:
    names = {"user": "human", "assistant": "gpt", "system": "system"}
    return [{"from": names[t["role"]], "value": t["content"]} for t in messages(number)]


def called(number: int) -> list[dict[str, Any]]:
    """Turns of which one calls a tool and says nothing, and one is what that answers."""
    call = {"type": "function", "function": {"name": "look", "arguments": {"at": str(number)}}}
    return [
        {"role": "user", "content": f"What is {number}?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "found", "name": "look", "tool_call_id": "c1"},
        {"role": "assistant", "content": "A number."},
    ]


CALL = '[{"type": "function", "function": {"name": "look", "arguments": {"at": "N"}}}]'
ASKED, ANSWER = "user: What is N?", "assistant: A number."
SYSTEM = f"system: Be brief.\n\n{ASKED}\n\n{ANSWER}"
PLAIN = (SYSTEM, f"{ASKED}\n\n{ANSWER}", "A number.")
PAIR = (f"{ASKED}\n\n{ANSWER}", f"{ASKED}\n\n{ANSWER}", "A number.")
TOOLS = f"{ASKED}\n\nassistant: {CALL}\n\ntool: found\n\n{ANSWER}"
FORMS = {
    "messages": Form("messages", lambda n: {"messages": messages(n)}, *PLAIN),
    "parts": Form(
        "messages",
        lambda n: {
            "messages": [
                {**turn, "content": [{"type": "text", "text": turn["content"]}]}
                for turn in messages(n)
            ]
        },
        *PLAIN,
    ),
    "tool calls": Form(
        "messages", lambda n: {"messages": called(n)}, TOOLS, TOOLS, f"{CALL}\n\nA number."
    ),
    "prompt and completion": Form(
        "prompt,completion",
        lambda n: {"prompt": messages(n)[:2], "completion": messages(n)[2:]},
        *PLAIN,
    ),
    # As TRL joins them, without any role.
    "texts": Form(
        "prompt,completion",
        lambda n: {"prompt": f"What is {n}?", "completion": " A number."},
        *("What is N? A number.", "What is N? A number.", " A number."),
        is_template=False,
    ),
    "instruction, input and output": Form(
        "instruction,input,output",
        lambda n: {"instruction": "What is", "input": f"{n}?", "output": "A number."},
        *(part.replace("is N", "is\nN") for part in PAIR),
    ),
    "system and conversations": Form(
        "system,conversations",
        lambda n: {"system": "Be brief.", "conversations": sharegpt(n)[1:]},
        *PLAIN,
    ),
}
ROWS = 9


def records(form: Form) -> list[dict[str, Any]]:
    return [{"id": str(n), **form.cells(n), "bad": n % 2} for n in range(1, ROWS + 1)]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=4)
    else:
        path.write_text("".join(json.dumps(row) + "\r\n" for row in rows), encoding="utf-8")
    return path


@cache
def defaults() -> dict[str, Any]:
    """The settings of a table, completed."""
    dataset = {"kind": "table", "id": "id", "forget": {"where": "bad == 1"}}
    grid = {"datasets": ["d"], "models": ["m"], "seeds": [0], "selectors": ["mamushi"]}
    dataset["sections"] = {"inference": 1.0}
    models = {"m": {"embeddings": {"path": None}}}
    config = {"grid": grid, "datasets": {"d": dataset}, "models": models}
    loader: dict[str, Any] = complete(config)["datasets"]["d"]
    return loader


def load(path: Path, text: str, part: str = "whole", **other: Any) -> Raw:
    settings = {**defaults(), "path": str(path), "text": text, "part": part, **other}
    return table.load(settings, Path("unused"))


@pytest.mark.parametrize("file", ["chats.jsonl", "chats.parquet"])
@pytest.mark.parametrize("name", FORMS)
def test_every_form_in_every_kind_of_file(name: str, file: str, tmp_path: Path) -> None:
    """All say the same, and keep what a template needs."""
    form = FORMS[name]
    path = write(tmp_path / file, records(form))
    for part in ("whole", "without_system", "assistant"):
        raw = load(path, form.text, part)
        expected = [getattr(form, part).replace("N", str(n)) for n in range(1, ROWS + 1)]
        assert list(raw.texts) == expected
        assert raw.extra_metadata["part"] == part
        assert (TURNS in raw.labels) == (form.is_template and part != "assistant")
        for number, asked in enumerate(raw.labels.get(TURNS, ()), 1):
            turns = json.loads(asked)
            roles = [turn["role"] for turn in turns]
            assert roles == re.findall(r"^(\w+): ", expected[number - 1], re.M)
            assert all(None not in turn.values() for turn in turns)


# What is refused -----------------------------------------------------------------------------

USER = {"role": "user", "content": "a"}
NO_TEXT = "content that is no text: "
BAD: tuple[tuple[list[Any], str], ...] = (
    ([[{**USER, "content": [{"type": "image"}]}]], NO_TEXT + "[{'type': 'image'}]"),
    ([[USER, {"content": "b"}]], "a turn without a role: {'content': 'b'}"),
    ([["hello"]], "a turn without a role: 'hello'"),
    ([[USER], "b"], "row 2: column 'messages' is text here, and turns above"),
    ([3], "row 1: column 'messages' is 3, not text or a list of turns"),
)


@pytest.mark.parametrize(("cells", "says"), BAD)
def test_what_is_no_conversation_is_told_with_its_row_and_key(cells: list[Any], says: str) -> None:
    conversations = Conversations("messages")
    with pytest.raises((UserError, ValueError, TypeError)) as raised:
        for row, cell in enumerate(cells, 1):
            conversations.read({"messages": cell}, f"chats.jsonl, row {row}")
    line = error_line(raised.value)
    assert line.startswith("chats.jsonl, row ") and says in line


def test_windows_of_a_conversation_are_its_turns(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", records(FORMS["messages"]))
    windows = {"words": 50, "action": "remove"}
    raw = load(path, "messages", windows=windows)
    assert list(raw.texts[:3]) == ["system: Be brief.\n\n", "user: What is 1?\n\n", ANSWER]
    # A template is of the whole.
    assert raw.group is not None and [*raw.group[:4]] == ["1", "1", "1", "2"]
    assert TURNS not in raw.labels


def test_examples_beside_a_corpus_are_conversations_as_it_is(tmp_path: Path) -> None:
    """Else the template, and not what is said, would tell them apart."""
    form = Form("conversations", lambda n: {"conversations": sharegpt(n)}, *PLAIN)
    path = write(tmp_path / "corpus.parquet", records(form))
    chats = [{"id": n, **form.cells(n)} for n in range(90, 120)]
    like = write(tmp_path / "like.jsonl", chats)
    raw = load(path, form.text, forget={"like": str(like)})
    assert raw.texts[ROWS] == form.whole.replace("N", "90") and None not in raw.labels[TURNS]
    texts = write(
        tmp_path / "texts.jsonl", [{"conversations": f"A number {n}."} for n in range(30)]
    )
    with pytest.raises(UserError, match="is conversations, and the other is not"):
        load(path, form.text, forget={"like": str(texts)})
    # An answer alone is text.
    raw = load(path, form.text, "assistant", forget={"like": str(texts)})
    assert list(raw.texts[:ROWS]) == ["A number."] * ROWS and TURNS not in raw.labels
