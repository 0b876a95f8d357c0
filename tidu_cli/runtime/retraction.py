"""Inputs moved along tangents before a graph is evaluated: x replaced by retract(x, tangent).

The type of a tangent is that of typed data (a `Literal`, or an array), and else the natural one. Of a record only the fields that
are given move; of datetimes an object is their structural tangent.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from tidu_cli.errors import EvaluationError, TypeRuleError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.select import require_inputs
from tidu_cli.graph.types import DATETIMES, INTEGERS, RecordType, TensorType, Type, tensor_tangent_type
from tidu_cli.lax.arrays.dtypes import dtype_name
from tidu_cli.rules.contract import NoAttrs
from tidu_cli.rules.recording.conversion import natural_properties
from tidu_cli.rules.tangents import admitted, chosen, structural
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.inputs import input_value, record_fields


def moved_inputs(declared: Container[Key], moves: Mapping[Key, object]) -> dict[Key, object]:
    """Tangents by the inputs that they move: those of their keys, or those whose tangents or cotangents have these keys.

    So a step that `vjp` gives under the key x@-1 moves x. Keys that belong to no input are left out. Raises EvaluationError if
    two move one input.
    """
    tangents: dict[Key, object] = {}
    by: dict[Key, Key] = {}
    for key, tangent in moves.items():
        source = key if key in declared or not key.path else Key(key.name, key.path[:-1])
        if source not in declared:
            continue
        if source in tangents:
            raise EvaluationError(f"both '{by[source]}' and '{key}' move the input '{source}'; give one of them")
        tangents[source], by[source] = tangent, key
    return tangents


def moves_of(document: Document, moves: Mapping[Key, object]) -> dict[Key, object]:
    """Likewise, of a document, where every key is to belong to an input. Raises UnknownNameError, too."""
    declared = document.inputs
    require_inputs(document, [k if k in declared or not k.path else Key(k.name, k.path[:-1]) for k in moves])
    return moved_inputs(declared, moves)


def moved(primitives: PrimitiveSet, key: Key, type_: Type, value: Any, tangent: object) -> Any:
    """The value of an input moved along a tangent that a user gave. Raises EvaluationError for one that its type does not admit."""
    pair = _tangent(f"move of {key}", type_, tangent)
    if pair is None:
        return value
    given, along = pair
    case = primitives.case("retract", NoAttrs(), None, (type_, given))
    kernel = primitives["retract"].evaluation.kernel(np, case.attrs, case.operands, case.results)  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        return kernel(value, along)


def _tangent(place: str, primal: Type, given: object) -> tuple[Type, Any] | None:
    """The type and the value of a tangent; None if it is zero."""
    if given is None:
        return None
    if isinstance(primal, RecordType):
        view = primal.view_with(given) if isinstance(given, Mapping) else None
        if view is not None:
            by_properties = primal.tangents(natural_properties(view))
            return by_properties, input_value(place, by_properties, given)
        fields = record_fields(place, primal, given)
        parts = [(name, _tangent(f"{place}.{name}", type_, fields.get(name))) for name, type_ in primal.fields]
        moving = [(name, *part) for name, part in parts if part is not None]
        if not moving:
            return None
        types = tuple((name, type_) for name, type_, _ in moving)
        return primal.tangents(types), tuple(value for _, _, value in moving)
    try:
        type_ = chosen(primal, _stated(primal, given))
    except TypeRuleError as error:
        raise EvaluationError(f"{place}: {primal} {error}") from None
    along = input_value(place, type_, given)
    if primal.dtype in INTEGERS | DATETIMES and _holds_nan(along):
        raise EvaluationError(f"{place}: {primal} cannot be moved by NaN: it counts whole units")
    return type_, along


def _holds_nan(tangent: Any) -> bool:
    parts = tangent if isinstance(tangent, tuple) else (tangent,)
    return any(_holds_nan(part) if isinstance(part, tuple) else part is not None and bool(np.isnan(part).any()) for part in parts)


def _stated(primal: TensorType, given: object) -> Type:
    """The tangent type that is stated by what was given, or meant."""
    if isinstance(given, Literal):
        return given.type
    if isinstance(given, Mapping) and primal.dtype in DATETIMES:
        instant = given.get("instant")
        periods = instant.get("periods") if isinstance(instant, Mapping) else None
        return structural(primal.shape, periods.type.dtype if isinstance(periods, Literal) else "f64")
    dtype = getattr(given, "dtype", None)
    if dtype is not None and (dtype.kind == "m" or dtype_name(dtype) in {type_.dtype for type_ in admitted(primal)}):
        return primal.with_dtype(dtype_name(dtype))
    return tensor_tangent_type(primal)
