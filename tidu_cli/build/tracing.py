"""Tracing: a Python function is called with arrays that record what is done to them.

Inputs may be nested in dicts, lists, tuples and dataclasses; their keys are the path to them: `params.w`, `layers.0.b`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import inspect
import sys
import traceback
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tidu_cli
from tidu_cli.build.array import Array
from tidu_cli.build.recorder import Recorder
from tidu_cli.build.trouble import BuildError
from tidu_cli.errors import TiduError, TypeTextError, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import ITEMSIZE, TensorType, parse_type
from tidu_cli.primitives.structural import dtype_name

MAX_LEVELS = 64
"""How deep inputs and outputs may nest."""

_OWN = (str(Path(tidu_cli.__file__).parent), str(Path(np.__file__).parent))


def trace(function: Callable[..., Any], *args: Any, name: str | None = None, output: str = "y", **inputs: Any) -> Document:
    """The graph of a function, a document of one graph.

    Arguments are types: text such as "f64[3]", TensorTypes, arrays (for their type), or these in dicts, lists, tuples and
    dataclasses. Parameters left out keep their defaults, which become constants. The result gives the outputs: an array is called
    `output`, the parts of a tuple or list `output.0`, `output.1`, ..., those of a dict or dataclass by their names.
    Raises BuildError, with the file and line, for what cannot be traced.
    """
    recorder = Recorder()
    signature = _signature(function)
    try:
        bound = signature.bind(*args, **inputs)
    except TypeError as error:
        raise BuildError(f"{_name(function)}: {error}") from None
    given: dict[str, Any] = {}
    for parameter, value in bound.arguments.items():
        kind = signature.parameters[parameter].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            given[parameter] = tuple(_inputs(recorder, v, f"{parameter}.{k}") for k, v in enumerate(value))
        elif kind is inspect.Parameter.VAR_KEYWORD:
            given[parameter] = {k: _inputs(recorder, v, k) for k, v in value.items()}
        else:
            given[parameter] = _inputs(recorder, value, parameter)
    bound.arguments.update(given)
    result = _called(function, *bound.args, **bound.kwargs)
    return recorder.document(name or _name(function), _outputs(recorder, result, output))


def build_function(
    place: str, inputs: Mapping[str, TensorType], *, name: str | None = None, outputs: Sequence[str] = ()
) -> Document:
    """The graph of FILE.py:FUNCTION, which is run. Dots in the keys of `inputs` say how they nest.

    `outputs` chooses outputs, or names the one of a function that returns one array.
    """
    file, _, function_name = place.rpartition(":")
    function = _loaded(file, function_name)
    arguments = _arguments(function, _tree(inputs))
    recorder = Recorder()
    arrays = {key: recorder.input(Key(key), type_) for key, type_ in inputs.items()}
    values = {k: _filled(tree, arrays) for k, tree in arguments.items()}
    with contextlib.redirect_stdout(sys.stderr):
        result = _called(function, *_positional(function, values), **values)
    single = not isinstance(result, dict) and not dataclasses.is_dataclass(result) and not isinstance(result, tuple | list)
    alone = outputs[0] if len(outputs) == 1 and single else "y"
    found = _outputs(recorder, result, alone)
    for key in outputs:
        if key not in found:
            raise UnknownNameError(
                f"{function_name} has no output '{key}'{did_you_mean(key, list(found))} (outputs: {', '.join(found)})"
            )
    return recorder.document(name or function_name, {key: found[key] for key in outputs} if outputs else found)


# Functions in files.


def _loaded(file: str, function_name: str) -> Callable[..., Any]:
    path = Path(file)
    if not path.is_file():
        raise BuildError(f"{file}: no such file")
    spec = importlib.util.spec_from_file_location(path.stem if path.stem.isidentifier() else "traced", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder, had = str(path.resolve().parent), sys.modules.get(spec.name)
    sys.path.insert(0, folder)
    sys.modules[spec.name] = module  # as dataclasses look for the module of their annotations
    try:
        with contextlib.redirect_stdout(sys.stderr):
            _called(spec.loader.exec_module, module)
    finally:
        sys.path.remove(folder)
        if had is not None:
            sys.modules[spec.name] = had
    functions = {k: v for k, v in vars(module).items() if callable(v) and not k.startswith("__")}
    if function_name not in functions:
        own = [k for k, v in functions.items() if getattr(v, "__module__", None) == spec.name]
        raise UnknownNameError(
            f"{file} has no function '{function_name}'{did_you_mean(function_name, own)} (functions: {', '.join(own) or 'none'})"
        )
    return functions[function_name]  # type: ignore[no-any-return]


def _name(function: Callable[..., Any]) -> str:
    found = getattr(function, "__name__", "f")
    return found if found.isidentifier() else "f"


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        raise BuildError(f"{_name(function)}: its parameters are not known; wrap it in a function of your own") from None


Tree = dict[str, Any]
"""The keys of inputs by the parts of their names: at the leaves the whole key."""


def _tree(inputs: Mapping[str, TensorType]) -> Tree:
    tree: Tree = {}
    for key in inputs:
        *path, last = key.split(".")
        if len(path) > MAX_LEVELS:
            raise BuildError(f"input '{key[:60]}' nests deeper than {MAX_LEVELS} levels")
        level = tree
        for part in path:
            level = level.setdefault(part, {})
            if not isinstance(level, dict):
                raise BuildError(f"input '{key}' is inside of '{level}', which is an array")
        if last in level:
            raise BuildError(f"input '{key}' is given twice, or holds others")
        level[last] = key
    return tree


def _arguments(function: Callable[..., Any], tree: Tree) -> dict[str, Any]:
    """The trees of a function's parameters, with the classes that annotations ask for. Raises BuildError if they do not fit."""
    parameters = _signature(function).parameters
    free = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    named = [k for k, p in parameters.items() if p.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)]
    for key in tree:
        if key not in named and not free:
            raise UnknownNameError(
                f"{_name(function)} has no parameter '{key}'{did_you_mean(key, named)} (parameters: {', '.join(named)})"
            )
    missing = [k for k in named if k not in tree and parameters[k].default is inspect.Parameter.empty]
    if missing:
        raise BuildError(
            f"{_name(function)} needs '{missing[0]}'; give its type with -i {missing[0]}:TYPE, such as {missing[0]}:f64[3]"
        )
    try:
        hints = typing.get_type_hints(function)
    except Exception:
        hints = {}
    found: dict[str, Any] = {}
    for key, below in tree.items():
        default = parameters[key].default if key in parameters else None
        found[key] = _Filling(below, type(default) if dataclasses.is_dataclass(default) else hints.get(key))
    return found


