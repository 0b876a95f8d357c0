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
from tidu_cli.formats.write import format_document
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


@pytest.mark.parametrize("shape", ["N, 3", "B, N, 3", "N, 3, 3"])
def test_systems_of_three_diagonals_are_read_of_open_sizes(shape: str) -> None:
    """What solves them is a function of JAX, which is traced at symbolic dimensions, with the bounds that names have."""

    def program(x: Any) -> Any:
        return lax.linalg.tridiagonal_solve(x[..., 0], x[..., 1] + 9, x[..., 2], x)

    document = import_module(module(program, export.symbolic_shape(shape, constraints=["N >= 3"])))
    assert bounds_to_file(document)["sizes"] == {"N": {"min": 3}}
    gradient = tidu.vjp(document, "0")
    for n in few((3, 4, 7), 3):
        x = np.random.default_rng(n).normal(size=[{"N": n, "B": 2, "3": 3}[part] for part in shape.split(", ")])
        y, pullback = jax.vjp(program, x)
        np.testing.assert_allclose(tidu.evaluate(document, {"0": x})["y"], y, rtol=1e-10, atol=1e-12)
        found = tidu.evaluate(gradient, {"0": x, "y@-1": np.asarray(y)})["0@-1"]
        np.testing.assert_allclose(found, *pullback(y), rtol=1e-9, atol=1e-11)


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


KERNEL = np.random.default_rng(0).normal(size=(3, 3, 2, 2))
IMAGES = ("NHWC", "HWIO", "NHWC")


def windows(x: Any, first: float, function: Any, size: int, stride: int) -> Any:
    return lax.reduce_window(x, first, function, (1, size, size, 1), (1, stride, stride, 1), "SAME")


PADDED: Mapping[str, Callable[[Any], Any]] = {
    "two convolutions": lambda x: jnp.sin(
        lax.conv(jnp.sin(lax.conv(x.transpose(0, 3, 1, 2), KERNEL.T, (2, 2), "SAME")), KERNEL.T, (3, 3), "SAME")
    ),
    "maxima": lambda x: windows(x, -jnp.inf, lax.max, 2, 3) ** 2,
    "means": lambda x: windows(x**2, 0.0, lax.add, 3, 2) / windows(jnp.ones_like(x), 0.0, lax.add, 3, 2),
    "there and back": lambda x: (
        lax.conv_transpose(
            lax.conv_general_dilated(x, KERNEL, (2, 2), "SAME", dimension_numbers=IMAGES),
            KERNEL,
            (2, 2),
            "SAME",
            dimension_numbers=IMAGES,
        )[:, : x.shape[1], : x.shape[2]]
        * x
    ),
}


def require_derivatives(document: tidu.Document, program: Callable[[Any], Any], x: Any) -> None:
    """Raises AssertionError unless values, gradients and second derivatives are those of JAX."""
    gradient = tidu.materialize(tidu.transpose(tidu.linearize(document, ["0"])))
    second = tidu.materialize(tidu.linearize(gradient, ["0"]))
    rng = np.random.default_rng(1)
    y, pullback = jax.vjp(program, x)
    seed, tangent = rng.normal(size=y.shape), rng.normal(size=x.shape)
    np.testing.assert_allclose(tidu.evaluate(document, {"0": x})["y"], y, rtol=1e-9, atol=1e-11)
    values = {"0": x, "y@-1": seed, "0@2": tangent}
    np.testing.assert_allclose(tidu.evaluate(gradient, values)["0@-1"], *pullback(seed), rtol=1e-8, atol=1e-9)
    _, (due,) = jax.jvp(lambda x: jax.vjp(program, x)[1](seed), (x,), (tangent,))
    np.testing.assert_allclose(tidu.evaluate(second, values)["0@-1@2"], due, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", few(PADDED, 4))
def test_paddings_that_follow_from_open_sizes_are_read(name: str) -> None:
    """Those of SAME are quotients that are rounded up, which modules compute by functions of their own."""
    document = import_module(module(PADDED[name], export.symbolic_shape("b, h, w, 2")))
    for shape in few(((1, 5, 4, 2), (1, 1, 1, 2), (2, 6, 3, 2)), 1 + (name == "maxima")):
        require_derivatives(document, PADDED[name], np.random.default_rng(shape[1]).normal(size=shape))


def test_convolutions_of_open_paddings_are_written() -> None:
    def program(x: Any) -> Any:
        return lax.conv_general_dilated(x, KERNEL, (2, 2), "SAME", dimension_numbers=IMAGES)

    document = import_module(module(program, export.symbolic_shape("b, h, w, 2")))
    gradient = tidu.materialize(tidu.transpose(tidu.linearize(document, ["0"])))
    read = import_module(in_this_process(format_document(gradient, "mlir"), "text"))
    x = np.random.default_rng(0).normal(size=(1, 5, 4, 2))
    y, pullback = jax.vjp(program, x)
    np.testing.assert_allclose(tidu.evaluate(read, {"0": x, "y@-1": np.asarray(y)})["0@-1"], *pullback(y), rtol=1e-9, atol=1e-11)


MATRICES: Mapping[str, Callable[[Any], Any]] = {
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.mT + jnp.eye(3)),
    "solve": lambda x: jnp.linalg.solve(x, x[..., :2] ** 2),
    "inverse": lambda x: jnp.linalg.inv(x),
    "determinant": lambda x: jnp.linalg.det(jnp.concatenate([jnp.concatenate([x, x**2], -1), jnp.concatenate([x**3, x], -1)], -2)),
    "logarithm": lambda x: jnp.linalg.slogdet(x)[1],
    "eigenvalues": lambda x: jnp.linalg.eigvalsh(x + x.mT),
    "eigenvectors": lambda x: abs(jnp.linalg.eigh(x + x.mT)[1]),
    "orthogonal": lambda x: jnp.linalg.qr(x)[0],
    "singular values": lambda x: jnp.linalg.svd(x[:, :2], full_matrices=False)[1],
    "pseudoinverse": lambda x: jnp.linalg.pinv(x[..., :2]),
}


