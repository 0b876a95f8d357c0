"""Whatever stands in attrs, a document is refused in one line, or all that can be done to it works."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from tests.fuzz.inputs.attr_values import drawn, one_node, systematic
from tests.fuzz.trying import try_all
from tests.tiers import examples

CORPUS = {
    "dot_general_of_durations": one_node(
        "dot_general",
        ["f64[3]", "f64[3]"],
        {"dimension_numbers": [[[0], [0]], [[], []]], "preferred_element_type": "duration[h]"},
    ),
    "broadcast_to_65_axes": one_node("broadcast_in_dim", ["f64[]"], {"shape": [1] * 65, "broadcast_dimensions": []}),
    "iota_of_65_axes": one_node("iota", [], {"dtype": "f64", "shape": [1] * 65, "dimension": 1}),
    "expand_to_66_axes": one_node("expand_dims", [f"f64[{','.join(['1'] * 64)}]"], {"dimensions": [0, 2]}),
    "broadcast_past_all_memory": one_node("broadcast_in_dim", ["f64[]"], {"shape": [2**62], "broadcast_dimensions": []}),
    "stride_of_65_bits": one_node("slice", ["f64[3]"], {"start_indices": [0], "limit_indices": [3], "strides": [2**64]}),
}
"""What once ended in an internal error."""


@pytest.mark.parametrize("plain", CORPUS.values(), ids=CORPUS)
def test_what_was_found(plain):
    assert try_all(plain) == "nothing"


@pytest.mark.check
def test_some_of_every_kind():
    # Enough of them are read and differentiated that the rules are tried, and not the reader alone.
    n = examples(2000, check=200)
    reached = Counter(try_all(plain) for _, plain in drawn(2, n))
    assert reached["transpose"] > n // 8 and reached["nothing"] > n // 2
    for _, plain in islice(systematic(), 0, None, 29 * 2000 // n):
        try_all(plain)


def test_an_internal_error_is_seen(monkeypatch):
    # So that a green run says something.
    monkeypatch.setattr("tests.fuzz.trying.check_document", lambda *args: {}["missing"])
    with pytest.raises(KeyError):
        try_all(one_node("sin", ["f64[]"], {}))


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(10, 20))
def test_many(seed):
    for _, plain in drawn(seed, 20_000):
        try_all(plain)


@pytest.mark.campaign
def test_every_attr_with_every_value():
    for _, plain in systematic():
        try_all(plain)
