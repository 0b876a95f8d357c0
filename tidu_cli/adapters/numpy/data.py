"""Types of inputs from values for them: what arrays and numbers become inputs, and what else is a constant of Python.

Numbers without a type, as JSON has them, are f64, integers too: nobody differentiates by 3 and gets zeros because it was not
written 3.0. An integer is one of Python's where the function says so, by an annotation or a default; flags and null always, and
text unless it is a point in time in ISO 8601, with its day: such become datetimes.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy import parameters
from tidu_cli.adapters.numpy.errors import BuildError, name_of_function
from tidu_cli.adapters.numpy.pytree import MAX_LEVELS
from tidu_cli.errors import TypeTextError, UnknownNameError, did_you_mean
from tidu_cli.graph.literals import NONFINITE, Literal
from tidu_cli.graph.text import instant_from_text, parse_value_type
from tidu_cli.graph.types import DATETIME, DTYPES, TensorType
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.port_data import Data, Given, Static

Leaf = tuple[str, Given]

_TIME = re.compile(r"\d{4}-\d\d-\d\d")
"""How text begins that is a point in time, where nothing says that it is text."""


def with_data(function: Callable[..., Any], given: Mapping[str, Given], data: Data | None) -> Mapping[str, Given]:
    """What is given, and of what is not, what the data says, in the order of the parameters.

    Raises UnknownNameError for a name that is asked for, or close to that of a parameter without data, and of no parameter;
    BuildError for values that no array has.
    """
    if data is None:
        return given
    known, inputs = parameters.named(function), dict(given)
    for key, value in data.values.items():
        parameter, *path = key.split(".")
        if parameter not in known and not parameters.takes_any(function):
            data.untaken.append(key)
        elif not is_within(key, given):
            hint, default = parameters.expected(function, parameter)
            if hint is None and type(default) is int and type(value) is int:
                data.constants[key] = value
            for part in path:
                hint = parameters.hint_below(hint, part)
                default = (parameters.members_of(default) or {}).get(part, parameters.MISSING)
            inputs.update((k, x) for k, x in parts_of(key, value, hint, default) if not _is_given(k, x, given))
    taken = {key.partition(".")[0] for key in inputs}
    _require_known(name_of_function(function), "parameter", data, known, [k for k in known if k not in taken])
    order = {name: k for k, name in enumerate(known)}
    return dict(sorted(inputs.items(), key=lambda item: order.get(item[0].partition(".")[0], len(order))))


def named_with_data(formula: str, given: Mapping[str, Given], data: Data | None) -> Mapping[str, Given]:
    """Likewise, of a formula, whose inputs are the names that it reads. Data for other names are left untaken."""
    if data is None:
        return given
    free, inputs = parameters.free_names(formula), dict(given)
    for key, value in data.values.items():
        if key in given:
            continue
        if key not in free:
            data.untaken.append(key)
            continue
        leaves = dict(parts_of(key, value))
        type_ = TensorType("bool") if isinstance(value, bool) else leaves.get(key)
        if type_ is None or isinstance(type_, Static):
            raise BuildError(f"input '{key}' of the formula is not a number or array of numbers; give its type with -i {key}:TYPE")
        inputs[key] = type_
    _require_known("the formula", "name", data, free, [k for k in free if k not in inputs])
    return {**given, **{k: inputs[k] for k in free if k in inputs}}


def with_numbers(formula: str, given: Mapping[str, Given]) -> Mapping[str, Given]:
    """What is given, and the other names that a formula reads as numbers, but for those that are better written otherwise."""
    from tidu_cli.adapters.numpy.formulas.language import CONSTANTS, function_named, instead_of_name

    known = {*given, *CONSTANTS}
    rest = [
        x
        for x in parameters.free_names(formula)
        if not (x in known or function_named(x.lower()) or instead_of_name(x, list(given)))
    ]
    return {**given, **dict.fromkeys(rest, TensorType("f64"))}


def is_within(key: str, given: Mapping[str, Given]) -> bool:
    """Whether a key, or one that it is a part of, is given."""
    parts = key.split(".")
    return any(".".join(parts[:k]) in given for k in range(1, len(parts) + 1))


def _is_given(key: str, leaf: Given, given: Mapping[str, Given]) -> bool:
    """Whether what data say of a key is given; of a constant parts may be."""
    return is_within(key, given) or (not isinstance(leaf, Static) and any(other.startswith(f"{key}.") for other in given))


def _require_known(whose: str, what: str, data: Data, known: list[str], free: list[str]) -> None:
    """Raises UnknownNameError for a name that was asked for and is none, or is close to one that nothing is given of."""
    for key in data.untaken:
        name = key.partition(".")[0]
        hint = did_you_mean(name, known if key in data.asked else free)
        if hint or key in data.asked:
            raise UnknownNameError(f"{whose} has no {what} '{name}'{hint} ({what}s: {', '.join(known) or 'none'})")


def parts_of(path: str, value: Any, hint: Any = None, default: Any = parameters.MISSING, level: int = 0) -> Iterator[Leaf]:
    """The inputs and constants that a value holds, by their keys: `params.w` of an object, `layers.0` of a list of such.

    A list of numbers is an array, unless the annotation or the default is a list or tuple.
    """
    if level > MAX_LEVELS:
        raise BuildError(f"input '{path[:60]}' nests deeper than {MAX_LEVELS} levels")
    if isinstance(value, dict) and not (is_typed(value) or set(value) == {"re", "im"}):
        members = {str(k): x for k, x in value.items()}
    elif isinstance(value, list) and (_listed(hint, default) or not _numbers(value)):
        members = {str(k): x for k, x in enumerate(value)}
    else:
        yield path, _leaf(path, value, hint, default)
        return
    if isinstance(value, list):  # the places of parts, as a default may have more or fewer
        yield path, Static(tuple([None] * len(value)) if hint is None and type(default) is tuple else [None] * len(value))
    elif not members:
        yield path, Static(value)
    defaults = parameters.members_of(default) or {}
    further = default[-1] if isinstance(default, list | tuple) and default else parameters.MISSING
    for k, x in members.items():
        yield from parts_of(f"{path}.{k}", x, parameters.hint_below(hint, k), defaults.get(k, further), level + 1)


def is_typed(value: Mapping[str, Any]) -> bool:
    """Whether an object of a file is typed data."""
    return set(value) == {"type", "data"} and isinstance(value["type"], str)


def _listed(hint: Any, default: Any) -> bool:
    origin = typing.get_origin(parameters.annotated_class(hint)) or parameters.annotated_class(hint)
    return origin in (list, tuple) or hasattr(origin, "_fields") or (hint is None and isinstance(default, list | tuple))


def _leaf(path: str, value: Any, hint: Any, default: Any) -> Given:
    """The type of an input, or a constant."""
    wanted = parameters.annotated_class(hint) if hint is not None else type(default)
    if isinstance(value, Literal):
        return value.type
    if isinstance(value, dict):
        return parse_value_type(value["type"]) if is_typed(value) else TensorType("c128")
    if isinstance(value, np.ndarray | np.generic):
        if value.ndim == 0 and (value.dtype.kind == "U" or (value.dtype.kind, wanted) in (("i", int), ("u", int), ("b", bool))):
            return Static(value.item())
        dtype = dtype_name(value.dtype)
        if dtype not in DTYPES:
            raise BuildError(f"input '{path}': arrays of {value.dtype} have no place in a graph; give a constant, -i {path}=...")
        return TensorType(dtype, value.shape)
    if isinstance(value, str) and wanted is not str and (told := _dtype([value])):
        return TensorType(told)
    if value is None or isinstance(value, bool | str) or (isinstance(value, int) and wanted is int):
        return Static(value)
    if isinstance(value, int | float | complex):
        return TensorType("c128" if isinstance(value, complex) else "f64")
    if isinstance(value, list):
        dtype_and_shape = _numbers(value)
        assert dtype_and_shape is not None  # else it would have been taken apart
        return TensorType(*dtype_and_shape)
    raise BuildError(f"input '{path}': a {type(value).__name__} is not an array")


def _numbers(value: list[Any]) -> tuple[str, tuple[int, ...]] | None:
    """The dtype and the shape of nested lists of numbers, None if they are not as long as one another, or hold other things."""
    shape, level = list[int](), [value]
    while level and isinstance(level[0], list):
        if not all(isinstance(x, list) and len(x) == len(level[0]) for x in level):
            return None
        shape.append(len(level[0]))
        level = list(chain.from_iterable(level))
    dtype = _dtype(level)
    return None if dtype is None else (dtype, tuple(shape))


def _dtype(elements: list[Any]) -> str | None:
    """What numbers without a type are: f64 or c128, of flags bool, of times a datetime; None for other things, or none at all."""
    if elements and all(isinstance(x, str) and x not in NONFINITE for x in elements):
        return _dtype_of_times(elements)
    complex_ = [x for x in elements if isinstance(x, complex) or (isinstance(x, dict) and set(x) == {"re", "im"})]
    rest = [x for x in elements if not isinstance(x, dict | complex)] if complex_ else elements
    if len(complex_) + len(rest) < len(elements) or not elements:
        return None
    if all(isinstance(x, bool) for x in elements):
        return "bool"
    real = all(type(x) in (int, float) or (isinstance(x, str) and x in NONFINITE) for x in rest)
    return None if not real else "c128" if complex_ else "f64"


def _dtype_of_times(texts: list[str]) -> str | None:
    """The dtype of points in time as text, in seconds if these count them all, else in the next unit that does."""
    if not all(_TIME.match(text) for text in texts):
        return None
    for unit in ("s", "ms", "us", "ns"):
        try:
            for text in texts:
                instant_from_text(text, unit)
        except TypeTextError:
            continue
        return f"{DATETIME}[{unit}]"
    return None
