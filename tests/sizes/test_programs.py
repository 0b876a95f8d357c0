"""Whole programs: what is derived at an open size, and then made a number, is what is derived at that number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings

import tests.tiers as tiers
import tidu_cli
from tests.graphs.strategies import REAL, documents, seeds
from tests.lax.test_batching import drawn
from tests.sizes.opened import opened_documents
from tidu_cli.errors import MissingRuleError, TransformError, UndecidedSizeError
from tidu_cli.formats.read import parse_imported
from tidu_cli.formats.write import format_document
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.sizing import specialized

SAMPLES = Path(__file__).parents[2] / "samples"
NUMBERS = (1, 2, 3, 7, 64)


def derived(document, order):
    for _ in range(order):
        document = tidu_cli.transpose(tidu_cli.linearize(document, [str(i.key) for i in document.free_inputs if i.type.inexact]))
    return tidu_cli.materialize(document)


def values(document, seed):
    rng = np.random.default_rng(seed)
    given = {str(i.key): drawn(rng, i.type, (0.5, 1.5)) for i in document.free_inputs}
    with np.errstate(all="ignore"):
        return tidu_cli.evaluate(document, given, engine="numpy")


def check(document, number, seed):
    """Compare at each number that the program takes; give how often that was."""
    compared = 0
    for order in (0, 1, 2):
        try:
            open_one = derived(document, order)
        except (MissingRuleError, UndecidedSizeError):
            return compared
        for n in {number, *NUMBERS}:
            try:
                fixed = derived(specialized(document, {"N": n}, BUILTIN), order)
            except TransformError:
                assert n != number
                continue
            found = specialized(open_one, {"N": n}, BUILTIN)
            assert not open_names(found)
            due = values(fixed, seed)
            for key, value in values(found, seed).items():
                np.testing.assert_array_equal(value, due[key], err_msg=f"order {order}, N={n}, {key}")
            compared += 1
    return compared


@settings(max_examples=tiers.examples(60, check=12))
@given(documents(makers=REAL, dtypes=("f64",)), seeds)
def test_random_programs(document, seed):
    document = tidu_cli.materialize(document)
    opened = opened_documents(document)
    assume(opened)
    for made, number in opened:
        assert check(made, number, seed) > 0
        read, _ = parse_imported(format_document(made, "json"), "a file", sizes={"N": number})
        for at_number in (specialized(made, {"N": number}, BUILTIN), read.document):
            assert format_document(at_number, "json") == format_document(document, "json")


@pytest.mark.parametrize("name", ["mlp", "softmax", "logsumexp", "logistic_regression/loss", "affine"])
def test_samples(name):
    path = SAMPLES / f"{name}.json"
    if not path.exists():
        pytest.fail(f"no sample {name}")
    document = tidu_cli.materialize(tidu_cli.load(path), inline=True)
    opened = opened_documents(document)
    assert opened
    for made, number in opened:
        assert check(made, number, 0) > 0
