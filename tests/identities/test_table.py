"""Each line of the table of identities: it applies, and what stands for a node has its bits; a broken one is seen."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.control_flow.laws import assert_alike, hold
from tests.control_flow.laws import run as run_plainly
from tests.docs.blocks import ROOT
from tests.graphs.interpret import evaluate, random_inputs
from tests.graphs.sketch import Sketch, Value, document
from tests.graphs.strategies import seeds
from tests.identities.sites import SITES, site
from tests.identities.values import edgy, same
from tests.tiers import examples, few, full
from tidu_cli.graph.types import INTEGERS, moves
from tidu_cli.lax.identities import elementwise, movement
from tidu_cli.lax.identities.replacement import IDENTITIES, looked_at
from tidu_cli.rules.terms import ASSUMPTIONS
from tidu_cli.runtime.evaluate import evaluate as run
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.rewriting import simplify
from tools.identities import to_markdown

TABLE = {(identity.op, identity.statement): identity for identity in IDENTITIES}


def test_every_line_has_its_sites() -> None:
    assert len(TABLE) == len(IDENTITIES)
    assert set(TABLE) == set(SITES)


@pytest.mark.every  # each identity is a line of its own
@pytest.mark.parametrize("key", TABLE, ids=lambda key: f"{key[0]}: {key[1]}")
def test_what_stands_for_a_node_has_its_bits(key: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    applied = []
    identity = TABLE[key]

    @settings(max_examples=examples(200, check=10) if full() else 5, deadline=None, suppress_health_check=list(HealthCheck))
    @given(site(key), st.integers(0, 2**32 - 1))
    def law(drawn: tuple[Sketch, list[Value]], seed: int) -> None:
        sketch, results = drawn
        before = materialize(document(sketch.build("f", {f"r{k}": r for k, r in enumerate(results)})))
        monkeypatch.setattr("tidu_cli.transforms.rewriting.identities", lambda assumptions: {identity.op: (identity,)})
        after = simplify(before, identity.assumes)
        applied.append(after is not before and after.head.n_nodes)
        rng, finite = np.random.default_rng(seed), "finite" in identity.assumes
        at = {i.key: edgy(i.type, rng, finite=finite) for i in before.head.inputs}
        with np.errstate(all="ignore"):
            ours, theirs, planned = evaluate(after, at), evaluate(before, at), run(after.head, at)
        signed = "no-signed-zeros" not in identity.assumes
        for k, value in theirs.items():
            assert same(value, ours[k], signed_zeros=signed), (key, k, value, ours[k])
            assert same(value, planned[k], signed_zeros=signed)
        assert simplify(after, identity.assumes) is after

    law()
    assert any(a is not False for a in applied), "it never applied"


@pytest.mark.parametrize("key", few(TABLE, 35), ids=lambda key: f"{key[0]}: {key[1]}")
def test_what_stands_for_a_node_has_its_derivative(key: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    identity = TABLE[key]
    monkeypatch.setattr("tidu_cli.transforms.rewriting.identities", lambda assumptions: {identity.op: (identity,)})

    def law(drawn: tuple[Sketch, list[Value]], seed: int) -> None:
        sketch, results = drawn
        before = materialize(document(sketch.build("f", {f"r{k}": r for k, r in enumerate(results)})))
        after = simplify(before, identity.assumes)
        x, y, *_ = before.head.inputs
        if not moves(x.type) or after is before:
            return
        derived, of_simplified = (linearize(d, [x.key, y.key]) for d in (before, after))
        at = random_inputs(derived, seed)
        due = run_plainly(derived, at)
        if all(np.all(np.isfinite(np.asarray(v).astype(complex))) for v in due.values()):  # constants may be infinite
            assert_alike(run_plainly(of_simplified, at), due, _TOLERANCE[x.type.dtype])

    hold(20, law, site(key), seeds)


@pytest.mark.check  # which looks for a counterexample: 15 examples may miss it
@pytest.mark.parametrize(("key", "assumed"), [(k, a) for k, i in TABLE.items() for a in sorted(i.assumes)], ids=str)
def test_what_is_assumed_is_needed(key: tuple[str, str], assumed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    identity, differing = TABLE[key], []
    monkeypatch.setattr("tidu_cli.transforms.rewriting.identities", lambda assumptions: {identity.op: (identity,)})

    def law(drawn: tuple[Sketch, list[Value]], seed: int) -> None:
        if any(differing):
            return  # one is enough
        sketch, results = drawn
        before = materialize(document(sketch.build("f", {f"r{k}": r for k, r in enumerate(results)})))
        finite = "finite" in identity.assumes and assumed != "finite"
        at = {i.key: edgy(i.type, np.random.default_rng(seed), finite=finite) for i in before.head.inputs}
        signed = "no-signed-zeros" not in identity.assumes or assumed == "no-signed-zeros"
        with np.errstate(all="ignore"):
            ours, theirs = evaluate(simplify(before, identity.assumes), at), evaluate(before, at)
        differing.append(any(not same(value, ours[k], signed_zeros=signed) for k, value in theirs.items()))

    hold(100, law, site(key), seeds)
    assert any(differing), "it holds without"


_TOLERANCE = {"f16": 1e-2, "bf16": 1e-1, "f32": 1e-5, "c64": 1e-5} | dict.fromkeys(["f64", "c128", *INTEGERS], 1e-12)


def test_the_page_is_current() -> None:
    assert (ROOT / "docs" / "identities.md").read_text() == to_markdown(), "make generated writes it"


def test_what_identities_look_at_is_looked_at() -> None:
    """What rules ask of makers is in the table of what is looked at, or they would never apply."""
    for module in (elementwise, movement):
        asked = set(re.findall(r"\bop == \"(\w+)\"", Path(module.__file__).read_text()))
        assert asked <= frozenset().union(*map(looked_at, {i.op for i in IDENTITIES})), module


@pytest.mark.parametrize(
    ("dtype", "n", "shrinks"), [("u8", 256, True), ("u8", 300, False), ("f16", 2100, False), ("i32", 300, True)]
)
def test_counting_that_wraps_makes_no_unit_matrix(dtype: str, n: int, shrinks: bool) -> None:
    s = Sketch({"x": f"f64[{n}]"})
    rows, columns = (s.apply("iota", dtype=dtype, shape=(n, n), dimension=k) for k in (0, 1))
    unit = s.apply("convert_element_type", s.apply("eq", rows, columns), new_dtype="f64")
    y = s.apply("dot_general", unit, s.inputs[0], dimension_numbers=[[[1], [0]], [[], []]])
    simplified = simplify(document(s.build("f", {"y": y})), ASSUMPTIONS)
    assert (simplified.head.n_nodes == 0) == shrinks
