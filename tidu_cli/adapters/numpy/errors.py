"""What can go wrong while a graph is built from a formula or a function, and where in what users wrote it happened.

`Sources` are the places at which a node arises: the users' functions that are running then, each with the line that it is at.
"""

from __future__ import annotations

import contextlib
import dis
import inspect
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, NoReturn

import numpy as np

from tidu_cli.adapters.numpy.arrays.refused import FUNCTIONS, instead_of, name_of_call, refusal
from tidu_cli.errors import TiduError


class BuildError(TiduError):
    """A formula or a function cannot be made into a graph."""


class UntraceableError(BuildError, TypeError):
    """A traced function asks for something that has no value yet. A TypeError, too, as NumPy and Python expect of conversions."""


class UnknownFunctionError(BuildError, AttributeError):
    """A function of NumPy or of the array API that has no counterpart in graphs. An AttributeError, too, for `hasattr`."""


AN_INTEGER = "an integer (as for range(), a slice or an axis)"


def refused(what: str, instead: str) -> Callable[..., NoReturn]:
    """A method that would need a value."""

    def refuse(self: Any, *args: object, **options: object) -> NoReturn:
        raise needs_value(self, what, instead)

    return refuse


def refused_branch(what: str, instead: str) -> Callable[..., NoReturn]:
    """As `refused`, for what asks whether an array is true: a branch, or a function that compares, such as max, which it names."""

    def refuse(self: Any) -> NoReturn:
        frame = sys._getframe(1)
        calls = dis.opname[frame.f_code.co_code[frame.f_lasti]] in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "PRECALL")
        name = name_of_call(frame) if calls and written_by_users(frame.f_code.co_filename) else None
        known = instead_of(name) if name is not None else None
        raise needs_value(self, what if known is None else f"{name}()", known or instead)

    return refuse


def fixed(name: str, instead: str) -> Callable[[Any, object], NoReturn]:
    """The setter of an attribute."""

    def refuse(self: Any, value: object) -> NoReturn:
        raise UntraceableError(f"assignment to .{name} changes an array in place, which a traced one cannot; {instead}")

    return refuse


def refused_conversion(what: str, instead: str) -> Callable[..., NoReturn]:
    """As `refused`, for what functions ask of an array: what the user wrote there says which it is, and what to write instead."""

    def refuse(self: Any, *args: object, **options: object) -> NoReturn:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
            frame = frame.f_back
        written = dis.opname[frame.f_code.co_code[frame.f_lasti]]
        if written.startswith("STORE_"):
            raise needs_value(
                self,
                "assignment to elements of a NumPy array that the function did not make",
                "write into a copy, y = np.array(y), or into an array that np.zeros or the like makes in the function",
            )
        if "SUBSCR" in written or (written.startswith("BINARY_") and what is AN_INTEGER):
            raise needs_value(self, "indexing a NumPy array or a list", "write np.array(table, like=i)[i]")
        name = name_of_call(frame) if written_by_users(frame.f_code.co_filename) else None
        if name is None or what is AN_INTEGER:
            raise needs_value(self, what, instead)
        raise needs_value(self, f"{name}()", instead_of(name) or instead)

    return refuse


def needs_value(x: Any, what: str, instead: str) -> UntraceableError:
    """The error of an operation that needs the value of an array."""
    return UntraceableError(f"{what} needs the value of an array, which a graph does not have yet ({x.type}); {instead}")


_MACHINERY = ("<frozen", "numpy/", str(Path(__file__).parents[2]), str(Path(str(np.__file__)).parent))
"""Where frames are of tidu, NumPy, also of its compiled parts, or Python's imports."""

_OURS = str(Path(__file__).parents[2])
"""Where tidu is."""

_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def written_by_users(file: str) -> bool:
    """Whether it is neither of tidu, NumPy or Python nor of another package."""
    return not file.startswith(_MACHINERY) and not _installed(file)


def _installed(file: str) -> bool:
    """Whether it is of Python or of a package, wherever that is installed."""
    return file.startswith(_INSTALLED) or "/site-packages/" in file


def name_of_function(function: Callable[..., Any]) -> str:
    """Its name, f where it has none."""
    name = getattr(function, "__name__", "f")
    return name if name.isidentifier() else "f"


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
        with warnings.catch_warnings():
            # Whose rows are views, so that some get lost.
            warnings.filterwarnings("error", "you are shuffling a 'Array'", UserWarning)
            return function(*args, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = " ".join(str(error).split())
        if isinstance(error, SyntaxError):
            raise BuildError(f"{shown(str(error.filename))}:{error.lineno}: {error.msg}") from None
        if not isinstance(error, TiduError):
            message = f"{type(error).__name__}: {message}" if message else type(error).__name__
        if isinstance(error, UserWarning) and "shuffling" in message:
            message = "shuffle() of a traced array; write x = x[rng.permutation(len(x))]"
        where = _place(error)
        # NumPy hides what an array refused behind an error of its own.
        if isinstance(error.__cause__, TiduError):
            message = str(error.__cause__)
        if isinstance(error, TiduError) or isinstance(error.__cause__, TiduError):
            name = _of_scipy(error)
            message = refusal(name) if name else _of_numpy(error) or message
        raise BuildError(f"{where}: {message}" if where else message) from error


def _of_scipy(error: BaseException) -> str | None:
    """The function of SciPy's that was called, if its own code met an array that is traced."""
    first = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        module, name = str(frame.f_globals.get("__name__")), frame.f_code.co_name
        if module.startswith("scipy.") and frame.f_code.co_filename.startswith(_MACHINERY):
            return None  # one that records, and says itself what is wrong
        if not first and module.startswith("scipy.") and not module.startswith("scipy._lib") and name not in _DECORATIONS:
            if name.startswith("__"):  # users make objects of a class, and call them
                name = type(frame.f_locals.get("self")).__name__
            public = [part for part in module.split(".") if not part.startswith("_")]
            first = ".".join((*public[:2], name))
    return first or None


def _of_numpy(error: BaseException) -> str | None:
    """What to say of a function or class of NumPy's that was called, where its own code called one that cannot be traced."""
    if not isinstance(error, UnknownFunctionError):
        return None
    name = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        code, module = frame.f_code, str(frame.f_globals.get("__name__"))
        if not code.co_filename.startswith(_MACHINERY):
            name = None
        elif name is None and module.startswith("numpy."):
            name = code.co_qualname.partition(".")[0]
    if name is None or not hasattr(np, name):
        return None
    return f"np.{name} cannot be traced; {FUNCTIONS.get(name, f'it calls what cannot: {error}')}"


_DECORATIONS = ("wrapper", "wrapped", "inner", "new_func", "axis_nan_policy_wrapper", "__ua_function__")
"""What functions are called that stand before those that compute."""


def _place(error: BaseException) -> str | None:
    """FILE:LINE of the innermost frame that the user wrote; where there is none, of another package's."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(_MACHINERY)]
    if not frames:
        return None
    last = ([f for f in frames if not _installed(f.filename)] or frames)[-1]
    return f"{shown(last.filename)}:{last.lineno}"


def place_of_caller() -> str:
    """FILE:LINE of what the user wrote that runs now."""
    frame = sys._getframe(1)
    while frame.f_back is not None and not written_by_users(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{shown(frame.f_code.co_filename)}:{frame.f_lineno}"


def shown(file: str) -> str:
    """A file as users name it: from where they are, if it is below."""
    with contextlib.suppress(ValueError):
        return str(Path(file).relative_to(Path.cwd()))
    return file


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
