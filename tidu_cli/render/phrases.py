"""Operations in words: a formula of operands, `Xᵀ @ c1`, and what is done, `matrix product` or `summed over axis 0`.

Pictures and pages take their words from here, and these from the primitives, so that one operation has one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tidu_cli.graph.graph import Case, Input, Place
from tidu_cli.graph.link import Application, Definitions
from tidu_cli.graph.text import instant_to_text
from tidu_cli.graph.types import DATETIMES, DURATIONS, RecordType, TensorType, Type, unit_of
from tidu_cli.lax.records.records import FieldAttrs, RecordAttrs, record_pieces
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.render.folding import attrs_text, name, short
from tidu_cli.rules.catalogue import Caption, told
from tidu_cli.rules.vocabulary import PrimitiveSet

if TYPE_CHECKING:
    from numpy.typing import NDArray


_VARIABLE = re.compile(r"(?<!\w)[xyz](?!\w)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LABEL = 56


def phrase(case: Case, operands: Sequence[str], primitives: PrimitiveSet) -> Caption:
    """An application of a primitive of this set to operands of these names, or of these numbers."""
    if primitives.definition_of(case.op) is not None:
        return _custom(case, operands, primitives)
    if case.op == primitives.constant:
        return Caption(_value(case).rpartition(": ")[0], "the constant")
    if caption := array_phrase(case, operands, primitives):
        return caption
    known = primitives[case.op].catalogue
    named = dict(zip(sorted(set(_VARIABLE.findall(known.formula))), operands, strict=False))
    what = _VARIABLE.sub(lambda match: named.get(match[0], match[0]), known.summary.partition(";")[0])
    return Caption(_by_formula(case, operands, known.formula), f"the {what or case.op}")


def array_phrase(case: Case, operands: Sequence[str], primitives: PrimitiveSet = BUILTIN) -> Caption | None:
    """The words for an operation on arrays, which its primitive's formula in x and y cannot tell; None for any other."""
    caption = primitives[case.op].catalogue.caption if case.op in primitives.primitives or primitives is not BUILTIN else None
    return None if caption is None else told(caption, case, operands)


def attrs_label(case: Case) -> str:
    """What a picture of ops has room to say of the attrs: of operations on arrays in words, else as `attrs_text`."""
    if case.op == BUILTIN.constant:
        return _value(case)
    attrs, caption = attrs_text(case), array_phrase(case, [f"input {k}" for k in range(len(case.operands))])
    if caption is not None and caption.label is not None:
        return caption.label
    return short(caption.what, _LABEL) if attrs and caption is not None else attrs


def _value(case: Case) -> str:
    return attrs_text(case).removeprefix("value=")


def _custom(case: Case, operands: Sequence[str], primitives: PrimitiveSet) -> Caption:
    definition = primitives.definition_of(case.op)
    assert definition is not None
    if case.op == definition.name:
        library = definition.origin.rpartition("/")[2]  # a page goes to others: it does not tell where its author keeps files
        where = f"defined in {library or 'the document'}"
        return Caption(f"{case.op}({', '.join(operands)})", f"the {case.op}, {where}", way=f"through {case.op}")
    # Its operands are the op's inputs and outputs, and a tangent for each input that `active` says.
    inputs, tangents = operands[: len(definition.inputs)], iter(operands[len(definition.inputs) + len(definition.outputs) :])
    active = case.attrs.to_data(binary=True)["active"]
    assert isinstance(active, list)
    given = [next(tangents, "0") if a else "0" for a in active]
    moved = given[0] if len(given) == 1 else f"({', '.join(given)})"
    return Caption(f"{definition.name}′({', '.join(inputs)}) · {moved}", f"the derivative of {definition.name}")


def _by_formula(case: Case, operands: Sequence[str], formula: str) -> str:
    """The primitive's formula with these operands, where it is one of x, y and z; else `op(a, b)`."""
    if formula == "x y":
        formula = "x · y"
    variables = sorted(set(_VARIABLE.findall(formula)))
    given = dict(zip(variables, operands, strict=False))
    for variable in variables[len(operands) :]:
        value = case.attrs.to_data(binary=False).get(variable)
        if isinstance(value, int):
            given[variable] = str(value)
    plain = len(formula) <= 16 and len(_WORD.findall(formula)) <= 1 and formula.isascii() | ("·" in formula)
    if plain and variables and len(operands) <= len(variables) == len(given):
        return _VARIABLE.sub(lambda match: given[match[0]], formula)
    return f"{case.op}({', '.join(operands)})"


# Values as short texts, for edges and captions.


SHORT = 4
"""How many elements of an array are told where there is little room."""

_WIDTH = 10
"""About as many characters as an element takes: as many elements as are shown, so many times these may a record take."""


def value_text(value: Any, type_: Type, shown: int = SHORT, room: int | None = None) -> str:
    """A value of a type, as evaluation gives it: `[3, 4.5]`, `{x: 1.2, y: [0, 1, …]}`, `2.5 h`, `2026-01-01T12:00`.

    Of arrays and records the first `shown` elements, of datetimes half as many; of records what takes `room` characters or so.
    """
    if isinstance(type_, RecordType):
        return _record(value, type_, shown, shown * _WIDTH if room is None else room)
    return _array(value, type_, shown)


