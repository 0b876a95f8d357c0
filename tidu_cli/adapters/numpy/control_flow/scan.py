"""Loops with a known number of steps: `scan` and `fori_loop` with JAX's signatures, of traced arrays and of NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of
from tidu_cli.adapters.numpy.control_flow.bodies import (
    Body,
    Carried,
    Leaf,
    begun,
    constant_of,
    kind_of_tree,
    leaves,
    leaves_as,
    named,
    operands_of,
    parameters,
    plain,
    rebuilt,
    run,
    settled,
    type_of,
)
from tidu_cli.adapters.numpy.control_flow.while_loop import counted
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.numpy.indexing import unlike
from tidu_cli.adapters.numpy.recorder import Recorder, distinct, innermost
from tidu_cli.frozen import Frozen
from tidu_cli.graph.sizes.open import OpenSize, larger
from tidu_cli.graph.types import TensorType

MAX_STEPS = 2**31
"""Numbers of steps are below this, as JAX has it."""


class Rows(Frozen, slots=False):
    """An array of which each step takes a slice."""

    path: str
    array: Any
    weak = None

    @property
    def type(self) -> TensorType:
        """Of a slice."""
        whole = type_of(self.array)
        return whole.with_shape(whole.shape[1:])

    def at(self, i: int) -> Any:
        """A slice, which may be changed in place."""
        return self.array[i].copy()

    def operand(self, recorder: Recorder) -> Array:
        """All slices, as a node takes them."""
        return self.array if isinstance(self.array, Array) else recorder.constant(np.asarray(self.array))


class Counter(Frozen, slots=False):
    """What counts the steps: as Python's range, whose numbers give way to the dtypes of arrays."""

    path: str
    start: int
    length: int
    weak = int
    type = TensorType("i64")

    def at(self, i: int) -> int:
        """The number of a step."""
        return self.start + i

    def operand(self, recorder: Recorder) -> Array:
        """All numbers, as a node takes them."""
        counted = recorder.emit("iota", dtype="i64", shape=(self.length,), dimension=0)
        return counted if isinstance(self.start, int) and not self.start else counted + self.start


Slices = Sequence[Rows | Counter]


class Loop(Frozen, slots=False):
    """A scan: `step` makes of the leaves of what is carried, and of slices, those carried on, and a tree of results."""

    init: Any
    carry: str
    slices: Slices
    length: int
    reverse: bool
    name: str
    step: Callable[[Sequence[Leaf], Sequence[Leaf]], tuple[Sequence[Leaf], Any]]

    def run(self) -> tuple[Any, Any]:
        """What it carries out, and its stacked results."""
        init = list(leaves(self.init, self.carry))
        values = [x for _, x in init] + [s.array for s in self.slices if isinstance(s, Rows)]
        around = innermost() if isinstance(self.length, OpenSize) else None
        carry, ys = self._staged(around) if around is not None else run(values, self._staged, self._called)
        return rebuilt(self.init, carry), ys

    def _staged(self, recorder: Recorder) -> tuple[Sequence[Array], Any]:
        init = list(leaves(self.init, self.carry))

        def record(carried: Sequence[Carried]) -> tuple[tuple[Body, Any], Sequence[Leaf]]:
            body, given = begun(recorder, [*carried, *self.slices])
            with body.going_on():
                after, y = self.step(given[: len(carried)], given[len(carried) :])
            return (body, y), after

        carried, (body, y), after = settled(init, record)
        with body.going_on():
            results = list(leaves(y, "y"))
            arrays = [c.fitted(x, self.name) for c, x in zip(carried, after, strict=True)] + [x for _, x in results]
            names = distinct([*[c.path for c in carried], *[path for path, _ in results]])
            body.give(names, [body.array(x) for x in arrays])
        if not arrays:
            return [], y
        outside, n = body.outside, len(carried)
        used = [k for k in range(len(self.slices)) if body.needs(n + k) or not (n or outside)]
        first = [constant_of(recorder, c, x) for c, (_, x) in zip(carried, init, strict=True)]
        outputs = recorder.emit_all(
            "scan",
            [*operands_of(recorder, outside), *first, *[self.slices[k].operand(recorder) for k in used]],
            length=self.length,
            num_consts=len(outside),
            num_carry=n,
            reverse=self.reverse,
            body=body.closed(outside, [*range(n), *[n + k for k in used]]),
        )
        return outputs[:n], rebuilt(y, outputs[n:])

    def _called(self) -> tuple[Sequence[Any], Any]:
        init = list(leaves(self.init, self.carry))
        order = range(self.length)[:: -1 if self.reverse else 1]
        if not order:  # a recording that is thrown away says the types
            carry, ys = self._staged(Recorder())
            unchanged = [plain(x, c.type) for c, (_, x) in zip(carry, init, strict=True)]
            return unchanged, rebuilt(ys, [np.zeros(y.shape, y.dtype) for _, y in leaves(ys, "y")])

        def first(carried: Sequence[Carried]) -> tuple[Any, Sequence[Leaf]]:
            given = [x if c.weak else plain(x, c.type) for c, (_, x) in zip(carried, init, strict=True)]
            after, y = self.step(given, [s.at(order[0]) for s in self.slices])
            return y, after

        carried, y, after = settled(init, first)
        types = [type_of(x) for _, x in leaves(y, "y")]
        stacked = [np.empty((self.length, *t.shape), dtype_of(t.dtype)) for t in types]
        for k, i in enumerate(order):
            if k:
                after, y = self.step(carry, [s.at(i) for s in self.slices])
            carry = [c.fitted(x, self.name) for c, x in zip(carried, after, strict=True)]
            for row, (_, x) in zip(stacked, leaves(y, "y"), strict=True):
                row[i] = x
        return carry, rebuilt(y, stacked)


