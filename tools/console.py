"""Console blocks of the pages: which lines are commands, and how the site shows them.

A console block holds commands after `$ `, each going on while a line ends in a backslash or a pipe and followed by what it prints.
The tests run the commands; on the site, the copy button copies them and neither prompts nor output. As a hook of MkDocs, this file
makes a fence of the language `console`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

PROMPT = "$ "


@dataclass(frozen=True)
class Step:
    """A command of a console block, its own lines there and those of its output."""

    command: str
    shown: tuple[str, ...]
    output: tuple[str, ...]


def steps(lines: Sequence[str]) -> Iterator[Step]:
    """The commands of a console block. Raises ValueError if it does not start with one."""
    k = 0
    while k < len(lines):
        if not lines[k].startswith(PROMPT):
            raise ValueError(f"a console block starts with a command after '{PROMPT}', not with '{lines[k]}'")
        first = k
        while lines[k].endswith(("\\", "|")):
            k += 1
        command, output = tuple(lines[first : k + 1]), k + 1
        k = output
        while k < len(lines) and not lines[k].startswith(PROMPT):
            k += 1
        yield Step("\n".join(command).removeprefix(PROMPT), command, tuple(lines[output:k]))


def on_config(config: Any) -> None:
    """Register the fence (MkDocs calls this)."""
    fences = config.mdx_configs.setdefault("pymdownx.superfences", {}).setdefault("custom_fences", [])
    fences.append({"name": "console", "class": "highlight", "format": to_html})


def to_html(source: str, language: str, class_name: str, options: dict[str, Any], md: Any, **rest: Any) -> str:
    """A console block in HTML: prompts and output cannot be selected, and `data-copy` is what the copy button takes."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers.shell import BashLexer

    lines, commands = [], []
    for step in steps(source.split("\n")):
        command = highlight(step.command, BashLexer(), HtmlFormatter(nowrap=True)).rstrip("\n")
        lines.append(f'<span class="gp">{PROMPT}</span>{command}')
        lines += [f'<span class="go">{escape(line)}</span>' for line in step.output]
        commands.append(step.command)
    copied, shown = escape("\n".join(commands)), "\n".join(lines)
    return f'<div class="language-console {class_name}" data-copy="{copied}"><pre><code>{shown}\n</code></pre></div>'
