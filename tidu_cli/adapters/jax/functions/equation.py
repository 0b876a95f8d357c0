"""An equation, as those see it that read its kind; and the equations of loops and branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidu_cli.adapters.jax.functions.jaxpr import EquationError, Known, Value, attrs_of, plain, refusal, struct_of, type_of
from tidu_cli.adapters.numpy.arrays.array import Array
from tidu_cli.adapters.numpy.arrays.array import dtype_of as numpy_dtype
from tidu_cli.errors import TiduError
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.types import INTEGERS, TensorType
from tidu_cli.rules.recording.known import Recording


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
        avals = [struct_of(x.type) if isinstance(x, Array) else jax.ShapeDtypeStruct(x.shape, x.dtype) for x in arrays]
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


# Loops and branches: scan, while and cond, whose jaxprs become graphs.


def scan(eq: Equation, *operands: Array) -> Sequence[Array]:
    """A scan, also one that is written for any length."""
    p = eq.params
    attrs = {name: plain(p[name]) for name in ("length", "num_consts", "num_carry", "reverse")}
    return eq.emit_all("scan", *operands, **attrs, body=eq.graph(p["jaxpr"]))


def cond(eq: Equation, *operands: Value) -> Sequence[Any]:
    """A choice among branches; where it is known which, that branch."""
    index, *rest = operands
    branches = eq.params["branches"]
    if type(index) is Known:
        number = min(max(int(np.asarray(index.value)), 0), len(branches) - 1)
        return eq.run(branches[number], rest, eq.needs)
    arrays = [eq.lifted(x) for x in operands]
    return eq.emit_all("cond", *arrays, branches=tuple(eq.graph(b) for b in branches))


def while_loop(eq: Equation, *operands: Array) -> Sequence[Array]:
    """A loop with a condition; with one for each item of a batch, it goes on as long as one of them holds.

    One that counts up to an open size is a scan. Of fixed numbers of steps JAX makes scans itself.
    """
    p = eq.params
    n, m = p["cond_nconsts"], p["body_nconsts"]
    if p["cond_jaxpr"].out_avals[0].shape:
        return _batched(eq, n, m, operands)
    condition, body = eq.graph(p["cond_jaxpr"]), eq.graph(p["body_jaxpr"])
    recording = Recording(eq.reader.operations.primitives, [x.type for x in operands])
    terms = [_of_sizes(recording, x.recorder, x.value) or t for x, t in zip(operands, recording.sources, strict=True)]
    tested = [case for case in condition.graph.cases.cases if case.op == "size"]
    if tested or any(isinstance(recording.size(t), OpenSize) for t in terms):
        from tidu_cli.lax.recipes.counting import loop  # which functions of fixed sizes do without

        results = loop(recording, condition, terms[:n], body, terms[n : n + m], terms[n + m :])
        return eq.reader.recorder.inlined(recording.closed(results).graph, operands)  # type: ignore[no-any-return]
    return eq.emit_all("while", *operands, cond_consts=n, body_consts=m, condition=condition, body=body)


_SIZES = frozenset({"size", "constant", "convert_element_type", "add", "sub"})
"""Operations that numbers of steps are made of."""


def _of_sizes(recording: Recording, recorder: Any, value: int, most: int = 4) -> Any:
    """A scalar of integers, recorded again, if it is made of a few numbers and sizes; None of others."""
    case, operands = recorder.made_by(value) or (None, ())
    if case is None or case.op not in _SIZES or most == 0 or case.results[0].shape or case.results[0].dtype not in INTEGERS:
        return None
    terms = [_of_sizes(recording, recorder, x, most - 1) for x in operands]
    return None if None in terms else recording.apply(case.op, case.attrs, terms)[0]


def _batched(eq: Equation, n: int, m: int, operands: Sequence[Array]) -> Sequence[Array]:
    """Items whose condition does not hold keep what they are."""
    test, step = eq.params["cond_jaxpr"], eq.params["body_jaxpr"]
    types = [x.type for x in operands]

    def condition(inner: Any, arrays: list[Array]) -> list[Array]:
        (go_on,) = map(inner.lifted, inner.run(test.jaxpr, test.consts, arrays))
        return [go_on.emit("reduce_or", axes=tuple(range(go_on.type.rank)))]

    def body(inner: Any, arrays: list[Array]) -> list[Array]:
        old = arrays[n + m :]
        (go_on,) = map(inner.lifted, inner.run(test.jaxpr, test.consts, [*arrays[:n], *old]))
        new = map(inner.lifted, inner.run(step.jaxpr, step.consts, arrays[n:]))
        axes = tuple(range(go_on.type.rank))
        each = [go_on.emit("broadcast_in_dim", shape=x.type.shape, broadcast_dimensions=axes) for x in old]
        return [which.emit("select_n", a, b) for which, a, b in zip(each, old, new, strict=True)]

    graphs = {
        "condition": eq.reader.made([*types[:n], *types[n + m :]], condition),
        "body": eq.reader.made(types, body),
    }
    return eq.emit_all("while", *operands[:n], *operands, cond_consts=n, body_consts=n + m, **graphs)


LOOPS = {"scan": scan, "while": while_loop}
