"""Calling what users wrote: whatever it raises becomes one line with the file and line where it happened."""

from __future__ import annotations

import contextlib
import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tidu_cli.build.errors import BuildError
from tidu_cli.errors import TiduError

_MACHINERY = ("<frozen", "numpy/", str(Path(__file__).parents[1]), str(Path(str(np.__file__)).parent))
"""Where frames are of tidu, NumPy, also of its compiled parts, or Python's imports."""

_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def name_of_function(function: Callable[..., Any]) -> str:
    """Its name, f where it has none."""
    found = getattr(function, "__name__", "f")
    return found if found.isidentifier() else "f"


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Its parameters. Raises BuildError for what does not tell them."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        raise BuildError(f"{name_of_function(function)}: its parameters are not known; wrap it in a function of your own") from None


def called(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a user's function; what it raises becomes one line with the file and line where it happened."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise BuildError(
            f"{name_of_function(function)} is a generator or async function; write a function that returns what it computes"
        )
    try:
        return function(*args, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = " ".join(str(error).split())
        if isinstance(error, SyntaxError):
            raise BuildError(f"{_shown(str(error.filename))}:{error.lineno}: {error.msg}") from None
        if not isinstance(error, TiduError):
            message = f"{type(error).__name__}: {message}" if message else type(error).__name__
        where = _place(error)
        # NumPy hides what an array refused behind an error of its own.
        if isinstance(error.__cause__, TiduError):
            message = str(error.__cause__)
        raise BuildError(f"{where}: {message}" if where else message) from error


def _place(error: BaseException) -> str | None:
    """FILE:LINE of the innermost frame that the user wrote; where there is none, of another package's."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_MACHINERY)]
    if not frames:
        return None
    own = [f for f in frames if not f.filename.startswith(_INSTALLED)]
    frames = own or frames
    return f"{_shown(frames[-1].filename)}:{frames[-1].lineno}"


def place_of_caller() -> str:
    """FILE:LINE of what the user wrote that runs now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((*_MACHINERY, *_INSTALLED)):
        frame = frame.f_back
    return f"{_shown(frame.f_code.co_filename)}:{frame.f_lineno}"


def _shown(file: str) -> str:
    """A file as users name it: from where they are, if it is below."""
    with contextlib.suppress(ValueError):
        return str(Path(file).relative_to(Path.cwd()))
    return file
