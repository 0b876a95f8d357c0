"""Tracing: a Python function is called with arrays that record what is done to them."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tidu_cli.build.errors import BuildError, called, name_of_function, signature_of
from tidu_cli.build.patching.names import loading, numpy_traced
from tidu_cli.build.pytree import Tree, filled, hints_of, inputs_of, outputs_of, tree_of
from tidu_cli.build.recorder import Recorder, chosen, default_output, running
from tidu_cli.build.scipy.calling import scipy_traced
from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import Type


def trace(function: Callable[..., Any], *args: Any, name: str | None = None, output: str = "y", **inputs: Any) -> Document:
    """The graph of a function, a document of one graph.

    Arguments are types: text such as "f64[3]", TensorTypes, arrays (for their type), or these in dicts, lists, tuples and
    dataclasses. Parameters left out keep their defaults, which become constants. The result gives the outputs: an array is called
    `output`, the parts of a tuple or list `output.0`, `output.1`, ..., those of a dict or dataclass by their names.
    Raises BuildError, with the file and line, for what cannot be traced.
    """
    recorder = Recorder()
    signature = signature_of(function)
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


def build_function(place: str, inputs: Mapping[str, Type], *, name: str | None = None, outputs: Sequence[str] = ()) -> Document:
    """The graph of FILE.py:FUNCTION, which is run. Dots in the keys of `inputs` say how they nest.

    `outputs` chooses outputs, or names the one of a function that returns one array.
    """
    file, _, function_name = place.rpartition(":")
    function = loaded(file, function_name)
    arguments = arguments_of(function, tree_of(inputs))
    recorder = Recorder()
    arrays = {key: recorder.input(Key(key), type_) for key, type_ in inputs.items()}
    with contextlib.redirect_stdout(sys.stderr), running(recorder), numpy_traced(), scipy_traced():
        positional, named = bound(function, arguments, arrays)
        result = called(function, *positional, **named)
    single = not isinstance(result, dict) and not dataclasses.is_dataclass(result) and not isinstance(result, tuple | list)
    alone = outputs[0] if len(outputs) == 1 and single else default_output(inputs)
    found = outputs_of(recorder, result, alone)
    return recorder.document(name or function_name, chosen(found, outputs, function_name))


# Functions in files.


def bound(
    function: Callable[..., Any], arguments: Mapping[str, tuple[Any, Any]], arrays: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """What a function is called with for arrays by key, by position and by name; `arguments` are the trees of its parameters."""
    values = {k: filled(tree, hint, arrays) for k, (tree, hint) in arguments.items()}
    parameters = signature_of(function).parameters
    only = [k for k, p in parameters.items() if p.kind is inspect.Parameter.POSITIONAL_ONLY and k in values]
    return [values.pop(k) for k in only], values


def loaded(file: str, function_name: str) -> Callable[..., Any]:
    """The function of that name in a Python file, which is run. Raises BuildError, UnknownNameError."""
    path = Path(file)
    if not path.is_file():
        raise BuildError(f"{file}: no such file")
    if b"\0" in path.read_bytes():
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


def arguments_of(function: Callable[..., Any], tree: Tree) -> dict[str, tuple[Any, Any]]:
    """The trees of a function's parameters, with the classes that annotations ask for. Raises BuildError if they do not fit."""
    parameters, name = signature_of(function).parameters, name_of_function(function)
    free = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
    named = [k for k, p in parameters.items() if p.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)]
    for key in tree:
        if key not in named and not free:
            raise UnknownNameError(f"{name} has no parameter '{key}'{did_you_mean(key, named)} (parameters: {', '.join(named)})")
    missing = [k for k in named if k not in tree and parameters[k].default is inspect.Parameter.empty]
    if missing:
        raise BuildError(f"{name} needs '{missing[0]}'; give its type with -i {missing[0]}:TYPE, such as {missing[0]}:f64[3]")
    hints = hints_of(function)
    found = {}
    for key, below in tree.items():
        default = parameters[key].default if key in parameters else None
        found[key] = below, type(default) if dataclasses.is_dataclass(default) else hints.get(key)
    return found
