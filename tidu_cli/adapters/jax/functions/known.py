"""Values of equations: arrays of the recording, and those that depend on no input, which JAX computes while a jaxpr is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import cache, lru_cache
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.custom.packages import KNOWN
from tidu_cli.graph.literals import spelled
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.types import ITEMSIZE, TensorType
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers, ScatterDimensionNumbers
from tidu_cli.lax.signal.convolution import ConvDimensionNumbers
from tidu_cli.rules.attrs.fields import field_names

MOST_KNOWN = 65_536
"""As many elements of what is computed while a jaxpr is read."""

SMALL = 256
"""Known values of so many bytes become constants of the graph, whatever they are made of."""


class Known:
    """A value that depends on no input.

    `array` is its node in the graph, if it has one. `cost` is how many bytes of constants it takes there: a known value becomes a
    constant itself where that takes no more. Otherwise it stays what computes it, and is computed here only if it is asked for.
    """

    __slots__ = ("_compute", "_operands", "_value", "array", "cost")

    def __init__(self, value: Any, array: Array | None = None, cost: int = 0) -> None:
        self._value = value
        self.array = array
        self.cost = cost
        self._compute: Callable[..., Any] | None = None
        self._operands: Sequence[Known] = ()

    @classmethod
    def later(cls, compute: Callable[..., Any], operands: Sequence[Known], array: Array, cost: int) -> Known:
        """A value that is computed when it is asked for, from those of operands."""
        value = cls(None, array, cost)
        value._compute, value._operands = compute, operands
        return value

    @property
    def value(self) -> Any:
        """The value: an array of NumPy or JAX."""
        pending = [self]
        while pending:
            here = pending[-1]
            if here._compute is None:
                pending.pop()
            elif missing := [k for k in here._operands if k._compute is not None]:
                pending += missing
            else:
                here._value = here._compute(*[k._value for k in here._operands])
                here._compute = None
        return self._value


Value = Array | Known
"""What a variable of a jaxpr stands for."""


def known(value: Any) -> Known:
    """A value of JAX's, of NumPy's or of Python's. Raises BuildError for one that is traced, which a rule may close over."""
    if hasattr(value, "dtype") and not isinstance(value.dtype, np.dtype):  # keys of random numbers
        return Known(value, None, value.size * 8)
    if hasattr(value, "_trace"):
        raise BuildError("it closes over a value that is computed; make this an argument")
    array = np.asarray(value, getattr(value, "dtype", None))  # JAX's literal ints have a dtype that NumPy does not ask for
    return Known(array, None, array.nbytes if any(array.strides) or not array.ndim else array.itemsize)


def as_numpy(value: Any) -> Any:
    """A known value as an array of NumPy; of keys the integers that they hold."""
    if isinstance(value.dtype, np.dtype):
        return np.asarray(value)
    import jax

    return np.asarray(jax.random.key_data(value))


# Params of an equation as attrs of the operation of that name.


OWN = {
    "GatherDimensionNumbers": GatherDimensionNumbers,
    "ScatterDimensionNumbers": ScatterDimensionNumbers,
    "ConvDimensionNumbers": ConvDimensionNumbers,
}
"""Classes of attrs by the names of JAX's, whose fields have the names of theirs."""


@cache
def names_of(op: str) -> tuple[str, ...]:
    """The names of an operation's attrs."""
    return tuple(field_names(KNOWN[op].domain.attrs))


def attrs_of(op: str, params: dict[str, Any]) -> dict[str, Any]:
    """Those of an equation's params that are attrs of an operation. Others are about how it is compiled."""
    names = names_of(op)
    if not names:
        return {}
    attrs = {name: plain(params[name]) for name in names if name in params}
    mode = attrs.get("mode")
    if isinstance(mode, str):
        attrs["mode"] = mode.lower().removesuffix("_or_drop")
    if attrs.get("fill_value") is not None:
        attrs["fill_value"] = plain(np.asarray(params["fill_value"]).item())  # it may be of any kind of number
    return attrs


def plain(value: Any) -> Any:
    """A param in terms of attrs: dtypes and enumerations by their names, integers of NumPy as Python's."""
    if type(value) in (bool, int, str) or value is None:
        return value
    if isinstance(value, float):
        return spelled(value)
    if type(value).__name__ in OWN:
        return _numbers(type(value).__name__, value)
    if isinstance(value, tuple | list):
        return tuple([v if type(v) is int else plain(v) for v in value])
    if isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic)):
        return name_of(np.dtype(value))
    if isinstance(value, np.generic):
        return value.item()
    if is_symbolic(value):
        return sizes_of((value,))[0]
    return value.name if isinstance(value, Enum) or type(value).__name__ == "Primitive" else value


@lru_cache(maxsize=256)
def _numbers(kind: str, value: Any) -> Any:  # of gather and scatter may be equal
    return OWN[kind](**{name: plain(v) for name, v in value._asdict().items()})


def type_of(aval: Any) -> TensorType:
    """The type of a value; keys of random numbers are the integers that they hold. Raises BuildError for other dtypes."""
    dtype, shape = aval.dtype, aval.shape
    if not isinstance(dtype, np.dtype):  # an extended dtype, of keys
        physical = dtype._rules.physical_element_aval(dtype)
        dtype, shape = physical.dtype, (*shape, *physical.shape)
    name = name_of(np.dtype(dtype))
    if name not in ITEMSIZE:
        raise BuildError(f"a value of dtype {dtype}, which graphs do not have (dtypes: {', '.join(ITEMSIZE)})")
    return TensorType(name, tuple(shape) if all(type(n) is int for n in shape) else sizes_of(shape))


def is_extended(aval: Any) -> bool:
    """Whether a value is of an extended dtype: an array of keys of random numbers."""
    return not isinstance(aval.dtype, np.dtype)


def struct_of(type_: TensorType) -> Any:
    """A type as JAX's."""
    import jax

    shape = type_.shape
    if has_open_size(shape):
        from tidu_cli.adapters.jax.lowering.dims import dims_of  # which functions of fixed sizes do without

        shape = dims_of(shape)
    return jax.ShapeDtypeStruct(shape, dtype_of(type_.dtype))


def sizes_of(shape: Any) -> tuple[Any, ...]:
    """A shape of JAX's, of which some dimensions are symbolic."""
    from tidu_cli.adapters.jax.functions.dims import sizes_of

    return sizes_of(shape)


def is_symbolic(dim: object) -> bool:
    """Whether a dimension of JAX's is a symbolic one."""
    return hasattr(dim, "dimension_as_value")