def summary_text(value: Any) -> str:
    """Of an array of several numbers the least, the mean and the greatest, and how many are no number; '' of all else."""
    if isinstance(value, dict | tuple) or value.dtype.kind not in "iuf" or value.size < 2:
        return ""
    finite = value[value == value] if value.dtype.kind == "f" else value
    n_nan = value.size - finite.size
    told = [f"min {finite.min():.6g}, mean {finite.mean(dtype='f8'):.6g}, max {finite.max():.6g}"] if finite.size else []
    return "; ".join([*told, *([f"{n_nan} of {value.size} are NaN"] if n_nan else [])])


def _record(values: Any, type_: RecordType, shown: int, room: int) -> str:
    opening, closing = "()" if type_.is_tuple else "{}"
    texts: list[str] = []
    for k, (label, field) in enumerate(type_.fields):
        before = "" if type_.is_tuple else f"{label}: "
        room -= len(before) + 2
        if len(texts) == shown or (texts and room < 0):
            texts.append("…")
            break
        text = value_text(values[k if type_.is_tuple else label], field, shown, room)
        text = text if len(text) <= room or not texts else "…"
        room -= len(text)
        texts.append(before + text)
    return f"{opening}{', '.join(texts)}{',' if type_.is_tuple and len(texts) == 1 else ''}{closing}"


def _array(array: NDArray[Any], type_: TensorType, shown: int) -> str:
    if type_.dtype in DATETIMES:
        shown = max(1, shown // 2)  # they are long
    unit = f" {unit_of(type_.dtype)}" if type_.dtype in DURATIONS else ""
    if not type_.shape:
        return _one(array[()], type_.dtype) + unit
    first = [_one(x, type_.dtype) for x in array.reshape(-1)[:shown]]
    if array.size > shown:
        return f"[{', '.join(first)}, …]{unit}"
    return _nested(first, array.shape) + unit


def _nested(texts: list[str], shape: tuple[int, ...]) -> str:
    for n in reversed(shape[1:]):
        texts = [f"[{', '.join(texts[k : k + n])}]" for k in range(0, len(texts), n)] if n else []
    return f"[{', '.join(texts)}]"


def _one(x: Any, dtype: str) -> str:
    if dtype in DATETIMES:
        count = int(x.view("i8"))
        return instant_to_text(count, unit_of(dtype)) or str(count)
    if x.dtype.kind == "c":
        return f"{x.real:.6g}{x.imag:+.6g}i"
    return str(bool(x)).lower() if x.dtype.kind == "b" else str(int(x)) if x.dtype.kind in "iu" else f"{float(x):.6g}"


# A value as an expression of what it is computed from, cut off where it grows too deep or too long.


DEPTH = 3
"""How many operations are nested."""

LENGTH = 100
"""How many characters are shown, about."""

_CUT = "..."


def expression(definitions: Definitions, place: Place, depth: int = DEPTH, length: int = LENGTH) -> str:
    """`mul(x, sin(x))`; attrs stand in brackets, and a star marks active operands of linearized nodes: `mul(x, *x@1)`.

    Fields and records are written as such: `p.x`, `{x: sin(x), y: 0}`.
    """
    words: list[str] = []
    left = length

    def say(word: str) -> None:
        nonlocal left
        words.append(word)
        left -= len(word)

    def spell(place: Place, depth: int) -> None:  # recurses as deep as that, and as types nest, whatever the graph
        definition = definitions[place]
        if isinstance(definition, Input):
            say(name(definition.key))
        elif not isinstance(definition, Application):
            say(f"{definition.digest[:15]}{_CUT}")
        elif not definition.operands:
            say(_applied(definition.case))
        elif left <= 0 or (depth == 0 and definition.case.op != "field"):
            say(_CUT)
        else:
            below = depth if definition.case.op == "field" else depth - 1  # a field is as short as a name: it takes no depth
            for piece in _pieces(definition.case, definition.slot):
                if isinstance(piece, str):
                    say(piece)
                else:
                    spell(definition.operands[piece], below)

    spell(place, depth)
    return "".join(words)


def _pieces(case: Case, slot: int) -> Iterator[str | int]:
    """What is said of an application, with numbers in the places of operands: `mul(`, 0, `, `, 1, `)`."""
    if isinstance(case.attrs, RecordAttrs):
        yield from record_pieces(case.attrs)
        return
    if isinstance(case.attrs, FieldAttrs):
        yield from (0, f".{case.attrs.name}")
        return
    yield f"{_applied(case)}("
    for k in range(len(case.operands)):
        active = case.mask is not None and case.mask[k]
        yield ", " * (k > 0) + "*" * active
        yield k
    yield f")[{slot}]" if len(case.results) > 1 else ")"


def _applied(case: Case) -> str:
    attrs = attrs_text(case)
    if case.op == "constant":
        return attrs.removeprefix("value=")
    return f"{case.op}[{attrs}]" if attrs else case.op
