"""Operations in words: a formula of operands, `Xᵀ @ c1`, and what is done, `matrix product` or `summed over axis 0`.

Pictures and pages take their words from here, and these from the primitives, so that one operation has one name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tidu_cli.graph.graph import Case
from tidu_cli.lax.builtin import BUILTIN
from tidu_cli.render.text import attrs_text, short
from tidu_cli.rules.catalogue import Caption, told
from tidu_cli.rules.vocabulary import PrimitiveSet

_VARIABLE = re.compile(r"(?<!\w)[xyz](?!\w)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LABEL = 56


def phrase(case: Case, operands: Sequence[str], primitives: PrimitiveSet) -> Caption:
    """An application of a primitive of this set to operands of these names, or of these numbers."""
    if primitives.definition_of(case.op) is not None:
        return _custom(case, operands, primitives)
    if case.op == primitives.constant:
        return Caption(_value(case).rpartition(": ")[0], "the constant")
    if found := array_phrase(case, operands, primitives):
        return found
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
    attrs, found = attrs_text(case), array_phrase(case, [f"input {k}" for k in range(len(case.operands))])
    if found is not None and found.label is not None:
        return found.label
    return short(found.what, _LABEL) if attrs and found is not None else attrs


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
