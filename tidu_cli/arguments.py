"""Checks of arguments, in the words of Python. `options` says which parameter has which."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, cast

from tidu_cli.errors import ArgumentError, KeyTextError, did_you_mean
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.types import RecordType, TensorType
from tidu_cli.installed import OWN_ENGINES, brought_engines, runtimes
from tidu_cli.limits import parse_size

Check = Callable[[str, Any], Any]
"""Of the name of a parameter and a value: the value as the function takes it, or ArgumentError."""


def anything(name: str, value: object) -> object:
    """No check."""
    return value


def _told(value: object) -> str:
    """What a value is, in a few words."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return f"text ({value[:40]!r})"
    if callable(value) and hasattr(value, "__name__"):
        return "a class" if isinstance(value, type) else "a function"
    return f"a value of type {type(value).__name__}"


def _refuse(name: str, value: object, expected: str, instead: str = "") -> ArgumentError:
    return ArgumentError(f"argument '{name}' takes {expected}, not {_told(value)}{instead}")


def document(name: str, value: object) -> object:
    """A check: a document."""
    if isinstance(value, Document):
        return value
    instead = "load and trace give one"
    if isinstance(value, str | PathLike):
        instead = "write load(file) to read one"
    elif callable(value):
        instead = "write trace(function, 'f64[3]', ...), with the types of its inputs, for that of a function"
    elif isinstance(value, list | tuple) and value and all(isinstance(x, Document) for x in value):
        instead = "write *documents for a list of them" if name == "documents" else "write resolve(*documents) to link several"
    raise _refuse(name, value, "a document", f"; {instead}")


KeyText = str | Key
"""A key, or its text form."""

KeyTexts = KeyText | Sequence[KeyText]
"""One key, or several."""


def parsed(keys: KeyTexts) -> list[Key]:
    """Keys that a check has parsed already."""
    return cast("list[Key]", keys)


def a_key(value: object, name: str = "key") -> Key:
    """A key that may be text. Raises KeyTextError, and ArgumentError for what is neither."""
    if isinstance(value, Key):
        return value
    if not isinstance(value, str):
        raise _refuse(name, value, "a key, text such as 'x' or 'y@-1'")
    return parse_key(value)


def list_of(each: Check, expected: str, alone: Any = ()) -> Check:
    """A check: several of what `each` checks, or one of the types `alone`."""

    def check(name: str, value: Any) -> list[Any]:
        if isinstance(value, alone):
            return [each(name, value)]
        if isinstance(value, str | bytes | Mapping | Document) or not isinstance(value, Iterable):
            raise _refuse(name, value, expected)
        return [each(name, x) for x in value]

    return check