def scan(f: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False) -> tuple[Any, Any]:
    """The loop `carry, y = f(carry, x)` over the slices x of xs along axis 0: the last carry, and all y, stacked along axis 0.

    With `reverse` it goes from the last slice to the first. The carry, xs and y are arrays, or nested; the carry keeps its types.
    Raises BuildError.
    """
    names, name = parameters(f, ("carry", "x")), named(f, "f")
    rows = [Rows(path, x) for path, x in leaves(xs, names[1])]

    def step(carry: Sequence[Leaf], slices: Sequence[Leaf]) -> tuple[list[Leaf], Any]:
        pair = f(rebuilt(init, carry), rebuilt(xs, slices))
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise BuildError(
                f"{name} gives {kind_of_tree(pair)}, but a step of scan gives a pair: what it carries on, and a result"
            )
        return list(leaves_as(init, pair[0], names[0], name)), pair[1]

    return Loop(init, names[0], rows, _length(rows, length), reverse, name, step).run()


def _length(rows: Sequence[Rows], length: int | None) -> int:
    """The number of steps. Raises BuildError if it is not known, or if arrays differ in it."""
    sizes: dict[str, int] = {} if length is None else {"length": length}
    for row in rows:
        shape = type_of(row.array).shape
        if not shape:
            raise BuildError(
                f"'{row.path}' has no axes, but scan takes slices along axis 0; let the function close over it, or carry it"
            )
        first, n = next(iter(sizes.items()), (row.path, shape[0]))
        if shape[0] != n:
            told = f"'{row.path}' has {shape[0]} slices, but {first} is {n}; all that scan takes has one slice a step"
            raise BuildError(str(unlike(told, shape[0], n)))
        sizes.setdefault(f"the length of '{row.path}'", n)
    if not sizes:
        raise BuildError("scan needs xs or length; give length=n for n steps")
    return _possible(next(iter(sizes.values())))


def _possible(length: int) -> int:
    if not (isinstance(length, OpenSize) or 0 <= length < MAX_STEPS):
        raise BuildError(f"{length} steps: a loop has from 0 to 2**31 - 1 of them; write while_loop for more")
    return length


def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
    """The loop `val = body_fun(i, val)` for i from lower to upper - 1: the last val, of arrays, which keeps its types.

    With bounds that are Python's integers it is a scan, which has a reverse mode; with traced ones a while_loop, which has none.
    Raises BuildError.
    """
    for name, bound in (("lower", lower), ("upper", upper)):
        if isinstance(bound, OpenSize):
            continue
        type_ = type_of(bound) if isinstance(bound, Array | int | np.integer | np.ndarray) else None
        if type_ is None or type_.shape or type_.dtype[0] not in "iu":
            told = type_ if type_ is not None else f"a {type(bound).__name__}"
            raise BuildError(f"{name} of fori_loop is {told}, but a loop counts integers; write int(x) or x.astype(int)")
    if isinstance(lower, Array) or isinstance(upper, Array):
        return counted(lower, upper, body_fun, init_val)
    names, name = parameters(body_fun, ("i", "val")), named(body_fun, "body_fun")
    lower, upper = (n if isinstance(n, OpenSize) else int(n) for n in (lower, upper))
    length = _possible(larger(upper - lower, 0))

    def step(carry: Sequence[Leaf], slices: Sequence[Leaf]) -> tuple[list[Leaf], None]:
        after = body_fun(slices[0], rebuilt(init_val, carry))
        return list(leaves_as(init_val, after, names[1], name)), None

    return Loop(init_val, names[1], [Counter(names[0], lower, length)], length, False, name, step).run()[0]