@dataclasses.dataclass(frozen=True)
class _Filling:
    tree: Any
    hint: Any


def _filled(filling: _Filling, arrays: Mapping[str, Array]) -> Any:
    """The value of a parameter: an Array, or a dataclass if annotated with one, a list if its keys count from 0, or a dict."""
    tree, hint = filling.tree, filling.hint
    if isinstance(tree, str):
        return arrays[tree]
    origin = typing.get_origin(hint) or hint
    parts = typing.get_args(hint)
    if isinstance(origin, type) and (dataclasses.is_dataclass(origin) or hasattr(origin, "_fields")):
        try:
            hints = typing.get_type_hints(origin)
        except Exception:
            hints = {}
        values = {k: _filled(_Filling(v, hints.get(k)), arrays) for k, v in tree.items()}
        try:
            return origin(**values)
        except TypeError as error:
            raise BuildError(f"{origin.__name__}: {error}") from None
    if sorted(tree) == sorted(map(str, range(len(tree)))):
        each = [
            parts[k] if origin is tuple and k < len(parts) and parts[-1] is not ... else parts[0] if parts else None
            for k in range(len(tree))
        ]
        items = [_filled(_Filling(tree[str(k)], each[k]), arrays) for k in range(len(tree))]
        return tuple(items) if origin is tuple else items
    below = parts[1] if len(parts) == 2 and origin is dict else None
    return {k: _filled(_Filling(v, below), arrays) for k, v in tree.items()}


def _positional(function: Callable[..., Any], values: dict[str, Any]) -> list[Any]:
    """The values of parameters that take no name, which leave `values`."""
    only = [k for k, p in _signature(function).parameters.items() if p.kind is inspect.Parameter.POSITIONAL_ONLY and k in values]
    return [values.pop(k) for k in only]


