"""The laws of the transforms on random graphs of records: all that they do is what they do on the arrays in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from tests.graphs.interpret import evaluate, free_inputs
from tests.graphs.record_graphs import flattened, random_arguments, record_graphs
from tests.graphs.strategies import seeds
from tests.tiers import examples
from tests.transforms.laws.test_laws import nearly
from tidu_cli.graph.graph import Document, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import moves
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.transpose import transpose

Pair = tuple[Document, Document]
law = settings(max_examples=examples(60, check=20), suppress_health_check=list(HealthCheck))


def run(doc: Document, values: dict[Key, object]) -> dict[Key, object]:
    return evaluate(doc, values, primitives=doc.cases.vocabulary)


def wrt(doc: Document) -> list[Key]:
    return [k for k, t in free_inputs(doc).items() if moves(t) and not k.path]


def derived(pair: Pair, *transforms: str) -> Pair:
    """Both graphs differentiated alike, by all inputs that carry tangents."""
    keys = [wrt(doc) for doc in pair]
    docs = list(pair)
    for transform in transforms:
        for n, doc in enumerate(docs):
            docs[n] = linearize(doc, keys[n]) if transform == "linearize" else transpose(doc)
    return docs[0], docs[1]


def same(pair: Pair, seed: int, tolerance: float = 1e-11) -> None:
    """Whether both graphs have the same outputs; those that the twin has not are zero."""
    with_records, flat = pair
    types, due_types = free_inputs(with_records), free_inputs(flat)
    values = random_arguments(types, np.random.default_rng(seed))
    of_flat = flattened(values, types)
    # Records have no place for the cotangents of bools.
    bools = {k: np.zeros(t.shape, bool) for k, t in due_types.items() if not moves(t) and k not in of_flat}
    assert list(of_flat) == [k for k in due_types if k not in bools]
    outputs = {o.key: o.type for o in with_records.head.outputs}
    arrays = flattened(run(with_records, values), outputs)
    due = run(flat, of_flat | bools)
    # Records have no place for the tangents of bools, which are null.
    assert {o.key for o in flat.head.outputs if o.value is not None} <= arrays.keys()
    for k, x in arrays.items():
        assert nearly(np.asarray(x, float), np.asarray(due.get(k, np.zeros_like(x)), float), tolerance), k


@law
@given(record_graphs(), seeds)
def test_values(pair: Pair, seed: int) -> None:
    same(pair, seed)
    same((materialize(pair[0]), materialize(pair[1])), seed)


@pytest.mark.parametrize(
    "transforms",
    [
        ["linearize"],
        ["linearize", "transpose"],
        ["linearize", "transpose", "transpose"],
        ["linearize", "linearize"],
        ["linearize", "transpose", "linearize"],
        ["linearize", "transpose", "linearize", "transpose"],
        ["linearize", "transpose", "linearize", "linearize"],
        ["linearize", "linearize", "transpose", "linearize", "transpose"],
    ],
    ids=lambda names: "".join(name[0] for name in names),
)
@settings(law, max_examples=examples(60, check=10))
@given(record_graphs(), seeds)
def test_derivatives_to_third_order(transforms: list[str], pair: Pair, seed: int) -> None:
    both = derived(pair, *transforms)
    same(both, seed)
    same((materialize(both[0]), materialize(both[1])), seed)


def blocks(doc: Document) -> list[Output]:
    """The blocks of the matrix but those of bools."""
    return [o for o in matrix(doc).head.outputs if o.type.dtype != "bool"]


@law
@given(record_graphs(), seeds)
def test_matrices_have_the_blocks_of_arrays(pair: Pair, seed: int) -> None:
    columns = derived(pair, "linearize")
    of_records, of_arrays = map(blocks, columns)
    assert [(o.key, o.type) for o in of_records] == [(o.key, o.type) for o in of_arrays]
    # Where only some fields of a record matter, all of it runs through the units.
    assert all(b.value is None for a, b in zip(of_records, of_arrays, strict=True) if a.value is None)
    rows = derived(pair, "linearize", "transpose")
    for one, other in (columns, rows):
        same((matrix(one), matrix(other)), seed)
        same((materialize(matrix(one)), materialize(matrix(other))), seed)


@law
@given(record_graphs(), seeds)
def test_matrices_of_second_derivatives(pair: Pair, seed: int) -> None:
    """Their names say of which outputs, of which the twin has others."""
    with_records, flat = derived(pair, "linearize", "transpose", "linearize")

    def numbered(doc: Document) -> Document:
        head = doc.head
        outputs = tuple(replace(o, key=Key(str(k))) for k, o in enumerate(head.outputs))
        return replace(doc, graphs=(*doc.graphs[:-1], replace(head, outputs=outputs)))

    same((numbered(matrix(with_records)), numbered(matrix(flat))), seed)
