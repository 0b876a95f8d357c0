"""Open sizes of a model that is read: the sizes that were chosen for dimensions, names for the others, and shapes that have these.

What has to be decided of such shapes bounds of names may decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from tidu_cli.errors import Remedy, TypeTextError, UndecidedSizeError
from tidu_cli.graph.sizes.algebra import EXTREMES, NAME, Name, Size, names_of, size_named
from tidu_cli.graph.sizes.names import first_by, names_in, substituted
from tidu_cli.graph.sizes.open import OpenSize
from tidu_cli.graph.sizes.polynomials import bounds
from tidu_cli.graph.sizes.reading import declaring, parse_size
from tidu_cli.graph.types import TensorType

Shape = tuple[int, ...]


class UnboundedError(UndecidedSizeError):
    """What would be decided if names had bounds: those by which the size `due` is at least 0, or the sizes in `same` are."""

    def __init__(self, problem: str, due: Any = None, same: tuple[Any, Any] | None = None) -> None:
        super().__init__(problem)
        self.due, self.same = due, same


def not_same(a: Any, b: Any, problem: str) -> UndecidedSizeError:
    """The error of two sizes that are to be the same, and may be for some names."""
    return UnboundedError(problem, None, (a, b))


def is_open_shape(shape: Sequence[Any]) -> bool:
    """Whether any of these sizes is open."""
    return any(isinstance(n, OpenSize) for n in shape)


def reshaped(shape: Shape, sizes: Sequence[Any]) -> Shape:
    """The sizes that a shape is given, of which one may be -1. Raises ValueError if they do not fit."""
    unknown = [k for k, n in enumerate(sizes) if n == -1]
    total, rest = map(prod, _cancelled(shape, [n for n in sizes if n != -1]))
    if len(unknown) > 1:
        raise ValueError("a shape has one -1 at most")
    if unknown:
        whole, remainder = divmod(total, rest)
        if remainder != 0:
            told = f"cannot decide whether {rest} divides the number of elements of shape {_listed(shape)}"
            raise not_same(remainder, 0, told)
        sizes = [whole if n == -1 else n for n in sizes]
    elif total != rest:
        raise not_same(total, rest, f"cannot decide whether the shape {_listed(shape)} has as many elements as {_listed(sizes)}")
    return tuple(sizes)


def _cancelled(shape: Sequence[Any], sizes: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Sizes without those that both have, so that products of many open ones need not be taken apart."""
    left, right = [], list(sizes)
    for n in shape:
        if n != 0 and n in right:
            right.remove(n)
        else:
            left.append(n)
    return left, right


def _listed(shape: Sequence[Any]) -> str:
    return f"[{', '.join(map(str, shape))}]"


_NAME = re.compile(NAME, re.ASCII)


class Dimensions:
    """Sizes by the names that dimensions have in a model, where some were chosen. `bounded` are names that have bounds."""

    def __init__(self, parameters: Iterable[str], chosen: Mapping[str, int], bounded: Mapping[str, Name]) -> None:
        self.bounded = bounded
        self.origin: dict[str, str] = {}
        """What is named in the model, or the input without a name, by the names of sizes."""
        self._sizes: dict[str, Any] = dict(chosen)
        self._fixed = set(chosen)
        self._types: dict[str, tuple[str, TensorType]] = {}
        texts = dict.fromkeys(parameters)
        good = [text for text in texts if _NAME.fullmatch(text) and text not in EXTREMES and len(text) <= 60]
        for text in good:
            self._sizes.setdefault(text, self._named(text, text))
        for text in texts:
            if text not in self._sizes:
                self._sizes[text] = self._expression(text, good)

    def typed(self, input_name: str, dtype: str, sizes: Sequence[tuple[int | None, str]]) -> TensorType:
        """The type of an input of these sizes, None for those that are open, and names of dimensions, empty for those without."""
        shape = [
            n if n is not None else self._sizes[text] if text else self._named(_made_good(f"{input_name}_{axis}"), "")
            for axis, (n, text) in enumerate(sizes)
        ]
        return self._noted(input_name, TensorType(dtype, tuple(shape)))

    def _named(self, text: str, origin: str) -> Any:
        name = text
        while name in self.origin:
            name += "_"
        self.origin[name] = origin
        return size_named(self.bounded.get(name) or Name(name))

    def _expression(self, text: str, good: Iterable[str]) -> Any:
        """What a text such as `past + 1` stands for where the names in it are dimensions, else a size by a name like it."""
        try:
            with declaring(self.bounded):
                size = parse_size(text.replace(" ", ""))
            if {name.text for name in names_of(size)} <= set(good):
                size = substituted(size, {name: n for name, n in self._sizes.items() if name in self._fixed})
                if bounds(size)[0] >= 0:
                    return size
        except TypeTextError:
            pass
        return self._named(_made_good(text), text)

    def chosen(self, input_name: str, type_: TensorType) -> TensorType:
        """A type of an input that was chosen, whose names have the bounds that they need."""
        shape = tuple([self._bounded_size(n) for n in type_.shape])
        for name in (name.text for n in shape for name in names_of(n)):
            self.origin.setdefault(name, "")
        return self._noted(input_name, type_.with_shape(shape))

    def _noted(self, input_name: str, type_: TensorType) -> TensorType:
        """The type of an input, by which sizes may be chosen that have no dimension's name."""
        for name in (name.text for n in type_.shape for name in names_of(n)):
            self._types.setdefault(name, (input_name, type_))
        return type_

    def _bounded_size(self, size: Any) -> Any:
        return substituted(size, {name.text: size_named(self.bounded.get(name.text, name)) for name in names_of(size)})

    def choosing(self, names: Sequence[str], same: tuple[Any, Any] | None = None) -> str:
        """How sizes of these names are chosen, as the end of a message: as a number by which those in `same` are, or any."""
        due = {name.text: n for name in names_in(same or ()) if (n := first_by(name, same)) is not None}
        names = list(due) or names
        told = f"; choose the size{'s' if len(names) > 1 else ''}: "
        named = {self.origin[name]: due.get(name, 8) for name in names if self.origin.get(name)}
        types = dict(self._types[name] for name in names if not self.origin.get(name) and name in self._types)
        numbers = {key: str(type_.with_shape(tuple(_chosen(n, due) for n in type_.shape))) for key, type_ in types.items()}
        flags = [f"--dim {text if ' ' not in text else repr(text)}={n}" for text, n in named.items()]
        flags += [f"--input-type {key}={type_}" for key, type_ in numbers.items()]
        given = [f"dims={named}"] * bool(named) + [f"input_types={numbers}"] * bool(numbers)
        return told + str(Remedy(command="convert MODEL", flag=" ".join(flags), python=f"load_onnx(MODEL, {', '.join(given)})"))


def _chosen(size: Any, numbers: Mapping[str, int]) -> Any:
    """A size where some names have numbers; 8 where none of these is in it and it has to be chosen."""
    if not isinstance(size, Size):
        return size
    return substituted(size, numbers) if numbers else 8


def _made_good(text: str) -> str:
    """A name of a size like a text."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text[:60]).strip("_") or "n"
    return f"_{name}" if name[0].isdigit() or name in EXTREMES else name
