"""Loops with a condition as loops of a known number of steps, which have a reverse mode.

A step whose condition does not hold does nothing: a branch, so that what is not computed has no slope either. Where the condition
still holds after the last step, all that the loop carries becomes what no result is: NaN, with derivatives that are NaN, and of
integers the least number of their type, or the greatest if that is 0. Bools cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.control_flow.graphs import made, named, outputs_of
from tidu_cli.graph.types import INEXACT, INTEGERS, ITEMSIZE, SIGNED, TensorType
from tidu_cli.rules.terms import Recorder, Term, field, fieldwise, op

exp = op("exp")


def bounded_while(attrs: Any, operands: Sequence[Term], steps: int, linear: bool) -> Sequence[Term]:
    """The results of a while by a scan of this number of steps. `linear`: what it carries may be tangents."""
    trace, n, m = operands[0].trace, attrs.cond_consts, attrs.body_consts
    cond_consts, _, carry = attrs.split(operands)
    types = attrs.body.output_types
    kept = made(trace.primitives, named("s", [*attrs.body.input_types]), lambda _, terms: terms[m:])
    inputs = named("x", [x.value_type for x in operands])

    def step(inner: Recorder, terms: list[Term]) -> Sequence[Term]:
        of_condition, of_body, state = attrs.split(terms)
        (goes_on,) = outputs_of(inner, attrs.condition, [*of_condition, *state])
        return inner.emit_all("cond", goes_on, *of_body, *state, branches=(kept, attrs.body))

    body = made(trace.primitives, inputs, step)
    after = trace.emit_all("scan", *operands, length=steps, num_consts=n + m, num_carry=len(carry), body=body)
    (too_few,) = outputs_of(trace, attrs.condition, [*cond_consts, *after])
    whole = made(trace.primitives, named("s", types), lambda _, terms: terms)
    spoilt = made(trace.primitives, named("s", types), lambda _, terms: [_spoilt(x, linear) for x in terms])
    return trace.emit_all("cond", too_few, *after, branches=(whole, spoilt))


def _spoilt(x: Term, linear: bool) -> Term:
    """What no result is, and no derivative of one: of any order, unless x may be a tangent."""
    type_ = x.value_type
    if not isinstance(type_, TensorType):
        return fieldwise(type_, lambda name, _: _spoilt(field(x, name), linear))
    if type_.dtype in INEXACT:
        return (x if linear else exp(x)) * float("nan")
    if type_.dtype in INTEGERS:
        bits = 8 * ITEMSIZE[type_.dtype]
        return x.trace.full(-(2 ** (bits - 1)) if type_.dtype in SIGNED else 2**bits - 1, type_)
    return x
