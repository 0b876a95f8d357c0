"""Tracing: a Python function is called with arrays that record what is done to them.

While it runs, the names of NumPy and `math` that make arrays give users' code buffers. The functions that make arrays are mostly
written in C, so it is their names that are replaced: in NumPy's module, and in modules of users that imported them. Code of
packages, and other threads, get what NumPy gives: each call looks at who calls.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import importlib.util
import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy import creating
from tidu_cli.adapters.numpy.buffers.buffer import Buffer
from tidu_cli.adapters.numpy.buffers.memory import LOADING, buffers_wanted, holds_traced
from tidu_cli.adapters.numpy.data import with_data
from tidu_cli.adapters.numpy.errors import BuildError, Sources, called, name_of_function, signature_of, written_by_users
from tidu_cli.adapters.numpy.numpy.functions import FUNCTIONS
from tidu_cli.adapters.numpy.parameters import arguments_of, bound, tree_of
from tidu_cli.adapters.numpy.pytree import inputs_of, outputs_of
from tidu_cli.adapters.numpy.recorder import Recorder, chosen, default_output, running
from tidu_cli.adapters.numpy.scipy.calling import scipy_traced
from tidu_cli.adapters.source_code import MARK
from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.port_data import Data, Given, Static

_users = lru_cache(maxsize=4096)(written_by_users)


def _calls_us(frame: Any) -> bool:
    """Whether it is users' code, also by way of compiled code, which has no frames, and something is traced."""
    return buffers_wanted() and _users(frame.f_code.co_filename)


def _replacement(numpys: Any, ours: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Any:
    """A function of NumPy's that is another where users' code calls it while something is traced."""

    @functools.wraps(numpys)
    def function(*args: Any, **options: Any) -> Any:
        return ours(args, options) if _calls_us(sys._getframe(1)) else numpys(*args, **options)

    function.numpys = numpys  # type: ignore[attr-defined]
    return function


def _mathematical(maths: Any, ours: Callable[..., Any]) -> Any:
    """A function of `math`, which is another one of traced values."""

    @functools.wraps(maths)
    def function(*args: Any, **options: Any) -> Any:
        return ours(*args, **options) if holds_traced(args) else maths(*args, **options)

    return function


class _Joining:
    """np.r_ or np.c_."""

    def __init__(self, numpys: Any) -> None:
        self._numpys = numpys

    def __getitem__(self, key: Any) -> Any:
        return creating.joined(self._numpys, key) if _calls_us(sys._getframe(1)) else self._numpys[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._numpys, name)

    def __len__(self) -> int:
        return len(self._numpys)


_PLAIN_CALL = np.vectorize.__call__


def _vectorized(self: Any, *args: Any, **options: Any) -> Any:
    return creating.vectorized(self, args, options) if holds_traced((args, options)) else _PLAIN_CALL(self, *args, **options)


def _replacements() -> list[tuple[Any, str, Any]]:
    """What is replaced: where, by what name, and by what."""
    making: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(creating.MAKING, creating.made),
        **dict.fromkeys(creating.NESTED, creating.array),
        "full": creating.full,
        "fromiter": creating.fromiter,
        "ndenumerate": creating.enumerated,
        "apply_along_axis": creating.along_axis,
        "piecewise": creating.piecewise,
    }
    replacements: list[tuple[Any, str, Any]] = [
        (np, k, _replacement(f := getattr(np, k), functools.partial(ours, f))) for k, ours in making.items()
    ]
    modules = {"": np, "linalg": np.linalg}
    for name in FUNCTIONS:
        module, _, short = name.rpartition(".")
        f = getattr(modules.get(module), short, None)
        if f is not None and not isinstance(f, np.ufunc) and name not in creating.NESTED:
            replacements.append((modules[module], short, _replacement(f, functools.partial(creating.computed, f, name))))
    replacements += [(np, k, _Joining(getattr(np, k))) for k in ("r_", "c_")]
    replacements.append((np.vectorize, "__call__", _vectorized))
    return replacements + [(math, k, _mathematical(getattr(math, k), f)) for k, f in creating.FUNCTIONS.items() if hasattr(math, k)]


