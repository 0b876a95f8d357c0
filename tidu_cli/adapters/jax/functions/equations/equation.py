"""An equation, as those see it that read its kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.functions.attrs import attrs_of, type_of
from tidu_cli.adapters.jax.functions.known import Known, Value
from tidu_cli.adapters.jax.functions.places import EquationError, refusal
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.array import dtype_of as numpy_dtype
from tidu_cli.errors import TiduError
from tidu_cli.graph.types import TensorType


@dataclass(slots=True, eq=False)
class Equation:
    """An equation that is read by `reader`; `needs` says which of its results are."""

    reader: Any
    equation: Any
    needs: Sequence[bool]

    @property
    def params(self) -> dict[str, Any]:
        """Its params."""
        return self.equation.params  # type: ignore[no-any-return]

    @property
    def name(self) -> str:
        """The name of its primitive."""
        return str(self.equation.primitive.name)

    @property
    def results(self) -> list[TensorType]:
        """The types of its results."""
        return [type_of(v.aval) for v in self.equation.outvars]

    def emit(self, op: str, *operands: Array, **attrs: object) -> Array:
        """The first result of a node."""
        return self.reader.recorder.emit(op, *operands, **attrs)  # type: ignore[no-any-return]

    def emit_all(self, op: str, *operands: Array, **attrs: object) -> Sequence[Array]:
        """All results of a node."""
        return self.reader.recorder.emit_all(op, operands, **attrs)  # type: ignore[no-any-return]

    def as_named(self, op: str, *operands: Array, **attrs: object) -> Sequence[Array]:
        """The results of a node of an operation that has attrs of the names of this equation's params."""
        return self.emit_all(op, *operands, **{**attrs_of(op, self.params), **attrs})

    def constant(self, value: Any) -> Array:
        """A number or array of NumPy's."""
        return self.reader.recorder.constant(value)  # type: ignore[no-any-return]

    def run(self, closed: Any, operands: Sequence[Value], wanted: Sequence[bool] | None = None) -> list[Any]:
        """The results of a jaxpr, without those that are not wanted."""
        return self.reader.run(getattr(closed, "jaxpr", closed), getattr(closed, "consts", ()), operands, wanted)  # type: ignore[no-any-return]

    def graph(self, closed: Any) -> Any:
        """A closed jaxpr as the graph of a loop or branch."""
        return self.reader.graph(closed.jaxpr, closed.consts)

    def traced(self, function: Callable[..., Any], *operands: Value) -> list[Any]:
        """The results of a function of JAX, which gives an array or several."""
        import jax

        arrays = [x.value if isinstance(x, Known) else x for x in operands]
        avals = [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
        try:
            closed = jax.make_jaxpr(function)(*avals)
        except TiduError:
            raise
        except Exception as error:  # whatever JAX has to say
            raise self.refused(f"what computes it is not traced: {' '.join(str(error).split())}") from error
        return self.run(closed, operands)

    def traced_arrays(self, function: Callable[..., Any], *operands: Value) -> list[Array]:
        """Likewise, as arrays of the recording."""
        return [self.lifted(x) for x in self.traced(function, *operands)]

    def zeros(self, type_: TensorType) -> Array:
        """Zeros of a type."""
        return spread(self.constant(np.zeros((), numpy_dtype(type_.dtype))), type_.shape)

    def lifted(self, x: Value) -> Array:
        """A value as an array of the recording."""
        return self.reader.lifted(x)  # type: ignore[no-any-return]

    def refused(self, reason: object) -> EquationError:
        """The error to raise where it cannot be read."""
        return refusal(self.equation, reason)


def spread(x: Array, shape: tuple[int, ...]) -> Array:
    """An array of this shape of a scalar, or of one with axes of one element."""
    if x.type.shape == shape:
        return x
    return x.recorder.emit("broadcast_in_dim", x, shape=shape, broadcast_dimensions=tuple(range(x.type.rank)))


def elementwise(jaxpr: Any, consts: Sequence[Any] = (), of_first: int | None = None) -> Callable[..., list[Any]]:
    """The function of a jaxpr of scalars, of arrays element by element; other operands than the first ones are not looked at."""
    import jax

    inner = getattr(jaxpr, "jaxpr", jaxpr)
    consts = getattr(jaxpr, "consts", consts)

    def function(*values: Any) -> list[Any]:
        def one(*xs: Any) -> Any:
            rest = inner.invars[of_first:] if of_first is not None else ()
            return jax.core.eval_jaxpr(inner, consts, *xs, *[jax.numpy.zeros(v.aval.shape, v.aval.dtype) for v in rest])

        for _ in range(values[0].ndim):
            one = jax.vmap(one)
        return one(*values)  # type: ignore[no-any-return]

    return function
