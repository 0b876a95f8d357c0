"""What goes through the ports: options, what was read and written, remarks, and what is said of arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type

Piece = bytes | memoryview
"""A part of a file."""

FromPlain = Callable[[Any], Document]
"""Reads a document from the plain data that JSON or msgpack would have. Raises TiduError."""

Claim = Literal["verified", "unverified", "changed"]
"""How a file stands to the document that it claims to be: "verified" if writing that document gives this file, "unverified" if
nobody compared them, "changed" if they differ, so that the file is read by what it runs."""

STOP = "stop"
"""The name of the option of readers that every document takes: values through which no derivative goes."""


class Option(Frozen):
    """An option, from which the command line makes a flag, and Python an argument.

    `flag` is its name on the command line, `name` in Python. `parse` makes a value of the text of a command line and `check` of an
    argument in Python; both raise TiduError. With `pairs` it repeats, and its values are pairs that make one mapping.
    """

    flag: str
    name: str
    help: str
    metavar: str
    parse: Callable[[str], Any]
    check: Callable[[str, Any], Any]
    pairs: bool = False
    repeats: bool = False
    choices: tuple[str, ...] = ()
    is_flag: bool = False
    of_result: bool = False
    """Whether it decides what becomes of the document, so that only commands that write the document have it."""
    values_file: bool = False
    """Whether the command line gives the file to which `Imported.weights` go, where Python gives True."""


class Imported(Frozen):
    """What was read: the document, values of weights that are its inputs, by name, and notes that the user should see.

    `claim` is None for a file that does not claim to be a document.
    """

    document: Document
    weights: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    claim: Claim | None = None


class Written(Frozen):
    """The pieces of a file, and those of a second file beside it, if it needs one; its name, where it is not as it was told."""

    pieces: Iterable[Piece]
    beside: Iterable[Piece] | None = None
    name: str | None = None


class Asked(Frozen):
    """What `check` is asked of a file: `parts` of its report, a runtime to compare values with, and a seed of random inputs.

    `given` are, by key, the values of a document's inputs at which it is tried.
    """

    parts: Collection[str]
    against: str | None
    given: Callable[[Document], Mapping[Key, Any]]
    seed: int


class Remarks(Frozen):
    """What a format adds to the report on a file: facts by name, failures, and in a few words what the file itself holds.

    Where its values were compared with those of another program, `runtime` is that and `agreements` how its outputs agree.
    """

    facts: Mapping[str, str] = field(default_factory=dict)
    failures: Sequence[str] = ()
    holds: str = ""
    runtime: str = ""
    agreements: Sequence[Any] = ()


class Static(Frozen, eq=False):
    """A constant argument: the function is called with this value, and the graph has no input for it."""

    value: Any


Given = Type | Static
"""What is said of an argument, or of a part of one."""


class Data(Frozen):
    """Values that names and types are taken from, by key. Those that are `asked` for must have a parameter.

    A builder fills in what became of them: names that it has no place for, and integers that became constants, as a default is one.
    """

    values: Mapping[str, object] = field(default_factory=dict)
    asked: frozenset[str] = frozenset()
    untaken: list[str] = field(default_factory=list)
    constants: dict[str, int] = field(default_factory=dict)


class Worker(Frozen):
    """A machine of a scheduler: its address, and the bytes that one of its tasks may take, None for any number."""

    address: str
    memory: int | None
