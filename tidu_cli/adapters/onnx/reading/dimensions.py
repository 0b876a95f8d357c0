"""Dimensions that a model leaves open: the sizes that were chosen for some, and names for the others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import lcm
from typing import Any

from tidu_cli.errors import Remedy, TypeTextError
from tidu_cli.graph.sizes.algebra import EXTREMES, NAME, Name, Size, names_of, size_named, terms_of
from tidu_cli.graph.sizes.bounds import bounds
from tidu_cli.graph.sizes.reading import declaring, parse_size
from tidu_cli.graph.sizes.values import substituted
from tidu_cli.graph.types import TensorType

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

    def way(self, names: Iterable[str]) -> Remedy:
        """How sizes of these names are chosen."""
        named = dict.fromkeys(self.origin[name] for name in names if self.origin.get(name))
        types = dict(self._types[name] for name in names if not self.origin.get(name) and name in self._types)
        numbers = {
            key: str(type_.with_shape(tuple(8 if isinstance(n, Size) else n for n in type_.shape))) for key, type_ in types.items()
        }
        flags = [f"--dim {text if ' ' not in text else repr(text)}=8" for text in named]
        flags += [f"--input-type {key}={type_}" for key, type_ in numbers.items()]
        given = [f"dims={dict.fromkeys(named, 8)}"] * bool(named) + [f"input_types={numbers}"] * bool(numbers)
        return Remedy(command="convert MODEL", flag=" ".join(flags), python=f"load_onnx(MODEL, {', '.join(given)})")


MOST_BOUND = 2**20
"""Bounds of names are looked for up to this."""


def bounds_by_which(due: Any, same: tuple[Any, Any] | None) -> Name | None:
    """A name with the widest bounds by which a size is at least 0, or two are the same; None where those of one name do not do."""
    found = None if due is None else _bound_by(due)
    if found is None and same is not None:
        found = _multiple_by(*same) or _extreme_by(*same)
    return found


def _extreme_by(a: Any, b: Any) -> Name | None:
    """Of sizes that differ by a maximum or minimum of their names, as min(N,16) and N do: where one of these is all there is."""
    if not any(atom.text.startswith(EXTREMES) for monomial, _ in terms_of(a - b) for atom, _ in monomial):
        return None
    low, high = bounds(a - b)
    return _bound_by(b - a) if low >= 0 else _bound_by(a - b) if high <= 0 else None


MULTIPLES = tuple(2**k for k in range(1, 9))
"""What sizes are multiples of where networks halve them several times, and double them again."""


def _multiple_by(a: Any, b: Any) -> Name | None:
    names = dict.fromkeys([*names_of(a), *names_of(b)])
    for multiple in MULTIPLES:
        for name in names:
            bounded = Name(name.text, name.least, name.most, lcm(name.multiple, multiple))
            given = {name.text: size_named(bounded)}
            if bounded.multiple != name.multiple and substituted(a, given) == substituted(b, given):
                return bounded
    return None


def _bound_by(due: Any) -> Name | None:
    for name in dict.fromkeys(names_of(due)):

        def fits(least: int, most: int | None, name: Name = name) -> bool:
            bounded = Name(name.text, max(name.least, least), most, name.multiple)
            return bounds(substituted(due, {name.text: size_named(bounded)}))[0] >= 0

        if fits(MOST_BOUND, None):
            return Name(name.text, _least(lambda n: fits(n, name.most)), name.most, name.multiple)  # noqa: B023 - called here
        if fits(name.least, name.least):
            most = MOST_BOUND - _least(lambda n: fits(name.least, MOST_BOUND - n))  # noqa: B023 - likewise
            return Name(name.text, name.least, most, name.multiple)
    return None


def _least(holds: Callable[[int], bool]) -> int:
    """The least number of which something holds that holds of all greater ones up to the limit, too."""
    low, high = 0, MOST_BOUND
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def _made_good(text: str) -> str:
    """A name of a size like a text."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text[:60]).strip("_") or "n"
    return f"_{name}" if name[0].isdigit() or name in EXTREMES else name