class _Names:
    """The names, and how many traces want them replaced."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._traces = 0
        self._ours = _replacements()
        self._plain = [(owner, name, getattr(owner, name)) for owner, name, _ in self._ours]
        pairs = [(theirs, ours) for (_, _, theirs), (_, _, ours) in zip(self._plain, self._ours, strict=True)]
        self._to_ours = {id(theirs): ours for theirs, ours in pairs}
        self._to_plain = {id(ours): theirs for theirs, ours in pairs}
        self._users: dict[str, bool] = {}

    @contextmanager
    def during(self) -> Iterator[None]:
        """Have the names replaced."""
        with self._lock:
            self._traces += 1
            if self._traces == 1:
                _put(self._ours)
                self._exchange(self._to_ours, traced=True)
        try:
            yield
        finally:
            with self._lock:
                self._traces -= 1
                if not self._traces:
                    _put(self._plain)
                    self._exchange(self._to_plain, traced=False)

    def _exchange(self, table: dict[int, Any], *, traced: bool) -> None:
        """Exchange what users' modules have imported by its name, and show arrays in them as buffers, or no longer."""
        before, after = (np.ndarray, _shown) if traced else (Buffer, _hidden)
        for name, module in list(sys.modules.items()):
            if not self._users.get(name, True) or not self._of_users(name, module):  # of thousands of packages' a look tells
                continue
            names = vars(module)
            for key, value in list(names.items()):
                if id(value) in table:
                    names[key] = table[id(value)]
                elif type(value) is before:
                    names[key] = after(value)

    def _of_users(self, name: str, module: Any) -> bool:
        if name not in self._users:
            file = getattr(module, "__file__", None) if isinstance(module, ModuleType) else None
            self._users[name] = name == "__main__" or (isinstance(file, str) and file.endswith(".py") and written_by_users(file))
        return self._users[name]


def _shown(x: Any) -> Any:
    """An array of a module as a buffer, which cannot be written into with traced values, but its copies can."""
    shown = x.view(Buffer)
    shown.hides = x
    return shown


def _hidden(x: Any) -> Any:
    return getattr(x, "hides", x)


def _put(names: list[tuple[Any, str, Any]]) -> None:
    for owner, name, value in names:
        setattr(owner, name, value)


_NAMES = _Names()
"""One for the process, as NumPy's names are."""


@contextmanager
def loading() -> Iterator[None]:
    """While a file is run: arrays that it makes are buffers, as the function that is traced meets them."""
    token = LOADING.set(True)
    try:
        with _NAMES.during():
            yield
    finally:
        LOADING.reset(token)


numpy_traced = _NAMES.during
"""While this context lasts, arrays that users' code makes may hold traced values."""


def trace(
    function: Callable[..., Any], *args: Any, name: str | None = None, output: str = "y", source: Any = False, **inputs: Any
) -> Document:
    """The graph of a function, a document of one graph.

    Arguments are types: text such as "f64[3]", TensorTypes, arrays and numbers (for their type), or these in dicts, lists, tuples
    and dataclasses. None, functions, what is `Static`, and the defaults of parameters that are left out are no inputs: they stay
    what they are. The result gives the outputs: an array is called `output`, the parts of a tuple or list `output.0`, `output.1`,
    ..., those of a dict or dataclass by their names. With `source=True` the meta of each node has under `source` which lines of
    which functions made it, the outermost first.
    Raises BuildError, with the file and line, for what cannot be traced.
    """
    recorder = Recorder()
    function = _written(function)
    signature = signature_of(function)
    if not isinstance(source, bool):  # a parameter of that name
        inputs["source"] = source
    elif source:
        recorder.sources = Sources()
    try:
        bound = signature.bind(*args, **inputs)
    except TypeError as error:
        raise BuildError(f"{name_of_function(function)}: {error}") from None
    for parameter, value in bound.arguments.items():
        if signature.parameters[parameter].kind is inspect.Parameter.VAR_KEYWORD:
            bound.arguments[parameter] = {k: inputs_of(recorder, v, k) for k, v in value.items()}
        else:
            bound.arguments[parameter] = inputs_of(recorder, value, parameter)
    with running(recorder), numpy_traced(), scipy_traced():
        result = called(function, *bound.args, **bound.kwargs)
    return recorder.document(name or name_of_function(function), outputs_of(recorder, result, output))


