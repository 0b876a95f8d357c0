"""What is due at the cursor: which option or argument of a command line, and what in the text of a tangent type.

Of a line also the rest is known, what else is given. A tangent type may become one of those that a primal type admits; records of
tangents go field by field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import click

from tidu_cli.frozen import Frozen
from tidu_cli.graph.types import OPEN_SHAPE, RecordType, TensorType, Type, map_leaves, moves, spelled_out, tangent_type


class Cursor(Frozen, slots=False):
    """Where the word to complete stands in the command line of a subcommand.

    `parameter` is the option or argument that it is a value of, if it is one's; `incomplete` is the value so far, and `before` what
    stands in the same word before it, as in --wrt=x. `arguments` are the other words that are no options, those after the cursor
    too, and `given` has the values of options by their first name, none of a flag.
    """

    parameter: click.Parameter | None
    incomplete: str
    before: str
    arguments: list[str]
    given: dict[str, list[str]]

    def values(self, option: str) -> list[str]:
        """The values that an option has elsewhere in the line."""
        return self.given.get(option, [])

    @property
    def taken(self) -> list[str]:
        """The values that the same option has elsewhere in the line."""
        assert self.parameter is not None
        return self.values(self.parameter.opts[0])


_CURSOR = "\0"
"""What stands for the word at the cursor as click parses the line: no word of a command line has it."""


def find(command: click.Command, words: Sequence[str], at: int) -> Cursor:
    """Where word `at` stands among the words after the command's name: with that parameter to which click gives it."""
    name, equals, value = words[at].partition("=")
    before, incomplete = (f"{name}=", value) if equals and name.startswith("--") else ("", words[at])
    parser = command.make_parser(click.Context(command, resilient_parsing=True))
    parser.ignore_unknown_options = True
    parsed, superfluous, _ = parser.parse_args([*words[:at], before + _CURSOR, *words[at + 1 :]])
    owner, arguments, given = None, [], {}
    for param in command.params:
        taken = parsed.get(str(param.name))
        values = [taken] if isinstance(taken, str) else list(taken) if isinstance(taken, list | tuple) else []
        if _CURSOR in values:
            owner = param
            values.remove(_CURSOR)
        if isinstance(param, click.Argument):
            arguments += values
        elif str(param.name) in parsed:
            given[param.opts[0]] = values
    if isinstance(owner, click.Argument) and incomplete.startswith("-") and incomplete != "-" and "--" not in words[:at]:
        owner = None  # what begins like an option
    return Cursor(owner, incomplete, before, [*arguments, *superfluous], given)


_MARK = re.compile(r"\[[^]]*]?|\([^)]*\)?|[{}:,]")
"""Marks of records; and, to be passed over, what is in brackets: shapes, units and tuples."""


def tangent_texts(primal: Type, begun: str) -> Iterator[tuple[str, str, bool]]:
    """What `begun`, the text of a tangent type of `primal` up to the cursor, may become; shapes are left out.

    With each text goes what it is, and whether it goes on, so that more has to follow.
    """
    done, at, fields, within = _place(primal, begun)
    texts = [] if at is None else _admitted(at)
    complete = begun.rstrip()
    is_whole = isinstance(at, TensorType) or (isinstance(at, RecordType) and at.is_tuple)
    if within and complete.endswith(("}", *(text for text, _ in texts if is_whole))):
        yield f"{complete}}}", "the other fields are zero", False
    yield from ((f"{done}{name}: ", str(field), True) for name, field in fields if moves(field))
    yield from ((done + text, words, within) for text, words in texts)


def _place(primal: Type, begun: str) -> tuple[str, Type | None, list[tuple[str, Type]], bool]:
    """The text before the word at its end, what that word is to be a tangent of, or else name of, and whether it is in a record.

    Where no word is due, as after a record, or nothing fits, it is of nothing.
    """
    at: Type | None = primal
    around: list[tuple[RecordType, set[str]]] = []
    start, name_due = 0, False
    for match in _MARK.finditer(begun):
        word, mark = begun[start : match.start()].strip(), match[0]
        if mark[0] in "[(":
            continue
        start = match.end()
        if mark == "{" and isinstance(at, RecordType) and not name_due:
            around.append((at, set()))
            at, name_due = None, True
        elif mark == ":" and name_due:
            record, named = around[-1]
            named.add(word)
            at, name_due = record.get(word), False
        elif mark == "," and around and not name_due:
            at, name_due = None, True
        elif mark == "}" and around:
            around.pop()
            at, name_due = None, False
        else:
            return begun, None, [], False
    done = begun[:start] + (" " if begun[start:].startswith(" ") or begun[:start].endswith((":", ",")) else "")
    record, named = around[-1] if name_due else (RecordType("", ()), set())
    return done, at, [field for field in record.fields if field[0] not in named], bool(around)


def _admitted(primal: Type) -> list[tuple[str, str]]:
    """The types of tangents that a type admits, the natural one first: of records that, and those of one field each."""
    from tidu_cli.rules.tangents import admitted, structural

    if not moves(primal):
        return []
    natural = tangent_type(primal)
    if isinstance(primal, TensorType):
        others = [t.dtype for t in admitted(primal) if t != natural]
        choices = [(_open(natural), "the natural one"), *((dtype, "") for dtype in others)]
        return [*choices, (_open(structural(primal.shape)), "a count of units")] if primal.dtype.startswith("datetime") else choices
    assert isinstance(natural, RecordType)
    parts = [(f"{{{name}: {_open(field)}}}", "the other fields are zero") for name, field in natural.fields]
    return [(_open(natural), "the natural one"), *(parts if len(parts) > 1 and not natural.is_tuple else [])]


def _open(type_: Type) -> str:
    """A type as short as it may be written: without names of records and without shapes."""
    return str(map_leaves(spelled_out(type_), lambda leaf: leaf.with_shape(OPEN_SHAPE)))
