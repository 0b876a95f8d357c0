"""Bits: materialize changes none of random programs of matrices, whose sums NumPy and BLAS round by the layout of operands."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.fuzz.inputs.programs import by_every_engine, merged_alike, same_bits
from tests.graphs.interpret import evaluate, free_inputs, random_inputs
from tests.graphs.sketch import Value, function, key
from tests.tiers import few
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

N = 33
"""Rows and columns: BLAS computes small products of a matrix with itself as any others."""

Step = tuple[str, tuple[int, ...], dict[str, object]]
"""An op, the matrices that it reads, and its attrs."""


def steps(rng: random.Random) -> list[Step]:
    """So many random steps, from two inputs on."""

    def step(n: int) -> Step:
        one, other = rng.sample(range(max(0, n - 3), n), 2)
        axis = rng.randrange(2)
        return rng.choice(
            [
                (rng.choice(("sin", "tanh", "neg")), (one,), {}),
                *[(rng.choice(("add", "mul", "sub")), (one, other), {})] * 3,
                ("transpose", (one,), {"permutation": (1, 0)}),
                ("rev", (one,), {"dimensions": (axis,)}),
                ("cumsum", (one,), {"axis": axis, "reverse": bool(rng.randrange(2))}),
                ("dot_general", (one, other), {"dimension_numbers": (((axis,), (rng.randrange(2),)), ((), ()))}),
                ("reduce_sum", (one,), {"axes": rng.choice([(0,), (1,), (0, 1)])}),
            ]
        )

    return [step(n) for n in range(2, 6 + rng.randrange(12))]


def program(rng: random.Random) -> Document:
    """A program whose values are matrices, each step reading some of the last ones; their sums are spread over matrices again."""
    dtype = rng.choice(("f64", "f32", "c128"))

    def body(*values: Value) -> dict[str, Value]:
        for op, operands, attrs in steps(rng):
            made = values[0].sketch.apply(op, *[values[k] for k in operands], **attrs)
            rank = len(made.type.shape)
            if rank < 2:
                made = made.sketch.apply("broadcast_in_dim", made, shape=(N, N), broadcast_dimensions=tuple(range(rank)))
            values += (made,)
        return {"total": values[0].sketch.apply("reduce_sum", values[-1], axes=(0, 1)), "last": values[-1]}

    return function("f", {"x": f"{dtype}[{N},{N}]", "y": f"{dtype}[{N},{N}]"}, body)


def has_square(graph: Graph) -> bool:
    """Whether a value is multiplied by itself or its transpose: BLAS rounds that otherwise (syrk) than for two equal arrays.

    Plans, but not the interpreter, take nodes for one that differ in their roles alone.
    """
    numbers: dict[object, int] = {}
    source: list[int] = list(range(len(graph.inputs)))
    for node in range(graph.n_nodes):
        case, operands = graph.case(node), [source[a] for a in graph.operands(node)]
        if case.op == "dot_general" and operands[0] == operands[1]:
            return True
        known = numbers.setdefault((case.op, case.attrs, *operands), len(source))
        source.append(operands[0] if case.op == "transpose" else known)
    return False


def keep_their_bits(cases: range) -> None:
    for case in cases:
        rng = random.Random(case)
        doc = program(rng)
        pushed = linearize(doc, [key("x"), key("y")])
        with np.errstate(all="ignore"):
            for derived in (doc, pushed, transpose(pushed)):
                at, merged = random_inputs(derived, case), materialize(derived)
                assert free_inputs(merged).keys() == at.keys()
                if not has_square(merged.head):
                    expected = evaluate(derived, at)
                    assert same_bits(evaluate(merged, at), expected), f"case {case}: materialize changes a bit"
                    by_every_engine(merged, at, expected)
            if not has_square(doc.head):
                merged_alike(doc, random_inputs(doc, case), np.random.default_rng(case))


@pytest.mark.parametrize("block", few(range(14), 4))
def test_materialize_and_plans_keep_all_bits(block: int) -> None:
    keep_their_bits(range(12 * block, 12 * block + 12))


@pytest.mark.campaign
def test_materialize_and_plans_keep_all_bits_of_many_programs() -> None:
    keep_their_bits(range(2000))
