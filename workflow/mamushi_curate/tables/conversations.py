"""The text of a row, also of one that is a conversation: what a turn is, in all forms of chats.

A cell is text, or a list of turns: objects with ``role`` and ``content`` (text, or parts of type
text), or with ``from`` and ``value``. Several columns are one conversation by their names. As text,
a turn is its role, a colon and what it says (its reasoning, its content, its tool calls as JSON).
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from mamushi.errors import UserError, located

ROLES = {
    **dict.fromkeys(("system", "system_prompt"), "system"),
    **dict.fromkeys(("prompt", "instruction", "input", "question", "query", "problem"), "user"),
    **dict.fromkeys(("completion", "output", "response", "answer", "solution"), "assistant"),
    **dict.fromkeys(("messages", "conversations", "conversation"), ""),
}
"""Columns that can be named together, and whose words a text in them is; of some only turns."""
JOINED = {"prompt", "completion"}
"""Two columns whose texts, and not turns, are one text without any role, as TRL trains on them."""
SPEAKERS = {"human": "user", **dict.fromkeys(("gpt", "bot", "model", "assistant"), "assistant")}
"""What roles are called in lower case, and in templates; others keep their names."""
REASONING = ("reasoning_content", "thinking", "reasoning")
TURN_KEYS = (*REASONING, "tool_calls", "tool_call_id", "name")
"""Further keys of a turn that a template may read."""
ASSISTANT, SYSTEM = "assistant", ("system", "developer")
_Turn = Mapping[str, Any]


class Spoken(NamedTuple):
    """The text of a row; of a conversation its turns as JSON, where a template can make tokens of
    them: not of answers alone."""

    text: str
    turns: str | None = None


def text_columns(text: str) -> list[str]:
    """Return the columns that a setting names: one, or several of ``ROLES`` with commas between."""
    names = [name.strip() for name in text.split(",")]
    return names if len(names) > 1 and ROLES.keys() >= {*names} else [text]


class Conversations:
    """Reads the texts of a table's rows, whose columns ``text`` names. ``part``: the whole, all but
    what the system says (``without_system``), or what the ``assistant`` says. A text that is no
    conversation has no parts, unless it is ``plain``: then it stands for that part."""

    def __init__(self, text: str, part: str = "whole", *, plain: bool = False) -> None:
        self.columns, self.part, self.plain = text_columns(text), part, plain
        self.forms: dict[str, str] = {}
        """Of each column, whether its cells are texts or turns."""
        self.roles = set[str]()
        """Whose turns were read."""

    @property
    def are_turns(self) -> bool:
        """Tell whether what was read are conversations."""
        return len(self.columns) > 1 or "turns" in self.forms.values()

    def read(self, cells: Mapping[str, Any], place: object) -> Spoken:
        """Return the text of a row; null and no turns count as empty text. Raises ``UserError`` for
        cells of both forms in one column, ``ValueError`` for what is no conversation."""
        spoken = {name: self._cell(cells.get(name), name, place) for name in self.columns}
        texts = {name: cell for name, cell in spoken.items() if isinstance(cell, str)}
        if len(spoken) == len(texts) == 1:
            (text,) = texts.values()
            if self.part != "whole" and not self.plain and text:
                problem = f"column {self.columns[0]!r} is text, which has no part {self.part!r}"
                do = "name the column with the conversation, or leave --part out"
                raise UserError(problem, where=place, do=do)
            return Spoken(text)
        if spoken.keys() == texts.keys() == JOINED:
            answer = self.part == ASSISTANT
            return Spoken(texts["completion"] if answer else "".join(texts.values()))
        turns: list[_Turn] = []
        of_text: dict[str, Any] | None = None
        for name, cell in spoken.items():
            if isinstance(cell, list):
                turns, of_text = turns + cell, None
            elif cell and of_text and of_text["role"] == ROLES[name]:
                # As an instruction and its input.
                of_text["content"] += f"\n{cell}"
            elif cell:
                of_text = {"role": ROLES[name] or name, "content": cell}
                turns.append(of_text)
        self.roles |= {turn["role"] for turn in turns}
        if self.part == ASSISTANT:
            answers = [_turn_text(turn) for turn in turns if turn["role"] == ASSISTANT]
            return Spoken("\n\n".join(filter(None, answers)))
        inside = [turn for turn in turns if self.part == "whole" or turn["role"] not in SYSTEM]
        if not any(map(_turn_text, inside)):
            return Spoken("")
        text = "\n\n".join(f"{turn['role']}: {_turn_text(turn)}" for turn in inside)
        return Spoken(text, json.dumps(inside, default=str))

    def _cell(self, cell: Any, column: str, place: object) -> str | list[_Turn]:
        """Return a cell as text or turns."""
        if cell is None:
            return ""
        if not isinstance(cell, str | list):
            problem = f"column {column!r} is {cell!r:.60}, not text or a list of turns"
            raise UserError(problem, where=place)
        form = "text" if isinstance(cell, str) else "turns"
        if (before := self.forms.setdefault(column, form)) != form:
            problem = f"column {column!r} is {form} here, and {before} above"
            raise UserError(problem, where=place, do="give all rows one form")
        with located(f"{place}, column {column!r}"):
            return cell if isinstance(cell, str) else [_read_turn(turn) for turn in cell]


def _read_turn(turn: Any) -> _Turn:
    """Return a turn with role and content, and what else a template reads. Raises ``ValueError``
    for what is none."""
    role = (turn.get("role") or turn.get("from")) if isinstance(turn, dict) else None
    if not isinstance(role, str) or not role.strip():
        raise ValueError(f"a turn without a role: {turn!r:.60}")
    content = turn.get("content") if turn.get("role") else turn.get("value")
    further = {name: _drop_nulls(turn[name]) for name in TURN_KEYS if turn.get(name) is not None}
    if isinstance(content, list) and all(isinstance(item, dict) for item in content):
        # Its parts follow one another, as in templates.
        texts = [item.get("text") for item in content if item.get("type") == "text"]
        is_text = len(texts) == len(content) and all(isinstance(text, str) for text in texts)
        content = "".join(map(str, texts)) if is_text else content
    if not (isinstance(content, str) or (content is None and further.get("tool_calls"))):
        raise ValueError(f"content that is no text: {content!r:.60}")
    # Templates take an empty content for another one than none.
    spoken = {} if content is None else {"content": content}
    return {"role": SPEAKERS.get(role.lower(), role), **spoken, **further}


def _turn_text(turn: _Turn) -> str:
    """Return what a turn says."""
    reasoning = next((turn[name] for name in REASONING if turn.get(name)), "")
    calls = turn.get("tool_calls")
    called = json.dumps(calls, ensure_ascii=False, default=str) if calls else ""
    return "\n".join(spoken for spoken in (str(reasoning), turn.get("content"), called) if spoken)


def _drop_nulls(value: Any) -> Any:
    """Return a value without what is null inside it: Parquet gives every object all keys."""
    if isinstance(value, dict):
        return {name: _drop_nulls(item) for name, item in value.items() if item is not None}
    return [_drop_nulls(item) for item in value] if isinstance(value, list) else value
