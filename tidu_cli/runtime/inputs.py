"""What users give for values, made values of the declared types.

What is given is typed (a NumPy array or scalar, or a `Literal`), and then at most made wider, or untyped (numbers, nested lists of
them, and objects of fields, as JSON has them). Messages begin with the place: `input p`, say, and for a field `input p.x`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from numbers import Number
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError, TypeTextError, did_you_mean
from tidu_cli.graph.graph import Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Constant, Literal, literal_from_numbers
from tidu_cli.graph.text import NOT_A_TIME
from tidu_cli.graph.types import COMPLEXES, DATETIMES, DURATIONS, TIMES, UNITS, RecordType, TensorType, Type, unit_of
from tidu_cli.lax.arrays.dtypes import dtype_name, literal_array, numpy_dtype
from tidu_cli.lax.records.records import zeros
from tidu_cli.runtime.sums import widened

if TYPE_CHECKING:
    from numpy.typing import NDArray


def value_of_input(key: Key, type_: Type, value: object) -> Any:
    """What a user gave for an input, as `input_value`; of a tangent or cotangent null is zero. Raises EvaluationError."""
    if is_as_declared(type_, value):
        return value
    if is_zero_seed(key, type_, value):
        import numpy as np

        return np.asarray(zeros(np, type_)) if isinstance(type_, TensorType) else zeros(np, type_)
    return input_value(f"input {key}", type_, value)


def is_zero_seed(key: Key, type_: Type, value: object) -> bool:
    """Whether what was given for an input is the zero of tangents or cotangents."""
    return value is None and bool(key.path) and type_.inexact


def input_value(place: str, type_: Type, value: object) -> Any:
    """What a user gave, as a value of its declared type: an array, or a tuple of a record's fields in order.

    In records of tangents null is zero, and stays None. Raises EvaluationError.
    """
    if isinstance(type_, TensorType):
        return input_array(place, type_, value)
    if value is None and type_.inexact:
        return (None,) * len(type_.fields)
    given = record_fields(place, type_, value)
    for name, field_type in type_.fields:
        if name not in given:
            zero = ", or null for zero" if type_.inexact else ""
            raise EvaluationError(f"{place}.{name}: missing; {field_type} is due{zero}")
    return tuple(
        None if given[name] is None and type_.inexact else input_value(f"{place}.{name}", field_type, given[name])
        for name, field_type in type_.fields
    )


def type_of_value(place: str, value: object) -> Type:
    """The type of a value as `evaluate` gives it: an array or a number, of a record a dict, of a tuple a tuple.

    Raises EvaluationError for what is none of these.
    """
    import numpy as np

    if isinstance(value, Mapping):
        return RecordType("", tuple((str(name), type_of_value(f"{place}.{name}", part)) for name, part in value.items()))
    if isinstance(value, tuple):
        return RecordType("", tuple((str(k), type_of_value(f"{place}.{k}", part)) for k, part in enumerate(value)))
    try:
        array = np.asarray(value)
    except ValueError:
        raise EvaluationError(f"{place}: expected an array, got {_shape_text(value)}") from None
    kind, unit = array.dtype.kind, np.datetime_data(array.dtype)[0] if array.dtype.kind == "M" else ""
    if kind not in "biufcVM" or (kind == "V" and array.dtype.name != "bfloat16") or (unit and unit not in UNITS):
        raise EvaluationError(f"{place}: expected an array of numbers, got {_shape_text(value)}")
    return TensorType(f"datetime[{unit}]" if unit else dtype_name(array.dtype), array.shape)


def is_as_declared(type_: Type, value: object) -> bool:
    """Whether a value is an array that is plainly of its declared type, so that `input_value` would give it back as it is."""
    import numpy as np

    return (
        type(value) is np.ndarray
        and isinstance(type_, TensorType)
        and value.shape == type_.shape
        and value.dtype is numpy_dtype(np, type_.dtype)  # by identity, as all arrays of a native dtype share one
        and type_.dtype not in DATETIMES  # whose counts are looked at
    )


def plain_arrays(declared: Sequence[Input]) -> Callable[[dict[Any, Any]], list[Any] | None]:
    """What takes the values of inputs, in order, from those by the texts of their keys.

    It gives None unless each is an array of its type, or a float for f64: so a call that takes some µs spends few on what it was
    given.
    """
    import numpy as np

    if not all(isinstance(i.type, TensorType) and i.type.dtype not in DATETIMES for i in declared):
        return lambda given: None
    double = np.dtype(np.float64)
    due = [(str(i.key), i.type.shape, numpy_dtype(np, i.type.dtype)) for i in declared if isinstance(i.type, TensorType)]

    def taken(given: dict[Any, Any]) -> list[Any] | None:
        if len(given) != len(due):
            return None
        values = [given.get(text) for text, _, _ in due]
        for k, (_, shape, dtype) in enumerate(due):
            value = values[k]
            if type(value) is float and shape == () and dtype is double:
                values[k] = np.array(value)
            elif type(value) is not np.ndarray or value.shape != shape or value.dtype is not dtype:
                return None
        return values

    return taken


def record_fields(place: str, type_: RecordType, value: object) -> Mapping[str, object]:
    """What a user gave for fields of a record, by name: of an object, or of the items of a tuple. Some may be missing.

    Raises EvaluationError for anything else, and for what is no field of the record.
    """
    if isinstance(value, complex) and set(type_.names) == {"re", "im"}:
        value = {"re": value.real, "im": value.imag}  # which files cannot tell from a complex number
    if isinstance(value, list | tuple) and type_.is_tuple:
        if len(value) != len(type_.fields):
            raise EvaluationError(f"{place}: expected {_told(type_)}, got {len(value)} item{'' if len(value) == 1 else 's'}")
        value = dict(zip(type_.names, value, strict=True))
    if not isinstance(value, Mapping):
        raise EvaluationError(f"{place}: expected {_told(type_)}, got {_shape_text(value)}")
    for name in value:
        if name not in type_.names:
            hint = did_you_mean(str(name), list(type_.names))
            raise EvaluationError(f"{place}.{name}: {type_} has no such field{hint} (fields: {', '.join(type_.names)})")
    return value


def _told(type_: RecordType) -> str:
    if type_.is_tuple:
        return f"{type_}, a list of {len(type_.fields)}"
    fields = "" if not type_.name or type_.tangent else f" {{{', '.join(f'{name}: {field}' for name, field in type_.fields)}}}"
    return f"{type_}{fields}, an object of its fields"


def input_array(place: str, type_: TensorType, value: object) -> NDArray[Any]:
    """What a user gave, as an array of its declared type; of times, of the numbers that hold them. Raises EvaluationError.

    Numbers that are typed have its dtype, or are integers or narrower numbers, and no digit is lost. Times
    that are typed may have another unit: durations are converted, datetimes if nothing is lost.
    """
    import numpy as np  # here and not above, as everywhere: commands that evaluate nothing start without it

    if isinstance(value, Literal):
        array: NDArray[Any] = literal_array(np, value)
        if value.type == type_:
            return array
        wide = widened(place, type_, value.type, array)
        return _in_unit(place, type_, value.type, array) if wide is None else wide
    if not isinstance(value, np.ndarray | np.generic) and not hasattr(value, "__array__"):
        return _converted(place, type_, value)
    try:
        array = np.asarray(value)
    except Exception as error:  # of another package, as of a tensor on a device
        raise EvaluationError(f"{place}: not an array of NumPy's: {error}") from None
    array = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind in "mM":
        return _of_numpy_times(place, type_, array)
    if type_.dtype == "bf16" and array.dtype == np.dtype("V2"):
        array = array.view(numpy_dtype(np, "bf16"))  # as .npy files hold it: they have no name for bf16
    if array.dtype != numpy_dtype(np, type_.dtype) or array.shape != type_.shape:
        given = TensorType(dtype_name(array.dtype), array.shape)
        wide = widened(place, type_, given, array)
        if wide is None:
            raise _mismatch(place, type_, str(given))
        return wide
    if type_.dtype in DATETIMES:
        _require_times(place, type_, array)
    return array


def input_constant(key: Key, type_: Type, value: object) -> Constant:
    """What a user gave for an input, as a constant of its declared type. Raises EvaluationError."""
    if isinstance(value, int | float | complex) and isinstance(type_, TensorType) and str(type_) in ("f64[]", "c128[]"):
        return _literal(f"input {key}", type_, _parts(type_, [value]))  # most seeds, without NumPy
    return _constant(type_, value_of_input(key, type_, value))


def _constant(type_: Type, value: Any) -> Constant:
    if isinstance(type_, RecordType):
        fields = zip(type_.fields, value, strict=True)
        return tuple(None if field is None else _constant(field_type, field) for (_, field_type), field in fields)
    return Literal(type_, value.astype(value.dtype.newbyteorder("<"), copy=False).tobytes())


def _of_numpy_times(place: str, type_: TensorType, array: NDArray[Any]) -> NDArray[Any]:
    """An array of datetime64 or timedelta64 in the declared unit."""
    import numpy as np

    unit, count = np.datetime_data(array.dtype)
    told = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    if type_.dtype not in TIMES or unit == "generic":
        raise _mismatch(place, type_, told)
    if unit not in UNITS:
        raise EvaluationError(f"{place}: expected {type_}, got {told}, whose unit is none of {', '.join(UNITS)}; convert it to one")
    if count != 1:
        array = array.astype(f"{array.dtype.kind}8[{unit}]")
    given = TensorType(dtype_name(array.dtype), array.shape)
    counts = array.view(np.int64)
    _require_times(place, type_, counts)
    return _in_unit(place, type_, given, counts if given.dtype in DATETIMES else counts.astype(np.float64))


def _in_unit(place: str, type_: TensorType, given: TensorType, counts: NDArray[Any]) -> NDArray[Any]:
    """Times in a unit of their own in that of their declared type."""
    import numpy as np

    from tidu_cli.rules.units import conversion

    kinds = next((kinds for kinds in (DATETIMES, DURATIONS) if type_.dtype in kinds and given.dtype in kinds), None)
    if kinds is None or given.shape != type_.shape:
        raise _mismatch(place, type_, str(given))
    if given.dtype == type_.dtype:
        return counts
    converted: NDArray[Any] = conversion(np, given.dtype, type_.dtype)(counts)
    if kinds is DATETIMES and (conversion(np, type_.dtype, given.dtype)(converted) != counts).any():
        raise EvaluationError(
            f"{place}: expected {type_}, got {given}, and some are not a whole number of {unit_of(type_.dtype)} in 64 bits"
        )
    return converted


def _require_times(place: str, type_: TensorType, counts: NDArray[Any]) -> None:
    if (counts == NOT_A_TIME).any():
        raise EvaluationError(f"{place}: expected {type_}, got NaT, which is not a time")


def _literal(place: str, type_: TensorType, elements: list[object]) -> Literal:
    try:
        return literal_from_numbers(type_, elements)
    except TypeTextError as error:
        reason = str(error).removeprefix(f"constant of type {type_}: ")
        raise EvaluationError(f"{place}: expected {type_}, but {reason}") from None


def _parts(type_: TensorType, elements: list[object]) -> list[object]:
    """Numbers as constants have them: complex ones as real and imaginary part, one after the other."""
    if type_.dtype not in COMPLEXES:
        return elements
    return list(chain.from_iterable((x.real, x.imag) if type(x) is complex else (x, 0) for x in elements))


def _converted(place: str, type_: TensorType, value: object) -> NDArray[Any]:
    import numpy as np

    given = _elements(place, type_, value)
    if type_.dtype == "f64" and all(type(x) is float for x in given):
        return np.array(given, np.float64).reshape(type_.shape)  # what streams of numbers hold
    if type_.dtype not in COMPLEXES and (number := next((x for x in given if type(x) is complex), None)) is not None:
        raise EvaluationError(f"{place}: expected {type_}, but {number} is complex; give a real number")
    elements = _parts(type_, given)
    if type_.dtype in DATETIMES:  # those of Python's datetime, too
        elements = [x.isoformat() if hasattr(x, "isoformat") else x for x in elements]
    array: NDArray[Any] = literal_array(np, _literal(place, type_, elements))
    return array


def _elements(place: str, type_: TensorType, value: object) -> list[object]:
    """The elements of nested lists, row-major; their nesting must be the type's shape."""
    level = [value]
    if value is None:
        raise _mismatch(place, type_, "null")
    for n in type_.shape:
        if not all(type(x) is list and len(x) == n for x in level):
            raise _mismatch(place, type_, _shape_text(value))
        level = list(chain.from_iterable(level))  # type: ignore[arg-type]
    kinds = set(map(type, level))
    if list in kinds or dict in kinds:
        raise _mismatch(place, type_, _shape_text(value))
    return level


