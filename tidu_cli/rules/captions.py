"""Captions: what pictures and pages say of one application of a primitive, where its formula in x and y cannot tell.

They stand with the primitive: two templates, of a formula and of what is done, or a function where these do not do. In templates
{0}, {1}, … are operands, {all} the list of them, and names are those of attrs, of axes as `axis 0`. {shape_out} is the result's
shape; {over} says the axes of a reduction, unless these are all, and {end} that an accumulation is in reverse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType


@dataclass(frozen=True, slots=True)
class Caption:
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


CaptionRule = Callable[[Case, Sequence[str]], Caption]
"""From a case and its operands' names to a caption."""


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
