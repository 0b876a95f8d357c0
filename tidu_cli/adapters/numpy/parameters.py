"""A function's parameters, and what it is called with."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import inspect
import types
import typing
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Any

from tidu_cli.adapters.numpy import pytree
from tidu_cli.adapters.numpy.errors import BuildError, name_of_function, signature_of
from tidu_cli.errors import UnknownNameError, did_you_mean
from tidu_cli.port_data import Given, Static

# The names that formulas and files of Python hold, read and not run. Nothing here needs NumPy.


def parsed(text: str | bytes) -> ast.Module | None:
    """The syntax tree of a text, None if it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def free_names(formula: str) -> list[str]:
    """The names that a formula reads, but does not call or define; NumPy's name and constants are none of its inputs."""
    tree = parsed(formula.strip())
    nodes = [] if tree is None else list(ast.walk(tree))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in called]
    defined = {node.id for node in names if isinstance(node.ctx, ast.Store)} | _CONSTANTS
    in_order = sorted(names, key=lambda node: (node.lineno, node.col_offset))
    return list(dict.fromkeys(node.id for node in in_order if node.id not in defined))


_CONSTANTS = {"np", "numpy", "pi", "e", "inf", "nan", "newaxis"}


def functions_of(file: str) -> Mapping[str, ast.FunctionDef]:
    """The functions that a file of Python defines. Raises OSError."""
    with open(file, "rb") as source:
        tree = parsed(source.read())
    return {node.name: node for node in (tree.body if tree else ()) if isinstance(node, ast.FunctionDef)}


def parameters_of(function: ast.FunctionDef) -> list[str]:
    """The names of its parameters, but for *those and **those."""
    of = function.args
    return [a.arg for a in (*of.posonlyargs, *of.args, *of.kwonlyargs)]


# Arguments that nest, put together of parts by dotted names: dicts, lists, tuples, named tuples and dataclasses.


MISSING = object()
"""Where there is no value."""


@dataclass
class Node:
    """What is given at and below a place of an argument: the whole key at it, and by the next part of their names what is below."""

    key: str | None = None
    below: dict[str, Node] = field(default_factory=dict)


def tree_of(given: Mapping[str, Given]) -> Node:
    """The tree of keys. A constant may have parts that are given, too. Raises BuildError where an array would hold others."""
    root = Node()
    for key, value in given.items():
        path = key.split(".")
        if len(path) > pytree.MAX_LEVELS + 1:
            raise BuildError(f"input '{key[:60]}' nests deeper than {pytree.MAX_LEVELS} levels")
        node = root
        for part in path:
            if node.key is not None and not isinstance(given[node.key], Static):
                raise BuildError(f"input '{key}' is inside of '{node.key}', which is an array")
            node = node.below.setdefault(part, Node())
        if node.key is not None or (node.below and not isinstance(value, Static)):
            raise BuildError(f"input '{key}' is given twice, or holds others")
        node.key = key
    return root


def filled(node: Node, hint: Any, values: Mapping[str, Any], base: Any = MISSING, path: str = "") -> Any:
    """What becomes of a tree of keys: the value of its key, or of `base`, a default, with the parts that are given.

    Without these it is what the annotation `hint` says, and else a list if its keys count from 0, or a dict.
    """
    if node.key is not None:
        base = shaped(values[node.key], hint)
    if not node.below:
        return base
    hint, members = annotated_class(hint), members_of(base)
    is_new = base is MISSING or (members is None and node.key is None)
    if members is None and not is_new:
        told = f"{base!r}"[:60]
        raise BuildError(f"input '{path}.{next(iter(node.below))}' is inside of '{path}', which is {told}")
    hint, given = hint if is_new else hint or type(base), members or {}
    parts = {k: filled(below, hint_below(hint, k), values, given.get(k, MISSING), f"{path}.{k}") for k, below in node.below.items()}
    return _made(parts, hint) if is_new else _changed(base, parts, given, path)


def _made(parts: dict[str, Any], hint: Any) -> Any:
    """A structure of these parts."""
    origin = typing.get_origin(hint) or hint
    if _has_fields(origin):
        try:
            return origin(**_by_field(parts, origin))
        except TypeError as error:
            raise BuildError(f"{origin.__name__}: {error}") from None
    if origin is not dict and sorted(parts) == sorted(map(str, range(len(parts)))):
        items = [parts[str(k)] for k in range(len(parts))]
        return tuple(items) if origin is tuple else items
    of_integers = origin is dict and typing.get_args(hint)[:1] == (int,) and all(k.isdecimal() for k in parts)
    return {int(k): v for k, v in parts.items()} if of_integers else parts


def _by_field(parts: dict[str, Any], origin: Any) -> dict[str, Any]:
    """Parts of a named tuple by the names of its fields, where they are given by number."""
    names = {str(k): name for k, name in enumerate(getattr(origin, "_fields", ()))}
    return {names.get(k, k): v for k, v in parts.items()}


def _changed(base: Any, parts: dict[str, Any], members: Mapping[str, Any], path: str) -> Any:
    """A structure with some parts replaced. Only dicts may have new ones."""
    if isinstance(base, dict):
        names = {str(k): k for k in base}
        return {**base, **{names.get(k, k): v for k, v in parts.items()}}
    parts = _by_field(parts, base)
    for k in parts:
        if k not in members:
            raise BuildError(f"input '{path}.{k}': '{path}' has no part '{k}' (parts: {', '.join(members)})")
    if dataclasses.is_dataclass(base) and not isinstance(base, type):
        return dataclasses.replace(base, **parts)
    if hasattr(base, "_replace"):
        return base._replace(**parts)
    return type(base)(parts.get(str(k), x) for k, x in enumerate(base))


