"""Labels: names, attrs with long constants elided, and what keys mean in words."""

from __future__ import annotations

from tidu_cli.graph.graph import Case
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, literal_to_numbers
from tidu_cli.graph.types import COMPLEXES, ITEMSIZE, TensorType, parse_type

_NAME = 40
_ATTRS = 56
_ELEMENTS = 3


def short(text: str, limit: int = _NAME) -> str:
    """The text, cut short if it is longer than this many characters."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def name(thing: object) -> str:
    """A name on one line: its line ends are shown, and only the picture's own break lines."""
    return short(str(thing)).replace("\n", "\\n")


def attrs_text(case: Case) -> str:
    """The attrs of a case, `axes=[0], ...`, cut short, and of constants the first elements."""
    return short(", ".join(f"{key}={_attr(value)}" for key, value in case.attrs.to_data(binary=True).items()), _ATTRS)


def key_words(key: Key) -> str:
    """`the cotangent of x`, and so on for nested keys."""
    words = name(Key(key.name))
    for step in key.path:
        words = f"the {'tangent' if step > 0 else 'cotangent'} of {words}"
    return words


def _attr(value: object) -> str:
    if isinstance(value, dict) and set(value) == {"type", "data"} and isinstance(value["data"], bytes):
        return _constant(parse_type(value["type"]), value["data"])
    return str(value)


def _constant(type_: TensorType, data: bytes) -> str:
    n = min(type_.size, _ELEMENTS)
    numbers = literal_to_numbers(Literal(TensorType(type_.dtype, (n,)), data[: n * ITEMSIZE[type_.dtype]]))
    if type_.dtype in COMPLEXES:
        numbers = [f"{re}{'' if str(im).startswith('-') else '+'}{im}i" for re, im in zip(numbers[::2], numbers[1::2], strict=True)]
    shown = [f"{x:.6g}" if isinstance(x, float) else str(x) for x in numbers]
    listed = ", ".join(shown + ["..."] * (type_.size > n))
    return f"{listed if type_.shape == () else f'[{listed}]'}: {type_}"
