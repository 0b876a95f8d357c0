"""Functions of JAX at symbolic dimensions become documents with open sizes, and documents with these functions of JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import tidu_cli as tidu
from tests.tiers import few
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.errors import EvaluationError
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.open_sizes import bounds_to_file

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

SIZES = (1, 5)

PROGRAMS: Mapping[str, Callable[[Any], Any]] = {
    "mean": lambda x: jnp.mean(x, axis=0) / x.shape[0],
    "arange": lambda x: x * jnp.arange(x.shape[0])[:, None],
    "slices": lambda x: x[1:] * x[:-1] + x[-1] * x[0],
    "joined": lambda x: jnp.pad(jnp.concatenate([x, x**2]), 1).reshape(-1),
    "attention": lambda x: jax.nn.softmax(x @ x.T / jnp.sqrt(x.shape[0])) @ x,
    "triangle": lambda x: jnp.where(jnp.tril(jnp.ones((x.shape[0],) * 2, bool)), x @ x.T, -1e9) @ x,
    "eye": lambda x: jnp.eye(x.shape[0]) @ jax.nn.relu(x),
    "scan": lambda x: lax.scan(lambda c, row: (c * 0.5 + row * row, c * row), jnp.zeros(3), x)[1],
    "vmap": lambda x: jax.vmap(lambda row: jnp.sum(row**3) * row)(x),
    "gradient within": lambda x: jax.grad(lambda z: jnp.sum(jnp.sin(z)) / z.shape[0])(x),
    "written": lambda x: jnp.zeros_like(x).at[0].set(x[0]) + jnp.ones((x.shape[0], 3)),
    "ordered": lambda x: jnp.sort(x, axis=0) * jnp.cumsum(x**2, axis=0),
    "repeated": lambda x: jnp.tile(x, (2, 1)) * jnp.repeat(x, 2, axis=0),
    "one hot": lambda x: jax.nn.one_hot(jnp.argmax(x, -1), 3) * x[::-1],
    "halves": lambda x: jnp.prod(jnp.stack(jnp.split(jnp.concatenate([x, x]), 2)), axis=0),
    "spread": lambda x: jnp.std(x, axis=0) + jax.nn.logsumexp(x),
    "gelu": lambda x: jax.nn.gelu(x),
}


@pytest.mark.parametrize("name", few(PROGRAMS, len(PROGRAMS)))
def test_a_function_at_symbolic_dimensions_is_the_one_at_their_numbers(name: str) -> None:
    program = PROGRAMS[name]
    (n,) = export.symbolic_shape("N")
    opened = tidu.from_jax(program, jax.ShapeDtypeStruct((n, 3), jnp.float64))
    second = _second(opened)
    for size in SIZES:
        x = np.random.default_rng(size).normal(size=(size, 3))
        np.testing.assert_allclose(
            _values(tidu.specialize(second, size={"N": size}), x),
            _values(_second(tidu.from_jax(program, x)), x),
            rtol=1e-12,
            atol=1e-12,
        )
        np.testing.assert_allclose(tidu.evaluate(opened, {"x": x})["y"], program(x), rtol=1e-12, atol=1e-12)


def _second(document: Any) -> Any:
    return tidu.materialize(tidu.linearize(tidu.materialize(tidu.transpose(tidu.linearize(document, ["x"]))), ["x"]))


def _values(document: Any, x: Any) -> np.ndarray:
    rng = np.random.default_rng(5)
    inputs = {str(i.key): x if str(i.key) == "x" else rng.normal(size=i.type.shape) for i in document.head.inputs}
    return np.concatenate([np.ravel(y) for y in tidu.evaluate(document, inputs).values()])


def _while(x: Any) -> Any:
    """The bound stands in the condition."""
    return lax.while_loop(lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, jnp.sin(c[1]) * x[c[0]]), (0, x[0]))[1]


LOOPS: Mapping[str, Callable[[Any], Any]] = {
    "each": lambda x: lax.fori_loop(0, x.shape[0], lambda i, c: jnp.sin(c) * x[i] + i, x[0]),
    "half": lambda x: lax.fori_loop(1, x.shape[0] // 2 + 1, lambda i, c: c * x[i - 1] + i, x[0]),
    "perhaps none": lambda x: lax.fori_loop(0, x.shape[0] - 3, lambda i, c: c * x[i + 1] + x[0], x[0]),
    "put": lambda x: lax.fori_loop(0, x.shape[0], lambda i, y: y.at[i].set(jnp.sin(y[i]) * x[0]), x),
    "nested": lambda x: lax.fori_loop(
        0, x.shape[0], lambda i, c: c + lax.fori_loop(0, x.shape[0], lambda j, d: d / 2 + x[j] * x[i], c), x[0]
    ),
    "while": _while,
}


@pytest.mark.parametrize("name", few(LOOPS, len(LOOPS)))
def test_a_loop_up_to_a_size_is_a_scan_with_a_gradient(name: str) -> None:
    (n,) = export.symbolic_shape("N")
    document = tidu.from_jax(LOOPS[name], jax.ShapeDtypeStruct((n,), jnp.float64))
    ops = {case.op for case in cases_within(document.head.cases.cases)}
    assert ("scan" in ops, "while" in ops) == (True, False)
    gradient = tidu.vjp(document, "x")
    for size in SIZES:
        x = jnp.asarray(np.random.default_rng(size).normal(size=size))
        y = LOOPS[name](x)
        np.testing.assert_allclose(tidu.evaluate(document, {"x": x})["y"], y, rtol=1e-12, atol=1e-12)
        due = jax.jacfwd(lambda x: jnp.sum(LOOPS[name](x)))(x)
        found = tidu.evaluate(gradient, {"x": x, "y@-1": np.ones_like(y)})["x@-1"]
        np.testing.assert_allclose(found, due, rtol=1e-10, atol=1e-12)


def test_a_loop_that_does_not_count_to_its_size_stays_one() -> None:
    """Of steps that are computed."""

    def program(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < x.shape[0], lambda c: (c[0] * 2 + 1, c[1] * 0.5), (0, x[0]))[1]

    document = tidu.from_jax(program, "f64[N]")
    assert "while" in {document.head.cases[code].op for code in document.head.code}
    for size in SIZES:
        x = jnp.asarray(np.random.default_rng(size).normal(size=size))
        np.testing.assert_allclose(tidu.evaluate(document, {"x": x})["y"], program(x), rtol=1e-12)


def test_random_numbers_of_open_arrays_are_those_of_their_numbers() -> None:
    def program(x: Any, key: Any) -> Any:
        return x * jax.random.uniform(jax.random.wrap_key_data(key), x.shape, x.dtype)

    (n,) = export.symbolic_shape("N")
    document = tidu.from_jax(program, jax.ShapeDtypeStruct((n, 3), jnp.float64), jax.ShapeDtypeStruct((2,), jnp.uint32))
    key = np.array([3, 4], np.uint32)
    for size in SIZES:
        x = np.ones((size, 3))
        np.testing.assert_array_equal(tidu.evaluate(document, {"x": x, "key": key})["y"], program(x, key))


def test_dimensions_keep_their_bounds_and_their_form() -> None:
    b, t = export.symbolic_shape("b, t", constraints=["b >= 16", "mod(b, 8) == 0", "t <= 64"])
    shape = (b // 8, (b * t + 3) // 2, jax.core.max_dim(b, t), t % 3 + 1, b**2 - 2 * t + 64)
    document = tidu.from_jax(lambda x: x + 1, jax.ShapeDtypeStruct(shape, jnp.float32))
    assert str(document.head.inputs[0].type) == "f32[b//8,4*(b//8)*t+1,max(b,t),(t%3)+1,b*b-2*t+64]"
    assert bounds_to_file(document)["sizes"] == {"b": {"min": 16, "multiple_of": 8}, "t": {"max": 64}}


def test_types_of_text_are_symbolic_dimensions_to_jax() -> None:
    document = tidu.from_jax(lambda x, y: x[: y.shape[0]] * y, "f64[2*N+1,3]", "f64[N,3]")
    assert [str(o.type) for o in document.head.outputs] == ["f64[N,3]"]
    with pytest.raises(BuildError, match="sub got incompatible shapes"):
        tidu.from_jax(lambda x, y: x - y, "f64[N]", "f64[M]")


def test_a_document_of_open_sizes_is_a_function_for_arrays_of_all_sizes() -> None:
    function = jax.jit(tidu.to_jax(tidu.formula("sum(x*x)/size(x)", x="f64[N]")))
    for n in (1, 4, 9):
        x = np.arange(1.0, n + 1)
        np.testing.assert_allclose(function(x), np.mean(x * x))
        np.testing.assert_allclose(jax.grad(function)(x), 2 * x / n)
    (n,) = export.symbolic_shape("N")
    with pytest.raises(EvaluationError, match="input x has a symbolic dimension"):
        export.export(function)(jax.ShapeDtypeStruct((n,), jnp.float64))
