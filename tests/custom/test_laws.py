"""Own primitives are what they stand for: every transform of a document with them equals that of the document written out."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tests.custom.making import WHOLE, may_move, own_documents
from tests.graphs.interpret import Values, evaluate, inner
from tests.graphs.sketch import structure
from tests.graphs.strategies import seeds
from tests.tiers import examples
from tidu_cli.checking.custom import findings, judged, uses_in
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.identity import digests
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.rename import inline
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.transpose import transpose

laws = settings(max_examples=examples(80, check=30), suppress_health_check=list(HealthCheck))


def values_at(document: Document, seed: int) -> Values:
    """Inputs drawn by key: the same for documents that declare the same."""
    at: Values = {}
    for key, type_ in {i.key: i.type for g in document.graphs for i in g.inputs}.items():
        rng = np.random.default_rng([seed, *str(key).encode()])
        x = rng.uniform(-1.5, 1.5, type_.shape)
        if type_.complex:
            x = x + 1j * rng.uniform(-1.5, 1.5, type_.shape)
        at[key] = rng.integers(-2, 3, type_.shape) if type_.dtype == WHOLE else x
    return at


def values(document: Document, seed: int) -> Values:
    return evaluate(document, values_at(document, seed), primitives=vocabulary(document.cases))


def same(a: Document, b: Document, seed: int) -> None:
    left, right = values(a, seed), values(b, seed)
    assert left.keys() == right.keys()
    scale = max([1.0, *(float(np.abs(v).max()) for v in left.values() if np.size(v))])
    assume(np.isfinite(scale))
    for key, value in left.items():
        np.testing.assert_allclose(value, right[key], rtol=1e-9, atol=1e-11 * scale, err_msg=str(key))


def written_out(document: Document) -> Document:
    return inline(materialize(document))


masks = st.integers(0, 2**20 - 1)
"""Which inputs carry tangents, bit by bit: linear ops stay only where just some of their operands do."""


def moving(document: Document, mask: int) -> list[Key]:
    """The inputs that carry tangents, of those that the outputs need and that have some: integers among them."""
    inputs = [i for i in materialize(document).head.inputs if may_move(i.type)]
    keys = [i.key for k, i in enumerate(inputs) if mask >> k & 1] or [i.key for i in inputs]
    assume(keys)
    return keys


def through_a_file(document: Document, format_: str, *, listed: bool = False) -> Document:
    again, source_format = parse_document(format_document(document, format_, listed=listed), "test")
    assert source_format == format_
    return again


def jvp(document: Document, wrt: Sequence[Key]) -> Document:
    return linearize(document, wrt)


def vjp(document: Document, wrt: Sequence[Key]) -> Document:
    return transpose(linearize(document, wrt))


PATHS = {" of ".join(f.__name__ for f in reversed(path)): path for n in (1, 2, 3) for path in product((jvp, vjp), repeat=n)}
"""Derivatives up to third order, in every mix of forward and reverse."""


@laws
@given(own_documents(), seeds)
def test_values_are_those_of_the_graph_written_out(document, seed):
    plain = written_out(document)
    assert vocabulary(plain.cases).definitions == ()
    same(document, plain, seed)


@pytest.mark.parametrize("path", PATHS)
@settings(laws, max_examples=examples(25, check=10))
@given(document=own_documents(), mask=masks, seed=seeds, format_=st.sampled_from(["json", "msgpack"]))
def test_derivatives_are_those_of_the_graph_written_out(path, document, mask, seed, format_):
    own, plain, wrt = document, written_out(document), moving(document, mask)
    for transform in PATHS[path]:
        own, plain = through_a_file(transform(own, wrt), format_), transform(plain, wrt)
    same(own, plain, seed)
    # And what stands for nodes of derivatives can be written out afterwards, roles and all.
    same(written_out(own), plain, seed)


@laws
@given(own_documents(), masks, seeds, st.booleans())
def test_matrices_are_those_of_the_graph_written_out(document, mask, seed, reverse):
    declared = {i.key: i.type for i in document.head.inputs}
    wrt, derive = [k for k in moving(document, mask) if not declared[k].complex], vjp if reverse else jvp
    assume(wrt and not (reverse and any(o.type.complex for o in document.head.outputs)))
    same(matrix(derive(document, wrt)), matrix(derive(written_out(document), wrt)), seed)


@laws
@given(own_documents(), masks, seeds)
def test_transpose_is_the_adjoint(document, mask, seed):
    forward = jvp(document, moving(document, mask))
    back = transpose(forward)
    at = {**values_at(forward, seed), **values_at(back, seed)}
    primitives = vocabulary(document.cases)
    jv, pulled = (evaluate(d, at, primitives=primitives) for d in (forward, back))
    given_u = {i.key for i in back.head.inputs}
    pairs = [(at[key.dual()], y) for key, y in jv.items() if key.dual() in given_u]
    left = sum(inner(u, y) for u, y in pairs)
    right = sum(inner(pulled[i.key.dual()], at[i.key]) for i in forward.head.inputs)
    scale = sum(float(np.sum(np.abs(u) * np.abs(y))) for u, y in pairs)
    assume(np.isfinite(scale))
    assert abs(left - right) <= 1e-10 * max(1.0, scale)


@laws
@given(own_documents(), masks, st.sampled_from(["json", "msgpack"]), st.booleans(), st.integers(0, 3))
def test_round_trips(document, mask, format_, listed, order):
    wrt = moving(document, mask)
    for transform in [(), (jvp,), (vjp, jvp), (vjp, jvp, vjp)][order]:
        document = transform(document, wrt)
    data = format_document(document, format_, listed=listed)
    again = through_a_file(document, format_, listed=listed)
    assert format_document(again, format_, listed=listed) == data
    assert structure(again) == structure(document)
    assert digests(again) == digests(document)
    kept, known = (vocabulary(d.cases).definitions for d in (again, document))
    assert {d.name: d.to_data() for d in kept} == {d.name: d.to_data() for d in known if d.name in {k.name for k in kept}}


@settings(laws, max_examples=examples(25))
@given(own_documents())
def test_check_finds_no_fault(document):
    primitives = vocabulary(document.cases)
    for use in uses_in(document, primitives):
        assert not [f.text for f in findings(use, primitives) if f.serious]
        for verdict in judged(use, primitives, seed=0):
            assert verdict.ok, (str(use), verdict)
