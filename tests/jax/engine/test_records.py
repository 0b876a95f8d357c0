"""Documents of records in XLA: what the plain interpreter gives, field by field."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from tests.graphs.record_graphs import flattened, random_arguments, record_graphs
from tests.graphs.strategies import seeds
from tests.tiers import examples
from tidu_cli.runtime.choosing import PLAIN, Choice
from tidu_cli.runtime.plans.program import prepared
from tidu_cli.transforms.materialize import materialize

pytestmark = pytest.mark.jax


@settings(max_examples=examples(40))
@given(record_graphs(), seeds)
def test_random_documents_of_records(pair, seed):
    head = materialize(pair[0]).head
    inputs = random_arguments({i.key: i.type for i in head.inputs}, np.random.default_rng(seed))
    results = {o.key: o.type for o in head.outputs}
    programs = [prepared(head, choice)[0] for choice in (PLAIN, Choice("xla", "as asked for"))]
    due, values = (flattened(dict(zip(results, p.run(inputs), strict=True)), results) for p in programs)
    assert values.keys() == due.keys()
    for key, y in due.items():
        assert (values[key].dtype, values[key].shape) == (y.dtype, y.shape)
        if y.dtype.kind == "f":
            np.testing.assert_allclose(values[key], y, rtol=1e-9, atol=1e-9 if y.dtype == np.float64 else 1e-4)
        else:
            np.testing.assert_array_equal(values[key], y)
