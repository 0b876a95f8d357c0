"""Gradients that tidu derives, run by XLA, beside `jax.grad` of the same functions: time, operations, memory that is accessed.

    python benchmarks/xla.py --markdown

A function of JAX is read by `tidu.from_jax`, or the same in NumPy by `tidu.trace`; `tidu.grad` derives the gradient, and what
`tidu.to_jax` makes of it is compiled by `jax.jit`; or it is written as a module of StableHLO, which XLA compiles as it is (`file`).
The gradients are compiled before and called by turns in one process: the ratio of times is the median of those of the turns, and a
call of a file takes some µs more, as its results are taken apart in Python. Operations and bytes are what XLA itself counts in the
compiled programs, a step of a loop once. The data of the mixtures and of the LSTM are those of samples/adbench.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from jaxlib import _jax as jaxlib

import tidu_cli as tidu
from tidu_cli.formats.write import format_document

SAMPLES = Path(__file__).parents[1] / "samples"
ROUNDS = 101
RNG = np.random.default_rng(0)


@dataclass(frozen=True)
class Problem:
    """A scalar function of JAX with its arguments, differentiated by the first `n_wrt`; `numpy` is the same for `tidu.trace`."""

    name: str
    function: Callable[..., Any]
    args: Sequence[Any]
    n_wrt: int
    numpy: Callable[..., Any] | None = None


def sample(folder: str, name: str) -> ModuleType:
    """A module of samples."""
    sys.path.insert(0, str(SAMPLES / folder))
    spec = importlib.util.spec_from_file_location(name, SAMPLES / folder / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def normal(*shape: int) -> Any:
    """Numbers drawn at random, small as weights are."""
    return RNG.standard_normal(shape) * 0.3


# The Gaussian mixture.


def mixture(alphas: Any, means: Any, icf: Any, x: Any) -> Any:
    """The logarithm of the likelihood as in samples/adbench/gmm.py, less what depends on no argument."""
    n, d = x.shape
    logarithms, below = icf[:, :d], icf[:, d:]
    diagonal, sums = jnp.exp(logarithms), jnp.sum(logarithms, axis=1)
    place = np.diag(np.arange(1, d + 1))
    column, row = np.triu_indices(d, 1)
    place[row, column] = np.arange(d + 1, 1 + d * (d + 1) // 2)
    q = jnp.concatenate([jnp.zeros((len(icf), 1)), diagonal, below], axis=1)[:, place]
    standardised = jnp.einsum("kij,nj->nki", q, x) - jnp.einsum("kij,kj->ki", q, means)
    inner = alphas + sums - 0.5 * jnp.sum(standardised**2, axis=2)
    likelihood = jnp.sum(logsumexp(inner)) - n * logsumexp(alphas)
    return likelihood + 0.5 * (jnp.sum(diagonal**2) + jnp.sum(below**2))


def logsumexp(a: Any) -> Any:
    """log Σ exp a along the last axis."""
    top = jnp.max(a, axis=-1, keepdims=True)
    return jnp.log(jnp.sum(jnp.exp(a - top), axis=-1)) + top[..., 0]


def mixture_of(name: str) -> Problem:
    """The mixture of a file of samples/adbench/data."""
    data = np.load(SAMPLES / "adbench" / "data" / f"{name}.npz")
    args = [data[k] for k in ("alphas", "means", "icf", "x")]
    (n, d), k = args[3].shape, len(args[0])
    objective = sample("adbench", "gmm").objective
    return Problem(f"GMM, d={d}, K={k}, n={n}", mixture, args, 3, lambda alphas, means, icf, x: objective(alphas, means, icf, x))


# The LSTM.


def lstm_cell(weight: Any, bias: Any, hidden: Any, cell: Any, x: Any) -> Any:
    """The hidden and the cell state after input x."""
    forget, ingate, outgate, change = jnp.split(jnp.concatenate([x, hidden, x, hidden]) * weight + bias, 4)
    cell = cell * jax.nn.sigmoid(forget) + jax.nn.sigmoid(ingate) * jnp.tanh(change)
    return jax.nn.sigmoid(outgate) * jnp.tanh(cell), cell


def lstm_step(main: Any, extra: Any, states: Any, characters: Any) -> Any:
    """The states after a character, and the likelihood of the next."""
    now, following = characters
    x, after = now * extra[0], []
    for layer, (hidden, cell) in enumerate(states):
        x, cell = lstm_cell(main[2 * layer], main[2 * layer + 1], hidden, cell, x)
        after.append((x, cell))
    predicted = x * extra[1] + extra[2]
    return after, jnp.sum(following * (predicted - jnp.log(jnp.sum(jnp.exp(predicted)) + 2)))


def lstm(steps: int, loop: bool) -> Problem:
    """The loss of the LSTM of samples/adbench over so many characters, in a loop or written out."""

    def loss(main: Any, extra: Any, state: Any, sequence: Any) -> Any:
        states: Any = [(state[k], state[k + 1]) for k in range(0, len(state), 2)]
        total, pairs = 0.0, (sequence[: steps - 1], sequence[1:steps])
        if loop:
            _, each = lax.scan(lambda states, pair: lstm_step(main, extra, states, pair), states, pairs)
            total = jnp.sum(each)
        else:
            for now, following in zip(*pairs, strict=True):
                states, one = lstm_step(main, extra, states, (now, following))
                total += one
        return -total / ((steps - 1) * sequence.shape[1])

    data = np.load(SAMPLES / "adbench" / "data" / "lstm_l2_c1024.npz")
    objective = sample("adbench", "lstm_scan" if loop else "lstm").objective
    return Problem(
        f"LSTM, {steps} characters, {'loop' if loop else 'written out'}",
        loss,
        [data[k] for k in ("main", "extra", "state", "sequence")],
        2,
        lambda main, extra, state, sequence: objective(main, extra, state, sequence, steps),
    )


# Layers of networks.


def convolutions(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, images: Any, labels: Any) -> Any:
    """The loss of samples/convnet."""
    hidden = images.reshape(-1, 1, 8, 8) / 16
    for w, b in ((w1, b1), (w2, b2)):
        features = lax.conv_general_dilated(hidden, w, (1, 1), "SAME") + b[:, None, None]
        hidden = lax.reduce_window(jnp.maximum(features, 0), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    scores = hidden.reshape(len(images), -1) @ w3 + b3
    return jnp.mean(logsumexp(scores) - scores[jnp.arange(len(labels)), labels])


def convnet() -> Problem:
    """The convolutional network of samples, for 16 images of 8 × 8."""
    loss = sample("convnet", "convnet").loss
    names = ("w1", "b1", "w2", "b2", "w3", "b3")
    shapes = ((8, 1, 3, 3), (8,), (16, 8, 3, 3), (16,), (64, 10), (10,))
    args = [*[normal(*s) for s in shapes], RNG.uniform(0, 16, (16, 64)), RNG.integers(0, 10, 16)]

    def in_numpy(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, images: Any, labels: Any) -> Any:
        return loss(dict(zip(names, (w1, b1, w2, b2, w3, b3), strict=True)), images, labels)

    return Problem("convolutional network", convolutions, args, 6, in_numpy)


def strided_convolution(w: Any, p: Any, x: Any) -> Any:
    """A convolution of each channel with strides, then one that mixes channels: NHWC."""
    numbers = ("NHWC", "HWIO", "NHWC")
    h = lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=numbers, feature_group_count=x.shape[-1])
    return jnp.sum(jax.nn.relu(lax.conv_general_dilated(h, p, (1, 1), "SAME", dimension_numbers=numbers)) ** 2)


def attention_by(xp: Any) -> Callable[..., Any]:
    """Causal attention of 4 heads, with `np` or `jnp`."""

    def attention(wq: Any, wk: Any, wv: Any, wo: Any, x: Any) -> Any:
        b, t, c = x.shape
        q, k, v = (xp.reshape(x @ w, (b, t, 4, c // 4)) for w in (wq, wk, wv))
        scores = xp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(c // 4)
        scores = xp.where(np.tril(np.ones((t, t), bool)), scores, -1e30)
        weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        weights = weights / xp.sum(weights, axis=-1, keepdims=True)
        return xp.sum((xp.reshape(xp.einsum("bhqk,bkhd->bqhd", weights, v), (b, t, c)) @ wo) ** 2)

    return attention


def softmax_attention(wq: Any, wk: Any, wv: Any, wo: Any, x: Any) -> Any:
    """Likewise by `jax.nn.softmax`."""
    b, t, c = x.shape
    q, k, v = ((x @ w).reshape(b, t, 4, c // 4) for w in (wq, wk, wv))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(c // 4)
    weights = jax.nn.softmax(jnp.where(np.tril(np.ones((t, t), bool)), scores, -1e30))
    return jnp.sum((jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, c) @ wo) ** 2)


def both_ways(w: Any, u: Any, b: Any, x: Any) -> Any:
    """Recurrences over a sequence there and back."""

    def cell(h: Any, x: Any) -> Any:
        h = jnp.tanh(x @ w + h @ u + b)
        return h, h

    start = jnp.zeros((x.shape[1], u.shape[0]))
    return sum(jnp.sum(lax.scan(cell, start, x, reverse=back)[1] ** 2) for back in (False, True))


def weights_of_attention() -> list[Any]:
    """Weights for 64 features, and a batch of 4 sequences of 32."""
    return [*[normal(64, 64) for _ in range(4)], normal(4, 32, 64)]


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "gmm-test": lambda: mixture_of("gmm_test"),
    "gmm-small": lambda: mixture_of("gmm_d2_K5"),
    "gmm": lambda: mixture_of("gmm_d10_K25"),
    "lstm": lambda: lstm(8, loop=False),
    "lstm-loop": lambda: lstm(1024, loop=True),
    "convnet": convnet,
    "conv-strided": lambda: Problem(
        "convolution of each channel", strided_convolution, [normal(3, 3, 1, 8), normal(1, 1, 8, 16), normal(4, 16, 16, 8)], 2
    ),
    "attention": lambda: Problem("attention", attention_by(jnp), weights_of_attention(), 4, attention_by(np)),
    "softmax-attention": lambda: Problem("attention by jax.nn", softmax_attention, weights_of_attention(), 4),
    "recurrence": lambda: Problem(
        "recurrences both ways", both_ways, [normal(16, 32), normal(32, 32), normal(32), normal(30, 8, 16)], 3
    ),
}


Compiled = Callable[[], Any]


def compiled(problem: Problem) -> dict[str, tuple[Any, Compiled]]:
    """The gradients by contestant: what XLA compiled, and a call of it. Raises AssertionError where they differ."""
    args = [jnp.asarray(a) for a in problem.args]
    theirs = jax.jit(jax.grad(problem.function, tuple(range(problem.n_wrt)))).lower(*args).compile()
    expected = theirs(*args)
    documents = {"from_jax": tidu.from_jax(problem.function, *args, names=[f"x{k}" for k in range(len(args))])}
    if problem.numpy is not None:
        documents["trace"] = tidu.trace(problem.numpy, *problem.args)
    contestants: dict[str, tuple[Any, Compiled]] = {"jax.grad": (theirs, lambda: theirs(*args))}
    for name, document in documents.items():
        gradient = tidu.grad(document, [i.key for i in document.head.inputs][: problem.n_wrt])
        ours = jax.jit(tidu.to_jax(gradient)).lower(*args).compile()
        contestants[name] = ours, lambda ours=ours: ours(*args)
        values = ours(*args)
        require_same([values[str(o.key)] for o in gradient.head.outputs], expected)
        if name == "from_jax":
            module = of_file(gradient)
            contestants["file"] = module, lambda module=module: run_file(module, args)
            require_same(run_file(module, args), expected)
    return contestants


def of_file(gradient: Any) -> Any:
    """A document that has been written as a module of StableHLO, compiled by XLA as it is."""
    device = jax.devices()[0]
    text = format_document(gradient, "mlir")
    return device.client.compile_and_load(text, jaxlib.DeviceList((device,)), jaxlib.CompileOptions())


def run_file(module: Any, args: Sequence[Any]) -> list[Any]:
    """The results of a compiled module."""
    return [each[0] for each in module.execute_sharded(list(args)).disassemble_into_single_device_arrays()]


def require_same(ours: Sequence[Any], theirs: Sequence[Any]) -> None:
    """Raises AssertionError unless gradients agree."""
    for x, y in zip(ours, theirs, strict=True):
        assert np.linalg.norm(x - y) <= 1e-9 * np.linalg.norm(y)


def costs(program: Any) -> tuple[float, float]:
    """How many operations and how many bytes of memory XLA counts in a compiled program."""
    counts = program.cost_analysis()
    return counts["flops"], counts["bytes accessed"]


def times(calls: dict[str, Compiled], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Seconds of each call, which take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - start)
    return seconds


HEADER = ("problem", "gradient by", "jax.grad: ms", "time", "operations", "bytes")


def rows(problem: Problem) -> list[list[str]]:
    """Of each document the ratios of its gradient's costs to those of `jax.grad`."""
    contestants = compiled(problem)
    seconds = times({name: call for name, (_, call) in contestants.items()})
    (theirs, _), flat = contestants.pop("jax.grad"), seconds.pop("jax.grad")
    table = []
    for name, (ours, _) in contestants.items():
        time_ratio = statistics.median(a / b for a, b in zip(seconds[name], flat, strict=True))
        ratios = [time_ratio, *[a / b for a, b in zip(costs(ours), costs(theirs), strict=True)]]
        table.append([problem.name, name, f"{1e3 * statistics.median(flat):.3f}", *[f"{r:.2f}" for r in ratios]])
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", metavar="|".join(PROBLEMS), help="which [default: all]")
    parser.add_argument("--markdown", action="store_true", help="as a table of docs/performance.md")
    options = parser.parse_args()
    with jax.enable_x64(True):
        table = [row for name in options.problems or PROBLEMS for row in rows(PROBLEMS[name]())]
    if options.markdown:
        table.insert(0, ["---", "---", *["---:"] * (len(HEADER) - 2)])
    for row in [list(HEADER), *table]:
        print("| " + " | ".join(row) + " |" if options.markdown else "  ".join(f"{cell:>14}" for cell in row))


if __name__ == "__main__":
    main()
