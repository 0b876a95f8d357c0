"""Evaluation for users: inputs as they come are checked against the declared types, then the program runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, TypeTextError
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, literal_from_numbers
from tidu_cli.graph.types import COMPLEXES, FLOATS, TensorType, real_dtype
from tidu_cli.primitives.structural import dtype_name, literal_array, numpy_dtype
from tidu_cli.runtime.memory import check_memory
from tidu_cli.runtime.program import Program, compile_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray


def evaluate(
    source: Program | Graph, inputs: Mapping[Key, object], *, max_memory: int | None = None, outputs: Sequence[int] | None = None
) -> dict[Key, NDArray[Any]]:
    """The values of a graph's outputs (those chosen, if it is not compiled yet), by key, for these inputs.

    An input is typed (a NumPy array or scalar, or a `Literal`), and then must have exactly the declared type; or it is
    untyped (a number or nested list of numbers, with "NaN" and "Infinity" as files have them), and is converted if nothing
    is lost but digits of floats. Inputs that no output needs are not looked at. `max_memory` is in bytes, None for the
    machine's. Raises EvaluationError for missing and wrong inputs, and for what would not fit, before anything runs.
    """
    program = source if isinstance(source, Program) else compile_graph(source, outputs=outputs)
    missing = [f"{i.key}: {i.type}" for i in program.inputs if i.key not in inputs]
    if missing:
        raise EvaluationError(f"missing inputs: {', '.join(missing)}; give them with --set KEY=VALUE or --inputs FILE")
    check_memory(program, max_memory)
    given = {i.key: input_array(i.key, i.type, inputs[i.key]) for i in program.inputs}
    return dict(zip((o.key for o in program.outputs), program.run(given), strict=True))


def input_array(key: Key, type_: TensorType, value: object) -> NDArray[Any]:
    """What a user gave for the input `key`, as an array of its declared type. Raises EvaluationError."""
    import numpy as np  # here and not above, as everywhere: commands that evaluate nothing start without it

    if isinstance(value, Literal):
        if value.type != type_:
            raise _mismatch(key, type_, str(value.type))
        array: NDArray[Any] = literal_array(np, value)
        return array
    if not isinstance(value, np.ndarray | np.generic):
        return _converted(key, type_, value)
    array = np.asarray(value)
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if type_.dtype == "bf16" and array.dtype == np.dtype("V2"):
        array = array.view(numpy_dtype(np, "bf16"))  # as .npy files hold it: they have no name for bf16
    if array.dtype != numpy_dtype(np, type_.dtype) or array.shape != type_.shape:
        raise _mismatch(key, type_, f"{dtype_name(array.dtype)}[{','.join(map(str, array.shape))}]")
    return array


def input_literal(key: Key, type_: TensorType, value: object) -> Literal:
    """What a user gave for the input `key`, as a constant of its declared type. Raises EvaluationError."""
    if isinstance(value, int | float | complex) and not type_.shape and real_dtype(type_.dtype) == "f64":
        return _literal(key, type_, _parts(type_, [value]))  # most seeds, without NumPy
    array = input_array(key, type_, value)
    return Literal(type_, array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


def _literal(key: Key, type_: TensorType, elements: list[object]) -> Literal:
    try:
        return literal_from_numbers(type_, elements)
    except TypeTextError as error:
        reason = str(error).removeprefix(f"constant of type {type_}: ")
        raise EvaluationError(f"input {key}: expected {type_}, but {reason}") from None


def _parts(type_: TensorType, elements: list[object]) -> list[object]:
    """Numbers as constants have them: complex ones as real and imaginary part, one after the other."""
    if type_.dtype not in COMPLEXES:
        return elements
    return list(chain.from_iterable((x.real, x.imag) if type(x) is complex else (x, 0) for x in elements))


def _converted(key: Key, type_: TensorType, value: object) -> NDArray[Any]:
    import numpy as np

    elements = _parts(type_, _elements(key, type_, value))
    array: NDArray[Any] = literal_array(np, _literal(key, type_, elements))
    if real_dtype(type_.dtype) in FLOATS - {"f64"} and not np.isfinite(array).all():
        given = np.array([float(x) for x in elements])  # type: ignore[arg-type]
        parts = array.reshape(-1).view(numpy_dtype(np, real_dtype(type_.dtype)))
        lost = np.isfinite(given) & ~np.isfinite(parts)
        if lost.any():
            raise EvaluationError(f"input {key}: expected {type_}, but {given[lost][0]} is out of its range")
    return array


def _elements(key: Key, type_: TensorType, value: object) -> list[object]:
    """The elements of nested lists, row-major; their nesting must be the type's shape."""
    level = [value]
    for n in type_.shape:
        if not all(type(x) is list and len(x) == n for x in level):
            raise _mismatch(key, type_, _shape_text(value))
        level = list(chain.from_iterable(level))  # type: ignore[arg-type]
    if list in set(map(type, level)):
        raise _mismatch(key, type_, _shape_text(value))
    return level


def _shape_text(value: object) -> str:
    """How a message tells the shape of nested lists."""
    shape: list[int] = []
    level = [value]
    while level and all(type(x) is list for x in level):
        lengths = {len(x) for x in level}  # type: ignore[arg-type]
        if len(lengths) > 1:
            return "a ragged list, whose rows differ in length"
        shape += lengths
        level = list(chain.from_iterable(level))  # type: ignore[arg-type]
    if any(type(x) is list for x in level):
        return "a ragged list, of numbers beside lists"
    return f"a list of shape [{','.join(map(str, shape))}]" if shape else "a single number"


def _mismatch(key: Key, expected: TensorType, given: str) -> EvaluationError:
    return EvaluationError(
        f"input {key}: expected {expected}, got {given}; give exactly that type: values are neither broadcast nor converted"
    )
