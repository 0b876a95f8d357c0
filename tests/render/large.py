"""Functions whose graphs are too large to be drawn node by node: a transformer's layer, and what becomes of a drug in a body."""

from __future__ import annotations

import numpy as np

from tests.cli.running import ROOT
from tidu_cli import trace, vjp
from tidu_cli.adapters.numpy.tracing import build_function
from tidu_cli.graph.text import parse_value_type

SIZES = {"x": "f64[4,8]"} | dict.fromkeys("qkv", "f64[2,8,4]") | {"o": "f64[8,8]", "w": "f64[8,16]", "u": "f64[16,8]"}


def attention_gradient(source=True):
    """The product of the layer's Jacobian and a vector, by all weights: about 230 nodes."""
    types = {name: parse_value_type(text) for name, text in SIZES.items()}
    made = build_function(f"{ROOT}/samples/attention/attention.py:layer", types, source=source)
    return vjp(made, list("qkvowu"), value=True)


def flow(a, c, p, rates):
    absorbed, out, back = rates[0] * a, (rates[1] + rates[2]) * c, rates[3] * p
    return -absorbed, absorbed - out + back, rates[2] * c - back


def step(state, rates, h):
    k1 = flow(*state, rates)
    k2 = flow(*(s + h / 2 * k for s, k in zip(state, k1, strict=True)), rates)
    k3 = flow(*(s + h / 2 * k for s, k in zip(state, k2, strict=True)), rates)
    k4 = flow(*(s + h * k for s, k in zip(state, k3, strict=True)), rates)
    return tuple(s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4, strict=True))


def concentration(theta, dose, steps):
    state, rates = (dose, 0.0 * dose, 0.0 * dose), np.exp(theta)
    for _ in range(steps):
        state = step(state, rates, 0.1)
    return state[1]


def kinetics_gradient(steps=164, source=True):
    """The gradient of a concentration by four rates: for 164 steps 29,000 inputs, nodes and outputs."""

    def after(theta, dose):
        return concentration(theta, dose, steps)

    return vjp(trace(after, theta="f64[4]", dose="f64[]", source=source), "theta", value=True)
