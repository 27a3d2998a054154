"""Print the completion of a shell for `mamushi`: commands, stages and their options.

bash: `mamushi completion bash > ~/.local/share/bash-completion/completions/mamushi`;
zsh: `mamushi completion zsh > _mamushi`, in a folder of $fpath;
fish: `mamushi completion fish > ~/.config/fish/completions/mamushi.fish`.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

GROUP = "start"

Words = Mapping[str, Sequence[tuple[str, str]]]
"""Each word that a command line goes on with, and what it means, by the words before it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("shell", choices=sorted(SHELLS))


def run(args: argparse.Namespace) -> None:
    """Print the script."""
    print(SHELLS[args.shell](words()))


def words() -> Words:
    """What may follow, from the parsers of all commands."""
    from mamushi import cli

    people = {name: each.summary for name, each in cli.commands().items()}
    found: dict[str, list[tuple[str, str]]] = {"": [*people.items(), ("stage", "one stage alone")]}
    found["stage"] = []
    for name, parser in cli.parsers():
        room, _, stage = name.rpartition(" ")
        if room:
            found[room].append((stage, _first(parser.description)))
        found[name] = [
            (option, _first(action.help))
            for action in _options(parser)
            for option in action.option_strings
            if option.startswith("--")
        ]
        for action in _options(parser):
            if not action.option_strings and action.choices:
                found[name] += [(str(choice), "") for choice in action.choices]
    return found


def _options(parser: argparse.ArgumentParser) -> Sequence[Any]:
    return [action for action in parser._actions if action.help != argparse.SUPPRESS]


def _first(about: str | None) -> str:
    """The first line, short enough to stand beside its word, without what shells read."""
    line = (about or "").strip().partition("\n")[0].replace("%(default)s", "its default")
    return re.sub(r"[^\w ,.()/-]", "", line)[:80]


def bash(known: Words) -> str:
    """A function that looks the words before the cursor up; files where there is nothing."""
    lines = [
        "_mamushi() {",
        '  local before="${COMP_WORDS[*]:1:COMP_CWORD-1}" words=',
        "  while :; do",
    ]
    lines.append('    case "$before" in')
    for before, after in known.items():
        lines.append(f"      {_pattern(before)}) words='{' '.join(word for word, _ in after)}' ;;")
    lines += ["    esac", '    [[ -n $words || $before != *" "* ]] && break']
    lines += ['    before="${before% *}"', "  done"]
    lines += ['  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))', "}"]
    return "\n".join([*lines, "complete -o default -F _mamushi mamushi"])


def zsh(known: Words) -> str:
    """The same, with what each word means."""
    lines = ["#compdef mamushi", 'local before="${words[2,CURRENT-1]}"', "local -a found"]
    lines += ["while true; do", '  case "$before" in']
    for before, after in known.items():
        told = " ".join(shlex.quote(f"{word}:{about}") for word, about in after)
        lines.append(f"    {_pattern(before)}) found=({told}) ;;")
    lines += ["  esac", '  [[ -n $found || $before != *" "* ]] && break']
    lines += ['  before="${before% *}"', "done", "_describe mamushi found", "_files"]
    return "\n".join(lines)


def fish(known: Words) -> str:
    """A line for each word, on the condition that those before it stand there."""
    lines = []
    for before, after in known.items():
        seen = [f"__fish_seen_subcommand_from {word}" for word in before.split()]
        condition = "; and ".join(seen) or "__fish_use_subcommand"
        for word, about in after:
            kind = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c mamushi -n '{condition}' {kind} -d '{about}'")
    return "\n".join(lines)


def _pattern(before: str) -> str:
    return f"'{before}'"


SHELLS = {"bash": bash, "fish": fish, "zsh": zsh}
