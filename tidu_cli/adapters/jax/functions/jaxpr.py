"""What jaxprs hold, in the terms of graphs: values, types and params of equations, and which equations are needed.

Values are arrays of the recording, and those that depend on no input, which JAX computes while a jaxpr is read. Of equations that
are not read there is what is said of one, where it comes from, and the reasons by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.numpy.errors import BuildError, shown, written_by_users
from tidu_cli.custom.packages import KNOWN
from tidu_cli.graph.literals import spelled
from tidu_cli.graph.open_sizes import has_open_size
from tidu_cli.graph.types import ITEMSIZE, TensorType
from tidu_cli.lax.arrays.windows import GatherDimensionNumbers, ScatterDimensionNumbers
from tidu_cli.lax.signal.convolution import ConvDimensionNumbers
from tidu_cli.rules.fields import field_names

MOST_KNOWN = 65_536
"""As many elements of what is computed while a jaxpr is read."""

SMALL = 256
"""Known values of at most this many bytes become constants of the graph, whatever they are made of."""


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


OWN: dict[str, Any] = {kind.__name__: kind for kind in (GatherDimensionNumbers, ScatterDimensionNumbers, ConvDimensionNumbers)}
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
        from tidu_cli.adapters.jax.dims import dims_of  # which functions of fixed sizes do without

        shape = dims_of(shape)
    return jax.ShapeDtypeStruct(shape, dtype_of(type_.dtype))


def sizes_of(shape: Any) -> tuple[Any, ...]:
    """A shape of JAX's, of which some dimensions are symbolic."""
    from tidu_cli.adapters.jax.dims import sizes_of

    return sizes_of(shape)


def is_symbolic(dim: object) -> bool:
    """Whether a dimension of JAX's is a symbolic one."""
    return hasattr(dim, "dimension_as_value")


_OWN = str(Path(__file__).parents[3])
"""Where tidu is, which calls users' functions."""


class EquationError(BuildError):
    """An equation that is not read. Its message has the line of the user's source, and the equation."""

    def __init__(self, said: str, place: str | None) -> None:
        super().__init__(f"{place}: {said}" if place else said)
        self.said = said
        self.place = place


def refusal(equation: Any, reason: object) -> EquationError:
    """The error of an equation that cannot be read, and why."""
    return EquationError(f"equation {signature(equation)}: {reason}", line_of(equation))


def called_at(equation: Any, error: EquationError) -> EquationError:
    """The error of an equation within one that calls it, whose line it has where it has none: functions of JAX know no other."""
    return error if error.place else EquationError(error.said, line_of(equation))


def signature(equation: Any) -> str:
    """An equation by its name and types: `sort(f32[8]) -> f32[8]`."""
    given, results = (", ".join(_type(v.aval) for v in some) for some in (equation.invars, equation.outvars))
    text = f"'{equation.primitive.name}' of ({given})"
    text = f"{text} -> {results}" if results else text
    return text if len(text) < 200 else f"{text[:200]}..."


def _type(aval: Any) -> str:
    return str(aval.str_short(short_dtypes=True)) if hasattr(aval, "str_short") else str(aval)


def line_of(equation: Any) -> str | None:
    """FILE:LINE of the user's source that made an equation, if it is known."""
    try:
        from jax._src.source_info_util import user_frames

        frames = [(frame.file_name, frame.start_line) for frame in user_frames(equation.source_info.traceback)]
    except Exception:  # these are internals of JAX, and a place is not worth an error
        return None
    frames = [frame for frame in frames if not frame[0].startswith(_OWN)]
    own = [frame for frame in frames if written_by_users(frame[0])] or frames
    return f"{shown(own[0][0])}:{own[0][1]}" if own else None


_SEVERAL = "a graph runs on one device and cannot talk to others; write it without jax.pmap, shard_map and collectives"
_CALLBACK = "it calls back into Python, which a graph cannot; take jax.debug.print and callbacks out of the function"

_COLLECTIVES = (
    "all_gather", "all_gather_invariant", "all_gather_reduced", "all_to_all", "axis_index", "pbroadcast", "pmax", "pmin",
    "ppermute", "precv", "preduced", "psend", "psum", "psum_invariant", "ragged_all_to_all", "reduce_scatter", "shard_map",
    "unreduced_psum", "unreduced_reduce_scatter", "xla_pmap",
)  # fmt: skip

