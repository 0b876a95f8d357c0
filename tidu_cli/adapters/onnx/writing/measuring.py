"""Open sizes as a model computes them of its inputs: `Shape` says what a name is, and arithmetic of integers all else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from tidu_cli.adapters.onnx.writing.lowering import CODES, Body, NoMeaningError, Wanted
from tidu_cli.graph.sizes.algebra import EXTREMES, Name, Size, way_to_fix
from tidu_cli.graph.sizes.names import in_one_name
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.sizes.polynomials import bounds
from tidu_cli.graph.types import TensorType, Type, leaves


class Axis(NamedTuple):
    """Where a name is read: an axis of an input has `factor` times it, and `more`."""

    input: str
    axis: int
    factor: int
    more: int


def axes_of_names(inputs: Mapping[str, Type]) -> dict[str, Axis]:
    """For each name of sizes an axis that says what it is: one that is the name alone, where there is one."""
    found: dict[str, Axis] = {}
    for name, type_ in inputs.items():
        for path, leaf in leaves(type_):
            for axis, size in enumerate(leaf.shape if isinstance(type_, TensorType) and not path else ()):
                if isinstance(size, OpenSize) and (read := _read_off(size)) is not None:
                    text, factor, more = read
                    if text not in found or (found[text][2:] != (1, 0) and (factor, more) == (1, 0)):
                        found[text] = Axis(name, axis, factor, more)
    return found


def _read_off(size: Any) -> tuple[str, int, int] | None:
    """The name in a size that is a multiple of one and a number more: it, the factor and the number."""
    line = in_one_name(size)
    if line is None:
        return None
    name, coefficient, more = line
    whole, rest = divmod(coefficient, name.multiple)
    return None if rest or whole < 1 else (name.text, whole, more)


class Measuring:
    """The nodes that compute sizes, each once, which go to `body`. Constants are those of another."""

    def __init__(self, inputs: Mapping[str, Type], body: Body, constants: Body) -> None:
        self.axes = axes_of_names(inputs)
        self.emit, self.ints = body.emit, constants.ints
        self._names: dict[Any, str] = {}

    def name_of(self, wanted: Wanted) -> str:
        """What has these sizes. Raises NoMeaningError for a name that no input says."""
        if wanted not in self._names:
            name = self._vector(wanted.sizes)
            if not wanted.is_vector:
                name = self.emit("Squeeze", name, self.ints([0]))
            self._names[wanted] = name if wanted.dtype == "i64" else self.emit("Cast", name, to=CODES[wanted.dtype])
        return self._names[wanted]

    def _vector(self, sizes: Sequence[Any]) -> str:
        parts: list[str] = []
        for is_open, group in groupby(sizes, lambda n: isinstance(n, OpenSize)):
            numbers = list(group)
            parts += [self._size(n) for n in numbers] if is_open else [self.ints(numbers)]
        return self.emit("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]

    def _size(self, size: Any) -> str:
        """A size as a vector of one."""
        if not isinstance(size, Size):
            return self.ints([size])
        if size not in self._names:
            self._names[size] = self._sum(size)
        return self._names[size]

    def _sum(self, size: Size) -> str:
        total = ""
        for monomial, coefficient in sorted(size.terms, key=lambda term: term[1] < 0):  # what is subtracted comes last
            factors = [self._atom(atom) for atom, power in monomial for _ in range(power)]
            if abs(coefficient) != 1 or not factors:
                factors.append(self.ints([abs(coefficient)]))
            product = factors[0]
            for factor in factors[1:]:
                product = self.emit("Mul", product, factor)
            if not total:
                total = product if coefficient > 0 else self.emit("Neg", product)
            else:
                total = self.emit("Add" if coefficient > 0 else "Sub", total, product)
        return total

    def _atom(self, atom: Any) -> str:
        if atom not in self._names:
            self._names[atom] = self._name(atom) if isinstance(atom, Name) else self._part(atom)
        return self._names[atom]

    def _name(self, name: Name) -> str:
        if name.text not in self.axes:
            raise NoMeaningError(
                f"no axis of an input is the size {name.text}, so a model of ONNX cannot say what it is; give it a number with ",
                way_to_fix(name.text),
            )
        axis = self.axes[name.text]
        measured = self.emit("Shape", axis.input, start=axis.axis, end=axis.axis + 1)
        if axis.more:
            measured = self.emit("Sub", measured, self.ints([axis.more]))
        units = axis.factor * name.multiple
        return self.emit("Div", measured, self.ints([units])) if units > 1 else measured

    def _part(self, part: Any) -> str:
        a, b = self._size(part.a), self._size(part.b)
        if part.op in EXTREMES:
            return self.emit(part.op.capitalize(), a, b)
        if part.op == "%":
            return self.emit("Mod", a, b)
        if bounds(part.a)[0] < 0:  # where Div goes towards zero
            a = self.emit("Sub", a, self.emit("Mod", a, b))
        return self.emit("Div", a, b)
