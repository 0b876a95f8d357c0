"""Evaluation for users: inputs as they come are checked against the declared types, then the program runs, and gives results."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tidu_cli.errors import EvaluationError, Remedy, TypeRuleError, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.select import listed, require_inputs
from tidu_cli.graph.types import DATETIMES, INTEGERS, RecordType, TensorType, Type, storage_dtype, tensor_tangent_type, unit_of
from tidu_cli.lax.arrays.structural import dtype_name, numpy_dtype
from tidu_cli.rules.contract import NoAttrs
from tidu_cli.rules.tangents.types import admitted, chosen, structural
from tidu_cli.rules.tangents.views import natural_properties
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.engines.choosing import PLAIN, Choice
from tidu_cli.runtime.inputs import input_value, record_fields, value_of_input
from tidu_cli.runtime.memory import check_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidu_cli.runtime.plans.runnable import Runnable


def evaluate(
    source: Runnable | Graph,
    inputs: Mapping[Key, object],
    *,
    moves: Mapping[Key, object] | None = None,
    max_memory: int | None = None,
    outputs: Sequence[int] | None = None,
    engine: Choice = PLAIN,
) -> dict[Key, Any]:
    """The values of a graph's outputs (those chosen, if it is not compiled yet), by key, for these inputs.

    An input is typed (a NumPy array or scalar, or a `Literal`), and then has the declared type, or integers or narrower floats
    where that is of floats, of which no digit is lost; or it is untyped (a number or nested list of numbers, with "NaN" and
    "Infinity" as files have them), and is converted if nothing is lost but digits of floats. Records are objects of their fields by
    name, tuples also sequences of them; a tangent or cotangent that is None is zero, and so is a field of one. Datetimes are ISO
    8601 text, integers (how many units since 1970) or NumPy's datetime64; durations are numbers or NumPy's timedelta64. Inputs that
    no output needs are not looked at.

    `moves` are tangents by the keys of inputs: the graph is evaluated at the inputs moved along them (see `retraction`).
    `max_memory` is in bytes, None for the machine's. `engine` runs the graph, if it is not compiled yet. Results
    are NumPy arrays: datetime64 of datetimes, f64 of durations, which count their unit; of records dicts of these, of tuples
    tuples. Raises EvaluationError for missing and wrong inputs, and for what would not fit, before anything runs.
    """
    from tidu_cli.runtime.engines.choosing import prepared  # and with it NumPy

    program = prepared(source, engine, outputs, max_memory)[0] if isinstance(source, Graph) else source
    require_given(program.inputs, inputs)
    check_memory(program, max_memory)
    return call(program, inputs, moves=moves, once=True)


def call(
    program: Runnable,
    inputs: Mapping[Key, object],
    *,
    moves: Mapping[Key, object] | None = None,
    once: bool = False,
) -> dict[Key, Any]:
    """What `evaluate` gives, of a program whose need of memory was checked before. Raises EvaluationError.

    It may be called again, and then runs the quicker for what is kept, unless this is `once`.
    """
    require_given(program.inputs, inputs)
    given = [value_of_input(i.key, i.type, inputs[i.key]) for i in program.inputs]
    if moves:
        for k, i in enumerate(program.inputs):
            if i.key in moves:
                given[k] = moved(program.primitives, i.key, i.type, given[k], moves[i.key])
    found = program.run_in_order(given, once=once)
    return {o.key: outward(o.type, value) for o, value in zip(program.outputs, found, strict=True)}


def require_given(declared: Sequence[Input], inputs: Container[Key]) -> None:
    """Raises EvaluationError if some input has no value."""
    missing = [f"{i.key}: {i.type}" for i in declared if i.key not in inputs]
    if missing:
        first = next(i.key for i in declared if i.key not in inputs)
        ways = Remedy("inputs", "KEY=VALUE or --inputs FILE", flag="--set", python=f"{{{str(first)!r}: ...}}")
        raise EvaluationError(f"missing inputs: {', '.join(missing)}; give them with ", ways)


def outward(type_: Type, value: Any) -> Any:
    """A result as users have it."""
    if isinstance(type_, RecordType):
        fields = [outward(field_type, field) for (_, field_type), field in zip(type_.fields, value, strict=True)]
        return tuple(fields) if type_.is_tuple else dict(zip(type_.names, fields, strict=True))
    return value.view(f"M8[{unit_of(type_.dtype)}]") if type_.dtype in DATETIMES else value


def require_room(outputs: Sequence[Output], room: Mapping[Key, NDArray[Any]]) -> None:
    """Raises UnknownNameError if some key is of no output, and EvaluationError if an array cannot hold what is to go there."""
    import numpy as np

    types = {o.key: o.type for o in outputs}
    for key, array in room.items():
        if key not in types:
            known = list(map(str, types))
            raise UnknownNameError(f"no output '{key}'{did_you_mean(str(key), known)} (outputs: {listed(known)})")
        type_ = types[key]
        if isinstance(type_, RecordType):
            raise EvaluationError(f"output {key}: {type_} is a record, which no array holds; take it from the result")
        dtype = f"M8[{unit_of(type_.dtype)}]" if type_.dtype in DATETIMES else numpy_dtype(np, storage_dtype(type_.dtype))
        if not isinstance(array, np.ndarray) or array.dtype != np.dtype(dtype) or array.shape != type_.shape:
            given = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else type(array).__name__
            raise EvaluationError(f"output {key}: its array must be of {np.dtype(dtype)}{list(type_.shape)}, got {given}")
        if not array.flags.writeable:
            raise EvaluationError(f"output {key}: its array is read-only; give one that can be written to")


def write_into(room: Mapping[Key, NDArray[Any]], results: Mapping[Key, Any]) -> dict[Key, Any]:
    """The results, those with an array of `room` written into it."""
    found = dict(results)
    for key, array in room.items():
        array[...] = found[key]
        found[key] = array
    return found


# Inputs moved along tangents before a graph is evaluated: x replaced by retract(x, tangent).
#
# The type of a tangent is that of typed data (a `Literal`, or an array), and else the natural one. Of a record only the fields that
# are given move; of datetimes an object is their structural tangent.


def moved_inputs(declared: Container[Key], moves: Mapping[Key, object]) -> dict[Key, object]:
    """Tangents by the inputs that they move: those of their keys, or those whose tangents or cotangents have these keys.

    So a step that `vjp` gives under the key x@-1 moves x. Keys that belong to no input are left out. Raises EvaluationError if
    two move one input.
    """
    found: dict[Key, object] = {}
    by: dict[Key, Key] = {}
    for key, tangent in moves.items():
        source = key if key in declared or not key.path else Key(key.name, key.path[:-1])
        if source not in declared:
            continue
        if source in found:
            raise EvaluationError(f"both '{by[source]}' and '{key}' move the input '{source}'; give one of them")
        found[source], by[source] = tangent, key
    return found


def moves_of(document: Document, moves: Mapping[Key, object]) -> dict[Key, object]:
    """Likewise, of a document, where every key is to belong to an input. Raises UnknownNameError, too."""
    declared = document.inputs
    require_inputs(document, [k if k in declared or not k.path else Key(k.name, k.path[:-1]) for k in moves])
    return moved_inputs(declared, moves)


def moved(primitives: PrimitiveSet, key: Key, type_: Type, value: Any, tangent: object) -> Any:
    """The value of an input moved along a tangent that a user gave. Raises EvaluationError for one that its type does not admit."""
    found = _tangent(f"move of {key}", type_, tangent)
    if found is None:
        return value
    given, along = found
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
        raise EvaluationError(f"{place}: {primal} moves by whole units, and NaN is no number of them")
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