def shaped(value: Any, hint: Any) -> Any:
    """A constant with the dicts and lists that JSON has as what the annotation says: dataclasses, named tuples, tuples."""
    hint = annotated_class(hint)
    origin = typing.get_origin(hint) or hint
    if isinstance(value, dict):
        parts = {k: shaped(x, hint_below(hint, str(k))) for k, x in value.items()}
        return _made(parts, hint) if _has_fields(origin) else parts
    if isinstance(value, list) and origin is not None:
        items = [shaped(x, hint_below(hint, str(k))) for k, x in enumerate(value)]
        if _has_fields(origin):
            return _made({str(k): x for k, x in enumerate(items)}, hint)
        return tuple(items) if origin is tuple else items
    return value


def members_of(value: Any) -> dict[str, Any] | None:
    """The parts of a structure by their names; None for what is none."""
    members = None if value is None else pytree.members_of(value)
    return None if members is None else {str(k): x for k, x in members}


# Annotations.


def hints_of(annotated: Any) -> dict[str, Any]:
    """The annotations of a class or a function, none if they cannot be read."""
    with contextlib.suppress(Exception):
        return typing.get_type_hints(annotated)
    return {}


def annotated_class(hint: Any) -> Any:
    """The class that an annotation asks for, with its parameters: of a union the first one that is not None."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next((arm for arm in typing.get_args(hint) if arm is not types.NoneType), None)
    return hint


def hint_below(hint: Any, name: str) -> Any:
    """The annotation of a part of that name, None if it has none."""
    hint = annotated_class(hint)
    origin, parts = typing.get_origin(hint) or hint, typing.get_args(hint)
    if _has_fields(origin):
        fields, hints = getattr(origin, "_fields", ()), hints_of(origin) or hints_of(origin.__init__)
        return hints.get(fields[int(name)] if name.isdecimal() and int(name) < len(fields) else name)
    if origin is tuple and name.isdecimal() and parts[1:] != (...,):
        return parts[int(name)] if int(name) < len(parts) else None
    if len(parts) == 2 and origin is not tuple:  # of a mapping
        return parts[1]
    return parts[0] if parts else None


def _has_fields(origin: Any) -> bool:
    """Whether it is the class of a named tuple, or one whose `__init__` is written in Python, as a dataclass's is."""
    written = isinstance(getattr(origin, "__init__", None), types.FunctionType) and not getattr(origin, "_is_protocol", False)
    return isinstance(origin, type) and (written or hasattr(origin, "_fields")) and not issubclass(origin, dict | list)


Arguments = dict[str, tuple[Node, Any, Any]]
"""By parameter (those of **options by their own names) the tree of what is given, the annotation, and the default."""


def named(function: Callable[..., Any]) -> list[str]:
    """The parameters that keys may name, but for those of **options."""
    return [k for k, p in signature_of(function).parameters.items() if p.kind is not Parameter.VAR_KEYWORD]


def takes_any(function: Callable[..., Any]) -> bool:
    """Whether it has **options, and so takes what is called anything."""
    return any(p.kind is Parameter.VAR_KEYWORD for p in signature_of(function).parameters.values())


def arguments_of(function: Callable[..., Any], tree: Node) -> Arguments:
    """What is given of each parameter. Raises UnknownNameError for other names, BuildError for a parameter that is missing."""
    parameters, name = signature_of(function).parameters, name_of_function(function)
    known, hints = named(function), hints_of(function)
    for key in tree.below:
        if key not in known and not takes_any(function):
            raise UnknownNameError(f"{name} has no parameter '{key}'{did_you_mean(key, known)} (parameters: {', '.join(known)})")
    missing = [
        k
        for k in known
        if k not in tree.below and parameters[k].default is Parameter.empty and parameters[k].kind is not Parameter.VAR_POSITIONAL
    ]
    if missing:
        raise BuildError(f"{name} needs '{missing[0]}'; give its type with -i {missing[0]}:TYPE, such as {missing[0]}:f64[3]")
    return {key: (below, *_expected(key, parameters, hints)) for key, below in tree.below.items()}


def _expected(key: str, parameters: Mapping[str, Parameter], hints: Mapping[str, Any]) -> tuple[Any, Any]:
    """The annotation and the default of a parameter."""
    parameter = parameters.get(key)
    if parameter is None or parameter.kind is Parameter.VAR_KEYWORD:
        options = next(k for k, p in parameters.items() if p.kind is Parameter.VAR_KEYWORD)
        return hints.get(options), MISSING
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return tuple[hints.get(key), ...], MISSING  # type: ignore[misc]
    return hints.get(key), MISSING if parameter.default is Parameter.empty else parameter.default


def expected(function: Callable[..., Any], key: str) -> tuple[Any, Any]:
    """The annotation and the default, or MISSING, of the parameter that takes a key."""
    return _expected(key, signature_of(function).parameters, hints_of(function))


def bound(function: Callable[..., Any], arguments: Arguments, values: Mapping[str, Any]) -> inspect.BoundArguments:
    """What a function is called with, for arrays and constants by key. Raises BuildError for parts that do not fit."""
    signature = signature_of(function)
    by_name = {key: filled(node, hint, values, default, key) for key, (node, hint, default) in arguments.items()}
    given: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            given[name] = {k: v for k, v in by_name.items() if k not in signature.parameters or k == name}
        elif name in by_name:
            given[name] = by_name[name]
        elif parameter.default is not Parameter.empty:
            given[name] = parameter.default
    rest = next((k for k, p in signature.parameters.items() if p.kind is Parameter.VAR_POSITIONAL), None)
    if rest in given and not isinstance(given[rest], tuple):
        raise BuildError(f"'{rest}' are further arguments, one after the other: give {rest}.0, {rest}.1, ...")
    return inspect.BoundArguments(signature, given)