def one_key(name: str, value: object) -> Key:
    """A check: one key, alone or in a list."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    return a_key(value, name)


def or_none(check: Check) -> Check:
    """A check: what another one takes, or None."""
    return lambda name, value: None if value is None else check(name, value)


def positions_or_names(name: str, value: Any) -> Any:
    """A check: numbers or names of arguments, one or a list of several."""
    several = list(value) if isinstance(value, list | tuple) else [value]
    for x in several:
        if isinstance(x, bool) or not isinstance(x, int | str | Key):
            raise _refuse(name, x, "the number or name of an argument, or a list of such")
    if not several:
        raise ArgumentError(f"argument '{name}' takes the number or name of an argument, or a list of such, not an empty list")
    several = [str(x) if isinstance(x, Key) else x for x in several]
    return several if isinstance(value, list | tuple) else several[0]


def instance(types: Any, expected: str, *, optional: bool = True) -> Check:
    """A check: of one of these types, or None."""

    def check(name: str, value: Any) -> Any:
        if isinstance(value, types) or (optional and value is None):
            return value
        raise _refuse(name, value, expected)

    return check


mapping = instance(Mapping, "a dict, by keys such as 'x'")
text = instance(str, "text")
flag = instance(bool, "True or False")
result_file = instance((str, PathLike), "the name of a file, text or a Path")
file_name = instance((str, PathLike), "the name of a file, text or a Path", optional=False)
op_name = instance(str, "the name of an op, such as 'mul'", optional=False)
formula_text = instance(str, "a formula, text such as 'sum(x**2)'", optional=False)
a_function = instance(Callable, "a function of NumPy arrays", optional=False)
maybe_function = instance(Callable, "a function of NumPy arrays")
several_functions = list_of(a_function, "a list of functions of NumPy arrays")


def texts(expected: str, alone: Any = str) -> Check:
    """A check: several texts, or one of the type `alone`."""
    return list_of(instance(str, expected, optional=False), expected, alone)


_type = instance((str, TensorType, RecordType), "a dict of types, text such as 'f32', by the keys of inputs", optional=False)


def by_key(name: str, value: Any) -> Any:
    """A check: a dict, by keys, which may be text."""
    return None if mapping(name, value) is None else {a_key(key): x for key, x in value.items()}


def named(name: str, value: Any) -> Any:
    """A check: a dict, by names, which are text and no keys."""
    for key in mapping(name, value) or ():
        if not isinstance(key, str):
            raise _refuse(name, key, "a dict by names, which are text")
    return value


def values_by_key(name: str, value: Any) -> Any:
    """A check: a dict, by keys, and not None."""
    if value is None:
        raise _refuse(name, value, "a dict of values, by keys such as 'x'")
    return by_key(name, value)


def one_of(*words: str) -> Check:
    """A check: one of these words, or None."""

    def check(name: str, value: Any) -> Any:
        if value is None or (isinstance(value, str) and value in words):
            return value
        raise _refuse(name, value, f"one of {', '.join(map(repr, words))}")

    return check


def among_runtimes(name: str, value: Any) -> Any:
    """A check: the name of a program that runs models of another system, or None."""
    return one_of(*runtimes())(name, value)


def among_engines(name: str, value: Any) -> Any:
    """A check: the name of an engine, or None."""
    return value if isinstance(value, str) and value in brought_engines() else one_of("auto", "numpy", *OWN_ENGINES)(name, value)


def policies(name: str, value: Any) -> list[str]:
    """A check: policies of recomputation, as text."""
    items = [value] if isinstance(value, str | int) else [] if value is None else value
    if isinstance(items, bytes | Mapping) or not isinstance(items, Iterable):
        raise _refuse(name, value, "'sqrt', 'cheap', a number of steps, or a list of 'value=KEY' and 'graph=NAME'")
    return [x if isinstance(x, str) else str(whole(name, x)) for x in items]


def sizes_by_name(name: str, value: Any) -> Any:
    """A check: a dict of integers, by names."""
    return {key: whole(name, size) for key, size in (named(name, value) or {}).items()}


def types_by_name(name: str, value: Any) -> Any:
    """A check: a dict of types, which may be text, by names."""
    return {key: _type(name, type_) for key, type_ in (named(name, value) or {}).items()}


def tangent_types(name: str, value: Any) -> Any:
    """A check: a dict of types, by keys."""
    return {key: _type(name, type_) for key, type_ in (by_key(name, value) or {}).items()}


def pairs_of_keys(name: str, value: Any) -> Any:
    """A check: a dict from keys to keys, or a list of pairs."""
    pairs = value.items() if isinstance(value, Mapping) else value
    pairs = list(pairs) if isinstance(pairs, Iterable) and not isinstance(pairs, str | bytes) else [value]
    if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
        raise _refuse(name, value, "a dict, or a list of pairs of an input and what it is bound to")
    return [(a_key(i), a_key(o)) for i, o in pairs]


def whole(name: str, value: Any) -> int:
    """A check: an integer, of NumPy's too, and not True or False."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise _refuse(name, value, "an integer")


count = or_none(whole)


def at_least(least: int, *, optional: bool = True) -> Check:
    """A check: an integer from `least` on, or None if it is `optional`."""

    def check(name: str, value: Any) -> Any:
        if value is None and optional:
            return None
        n = whole(name, value)
        if n < least:
            raise _refuse(name, value, f"an integer from {least} on")
        return n

    return check


at_least_one = at_least(1)