def _shape_text(value: object) -> str:
    """How a message tells what was given: the shape of nested lists, say."""
    if isinstance(value, Mapping):
        return "an object" if value else "an empty object"
    if value is None or isinstance(value, str):
        return "null" if value is None else "text"
    if isinstance(value, Literal):
        return str(value.type)
    if hasattr(value, "dtype"):
        import numpy as np

        return f"{dtype_name(np.dtype(value.dtype))}[{','.join(map(str, value.shape))}]"  # type: ignore[attr-defined]
    shape: list[int] = []
    level: Sequence[object] = [value]
    while level and all(type(x) is list for x in level):
        lengths = {len(x) for x in level}  # type: ignore[arg-type]
        if len(lengths) > 1:
            return "a ragged list, whose rows differ in length"
        shape += lengths
        level = list(chain.from_iterable(level))  # type: ignore[arg-type]
    if any(type(x) is list for x in level):
        return "a ragged list, of numbers beside lists"
    if any(isinstance(x, Mapping) for x in level):
        return "a list of objects"
    if shape:
        return f"a list of shape [{','.join(map(str, shape))}]"
    return "a single number" if isinstance(value, Number) else f"a value of type {type(value).__name__}"


def _mismatch(place: str, expected: TensorType, given: str) -> EvaluationError:
    return EvaluationError(f"{place}: expected {expected}, got {given}; {_way_out(expected)}")


def _way_out(expected: TensorType) -> str:
    unit = unit_of(expected.dtype)
    if expected.dtype in DATETIMES:
        return f"give text such as 2026-01-31T12:00, integers of {unit} since 1970, or NumPy's datetime64, in that shape"
    if expected.dtype in DURATIONS:
        return f"give numbers of {unit}, as f64 where they are typed, or NumPy's timedelta64, in that shape"
    return "give exactly that type: values are neither broadcast nor converted"