# Nested inputs and outputs.


def _inputs(recorder: Recorder, value: Any, path: str, level: int = 0) -> Any:
    """The structure of types `value` with Arrays in their place, declared in order."""
    if level > MAX_LEVELS:
        raise BuildError(f"input '{path[:60]}' nests deeper than {MAX_LEVELS} levels")
    if isinstance(value, dict):
        return {k: _inputs(recorder, v, f"{path}.{k}", level + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        names = getattr(value, "_fields", range(len(value)))
        items = [_inputs(recorder, v, f"{path}.{k}", level + 1) for k, v in zip(names, value, strict=True)]
        return items if isinstance(value, list) else type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type | TensorType):
        fields = {
            f.name: _inputs(recorder, getattr(value, f.name), f"{path}.{f.name}", level + 1)
            for f in dataclasses.fields(value)
            if f.init
        }
        return dataclasses.replace(value, **fields)
    return recorder.input(Key(path), _type(value, path))


def _type(value: Any, path: str) -> TensorType:
    if isinstance(value, TensorType):
        return value
    if isinstance(value, str):
        try:
            return parse_type(value)
        except TypeTextError as error:
            raise BuildError(f"input '{path}': {error}") from None
    if isinstance(value, bool | int | float | complex):
        value = np.asarray(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        dtype = dtype_name(np.dtype(value.dtype))
        if dtype in ITEMSIZE:
            return TensorType(dtype, tuple(map(int, value.shape)))
    raise BuildError(
        f"input '{path}': {type(value).__name__} is no type; give text such as 'f64[3]', an array, or leave it out for its default"
    )


def _outputs(recorder: Recorder, result: Any, alone: str) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for path, value in _leaves(result, "", alone, 0):
        key = path
        if not isinstance(value, Array | np.ndarray | np.generic | bool | int | float | complex):
            raise BuildError(
                f"output '{key}' is a {type(value).__name__}; a function returns arrays, in dicts, lists, tuples or dataclasses"
            )
        if key in found:
            raise BuildError(f"two outputs are called '{key}'")
        found[key] = value if isinstance(value, Array) else recorder.constant(np.asarray(value))
        if found[key].recorder is not recorder:
            raise BuildError(f"output '{key}' is of another trace")
    if not found:
        raise BuildError("the function returns nothing; it must return what it computes")
    return found


def _leaves(value: Any, path: str, alone: str, level: int) -> Iterator[tuple[str, Any]]:
    if level > MAX_LEVELS:
        raise BuildError(f"output '{path[:60]}' nests deeper than {MAX_LEVELS} levels")
    if isinstance(value, dict):
        members = [(str(k), v) for k, v in value.items()]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        members = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
    elif isinstance(value, tuple | list):
        names = getattr(value, "_fields", None)
        members = [(str(k), v) for k, v in zip(names or range(len(value)), value, strict=True)]
        path = path or ("" if names else alone)
    else:
        yield path or alone, value
        return
    for k, v in members:
        yield from _leaves(v, f"{path}.{k}" if path else k, alone, level + 1)


# Calling what users wrote.


def _called(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a user's function; what it raises becomes one line with the file and line where it happened."""
    try:
        return function(*args, **options)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        message = " ".join(str(error).split())
        if isinstance(error, SyntaxError):
            raise BuildError(f"{error.filename}:{error.lineno}: {error.msg}") from None
        if not isinstance(error, TiduError):
            message = f"{type(error).__name__}: {message}" if message else type(error).__name__
        where = _place(error)
        # NumPy hides what an array refused behind an error of its own.
        if isinstance(error.__cause__, TiduError):
            message = str(error.__cause__)
        raise BuildError(f"{where}: {message}" if where else message) from error


def _place(error: BaseException) -> str | None:
    """FILE:LINE of the innermost frame that is neither tidu's nor NumPy's nor Python's machinery."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((*_OWN, "<frozen"))]
    if not frames:
        return None
    file = frames[-1].filename
    with contextlib.suppress(ValueError):
        file = str(Path(file).relative_to(Path.cwd()))
    return f"{file}:{frames[-1].lineno}"
