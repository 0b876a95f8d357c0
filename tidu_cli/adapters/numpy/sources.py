"""Where in users' code a node arises: the functions that are running then, each with the line that it is at."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType

from tidu_cli.adapters.numpy.errors import shown, written_by_users

_WITHIN_LINES = frozenset({"<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>"})


class Sources:
    """The users' functions that run within a call of the function that makes this.

    A place is text, `FUNCTION FILE:LINE`, such as `Layer.forward net.py:12`.
    """

    def __init__(self) -> None:
        self._outermost = sys._getframe(1).f_code
        self._known: dict[CodeType, str] = {}
        self._texts: dict[tuple[CodeType, int], str] = {}

    def now(self) -> list[str]:
        """The places that are at work, from the outermost to the innermost one."""
        places: list[str] = []
        frame = sys._getframe(1)
        while frame is not None and frame.f_code is not self._outermost:
            code = frame.f_code
            name = self._known.get(code)
            if name is None:
                name = self._known[code] = _named(code)
            if name:
                at = code, frame.f_lineno
                if at not in self._texts:
                    self._texts[at] = f"{name}:{frame.f_lineno}"
                places.append(self._texts[at])
            frame = frame.f_back  # type: ignore[assignment]
        return places[::-1]


def _named(code: CodeType) -> str:
    """`FUNCTION FILE` of a user's function, '' of any other, and of comprehensions, which are of the line that they stand in.

    A document goes to others: of a file that is not below the working directory it has the name alone.
    """
    if code.co_name in _WITHIN_LINES or not written_by_users(code.co_filename):
        return ""
    file = shown(code.co_filename)
    return f"{code.co_qualname.replace('<locals>.', '')} {Path(file).name if Path(file).is_absolute() else file}"
