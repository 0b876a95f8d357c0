"""The types of what loops carry over, which must be the same after each step, and of what branches give.

Where a loop begins with a number of Python's, that gives way, as JAX has it: it takes the dtype that a step makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, known, name_of
from tidu_cli.adapters.numpy.arrays.operands import kind, promoted
from tidu_cli.adapters.numpy.control_flow.trees import Leaf, Named
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.types import TensorType

R = TypeVar("R")


class Carried(Frozen, slots=False):
    """What a loop carries over under a path. `flexible`: it began as a number of Python's, which as `weak` it still is."""

    path: str
    type: TensorType
    weak: Any
    flexible: bool

    @classmethod
    def of(cls, path: str, leaf: Leaf) -> Carried:
        """As the first step takes it."""
        weak = weak_of(leaf)
        return cls(path, type_of(leaf), weak, weak is not None)

    def after(self, leaf: Leaf) -> Carried:
        """Once a step has given this: of a dtype that holds both."""
        if not self.flexible or type_of(leaf).shape:
            return self
        dtype = promoted([self.weak or self.type.dtype, kind(leaf)])
        return replace(self, type=TensorType(name_of(dtype)), weak=None)

    def fitted(self, leaf: Leaf, whence: str) -> Leaf:
        """What a step gives, as the next one takes it. Raises BuildError for another type."""
        if not fits(leaf, self.type):
            is_, due = type_of(leaf), self.type
            way = f"give it the shape {list(is_.shape)} before the loop, or keep it in {whence}"
            if is_.shape == due.shape:
                way = f"convert it before the loop, x.astype('{_numpys(is_)}'), or in {whence}, x.astype('{_numpys(due)}')"
            raise BuildError(f"the loop carries '{self.path}' as {due}, but {whence} gives {is_} for it; {way}")
        return converted(leaf, self.type)


def _numpys(type_: TensorType) -> str:
    return str(dtype_of(type_.dtype))


def type_of(leaf: Leaf) -> TensorType:
    """The type of an array or number."""
    if isinstance(leaf, Array):
        return leaf.type
    array = np.asarray(leaf)
    return TensorType(known(array.dtype), array.shape)


def weak_of(leaf: Leaf) -> type | None:
    """int, float or complex for a number of Python's."""
    found = kind(leaf)
    return None if isinstance(found, str) else found


def fits(leaf: Leaf, due: TensorType) -> bool:
    """Whether a leaf is of that type, or a number that gives way to it."""
    if weak_of(leaf) is None:
        return type_of(leaf) == due
    return type_of(leaf).shape == due.shape and name_of(promoted([due.dtype, kind(leaf)])) == due.dtype


def converted(leaf: Leaf, due: TensorType) -> Leaf:
    """A leaf that fits a type, as one of it."""
    return leaf.convert(due.dtype) if isinstance(leaf, Array) else plain(leaf, due)


def plain(leaf: Leaf, type_: TensorType) -> Any:
    """A copy of a number or NumPy array as one of that dtype; without axes it is a number of NumPy's."""
    return np.array(leaf, dtype_of(type_.dtype))[()]


def constant_of(recorder: Recorder, carried: Carried, leaf: Leaf) -> Array:
    """What a loop begins with, as a node takes it."""
    found: Array = converted(leaf, carried.type)
    return found if isinstance(found, Array) else recorder.constant(np.asarray(found))


def settled(
    init: Sequence[Named], step: Callable[[Sequence[Carried]], tuple[R, Sequence[Leaf]]]
) -> tuple[list[Carried], R, Sequence[Leaf]]:
    """What a loop carries over once its types stay the same, and what `step` gave then: a result, and the leaves after a step."""
    carried = [Carried.of(path, leaf) for path, leaf in init]
    while True:
        found, leaves = step(carried)
        after = [c.after(leaf) for c, leaf in zip(carried, leaves, strict=True)]
        if after == carried:
            return carried, found, leaves
        carried = after


def common_type(path: str, given: Sequence[tuple[str, Leaf]]) -> TensorType:
    """The type of what branches, by name, give under a path; numbers of Python's give way. Raises BuildError if they differ."""
    strong = [(name, type_of(x)) for name, x in given if weak_of(x) is None]
    numbers = TensorType(name_of(promoted([kind(x) for _, x in given]))) if not strong else None
    first, due = strong[0] if strong else (given[0][0], numbers)
    assert due is not None
    for name, x in given:
        if not fits(x, due):
            alike = type_of(x).shape == due.shape
            way = f"convert it there, x.astype('{_numpys(due)}')" if alike else "give both one shape"
            raise BuildError(f"branches must give one type, but '{path}' is {due} of {first} and {type_of(x)} of {name}; {way}")
    return due
