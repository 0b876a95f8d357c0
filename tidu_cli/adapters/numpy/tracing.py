"""Tracing: a Python function is called with arrays that record what is done to them."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.data import with_data
from tidu_cli.adapters.numpy.errors import BuildError, called, name_of_function, signature_of
from tidu_cli.adapters.numpy.names import loading, numpy_traced
from tidu_cli.adapters.numpy.parameters import arguments_of, bound, tree_of
from tidu_cli.adapters.numpy.pytree import inputs_of, outputs_of
from tidu_cli.adapters.numpy.recorder import Recorder, chosen, default_output, running
from tidu_cli.adapters.numpy.scipy.calling import scipy_traced
from tidu_cli.adapters.numpy.sources import Sources
from tidu_cli.adapters.numpy_helpers import MARK
from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.port_data import Data, Given, Static


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