def number_from_zero(name: str, value: Any) -> Any:
    """A check: a finite number from 0 on, or None."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(value, str | bool) or not 0 <= number < math.inf:
        raise _refuse(name, value, "a finite number from 0 on")
    return number


def an_optimizer(name: str, value: Any) -> Any:
    """A check: a name, or a document."""
    if isinstance(value, str | Document):
        return value
    raise _refuse(name, value, "the name of an optimizer, or a document", "; write load(file) to read one")


BOUNDED = ("L-BFGS-B", "TNC", "SLSQP", "trust-constr", LEAST_SQUARES := "least_squares")
"""SciPy's methods that keep to bounds."""

METHODS = (*BOUNDED, "BFGS", "CG", "Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "dogleg")
"""SciPy's methods that go by derivatives."""


def method_named(text: str) -> str:
    """The method of a name in letters of either case. Raises KeyTextError."""
    known = {method.lower(): method for method in METHODS}
    if text.lower() in known:
        return known[text.lower()]
    hint = did_you_mean(text.lower(), list(known))
    raise KeyTextError(f"there is no method '{text}' by derivatives{hint} (there are {', '.join(METHODS)})")


def a_method(name: str, value: Any) -> Any:
    """A check: the name of a method of SciPy's, or None."""
    return method_named(value) if text(name, value) is not None else None


def bounds_of(setting: str) -> tuple[Key, tuple[Any, Any]]:
    """A key and its bounds, numbers or JSON lists of them. Raises KeyTextError."""
    import json

    key, _, pair = setting.rpartition("=")
    lower, colon, upper = pair.partition(":")
    if key and colon:
        try:
            return parse_key(key), (json.loads(lower or "null"), json.loads(upper or "null"))
        except (ValueError, RecursionError):
            pass
    raise KeyTextError(f"'{setting}' is not KEY=LOWER:UPPER, such as x=0:1, or x=0: for a lower bound alone")


def bounds_by_key(name: str, value: Any) -> Any:
    """A check: a dict of pairs of bounds, by keys, or None."""
    expected = "a dict of pairs of bounds, such as (0, None), by keys"
    for pair in (by_key(name, value) or {}).values():
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ArgumentError(f"argument '{name}' takes {expected}")
    return by_key(name, value)


def csv_name(text: str) -> str:
    """The name of a file of CSV. Raises KeyTextError."""
    if not text.endswith(".csv"):
        raise KeyTextError(f"'{text}' is not the name of a file of CSV; end it in .csv")
    return text


def a_csv(name: str, value: Any) -> Any:
    """A check: the name of a file of CSV, or None."""
    return None if value is None else csv_name(str(file_name(name, value)))


def axes_by_key(name: str, value: Any) -> Any:
    """A check: a dict of the numbers of axes, by keys, and not None."""
    return {key: whole(name, axis) for key, axis in values_by_key(name, value).items()}


def renumbering(name: str, value: Any) -> Any:
    """A check: a dict from integers to integers."""
    if not isinstance(value, Mapping):
        raise _refuse(name, value, "a dict from pass numbers to pass numbers, such as {1: 2}")
    return {whole(name, old): whole(name, new) for old, new in value.items()}


def names_by_name(name: str, value: Any) -> Any:
    """A check: a dict from names to names, or None."""
    if value is None:
        return value
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise _refuse(name, value, "a dict from names to names, such as {'x': 't'}")
    return dict(value)


def sizes_of_names(name: str, value: Any) -> dict[str, object]:
    """A check: a dict from names of open sizes to numbers or texts of sizes."""
    return {key: size if isinstance(size, str) else whole(name, size) for key, size in (named(name, value) or {}).items()}


def size(name: str, value: Any) -> Any:
    """A check: a number of bytes, or text such as "512M", which becomes one."""
    return parse_size(value) if isinstance(value, str) else count(name, value)


several_names = texts("the name of a value, or a list of names")


def among(choices: Sequence[str]) -> Check:
    """A check: one of these words, or a list of such."""
    expected = f"one of {', '.join(map(repr, choices))}, or a list of these"

    def word(name: str, value: Any) -> str:
        if value not in choices:
            raise ArgumentError(f"argument '{name}' takes {expected}, not {value!r}")
        return str(value)

    return list_of(word, expected, str)
