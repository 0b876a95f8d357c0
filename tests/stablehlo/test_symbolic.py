"""Modules that jax.export writes of symbolic dimensions are documents with open sizes; values are JAX's at each size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import tidu_cli as tidu
from tests.stablehlo.claims.written import in_this_process
from tests.tiers import few
from tidu_cli.adapters.stablehlo.module import Module
from tidu_cli.adapters.stablehlo.reading.importer import import_module
from tidu_cli.errors import DocumentError
from tidu_cli.graph.open_sizes import bounds_to_file

jax.config.update("jax_enable_x64", True)

SIZES = (1, 2, 7)


def module(function: Callable[..., Any], *shapes: Any) -> Module:
    args = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in shapes]
    return in_this_process(bytes(export.export(jax.jit(function))(*args).serialize()), "export")


PROGRAMS: Mapping[str, Callable[[Any], Any]] = {
    "mean": lambda x: jnp.mean(x, axis=0) / x.shape[0],
    "arange": lambda x: x * jnp.arange(x.shape[0])[:, None],
    "slices": lambda x: x[1:] * x[:-1] + x[-1] * x[0],
    "joined": lambda x: jnp.pad(jnp.concatenate([x, x**2]), 1).reshape(-1),
    "attention": lambda x: jax.nn.softmax(x @ x.T / jnp.sqrt(x.shape[-1])) @ x,
    "triangle": lambda x: jnp.where(jnp.tril(jnp.ones((x.shape[0],) * 2, bool)), x @ x.T, -1e9) @ x,
    "eye": lambda x: jnp.eye(x.shape[0]) @ jax.nn.relu(x),
    "scan": lambda x: lax.scan(lambda c, row: (c * 0.5 + row * row, c * row), jnp.zeros(3), x)[1],
    "while": lambda x: lax.while_loop(lambda c: jnp.sum(c) < 10, lambda c: c * c + 1, x),
    "choice": lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: y * 3, x),
    "layer norm": lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5),
    "gradient": lambda x: jax.grad(lambda z: jnp.sum(jnp.sin(z)) / z.shape[0])(x),
    "written": lambda x: jnp.zeros_like(x).at[0].set(x[0]) + jnp.ones((x.shape[0], 3)),
    "repeated": lambda x: jnp.tile(x, (2, 1)) * jnp.repeat(x, 2, axis=0),
    "one hot": lambda x: jax.nn.one_hot(jnp.argmax(x, -1), 3) * x[::-1],
    "halves": lambda x: jnp.prod(jnp.stack(jnp.split(jnp.concatenate([x, x]), 2)), axis=0),
    "half": lambda x: x[: x.shape[0] // 2 + 1] * jnp.cumsum(x, axis=1)[0],
    "sorted": lambda x: jnp.sort(x, axis=0) + jax.nn.logsumexp(x),
    "cumulative": lambda x: jnp.cumsum(x, axis=0) * lax.cummax(x, axis=0, reverse=True),
    "windows": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 1), (1, 1), "SAME"),
    "convolution": lambda x: lax.conv_general_dilated(x.T[None], jnp.ones((2, 3, 2)), (1,), "SAME"),
    "transform": lambda x: jnp.abs(jnp.fft.rfft(x)),
    "special": lambda x: lax.erfc(x) + jnp.arcsinh(x),
}


@pytest.mark.parametrize("name", few(PROGRAMS, len(PROGRAMS)))
def test_a_module_of_symbolic_dimensions_is_read_for_all_sizes(name: str) -> None:
    program = PROGRAMS[name]
    document = import_module(module(program, export.symbolic_shape("N, 3")))
    assert str(document.head.inputs[0].type) == "f64[N,3]"
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=(n, 3))
        np.testing.assert_allclose(tidu.evaluate(document, {"0": x})["y"], program(x), rtol=1e-9, atol=1e-12)


def test_derivatives_of_modules_keep_sizes_open() -> None:
    document = import_module(module(lambda x: jnp.sum(jnp.tanh(x)) / x.shape[0], export.symbolic_shape("N, 3")))
    gradient = (
        tidu.grad(document, wrt=["0"]).document
        if hasattr(tidu.grad(document, wrt=["0"]), "document")
        else tidu.grad(document, wrt=["0"])
    )
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=(n, 3))
        np.testing.assert_allclose(tidu.evaluate(gradient, {"0": x})["0@-1"], (1 - np.tanh(x) ** 2) / n, rtol=1e-9)


LOOPS: Mapping[str, Callable[[Any], Any]] = {
    "rows": lambda x: lax.scan(lambda c, row: (c * 0.5 + row * row, c * row), jnp.zeros(3), x)[1],
    "reverse": lambda x: lax.scan(lambda c, row: (c * 0.5 + row * row, c * row), jnp.ones(3), x, reverse=True)[1],
    "last": lambda x: lax.scan(lambda c, row: (c * 0.5 + row * row, None), jnp.ones(3), x)[0],
    "places": lambda x: lax.scan(lambda c, i: (c * 0.5 + jnp.asarray(x)[i] * i, c), jnp.zeros(3), jnp.arange(x.shape[0]))[1],
    "twice as many": lambda x: lax.scan(lambda c, row: (c + row**2, c * row), jnp.ones(3), jnp.concatenate([x, x]))[1],
    "nested": lambda x: lax.scan(lambda c, row: (lax.scan(lambda d, r: (d * 0.5 + r, d), c, x)[0] * row, c), jnp.zeros(3), x)[1],
    "map": lambda x: lax.map(lambda row: jnp.sin(row) * row[0], x),
}


@pytest.mark.parametrize("name", few(LOOPS, 4))
def test_a_loop_over_an_open_axis_is_a_scan_with_a_gradient(name: str) -> None:
    program = LOOPS[name]
    document = import_module(module(program, export.symbolic_shape("N, 3")))
    ops = [document.head.cases[code].op for code in document.head.code]
    assert ("scan" in ops, "while" in ops) == (True, False)
    gradient = tidu.materialize(tidu.transpose(tidu.linearize(document, ["0"])))
    for n in few(SIZES, 2):
        x = np.random.default_rng(n).normal(size=(n, 3))
        y, pullback = jax.vjp(program, x)
        np.testing.assert_allclose(tidu.evaluate(document, {"0": x})["y"], y, rtol=1e-10, atol=1e-12)
        seed = np.random.default_rng(n + 1).normal(size=y.shape)
        np.testing.assert_allclose(tidu.evaluate(gradient, {"0": x, "y@-1": seed})["0@-1"], *pullback(seed), rtol=1e-9, atol=1e-11)


ROWS: Mapping[str, Callable[[Any], Any]] = {
    "rows": lambda x: lax.scan(lambda c, row: (jnp.tanh(c * 0.5 + row), c.sum(0)), jnp.zeros(x.shape[1:]), x)[1],
    "reverse": lambda x: lax.scan(lambda c, row: (jnp.tanh(c * 0.5 + row), c), x[0], x, reverse=True)[1],
    "place": lambda x: lax.dynamic_slice(x, (jnp.argmax(x[:, 0, 0]), 0, 0), (1, x.shape[1], 3)),
    "clamped": lambda x: lax.dynamic_slice(x, (jnp.argmax(x[:, 0, 0]) + x.shape[0] - 1, -5, 1), (1, x.shape[1], 2)),
}


@pytest.mark.parametrize("name", few(ROWS, 4))
def test_slices_of_open_sizes_at_computed_places_are_read(name: str) -> None:
    """They are written by their limits: a loop over such rows is a scan."""
    program = ROWS[name]
    document = import_module(module(program, export.symbolic_shape("T, B, 3")))
    ops = [document.head.cases[code].op for code in document.head.code]
    assert ("scan" in ops, "while" in ops) == (name in ("rows", "reverse"), False)
    gradient = tidu.materialize(tidu.transpose(tidu.linearize(document, ["0"])))
    for shape in ((1, 1, 3), (3, 2, 3), (2, 5, 3)):
        x = np.random.default_rng(shape[1]).normal(size=shape)
        y, pullback = jax.vjp(program, x)
        np.testing.assert_allclose(tidu.evaluate(document, {"0": x})["y"], y, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(
            tidu.evaluate(gradient, {"0": x, "y@-1": np.asarray(y)})["0@-1"], *pullback(y), rtol=1e-9, atol=1e-11
        )


COUNTED = """module {
  func.func public @main(%x: tensor<?xf32>) -> tensor<f32> {
    %zero = stablehlo.constant dense<FIRST> : tensor<TYPE>
    %one = stablehlo.constant dense<STEP> : tensor<TYPE>
    %y = stablehlo.constant dense<1.5> : tensor<f32>
    %size = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %n = stablehlo.convert %size : (tensor<i32>) -> tensor<TYPE>
    %0:2 = stablehlo.while(%i = %zero, %v = %y) : tensor<TYPE>, tensor<f32>
    cond {
      %3 = stablehlo.compare RELATION, %i, %n, SIGNED : (tensor<TYPE>, tensor<TYPE>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %4 = stablehlo.add %i, %one : tensor<TYPE>
      %5 = stablehlo.multiply %v, %v : tensor<f32>
      stablehlo.return %4, %5 : tensor<TYPE>, tensor<f32>
    }
    return %0#1 : tensor<f32>
  }
}"""


@pytest.mark.parametrize(
    ("type_", "first", "step", "relation", "length"),
    [
        ("i32", 0, 1, "LT", "N"),
        ("i64", 1, 1, "LE", "N"),
        ("i64", 0, 2, "LT", "(N+1)//2"),
        ("i64", 5, 1, "LT", "max(N-5,0)"),
        ("i64", 0, -1, "LT", ""),
        ("i8", 0, 1, "LT", ""),
    ],
)
def test_a_count_up_to_a_size_is_the_length_of_a_scan(type_: str, first: int, step: int, relation: str, length: str) -> None:
    text = COUNTED.replace("TYPE", type_).replace("FIRST", str(first)).replace("STEP", str(step)).replace("RELATION", relation)
    document = import_module(in_this_process(text.encode(), "text"))
    loops = [case for code in document.head.code if (case := document.head.cases[code]).op in ("scan", "while")]
    lengths = [str(case.attrs.length).replace("d0_0", "N") for case in loops if case.op == "scan"]
    assert lengths == ([length] if length else [])
    for n in (1, 4, 7) if length else ():
        steps = len(range(first, n + (relation == "LE"), step))
        np.testing.assert_allclose(tidu.evaluate(document, {"0": np.ones(n, "f")})["y"], np.float32(1.5) ** 2**steps, rtol=1e-5)


def test_arguments_have_the_names_bounds_and_relations_of_the_module() -> None:
    b, t = export.symbolic_shape("b, t", constraints=["b >= 16", "mod(b, 8) == 0", "t <= 99"])
    document = import_module(module(lambda x, y, z: (x[:, :t] * y[:t], z), (b, t), (2 * t + 1,), (b * t,)))
    assert [str(i.type) for i in document.head.inputs] == ["f64[b,t]", "f64[2*t+1]", "f64[b*t]"]
    assert bounds_to_file(document)["sizes"] == {"b": {"min": 16, "multiple_of": 8}, "t": {"max": 99}}


def test_sizes_that_are_compared_are_not_taken_for_equal() -> None:
    text = b"""module {
  func.func public @main(%x: tensor<?xf32>) -> (tensor<i1>, tensor<?xf32>) {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %0 = stablehlo.compare EQ, %n, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    return %0, %x : tensor<i1>, tensor<?xf32>
  }
}"""
    document = import_module(in_this_process(text, "text"))
    for n in (2, 3):
        values = tidu.evaluate(document, {"0": np.ones(n, np.float32)})
        assert [bool(values["y0"]), values["y1"].shape] == [n == 3, (n,)]


def test_what_is_not_followed_is_refused_with_its_place() -> None:
    with pytest.raises(DocumentError, match="whose shape is not known; export the module with fixed shapes"):
        import_module(module(lambda x: jnp.linalg.cholesky(x), export.symbolic_shape("N, 3, 3")))


WINDOWS = """module {
  func.func public @main(%x: tensor<?xf32>, %n: tensor<1xi32>, %pads: tensor<1x2xi32>) -> tensor<?xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(OPERANDS) {CALLED} : (TYPES) -> tensor<?xf32>
    return %0 : tensor<?xf32>
  }
  func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.add %a, %b : tensor<f32>
    return %0 : tensor<f32>
  }
}"""


@pytest.mark.parametrize(
    "called", ["called_computations = [@sum]", "called_computations = [@none]", "called_computations = []", "x = 1 : i32"]
)
@pytest.mark.parametrize("n", [1, 2, 7])
def test_windows_that_make_no_sense_are_refused(called: str, n: int) -> None:
    operands = ["%x", "%zero", *["%n"] * 4, "%pads"][:n]
    types = ["tensor<?xf32>", "tensor<f32>", *["tensor<1xi32>"] * 4, "tensor<1x2xi32>"][:n]
    text = WINDOWS.replace("OPERANDS", ", ".join(operands)).replace("TYPES", ", ".join(types)).replace("CALLED", called)
    with pytest.raises(DocumentError, match=r"has windows whose sizes are not known; export the module with fixed shapes"):
        import_module(in_this_process(text.encode(), "text"))