def build_function(
    place: str,
    inputs: Mapping[str, Given],
    *,
    name: str | None = None,
    outputs: Sequence[str] = (),
    data: Data | None = None,
    source: bool = False,
) -> Document:
    """The graph of FILE.py:FUNCTION, which is run. Dots in the keys of `inputs` say how they nest.

    Of parameters, and parts of them, that are not in `inputs` what `data` has for them says the types, or is a constant.
    `outputs` chooses outputs, or names the one of a function that returns one array. For `source` see `trace`.
    """
    file, _, function_name = place.rpartition(":")
    function = loaded(file, function_name)
    inputs = with_data(function, inputs, data)
    arguments = arguments_of(function, tree_of(inputs))
    recorder = Recorder()
    recorder.sources = Sources() if source else None
    arrays = {key: x.value if isinstance(x, Static) else recorder.input(Key(key), x) for key, x in inputs.items()}
    with contextlib.redirect_stdout(sys.stderr), running(recorder), numpy_traced(), scipy_traced():
        arguments_given = bound(function, arguments, arrays)
        result = called(function, *arguments_given.args, **arguments_given.kwargs)
    single = not isinstance(result, dict) and not dataclasses.is_dataclass(result) and not isinstance(result, tuple | list)
    alone = default_output(inputs, outputs if single else ())
    return recorder.document(name or function_name, chosen(outputs_of(recorder, result, alone), outputs, function_name))


# Functions in files.


def _written(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function as it is read of its file, if tidu wrote that: its loops are nodes then."""
    module = sys.modules.get(str(getattr(function, "__module__", "")))
    name, file = getattr(function, "__name__", ""), getattr(module, "__file__", None)
    is_own = file and getattr(module, name, None) is function and module.__doc__ == ast.literal_eval(MARK)
    return loaded(str(file), name) if is_own else function


def loaded(file: str, function_name: str) -> Callable[..., Any]:
    """The function of that name in a Python file, which is run. Raises BuildError, UnknownNameError."""
    path = Path(file)
    if not path.is_file():
        raise BuildError(f"{file}: no such file")
    source = path.read_bytes()
    if b"\0" in source:
        raise BuildError(f"{file}: is not a Python file: it has null bytes")  # Python's error would not say which file
    # Under a name of its own, as a file called random.py must not stand in for Python's.
    spec = importlib.util.spec_from_file_location(f"_traced_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[spec.name] = module  # as dataclasses look for the module of their annotations
    try:
        with contextlib.redirect_stdout(sys.stderr), loading():
            if source.removeprefix(b"\xef\xbb\xbf").startswith(MARK.strip().encode()):  # whatever an editor ends lines with
                from tidu_cli.adapters.numpy.written.reading import run

                called(run, module, source, str(path))
            else:
                called(spec.loader.exec_module, module)
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
    functions = {k: v for k, v in vars(module).items() if callable(v) and not k.startswith("__")}
    if function_name not in functions:
        own = [k for k, v in functions.items() if getattr(v, "__module__", None) == spec.name]
        raise UnknownNameError(
            f"{file} has no function '{function_name}'{did_you_mean(function_name, own)} (functions: {', '.join(own) or 'none'})"
        )
    return functions[function_name]  # type: ignore[no-any-return]


MANY = 1000
"""A loop of more turns had better be a scan."""

_PERIODS = 64
"""As many lengths of a turn are tried."""


def repetition(graph: Graph) -> tuple[int, int] | None:
    """How often the same ops follow one another in the middle of a graph, and how many they are; None up to `MANY` times."""
    if len(graph.code) <= MANY:
        return None
    ops = [case.op for case in graph.cases.cases]  # the cases of constants differ where their values do
    number = {op: k for k, op in enumerate(ops)}
    codes = np.asarray([number[op] for op in ops])[np.asarray(graph.code)]
    middle = len(codes) // 2
    for period in 1 + np.flatnonzero(codes[middle + 1 :] == codes[middle])[:_PERIODS]:
        differ = np.flatnonzero(codes[period:] != codes[:-period])
        first = differ[differ < middle].max(initial=-1) + 1
        last = differ[differ >= middle].min(initial=len(codes) - period)
        turns = int(last - first) // int(period) + 1
        if turns > MANY:
            return turns, int(period)
    return None
