"""Losses over event times: derivatives of every order are those of the same losses over floats."""

from __future__ import annotations

import numpy as np
import pytest

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import function, key, op
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

convert, cumsum, exp, gather, log, mul, neg, reduce_max, reduce_sum, slice_, sort, sub = map(
    op,
    ("convert_element_type", "cumsum", "exp", "gather", "log", "mul", "neg", "reduce_max", "reduce_sum", "slice", "sort", "sub"),
)
T, Y = key("t"), key("y")
SECONDS = np.array([0, 5400, 90_000, 12_345, 400_000])
HOURS = SECONDS / 3600


def hours(duration):
    """Time between events as a number."""
    return convert(convert(duration, new_dtype="duration[h]"), new_dtype="f64")


def spread(x, n):
    return x.sketch.apply("broadcast_in_dim", x, shape=[n], broadcast_dimensions=[])


def waiting(ordered, gaps):
    """The negative log-likelihood of waits between events, of a rate that grows with their count: not linear in the gaps."""
    waits = sub(slice_(ordered, start_indices=[1], limit_indices=[5]), slice_(ordered, start_indices=[0], limit_indices=[4]))
    w = gaps(waits)
    return reduce_sum(mul(w, w), axes=[0]) - reduce_sum(log(w * w + 1.0), axes=[0])


def decay(since_latest):
    """A sum of exponential decays since the latest event."""
    return reduce_sum(exp(neg(since_latest * 0.01)), axes=[0])


def loss_of_times(t):
    latest = spread(reduce_max(t, axes=[0]), 5)
    read = gather(t, indices(t), **READ)
    return waiting(sort(t, dimension=0), hours) + decay(hours(sub(latest, t))) + decay(hours(cumsum(sub(latest, read), axis=0)))


def loss_of_numbers(t):
    latest = spread(reduce_max(t, axes=[0]), 5)
    read = gather(t, indices(t), **READ)
    return waiting(sort(t, dimension=0), lambda d: d) + decay(sub(latest, t)) + decay(cumsum(sub(latest, read), axis=0))


READ = {
    "dimension_numbers": {"offset_dims": [], "collapsed_slice_dims": [0], "start_index_map": [0]},
    "slice_sizes": [1],
    "mode": "clip",
}


def indices(x):
    return x.sketch.apply("constant", value={"type": "i32[5,1]", "data": [4, 1, 1, 0, 3]})


TIMES = function("f", {"t": "datetime[s][5]"}, loss_of_times)
NUMBERS = function("f", {"t": "f64[5]"}, loss_of_numbers)
V, W = np.array([0.3, -1.0, 0.5, 2.0, -0.2]), np.array([1.0, 0.1, -0.4, 0.7, 0.6])


def both(derive, *keys):
    return [derive(document, *keys) for document in (TIMES, NUMBERS)]


def compare(documents, scales, given, out):
    """The outputs of the two documents: on times all is in seconds, on numbers in hours."""
    times, numbers = documents
    of_times = evaluate(times, {T: SECONDS} | {k: v * scales.get(k, 1.0) for k, v in given.items()})[out]
    expected = evaluate(numbers, {T: HOURS} | given)[out]
    return of_times, expected


def test_the_value():
    of_times, expected = compare((TIMES, NUMBERS), {}, {}, Y)
    np.testing.assert_allclose(of_times, expected, 1e-14)


def test_forward_mode():
    of_times, expected = compare(both(linearize, [T]), {T.tangent(1): 3600}, {T.tangent(1): V}, Y.tangent(1))
    np.testing.assert_allclose(of_times, expected, 1e-13)


def test_reverse_mode():
    documents = both(lambda d: transpose(linearize(d, [T])))
    of_times, expected = compare(documents, {}, {Y.cotangent(1): np.float64(1)}, T.cotangent(1))
    assert str(documents[0].head.outputs[0].type) == "duration[s][5]"
    np.testing.assert_allclose(of_times * 3600, expected, 1e-12, 1e-12)  # per hour


def test_forward_over_reverse():
    documents = both(lambda d: linearize(transpose(linearize(d, [T])), [T]))
    given = {Y.cotangent(1): np.float64(1), T.tangent(2): V}
    of_times, expected = compare(documents, {T.tangent(2): 3600}, given, T.cotangent(1).tangent(2))
    np.testing.assert_allclose(of_times * 3600, expected, 1e-11, 1e-12)


def test_reverse_over_reverse():
    documents = both(lambda d: transpose(linearize(transpose(linearize(d, [T])), [T])))
    given = {Y.cotangent(1): np.float64(1), T.cotangent(1).cotangent(2): V}
    # The cotangent of a cotangent is a tangent, and in seconds like one.
    of_times, expected = compare(documents, {T.cotangent(1).cotangent(2): 3600}, given, T.cotangent(2))
    np.testing.assert_allclose(of_times * 3600, expected, 1e-11, 1e-12)


def test_third_order():
    documents = both(lambda d: linearize(linearize(transpose(linearize(d, [T])), [T]), [T]))
    given = {Y.cotangent(1): np.float64(1), T.tangent(2): V, T.tangent(3): W}
    out = T.cotangent(1).tangent(2).tangent(3)
    of_times, expected = compare(documents, {T.tangent(2): 3600, T.tangent(3): 3600}, given, out)
    np.testing.assert_allclose(of_times * 3600, expected, 1e-10, 1e-12)


@pytest.mark.parametrize("dtype", ["duration[h]", "duration[ms]", "duration[D]"])
def test_chosen_tangent_types_are_in_their_unit(dtype):
    per_hour = {"duration[h]": 1.0, "duration[ms]": 3.6e6, "duration[D]": 1 / 24}[dtype]
    tangent_type = function("f", {"t": f"{dtype}[5]"}, lambda t: t).head.inputs[0].type
    documents = [linearize(TIMES, [T], tangent_types={T: tangent_type}), linearize(NUMBERS, [T])]
    of_times, expected = compare(documents, {T.tangent(1): per_hour}, {T.tangent(1): V}, Y.tangent(1))
    np.testing.assert_allclose(of_times, expected, 1e-13)
    documents = list(map(transpose, documents))
    of_times, expected = compare(documents, {}, {Y.cotangent(1): np.float64(1)}, T.cotangent(1))
    np.testing.assert_allclose(of_times * per_hour, expected, 1e-12, 1e-12)
