"""What the fuzzer tries: a way to make a case of choices, and a way to judge one. And what a judgement may say."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.choices import Choices
from tidu_cli.errors import TiduError

LONGEST_MESSAGE = 2000
"""Characters. A message names what it is about; it does not repeat an input of any length."""


@dataclass(frozen=True)
class Target:
    """One kind of input. A case is bytes that need nothing else to be understood, so that the corpus outlives the generator.

    `judge` raises whatever is wrong: an AssertionError that says so, or what nobody should ever see. What it gives says whether all
    was decided: a number of cases with numerical doubts, say, are none's fault.
    """

    name: str
    suffix: str
    make: Callable[[Choices], bytes]
    judge: Callable[[bytes], str]


class Hang(BaseException):
    """Work on a case took too long. No Exception, since code may rightly catch those."""


@dataclass(frozen=True)
class Finding:
    """A case that failed: what was raised and where, which is what makes two findings the same, and the whole story."""

    case: bytes
    kind: str
    story: str


def judged(target: Target, case: bytes) -> Finding | str:
    """What the target says of a case, or how it failed."""
    try:
        return target.judge(case)
    except (Exception, Hang) as error:
        return Finding(case, _kind(error), "".join(traceback.format_exception(error)))


def _kind(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "tidu_cli" in f.filename or "tests" in f.filename]
    last = frames[-1]
    words = re.sub(r"[0-9]+|'[^']*'", "_", str(error).partition("\n")[0])[:60] if isinstance(error, AssertionError) else ""
    return f"{type(error).__name__} in {last.filename.rpartition('/')[2]}:{last.name} {words}".strip()


def require_message(error: TiduError) -> None:
    """An error for users is one line that prints, and not endless."""
    text = str(error)
    assert text and text.isprintable(), f"message is not one printable line: {text!r}"
    assert len(text) <= LONGEST_MESSAGE, f"message has {len(text)} characters"
    assert "out of memory" not in text, f"memory ran out instead of being refused: {text}"
