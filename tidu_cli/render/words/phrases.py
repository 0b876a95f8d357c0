"""Operations in words: a formula of operands, `Xᵀ @ c1`, and what is done, `matrix product` or `summed over axis 0`.

Pictures and pages take their words from here, so that one operation has one name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from tidu_cli.graph.graph import Case
from tidu_cli.graph.types import TensorType
from tidu_cli.render.text import attrs_text, short
from tidu_cli.render.words.phrasing import Attributes, Phrase
from tidu_cli.render.words.records import (
    conversion_phrase,
    difference_phrase,
    field_phrase,
    record_label,
    record_phrase,
    retract_phrase,
)
from tidu_cli.rules.contract import PrimitiveSet

_VARIABLE = re.compile(r"(?<!\w)[xyz](?!\w)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LABEL = 56


def phrase(case: Case, operands: Sequence[str], primitives: PrimitiveSet) -> Phrase:
    """An application of a primitive of this set to operands of these names, or of these numbers."""
    if primitives.definition_of(case.op) is not None:
        return _custom(case, operands, primitives)
    if found := array_phrase(case, operands):
        return found
    primitive = primitives[case.op]
    named = dict(zip(sorted(set(_VARIABLE.findall(primitive.formula))), operands, strict=False))
    what = _VARIABLE.sub(lambda match: named.get(match[0], match[0]), primitive.summary.partition(";")[0])
    return Phrase(_by_formula(case, operands, primitive.formula), what or case.op, noun=True)


def array_phrase(case: Case, operands: Sequence[str]) -> Phrase | None:
    """The words for an operation on arrays, which its primitive's formula in x and y cannot tell; None for any other."""
    made = _ARRAYS.get(case.op)
    return made(case, case.attrs.to_data(binary=True), operands) if made else None


def attrs_label(case: Case) -> str:
    """What a picture of ops has room to say of the attrs: of operations on arrays in words, else as `attrs_text`."""
    if case.op == "dot_general":
        return axes_summed(case)
    if case.op == "broadcast_in_dim":
        return f"to {case.results[0]}"
    if case.op == "constant":
        return attrs_text(case).removeprefix("value=")
    if case.op == "record":
        return record_label(case)
    if case.op == "difference":
        return attrs_text(case).removeprefix("tangent=")
    if case.op == "field":
        return str(case.attrs.to_data(binary=True)["name"])
    attrs = attrs_text(case)
    told = array_phrase(case, [f"input {k}" for k in range(len(case.operands))]) if attrs else None
    return short(told.what, _LABEL) if told else attrs


def axes_summed(case: Case) -> str:
    """What a dot_general sums over: `sums axis 0 with 1`."""
    attrs: Attributes = case.attrs.to_data(binary=True)
    (left, right), (batch, _) = attrs["dimension_numbers"]
    summed = f"sums axis {_listed(left)} with {_listed(right)}" if left else "outer product"
    return summed + (f", by axis {_listed(batch)}" if batch else "")


def _custom(case: Case, operands: Sequence[str], primitives: PrimitiveSet) -> Phrase:
    definition = primitives.definition_of(case.op)
    assert definition is not None
    if case.op == definition.name:
        library = definition.origin.rpartition("/")[2]  # a page goes to others: it does not tell where its author keeps files
        where = f"defined in {library or 'the document'}"
        return Phrase(f"{case.op}({', '.join(operands)})", f"{case.op}, {where}", noun=True, way=f"through {case.op}")
    # Its operands are the op's inputs and outputs, and a tangent for each input that `active` says.
    inputs, tangents = operands[: len(definition.inputs)], iter(operands[len(definition.inputs) + len(definition.outputs) :])
    active = case.attrs.to_data(binary=True)["active"]
    assert isinstance(active, list)
    given = [next(tangents, "0") if a else "0" for a in active]
    moved = given[0] if len(given) == 1 else f"({', '.join(given)})"
    return Phrase(f"{definition.name}′({', '.join(inputs)}) · {moved}", f"derivative of {definition.name}", noun=True)


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


