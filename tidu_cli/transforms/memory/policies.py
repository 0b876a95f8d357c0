"""Policies of what to compute a second time, as users write them: `sqrt`, `100`, `cheap=0.5`, `value=KEY`."""

from __future__ import annotations

from collections.abc import Iterable

from tidu_cli.errors import Remedy, TransformError, did_you_mean
from tidu_cli.graph.keys import parse_key
from tidu_cli.transforms.memory.checkpoints import Cheap, Named, Policy, Segments, Sqrt

_PLAIN = {policy.__name__.lower(): policy for policy in (Sqrt, Cheap)}
_WAYS = "sqrt, N, cheap, cheap=OPERATIONS, value=KEY, graph=NAME"


def parse_policy(text: str) -> Policy:
    """The policy of a text. Raises TransformError, and KeyTextError for a malformed key."""
    way, given, argument = text.partition("=")
    if text in _PLAIN:
        return _PLAIN[text]()
    if text.isascii() and text.isdecimal() and int(text):
        return Segments(int(text))
    if way == "cheap" and given:
        return Cheap(_per_byte(argument))
    if way == "value" and argument:
        return Named(values=(parse_key(argument),))
    if way == "graph" and argument:
        return Named(graphs=(argument,))
    raise TransformError(f"'{text}' is none of {_WAYS}{did_you_mean(way, [*_PLAIN, 'value', 'graph'])}")


def _per_byte(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise TransformError(f"'cheap={text}' gives no number of operations for each byte; write cheap=0.5, say")
    return number


def joint_policy(policies: Iterable[str | Policy]) -> Policy | None:
    """The one policy that is given, or all that name values and graphs as one; None for none. Raises TransformError."""
    given = [parse_policy(p) if isinstance(p, str) else p for p in policies]
    named = [p for p in given if isinstance(p, Named)]
    if len(given) > max(len(named), 1):
        taken = " takes sqrt alone, cheap alone, or any number of value=KEY and graph=NAME"
        raise TransformError(Remedy("recompute", python="recompute"), taken)
    if named:
        return Named(sum((p.values for p in named), ()), sum((p.graphs for p in named), ()))
    return next(iter(given), None)
