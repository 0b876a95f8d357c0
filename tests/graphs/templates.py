"""Running derivative rules by themselves: a template, interpreted with the kernels, without any transform."""

from __future__ import annotations

import numpy as np

from tests.graphs.interpret import require_type
from tidu_cli.graph.graph import Case, CaseTable
from tidu_cli.graph.types import TensorType, tangent_type
from tidu_cli.lax.arrays.structural import dtype_name
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording.templates import batch_template, jvp_template, transpose_template
from tidu_cli.rules.recording.trace import Template


def type_of(array):
    return TensorType(dtype_name(array.dtype), array.shape)


def make_case(op, attrs, types, mask=None) -> Case:
    return BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), mask, list(types))


def apply(case: Case, operands) -> list:
    """The results of a case's kernel, which must be held exactly as the types that the type rule says are."""
    with np.errstate(all="ignore"):
        results = BUILTIN[case.op].evaluation.kernel(np, case.attrs, case.operands, case.results)(*operands)
    results = list(results) if len(case.results) > 1 else [results]
    for result, type_ in zip(results, case.results, strict=True):
        require_type(result, type_, case)
    return results


def interpret(template: Template, cases: CaseTable, sources) -> list:
    """What a template computes. A source of None must not be read; a result of None is a zero."""
    assert len(sources) == template.n_sources
    slots = list(sources)
    for node in (*template.closed, *template.nodes):
        reads = [slots[k] for k in node.reads]
        assert all(r is not None for r in reads), "the rule reads what it may not"
        slots += apply(cases[node.code], reads)
    return [None if k is None else slots[k] for k in template.results]


def jvp(case: Case, operands, tangents) -> list:
    """Tangents of the results; `tangents` has None where an operand is inactive."""
    cases = CaseTable()
    template = jvp_template(BUILTIN, cases, cases.intern(case), tuple(t is not None for t in tangents))
    out_tangents = interpret(template, cases, [*operands, *apply(case, operands), *tangents])
    for tangent, type_ in zip(out_tangents, case.results, strict=True):
        if tangent is not None:
            require_type(tangent, tangent_type(type_), case)
    return out_tangents


def transpose(case: Case, operands, cotangents) -> list:
    """Cotangents of the active operands of a linear case; `cotangents` has None for a zero."""
    cases = CaseTable()
    template = transpose_template(BUILTIN, cases, cases.intern(case), tuple(c is not None for c in cotangents))
    hidden = [None if a else x for x, a in zip(operands, case.mask, strict=True)]
    in_cotangents = interpret(template, cases, [*hidden, *cotangents])
    for cotangent, type_ in zip(in_cotangents, case.operands, strict=True):
        if cotangent is not None:
            require_type(cotangent, type_, case)
    return in_cotangents


def batch(case: Case, operands, batched, size) -> list:
    """The results of many applications at once; operands that are `batched` have the batch as their first axis."""
    cases = CaseTable()
    template = batch_template(BUILTIN, cases, cases.intern(case), tuple(batched), size)
    assert not any(node.linear for node in (*template.closed, *template.nodes))
    return interpret(template, cases, operands)


def inner(a, b) -> float:
    """<a, b> = Re(conj(a) b), summed: the pairing for which transpose is the adjoint."""
    return float(np.sum((np.conj(np.asarray(a)) * np.asarray(b)).real))
