"""One exception class per kind of trouble, raised where the knowledge is.

The command line turns any `TiduError` into one line on stderr and status 1, so a message says what is
wrong, where, and what to do; it never spans lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


def printable(text: str) -> str:
    """Text with line ends, what steers a terminal, and what cannot be seen escaped, as names in files may hold."""
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
    )


LONGEST = 2000
"""Characters of a message. Names may have any length; what is left out of a longer one is its middle, as its end is the way out."""


class TiduError(Exception):
    """Any failure that a user can cause and mend. Its text is one printable line, whatever names it tells.

    It is made of parts, text and `Remedy`s, which are spelt as who called writes them.
    """

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """The ways out that it tells, as data."""
        return tuple(part for part in self.args if isinstance(part, Remedy))

    def __str__(self) -> str:
        text = printable("".join(map(str, self.args)))
        return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} ... {text[-LONGEST // 3 :]}"


def placed(place: str, error: object) -> str:
    """A message with its place before it: `node 3 (scan): ...`.

    One that begins with a place within that one goes on from there: `node 3 (scan), body, node 7 (mul): ...`.
    """
    message = str(error)
    return f"{place}{message}" if message.startswith(", ") else f"{place}: {message}"


class DocumentError(TiduError):
    """A file or pipe does not hold a valid document."""


class KeyTextError(TiduError):
    """A key is malformed, in its text form or in its JSON form."""


class TypeTextError(TiduError):
    """A type such as `f64[3,4]` or the data of a constant is malformed."""


class TypeRuleError(TiduError):
    """A primitive cannot be applied to operands of these types or with these attrs."""


class UndecidedSizeError(TypeRuleError):
    """What a size is would have to be known, and it is open, or its bounds do not say enough."""


class UnknownNameError(TiduError):
    """A key, op or graph that was asked for does not exist."""


class MissingRuleError(TiduError):
    """A primitive has no JVP or transpose rule, or none for this active mask."""


class NoReverseError(MissingRuleError):
    """A loop has no transpose, since how often it runs is not known before."""


class TransformError(TiduError):
    """A transform cannot act on this document."""


class EvaluationError(TiduError):
    """Inputs are missing or of the wrong type, or the evaluation would not fit in memory."""


class ArgumentError(TiduError, TypeError):
    """A function of `tidu_cli` was called with what it does not take. A TypeError, too, as Python has it."""


class LimitError(TiduError):
    """The work would be more than a limit allows (`tidu_cli.limits`)."""


class StepsError(LimitError):
    """The loops of an evaluation would run more steps than their limit allows."""


class PluginError(TiduError):
    """A package that brings primitives is broken, or clashes with another."""


_in_shell: ContextVar[bool] = ContextVar("in_shell", default=False)


@contextmanager
def called_in_shell(called: bool = True) -> Iterator[None]:
    """Within the block, errors name options of commands, and not arguments of Python. So does one in a block that does."""
    token = _in_shell.set(called or _in_shell.get())
    try:
        yield
    finally:
        _in_shell.reset(token)


def is_called_in_shell() -> bool:
    """Whether errors name options of commands."""
    return _in_shell.get()


class Remedy(NamedTuple):
    """A way out, as data: an option, and the function that has it where that is not the one that was called.

    Its text spells it for who called: `tidu materialize --set x=VALUE` in a shell, `materialize(set={'x': VALUE})` in Python. Where
    these differ by more than the spelling, `flag` is the command line's name of the option, `value` what it is given there, and
    `python` all that is written in Python.
    """

    option: str = ""
    value: object = ""
    function: str = ""
    command: str = ""
    flag: str = ""
    python: str = ""

    def __str__(self) -> str:
        return self.in_shell if _in_shell.get() else self.in_python

    @property
    def in_shell(self) -> str:
        """As words of a command line."""
        flag = self.flag or (f"--{self.option.replace('_', '-')}" if self.option else "")
        command = self.command or self.function
        return " ".join(filter(None, (command and f"tidu {command}", flag, "" if self.value is True else str(self.value))))

    @property
    def in_python(self) -> str:
        """As code."""
        if self.python:
            return self.python
        given = f"{self.option}={'...' if self.value == '' else repr(self.value)}" if self.option else ""
        if not self.function:
            return given
        return f"{self.function}(document, {given})" if given else f"{self.function}()"


LONGEST_HINT = 60
"""Names longer than this are not compared: that takes time as the product of their lengths, and nobody typed them."""

MOST_HINTS = 1000
"""As many names are compared with a misspelt one, the first of about its length."""


def did_you_mean(word: str, known: list[str], alike: float = 0.6) -> str:
    """A hint `; did you mean 'x'?` when `word` is close to one of `known`, or lists some, else an empty string. Bounded.

    `alike`, up to 1, says how close: of short words with a meaning of their own it had better be close to 1.
    """
    import difflib  # slow to import, and only wanted on the way to an error
    from itertools import islice

    if len(word) > LONGEST_HINT:
        return ""
    if (whole := word.partition("[")[0]) != word and whole in known:
        return f"; elements have no key: take '{whole}', all of it"
    listed = word.split(",")
    if len(listed) > 1 and set(known).issuperset(listed):
        return f"; name {' and '.join(map(repr, listed))} one by one"
    # Two names of which one is twice as long as the other are never close.
    likely = (name for name in known if len(word) <= 2 * len(name) <= 4 * len(word))
    close = difflib.get_close_matches(word, list(islice(likely, MOST_HINTS)), n=1, cutoff=alike)
    return f"; did you mean {close[0]!r}?" if close else ""


def counted(n: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
