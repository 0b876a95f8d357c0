"""Evaluation for users: inputs as they come are checked against the declared types, then the program runs, and gives results."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, Remedy, UnknownNameError, did_you_mean
from tidu_cli.graph.graph import Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import DATETIMES, RecordType, Type, storage_dtype, unit_of
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.runtime.choosing import PLAIN, Choice
from tidu_cli.runtime.inputs import value_of_input
from tidu_cli.runtime.memory import check_memory
from tidu_cli.runtime.plans.interpreter import Runnable

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    from tidu_cli.runtime.plans.program import prepared  # and with it NumPy

    program = prepared(source, engine, outputs, max_memory)[0] if isinstance(source, Graph) else source
    require_given(program.inputs, inputs)
    check_memory(program, max_memory)
    return call(program, inputs, moves=moves, once=True)


def call(
    program: Runnable, inputs: Mapping[Key, object], *, moves: Mapping[Key, object] | None = None, once: bool = False
) -> dict[Key, Any]:
    """What `evaluate` gives, of a program whose need of memory was checked before. Raises EvaluationError.

    It may be called again, and then runs the quicker for what is kept, unless this is `once`.
    """
    require_given(program.inputs, inputs)
    given = [value_of_input(i.key, i.type, inputs[i.key]) for i in program.inputs]
    if moves:
        from tidu_cli.runtime.retraction import moved

        for k, i in enumerate(program.inputs):
            if i.key in moves:
                given[k] = moved(program.primitives, i.key, i.type, given[k], moves[i.key])
    results = program.run_in_order(given, once=once)
    return {o.key: outward(o.type, value) for o, value in zip(program.outputs, results, strict=True)}


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
    written = dict(results)
    for key, array in room.items():
        array[...] = written[key]
        written[key] = array
    return written