REFUSED = {
    **{f"{name}{part}": _SEVERAL for name in _COLLECTIVES for part in ("", "_start", "_done")},
    **dict.fromkeys(("debug_callback", "debug_print", "infeed", "io_callback", "outfeed", "outside_call"), _CALLBACK),
    "pure_callback": f"{_CALLBACK} (EQX_ON_ERROR=off does that with the checks of equinox and diffrax)",
    **dict.fromkeys(("get", "swap", "addupdate", "new_ref", "empty_ref", "free_ref", "freeze", "run_state", "accum_grad_in_ref",
                     "box_get", "box_set", "new_box", "ref"), "it changes a reference in place; a graph has values only"),
    **dict.fromkeys(("cudnn_fusion", "dot_product_attention_fwd", "dot_product_attention_fwd_wrapper", "dot_product_attention_bwd",
                     "dot_product_attention_bwd_wrapper", "scaled_matmul", "scaled_matmul_wrapper", "pallas_call",
                     "triton_kernel_call"), "it is a kernel for one kind of device; choose the implementation of plain JAX"),
    **dict.fromkeys(("ffi_call", "call_exported", "custom_partitioning"), "it runs compiled code that is not in the jaxpr"),
    **dict.fromkeys(("dim_as_value", "dimension_size", "shape_assertion"),
                    "sizes are fixed in a graph; give shapes without symbolic dimensions"),
    **dict.fromkeys(("philox2x32", "philox4x32", "threefry4x32"), "a graph draws random numbers by threefry2x32, JAX's default"),
    **dict.fromkeys(("from_edtype", "to_edtype"), "a graph has no extended dtypes but keys of random numbers"),
    "select_and_scatter": "windows are chosen from by their greatest or least element, and updates are added; write it so",
    "scaled_dot": "graphs have no products with scales of blocks; multiply by the scales before",
    "rng_uniform": "its numbers depend on the device; draw them with jax.random and a key",
    "rng_bit_generator": "its numbers depend on the device; draw them with jax.random and a key of threefry",
    **dict.fromkeys(("geqrf", "ormqr"), "graphs have no Householder reflectors as LAPACK packs them; write jnp.linalg.qr"),
    "geqp3": "graphs have no QR factors with column pivoting; write jnp.linalg.qr",
    "hessenberg": "graphs have no reduction to Hessenberg form; write jax.scipy.linalg.schur",
    "tridiagonal": "graphs have no reduction to tridiagonal form; write jnp.linalg.eigh",
}  # fmt: skip
"""What is said of equations by the names of their primitives."""


# Which equations of a jaxpr are read, and which stop no gradient though they say so.


Needs = list[bool] | None
"""Which results of an equation are needed."""

FACTORS: Needs = None
"""What stands in the place of which results are needed where a `stop_gradient` is none: before the factors of a linear system.

`jnp.linalg.solve` takes LU factors of what it holds constant, as JAX differentiates a system by its solution. Here it is
differentiated by what solves it, which comes to the same, to any order, as long as the factors are not held constant.
"""


def needed(jaxpr: Any, results: Iterable[Any]) -> list[tuple[Any, Needs]]:
    """The equations that results depend on, or that have effects, in order, each with which of its results are needed."""
    live = {v for v in results if not hasattr(v, "val")}
    plain = set(live)  # those that something else needs than factors
    equations: list[tuple[Any, Needs]] = []
    for equation in reversed(jaxpr.eqns):
        each = [v in live for v in equation.outvars]
        if not any(each) and not equation.effects:
            continue
        name = equation.primitive.name
        held = _held(equation) if name == "custom_linear_solve" else range(0)
        is_plain = any(v in plain for v in equation.outvars) or bool(equation.effects)
        for k, v in enumerate(equation.invars):
            if not hasattr(v, "val"):
                live.add(v)
                if is_plain and k not in held:
                    plain.add(v)
        equations.append((equation, FACTORS if name == "stop_gradient" and not is_plain else each))
    return equations[::-1]


def _held(equation: Any) -> range:
    """The operands of a system that only say how it is solved, and are held constant."""
    lengths = equation.params["const_lengths"]
    first = lengths.matvec + lengths.vecmat
    return range(first, first + lengths.solve + lengths.transpose_solve)


def equations_within(jaxpr: Any) -> Iterator[Any]:
    """The equations of a jaxpr, and of those in them, at any depth."""
    pending = [jaxpr]
    while pending:
        for equation in pending.pop().eqns:
            yield equation
            for value in equation.params.values():
                for inner in value if isinstance(value, tuple | list) else (value,):
                    if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                        pending.append(getattr(inner, "jaxpr", inner))
