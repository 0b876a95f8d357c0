"""What people are told of a primitive, and the examples that the checks try it on.

Captions are what pictures and pages say of one application, where its formula in x and y cannot tell. They stand with the
primitive: two templates, of a formula and of what is done, or a function where these do not do. In templates {0}, {1}, … are
operands, {all} the list of them, and names are those of attrs, of axes as `axis 0`. {shape_out} is the result's shape; {over} says
the axes of a reduction, unless these are all, and {end} that an accumulation is in reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any

from tidu_cli.frozen import Frozen, field
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType


class Caption(Frozen):
    """An application: as a formula of its operands, and what it `does`, `the product` or, of arrays, a participle.

    Where that does not say it, `way` is how a derivative goes through it, and `label` what a picture has room to say of its attrs.
    """

    formula: str
    does: str
    way: str = ""
    label: str | None = None

    @property
    def what(self) -> str:
        """What it does, without an article."""
        return self.does.removeprefix("the ")

    @property
    def passing(self) -> str:
        """How a derivative goes through it: what follows `goes back`."""
        return f" {self.way}" if self.way else f" through {self.does}" if self.does.startswith("the ") else f", {self.does}"


class Part(Frozen):
    """What a graph in a node's attrs is for: what it is called, and where values come from and go.

    `inputs` are, of each of its inputs, the number of the node's operand that it takes, and in a word what that is (`carry`).
    `around` are outputs, each with the input that it becomes in the next step.
    """

    name: str
    inputs: tuple[tuple[int, str], ...] = ()
    around: tuple[tuple[int, int], ...] = ()


CaptionRule = Callable[[Case, Sequence[str]], Caption]
"""From a case and its operands' names to a caption."""


class Example(Frozen):
    """A typical application of a primitive, on which `tidu check --ops` tries its rules.

    `operands` are types in which the letter T stands for each dtype of the primitive in turn, such as `T[2,3]` or `i32[2]`.
    `within` are intervals, one per operand or one for all, away from kinks and poles, from which operands are drawn; the parts
    of complex numbers are both drawn from it. `diagonals` are numbers, one per operand or one for all, that are added to the
    diagonals of its matrices (the last two axes), so that they are positive definite or well conditioned. `attrs` are in their
    file form; a dtype in them may be T, too. Those that hold graphs are made when they are wanted, by a function.
    """

    operands: tuple[str, ...]
    attrs: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = field(default_factory=dict)
    within: tuple[tuple[float, float], ...] = ((-2.0, 2.0),)
    diagonals: tuple[float, ...] = (0.0,)


class Catalogue(Frozen, slots=False):
    """What people are told of an operation, and what it is tried on."""

    formula: str = ""
    """Its result in terms of operands x, y, z and attrs."""
    summary: str = ""
    """What it is; what follows a semicolon are details."""
    examples: tuple[Example, ...] = ()
    """Typical applications, on which `tidu check --ops` tries its rules."""
    caption: tuple[str, str] | CaptionRule | None = None
    """What pictures and pages say of one application, where the formula in x, y and z cannot tell."""
    parts: Callable[[Any], Sequence[Part]] | None = None
    """What the graphs in attrs are for, in the order of `closed_graphs`."""


def told(caption: tuple[str, str] | CaptionRule, case: Case, operands: Sequence[str]) -> Caption:
    """The caption of an application to operands of these names, by the templates or the function of its primitive."""
    if not isinstance(caption, tuple):
        return caption(case, operands)
    attrs = case.attrs.to_data(binary=True)
    words = {key: axes_words(value) if key in ("dimensions", "axes") else value for key, value in attrs.items()}  # type: ignore[arg-type]
    (type_, *_), axes = arrays(case) or [None], attrs.get("axes")
    words |= {
        "all": ", ".join(operands),
        "shape_out": shape_words(case.results[0].shape) if case.results and isinstance(case.results[0], TensorType) else "",
        "over": "" if axes is None or (type_ and type_.rank == len(axes)) else f" over {words['axes']}",  # type: ignore[arg-type]
        "end": ", from its end" if attrs.get("reverse") else "",
    }
    formula, does = (template.format(*operands, **words) for template in caption)
    return Caption(formula, does)


def arrays(case: Case) -> list[TensorType | None]:
    """The operand types of an operation that takes no records; None for those that are not known."""
    return [type_ if isinstance(type_, TensorType) else None for type_ in case.operands]


def axes_words(axes: Sequence[int]) -> str:
    """`axis 0`, `axes 0, 2`."""
    return f"ax{'i' if len(axes) == 1 else 'e'}s {listed(axes)}"


def shape_words(shape: Sequence[int]) -> str:
    """`[2, 3]`."""
    return f"[{listed(shape)}]"


def listed(numbers: Sequence[int]) -> str:
    """`2, 3`."""
    return ", ".join(map(str, numbers))


def short(text: str, limit: int = 40) -> str:
    """The text, cut short if it is longer than this many characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


# How a value depends on the tangents of a linear map, as far as that can be seen.


class Dependence(IntEnum):
    """What is seen of a value."""

    FREE = 0
    """It does not depend on tangents."""
    ZERO = 1
    """It is zero, whatever they are."""
    LINEAR = 2
    """It is linear in them, and so zero where they are."""
    OTHER = 3
    """It depends on them, and is not seen to be linear."""

    @property
    def vanishes(self) -> bool:
        """Whether it is zero where the tangents are, and linear in them."""
        return self in (Dependence.ZERO, Dependence.LINEAR)

    @property
    def moves(self) -> bool:
        """Whether it depends on tangents."""
        return self >= Dependence.LINEAR

    def joined(self, other: Dependence) -> Dependence:
        """What is seen of a value that is one of two."""
        if self is other:
            return self
        low, high = sorted((self, other))
        if low is Dependence.FREE:
            return Dependence.FREE if high is Dependence.ZERO else Dependence.OTHER
        return high


Dependences = tuple[Dependence, ...]

DependenceOf = Callable[[ClosedGraph, Dependences], Dependences]
"""From a graph, and how its inputs depend on tangents, to how its outputs do."""

DependenceRule = Callable[[DependenceOf, Any, Dependences], Dependences]
"""The same of a node: from that of graphs, attrs, and how operands depend to how results do."""


def stable(first: Dependences, step: Callable[[Dependences], Dependences]) -> Dependences:
    """How what a loop carries depends on tangents, after any number of steps."""
    while True:
        after = tuple([a.joined(b) for a, b in zip(first, step(first), strict=True)])
        if after == first:
            return first
        first = after
