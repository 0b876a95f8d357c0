"""A function's parameters, and what it is called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Any

from tidu_cli.adapters.numpy.arguments.trees import MISSING, Node, filled, hints_of
from tidu_cli.adapters.numpy.errors import BuildError, name_of_function, signature_of
from tidu_cli.errors import UnknownNameError, did_you_mean

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
    found = {key: filled(node, hint, values, default, key) for key, (node, hint, default) in arguments.items()}
    given: dict[str, Any] = {}
    for name, parameter in signature.parameters.items():
        if parameter.kind is Parameter.VAR_KEYWORD:
            given[name] = {k: v for k, v in found.items() if k not in signature.parameters or k == name}
        elif name in found:
            given[name] = found[name]
        elif parameter.default is not Parameter.empty:
            given[name] = parameter.default
    rest = next((k for k, p in signature.parameters.items() if p.kind is Parameter.VAR_POSITIONAL), None)
    if rest in given and not isinstance(given[rest], tuple):
        raise BuildError(f"'{rest}' are further arguments, one after the other: give {rest}.0, {rest}.1, ...")
    return inspect.BoundArguments(signature, given)
