"""Where equations come from: what is said of one that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidu_cli.adapters.numpy.errors import BuildError, shown, written_by_users

_OWN = str(Path(__file__).parents[3])
"""Where tidu is, which calls users' functions."""


class EquationError(BuildError):
    """An equation that is not read. Its message has the line of the user's source, and the equation."""

    def __init__(self, said: str, place: str | None) -> None:
        super().__init__(f"{place}: {said}" if place else said)
        self.said = said
        self.place = place


def refusal(equation: Any, reason: object) -> EquationError:
    """The error of an equation that cannot be read, and why."""
    return EquationError(f"equation {signature(equation)}: {reason}", line_of(equation))


def called_at(equation: Any, error: EquationError) -> EquationError:
    """The error of an equation within one that calls it, whose line it has where it has none: functions of JAX know no other."""
    return error if error.place else EquationError(error.said, line_of(equation))


def signature(equation: Any) -> str:
    """An equation by its name and types: `sort(f32[8]) -> f32[8]`."""
    given, found = (", ".join(_type(v.aval) for v in some) for some in (equation.invars, equation.outvars))
    text = f"'{equation.primitive.name}' of ({given})"
    text = f"{text} -> {found}" if found else text
    return text if len(text) < 200 else f"{text[:200]}..."


def _type(aval: Any) -> str:
    return str(aval.str_short(short_dtypes=True)) if hasattr(aval, "str_short") else str(aval)


def line_of(equation: Any) -> str | None:
    """FILE:LINE of the user's source that made an equation, if it is known."""
    try:
        from jax._src.source_info_util import user_frames

        frames = [(frame.file_name, frame.start_line) for frame in user_frames(equation.source_info.traceback)]
    except Exception:  # these are internals of JAX, and a place is not worth an error
        return None
    frames = [frame for frame in frames if not frame[0].startswith(_OWN)]
    own = [frame for frame in frames if written_by_users(frame[0])] or frames
    return f"{shown(own[0][0])}:{own[0][1]}" if own else None
