"""Each line of the table of identities: it applies, and what stands for a node has its bits; a broken one is seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.identities.sites import SITES, site
from tests.identities.values import edgy, same
from tests.interpret import evaluate
from tests.sketch import Sketch, Value, document
from tidu_cli.lax.identities import table
from tidu_cli.lax.identities.table import IDENTITIES
from tidu_cli.runtime.evaluate import evaluate as run
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.rewriting.rewrite import simplify

TABLE = {(identity.op, identity.statement): identity for identity in IDENTITIES}


def test_every_line_has_its_sites() -> None:
    assert len(TABLE) == len(IDENTITIES)
    assert set(TABLE) == set(SITES)


@pytest.mark.parametrize("key", TABLE, ids=lambda key: f"{key[0]}: {key[1]}")
def test_what_stands_for_a_node_has_its_bits(key: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    applied = []
    identity = TABLE[key]

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(site(key), st.integers(0, 2**32 - 1))
    def law(found: tuple[Sketch, list[Value]], seed: int) -> None:
        sketch, results = found
        before = materialize(document(sketch.build("f", {f"r{k}": r for k, r in enumerate(results)})))
        monkeypatch.setattr(table, "identities", lambda assumptions: {identity.op: (identity,)})
        monkeypatch.setattr("tidu_cli.transforms.rewriting.sites.identities", lambda assumptions: {identity.op: (identity,)})
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
