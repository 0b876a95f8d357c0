"""What the machine gives beside what the plain interpreter gives."""

from __future__ import annotations

import numpy as np

from tidu_cli.adapters.native.engine import program
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.runtime.plans.program import plain_program

ULPS = 4


def native(graph):
    return program(graph, vocabulary(graph.cases), None, None)


def assert_agrees(graph, inputs, ulps=ULPS, made=None):
    """Runs a graph both ways, and holds one to the other: dtypes, shapes, NaN where NaN is, signs of zeros, and `ulps`."""
    results, due = (made or native(graph)).run(inputs), plain_program(graph).run(inputs)
    for output, f, d in zip(graph.outputs, results, due, strict=True):
        assert (f.dtype, f.shape) == (d.dtype, d.shape), output.key
        assert_close(f, d, ulps, inputs)


def assert_close(values, due, ulps=ULPS, told=""):
    if due.dtype.kind == "c":
        # A part of a product is a difference, which NumPy may round once where the other way rounds twice.
        with np.errstate(all="ignore"):
            near = np.abs(values - due) <= ulps * np.spacing(np.abs(due))
        finite = near & (np.abs(due) > 0)
        assert_close(np.where(finite, due, values).real, due.real, ulps, told)
        assert_close(np.where(finite, due, values).imag, due.imag, ulps, told)
        return
    if due.dtype.kind != "f":
        np.testing.assert_array_equal(values, due, err_msg=str(told))
        return
    same = (values == due) & ((values != 0) | (np.signbit(values) == np.signbit(due))) | (np.isnan(values) & np.isnan(due))
    with np.errstate(all="ignore"):
        near = np.abs(values - due) <= ulps * np.spacing(np.maximum(np.abs(values), np.abs(due)))
    wrong = ~(same | (near & (due != 0) & np.isfinite(due)))
    assert not wrong.any(), f"{values[wrong][:5]} where {due[wrong][:5]} are due, at {np.argwhere(wrong)[:5].tolist()}"