@pytest.mark.parametrize("name", few(MATRICES, 5))
def test_factorizations_of_open_batches_are_read(name: str) -> None:
    """JAX calls LAPACK with the shapes of results as operands."""
    document = import_module(module(MATRICES[name], export.symbolic_shape("b, 3, 3")))
    assert str(document.head.inputs[0].type) == "f64[b,3,3]"
    for n in few((1, 4), 1):
        require_derivatives(document, MATRICES[name], np.random.default_rng(n).normal(size=(n, 3, 3)))


def test_shapes_of_results_that_depend_on_values_are_refused_with_their_place() -> None:
    text = """module {
  func.func public @main(%x: tensor<?x3x3xf64>, %n: tensor<3xi32>, %m: tensor<1xi32>) -> tensor<?x3x3xf64> {
    %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%x, %n, %m) {indices_of_shape_operands = dense<[1, 2]> : tensor<2xi64>,
      mhlo.backend_config = {uplo = 76 : ui8}} :
      (tensor<?x3x3xf64>, tensor<3xi32>, tensor<1xi32>) -> (tensor<?x3x3xf64>, tensor<?xi32>)
    return %0#0 : tensor<?x3x3xf64>
  }
}"""
    for indices in ("[1, 2]", "[1, 7]", "[7, 1]", "[-1, 0]"):
        with pytest.raises(DocumentError, match=r"^3:12: stablehlo.custom_call: has "):
            import_module(in_this_process(text.replace("[1, 2]", indices).encode(), "text"))


def test_operations_of_bits_and_barriers_have_the_shapes_of_their_own_operands() -> None:
    def program(x: Any) -> Any:
        key = jax.random.wrap_key_data(jnp.array([1, 2], jnp.uint32))
        y, z = lax.optimization_barrier((x, jnp.concatenate([x, x])))
        return y * jax.random.uniform(key, x.shape) + z[::2]

    document = import_module(module(program, export.symbolic_shape("N, 3")))
    for n in few(SIZES, 1):
        require_derivatives(document, program, np.random.default_rng(n).normal(size=(n, 3)))


@pytest.mark.parametrize("length", [lambda n: n // 2, lambda n: -(-n // 2)])
def test_a_loop_over_a_size_that_the_module_divides_for_is_a_scan(length: Callable[[Any], Any]) -> None:
    def program(x: Any) -> Any:
        return lax.fori_loop(0, length(x.shape[0]), lambda i, c: c * jnp.asarray(x)[i] + 1, jnp.asarray(x)[0])

    document = import_module(module(program, export.symbolic_shape("N, 3")))
    ops = [document.head.cases[code].op for code in document.head.code]
    assert ("scan" in ops, "while" in ops) == (True, False)
    x = np.random.default_rng(0).normal(size=(5, 3))
    np.testing.assert_allclose(tidu.evaluate(document, {"0": x})["y"], program(x))


def test_rows_are_taken_of_all_arguments_that_have_one_size() -> None:
    """Which sizes of arguments are one is known before it is decided what slices are."""
    t, b = export.symbolic_shape("T, B")
    document = import_module(module(lambda x, c: jax.vjp(ROWS["reverse"], x)[1](c)[0], (t, b, 3), (t, b, 3)))
    x, seed = np.random.default_rng(0).normal(size=(2, 3, 2, 3))
    np.testing.assert_allclose(tidu.evaluate(document, {"0": x, "1": seed})["y"], *jax.vjp(ROWS["reverse"], x)[1](seed), rtol=1e-9)


FLOORED = """module {
  func.func public @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %c = stablehlo.constant dense<3> : tensor<i32>
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %m = stablehlo.negate %n : tensor<i32>
    %0 = call @floor_divide(%m, %c) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %1 = stablehlo.negate %0 : tensor<i32>
    %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
    %3 = stablehlo.dynamic_iota %2, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
    return %3 : tensor<?xf32>
  }
  func.func private @floor_divide(%a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.divide %a, %b : tensor<i32>
    %1 = stablehlo.multiply %0, %b : tensor<i32>
    %2 = stablehlo.compare NE, %1, %a, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %3 = stablehlo.compare LT, %a, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.and %2, %3 : tensor<i1>
    %5 = stablehlo.constant dense<BELOW> : tensor<i32>
    %6 = stablehlo.subtract %0, %5 : tensor<i32>
    %7 = stablehlo.select %4, %6, %0 : tensor<i1>, tensor<i32>
    return %7 : tensor<i32>
  }
}"""


def test_a_function_that_is_called_as_one_of_jax_is_read_as_it_if_it_computes_the_same() -> None:
    document = import_module(in_this_process(FLOORED.replace("BELOW", "1").encode(), "text"))
    for n in (1, 3, 4, 9):
        np.testing.assert_array_equal(tidu.evaluate(document, {"0": np.ones(n, "f")})["y"], np.arange(-(-n // 3)))
    with pytest.raises(DocumentError, match="whose shape is not known"):
        import_module(in_this_process(FLOORED.replace("BELOW", "2").encode(), "text"))


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