def _constant(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    return Phrase(attrs_text(case).removeprefix("value=").rpartition(": ")[0], "constant", noun=True)


# --- contraction


def _dot_general(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    (left, right), (left_batch, right_batch) = attrs["dimension_numbers"]
    a, b = operands
    types = _arrays(case)
    if not left and not left_batch:
        scalar = any(t is not None and t.rank == 0 for t in types)
        return Phrase(f"{a} · {b}", "product", noun=True) if scalar else Phrase(f"{a} ⊗ {b}", "outer product", noun=True)
    turned = _turned(types[0], left, left_batch, -1), _turned(types[1], right, right_batch, -2)
    if None in turned:
        return Phrase(f"{a} · {b}", f"product that {axes_summed(case)}", noun=True)
    what = "inner product" if all(t is not None and t.rank == 1 for t in types) else "matrix product"
    return Phrase(f"{a}{turned[0]} @ {b}{turned[1]}", what + (" of each pair" if left_batch else ""), noun=True)


def _turned(type_: TensorType | None, contracted: Sequence[int], batch: Sequence[int], due: int) -> str | None:
    """`ᵀ` if a matrix has to be transposed for a product in the usual order, '' if not; None if the product is another one.

    `due` is the axis that the usual order sums over, counted from the end: -1 on the left, -2 on the right.
    """
    if type_ is None or len(contracted) != 1 or list(batch) != list(range(len(batch))) or not 1 <= type_.rank - len(batch) <= 2:
        return None
    if type_.rank - len(batch) == 1:
        return "" if not batch else None  # of a stack of vectors, `@` would make a matrix
    return "" if contracted[0] == type_.rank + due else "ᵀ"


# --- sums and other reductions


def _reduction(function: str, participle: str) -> Callable[[Case, Attributes, Sequence[str]], Phrase]:
    def made(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
        (type_,), axes = _arrays(case), list(attrs["axes"])
        if type_ is not None and len(axes) == type_.rank:
            return Phrase(f"{function}({operands[0]})", participle)
        return Phrase(f"{function}({operands[0]}) over {_axes(axes)}", f"{participle} over {_axes(axes)}")

    return made


def _cumulative(function: str) -> Callable[[Case, Attributes, Sequence[str]], Phrase]:
    def made(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
        end = ", from its end" if attrs.get("reverse") else ""
        what = f"cumulative {function} along axis {attrs['axis']}{end}"
        return Phrase(f"cumulative {function} of {operands[0]}", what, noun=True)

    return made


# --- shapes


def _broadcast(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    kept = attrs["broadcast_dimensions"]
    new = [axis for axis in range(len(attrs["shape"])) if axis not in kept]
    what = f"repeated along new {_axes(new)}" if new else "repeated along axes of size 1"
    return Phrase(f"{operands[0]} repeated to {_shape(attrs['shape'])}", what)


def _transpose(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    order = list(attrs["permutation"])
    if order == [1, 0]:
        return Phrase(f"{operands[0]}ᵀ", "transposed")
    return Phrase(f"{operands[0]} with axes {_listed(order)}", f"with its axes in the order {_listed(order)}")


def _slice(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    (type_,), starts, limits = _arrays(case), attrs["start_indices"], attrs["limit_indices"]
    sizes = type_.shape if type_ is not None else [None] * len(starts)
    strides = attrs.get("strides") or [1] * len(starts)
    found = []
    for start, limit, stride, size in zip(starts, limits, strides, sizes, strict=True):
        ends = f"{start or ''}:{'' if limit == size else limit}"
        found.append(f"{ends}:{stride}" if stride != 1 else ends)
    where = f"[{', '.join(found)}]" if found else ""
    return Phrase(operands[0] + where, f"slice {where}".rstrip(), noun=True)


def _dynamic_slice(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    first, *starts = operands
    where = ", ".join(f"{i} : {i} + {n}" for i, n in zip(starts, attrs["slice_sizes"], strict=True))
    return Phrase(f"{first}[{where}]", f"slice of shape {_shape(attrs['slice_sizes'])} at a computed place", noun=True)


def _pad(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    sides = [f"{low} before and {high} after" for low, high, _ in attrs["padding_config"]]
    gaps = [gap for *_, gap in attrs["padding_config"]]
    between = f", {_listed(gaps)} between elements" if any(gaps) else ""
    shape = _result_shape(case)
    return Phrase(f"{operands[0]} padded to {shape} with {operands[1]}", f"padded by {', then '.join(sides)}{between}")


def _select(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    which, *cases = operands
    if len(cases) == 2:
        return Phrase(f"{cases[1]} if {which} else {cases[0]}", "taken where it is selected")
    return Phrase(f"({', '.join(cases)})[{which}]", "taken where it is selected")


# --- indexing


def _scattering(formula: str, what: str) -> Callable[[Case, Attributes, Sequence[str]], Phrase]:
    """Scatters. In `formula` and `what` stand x, i and u for operand, indices and updates."""

    def made(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
        x, i, u = operands
        return Phrase(formula.format(x=x, i=i, u=u), what.format(x=x, i=i, u=u))

    return made


def _triangular(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
    matrix, right = operands
    transposed, conjugated = attrs.get("transpose_a"), attrs.get("conjugate_a") and _complex(case)
    turned = {(True, True): "⁻ᴴ", (True, False): "⁻ᵀ", (False, True): "̄⁻¹"}.get((bool(transposed), bool(conjugated)), "⁻¹")
    formula = f"{matrix}{turned} @ {right}" if attrs.get("left_side") else f"{right} @ {matrix}{turned}"
    what = f"{'lower' if attrs.get('lower') else 'upper'} triangular system"
    return Phrase(formula, what + (", with ones on the diagonal" if attrs.get("unit_diagonal") else ""), noun=True)


def _simple(formula: str, what: str, *, noun: bool = False) -> Callable[[Case, Attributes, Sequence[str]], Phrase]:
    """Words in which {0}, {1}, … are operands, {all} the list of them, and names are those of attrs: of axes as `axis 0`."""

    def made(case: Case, attrs: Attributes, operands: Sequence[str]) -> Phrase:
        told = {key: _axes(value) if key in ("dimensions", "axes") else value for key, value in attrs.items()}
        told |= {"all": ", ".join(operands), "shape_out": _result_shape(case)}
        return Phrase(formula.format(*operands, **told), what.format(*operands, **told), noun=noun)

    return made


_ARRAYS: Mapping[str, Callable[[Case, Attributes, Sequence[str]], Phrase]] = {
    "constant": _constant,
    "dot_general": _dot_general,
    "reduce_sum": _reduction("sum", "summed"),
    "reduce_prod": _reduction("product", "multiplied"),
    "reduce_max": _reduction("max", "maximum"),
    "reduce_min": _reduction("min", "minimum"),
    "reduce_and": _reduction("all", "joined by and"),
    "reduce_or": _reduction("any", "joined by or"),
    "reduce_xor": _reduction("parity", "joined by exclusive or"),
    "argmax": _simple("argmax({0}) along {axes}", "place of the maximum along {axes}", noun=True),
    "argmin": _simple("argmin({0}) along {axes}", "place of the minimum along {axes}", noun=True),
    "cumsum": _cumulative("sum"),
    "cumprod": _cumulative("product"),
    "cummax": _cumulative("maximum"),
    "cummin": _cumulative("minimum"),
    "cumlogsumexp": _cumulative("log-sum-exp"),
    "broadcast_in_dim": _broadcast,
    "reshape": _simple("{0} reshaped to {shape_out}", "reshaped to {shape_out}"),
    "transpose": _transpose,
    "squeeze": _simple("{0} without {dimensions}", "without {dimensions}, of size 1"),
    "expand_dims": _simple("{0} with new {dimensions}", "with new {dimensions}, of size 1"),
    "rev": _simple("{0} reversed", "reversed along {dimensions}"),
    "concatenate": _simple("{all} joined", "joined along axis {dimension}"),
    "split": _simple("{0} split", "split along axis {axis}"),
    "pad": _pad,
    "slice": _slice,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _simple("{0} with {1} put in", "with a slice replaced, at a computed place"),
    "gather": _simple("{0} taken at {1}", "taken at the indices {1}"),
    "scatter": _scattering("{u} put into {x} at {i}", "put in at the indices {i}"),
    "scatter-add": _scattering("{u} added to {x} at {i}", "added at the indices {i}"),
    "scatter-sub": _scattering("{u} subtracted from {x} at {i}", "subtracted at the indices {i}"),
    "scatter-mul": _scattering("{x} times {u} at {i}", "multiplied at the indices {i}"),
    "scatter-max": _scattering("max of {x} and {u} at {i}", "maximum at the indices {i}"),
    "scatter-min": _scattering("min of {x} and {u} at {i}", "minimum at the indices {i}"),
    "difference": difference_phrase,
    "retract": retract_phrase,
    "record": record_phrase,
    "field": field_phrase,
    "select_n": _select,
    "clamp": _simple("{1} kept within {0} and {2}", "kept within {0} and {2}"),
    "convert_element_type": conversion_phrase,
    "stop_gradient": _simple("{0}, held fixed", "held fixed"),
    "copy": _simple("{0}", "copied"),
    "optimization_barrier": _simple("{0}, late", "not before all of {all}"),
    "iota": _simple("0, 1, 2, …", "counting along axis {dimension}", noun=True),
    "sort": _simple("sort({all})", "sorted along axis {dimension}"),
    "top_k": _simple("{k} greatest of {0}", "{k} greatest along axis {axis}"),
    "cholesky": _simple("cholesky({0})", "lower Cholesky factor", noun=True),
    "triangular_solve": _triangular,
    "lu": _simple("lu({0})", "LU factorization", noun=True),
    "reduce_precision": _simple("{0} rounded", "rounded to {exponent_bits} exponent and {mantissa_bits} mantissa bits"),
}


def _arrays(case: Case) -> list[TensorType | None]:
    """The operand types of an operation that takes no records; None for those that are not known."""
    return [type_ if isinstance(type_, TensorType) else None for type_ in case.operands]


def _result_shape(case: Case) -> str:
    """The shape of the first result, if it is an array."""
    first = case.results[0] if case.results else None
    return _shape(first.shape) if isinstance(first, TensorType) else ""


def _complex(case: Case) -> bool:
    return any(type_ is not None and type_.complex for type_ in _arrays(case))


def _axes(axes: Sequence[int]) -> str:
    return f"ax{'i' if len(axes) == 1 else 'e'}s {_listed(axes)}"


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _shape(shape: Sequence[int]) -> str:
    return f"[{_listed(shape)}]"
