"""from_jax beyond functions of arrays: pytrees and names, known values, random numbers, systems, and what is refused."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

jax.config.update("jax_enable_x64", True)
jnp, lax, random = jax.numpy, jax.lax, jax.random

import tidu_cli  # noqa: E402
from tests.jax.functions.agreement import compared  # noqa: E402
from tests.tiers import few  # noqa: E402
from tidu_cli.adapters.jax.functions.function import from_jax  # noqa: E402
from tidu_cli.adapters.numpy.errors import BuildError  # noqa: E402

pytestmark = pytest.mark.jax

RNG = np.random.default_rng(5)
V = RNG.standard_normal(4)
S = RNG.standard_normal((4, 4))
S = S @ S.T + 4 * np.eye(4)
X = RNG.standard_normal((3, 5, 4))
RAW = np.array([7, 9], np.uint32)


def keys(document: Any) -> tuple[list[str], list[str]]:
    return [f"{i.key}:{i.type}" for i in document.head.inputs], [str(o.key) for o in document.head.outputs]


def close(function: Callable[..., Any], *args: Any) -> None:
    """The values of a function by tidu are those of JAX."""
    names = [f"x{k}" for k in range(len(args))]
    results = tidu_cli.evaluate(from_jax(function, *args, names=names), dict(zip(names, args, strict=True)))
    for ours, theirs in zip(results.values(), jax.tree.leaves(function(*args)), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


# Names.


class Layer(NamedTuple):
    w: Any
    b: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    layers: list[Layer]
    scale: Any
    activation: Any = dataclasses.field(metadata={"static": True}, default=None)


@dataclasses.dataclass
class Plain:
    loss: Any
    parts: Any


def applied(model: Model, x: Any) -> Any:
    for layer in model.layers:
        x = model.activation(x @ layer.w + layer.b)
    return {"y": x * model.scale, "aux": (x, [x.sum()])}


MODEL = Model([Layer(np.ones((4, 3)), np.zeros(3)), Layer(np.ones((3, 2)), np.zeros(2))], 2.0, jnp.tanh)


def test_leaves_of_pytrees_are_called_by_the_path_to_them() -> None:
    inputs, outputs = keys(tidu_cli.from_jax(applied, MODEL, jax.ShapeDtypeStruct((5, 4), "float64")))
    layers = ["model.layers.0.w:f64[4,3]", "model.layers.0.b:f64[3]", "model.layers.1.w:f64[3,2]", "model.layers.1.b:f64[2]"]
    assert inputs == [*layers, "model.scale:f64[]", "x:f64[5,4]"]
    assert outputs == ["aux.0", "aux.1.0", "y"]


def test_leaves_that_are_no_arrays_stay_what_they_are() -> None:
    inputs, outputs = keys(from_jax(lambda f, x, how: f(x) if how == "plain" else x, jnp.sin, "f32[3]", "plain"))
    assert (inputs, outputs) == (["x:f32[3]"], ["y"])


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x, ["y"]),
        (lambda x: (x, x), ["y.0", "y.1"]),
        (lambda x: {"b": x, "a": {"c": x}}, ["a.c", "b"]),
        (lambda x: Layer(x, [x]), ["w", "b.0"]),
        (lambda x: Plain(x, {"n": x}), ["loss", "parts.n"]),
        (lambda y: y, ["out"]),
        (lambda x: (x, None), ["y.0"]),
    ],
)
def test_results_are_called_by_their_paths(function: Any, expected: list[str]) -> None:
    assert keys(from_jax(function, 1.0))[1] == expected


def test_names_may_be_given() -> None:
    assert keys(from_jax(lambda *xs: sum(xs), 1.0, 2.0))[0] == ["xs.0:f64[]", "xs.1:f64[]"]
    assert keys(from_jax(lambda *xs: sum(xs), 1.0, 2.0, names=["a", "b"]))[0] == ["a:f64[]", "b:f64[]"]
    with pytest.raises(BuildError, match="1 names are given for 2"):
        from_jax(lambda *xs: sum(xs), 1.0, 2.0, names=["a"])
    with pytest.raises(BuildError, match="two inputs are called 'a'"):
        from_jax(lambda *xs: sum(xs), 1.0, 2.0, names=["a", "a"])


def test_dtypes_are_those_of_the_configuration() -> None:
    with jax.enable_x64(False):
        assert keys(from_jax(lambda x: x * 2, np.ones(3)))[0] == ["x:f32[3]"]
        with pytest.raises(BuildError, match=r"f64\[3\] only with jax.enable_x64"):
            from_jax(lambda x: x * 2, "f64[3]")


def test_literals_have_the_dtype_of_the_configuration() -> None:
    """In loops JAX's are ints that say their dtype."""

    def total(x: Any, n: Any) -> Any:
        return jax.lax.fori_loop(0, n, lambda i, c: c * 0.5 + i, x[0])

    with jax.enable_x64(False):
        document = from_jax(total, "f32[4]", "i32[]")
        values = {"x": np.arange(4, dtype="f"), "n": np.int32(3)}
        assert tidu_cli.evaluate(document, values)["y"] == total(values["x"], 3) == 2.5


# Known values.


def test_known_values_are_constants_where_that_takes_no_more() -> None:
    assert from_jax(lambda x: x + jnp.arange(4.0)[2] * jnp.cos(0.5), V).head.n_nodes == 3  # constant, broadcast, add
    mask = from_jax(lambda x: jnp.tril(x), jnp.ones((300, 300))).head
    assert all(len(c.attrs.value.data) < 64 for c in mask.cases.cases if c.op == "constant")


def test_a_branch_that_is_known_is_read_alone() -> None:
    assert "cond" not in {c.op for c in from_jax(lambda x: lax.cond(True, jnp.sin, jnp.cos, x), 1.0).cases.cases}


def test_a_loop_that_is_known_does_not_run_where_it_may_not_be_due() -> None:
    def forever(x: Any) -> Any:
        return x * lax.while_loop(lambda k: k < 1, lambda k: k * 1.0, 0.5)

    assert from_jax(lambda x: lax.cond(x > 0, forever, jnp.sin, x), 1.0).head.n_nodes > 1


def test_reading_is_linear_and_does_not_recurse() -> None:
    def long(x: Any) -> Any:
        for _ in range(3000):
            x = jnp.sin(x) + 1.0
        return x

    assert from_jax(long, 1.0).head.n_nodes == 6001

    def known(x: Any) -> Any:
        y = jnp.zeros((40, 40)) + 1  # too large for a constant, and known
        for _ in range(2000):
            y = y * 1.001
        return x * jnp.cumsum(lax.bitcast_convert_type(y, jnp.int64))[0]

    assert from_jax(known, 1.0).head.n_nodes == 2  # the number, and its product


# Random numbers.


RANDOM = {
    "normal": lambda k: random.normal(k, (3,)),
    "uniform of 32 bits": lambda k: random.uniform(k, (3,), jnp.float32),
    "integers": lambda k: random.randint(k, (3,), 0, 100),
    "split": lambda k: random.key_data(random.split(k, 3)),
    "keys one by one": lambda k: [random.normal(each) for each in random.split(k, 2)],
    "keys in a batch": lambda k: jax.vmap(lambda each: random.normal(each, (2,)))(random.split(k, 2)),
    "keys in a loop": lambda k: lax.scan(lambda c, _: tuple((lambda a, b: (a, random.bits(b)))(*random.split(c))), k, None, 3)[1],
    "fold_in": lambda k: random.key_data(random.fold_in(k, 5)),
    "categorical": lambda k: random.categorical(k, jnp.arange(4.0)),
    "permutation": lambda k: random.permutation(k, 5),
}


@pytest.mark.parametrize("name", few(RANDOM, 4))
def test_random_numbers_of_keys_that_are_inputs(name: str) -> None:
    close(lambda raw: RANDOM[name](random.wrap_key_data(raw)), RAW)


def test_random_numbers_of_a_seed_and_of_known_keys() -> None:
    close(lambda seed: random.normal(random.key(seed), (2,)), np.int32(5))
    close(lambda x: x * random.normal(random.key(1, impl="rbg"), (5,)), 2.0)
    document = from_jax(lambda x: x * random.normal(random.key(1), (5,)), 2.0)
    assert document.head.n_nodes == 3
    assert tidu_cli.evaluate(document, x=2.0)["y"].tolist() == (2 * random.normal(random.key(1), (5,))).tolist()


@pytest.mark.campaign
def test_a_gamma_variate_moves_with_its_order() -> None:
    for distance in compared(lambda a: random.gamma(random.key(1), a, (3,)), 2.3).values():
        assert distance < 1e-9


def test_keys_are_no_inputs() -> None:
    with pytest.raises(BuildError, match="key_data"):
        from_jax(lambda key: random.normal(key), random.key(0))


# Equations that are several operations.


def solved_step_by_step(a: Any, b: Any) -> Any:
    return jax.scipy.sparse.linalg.cg(lambda x: (a + a.T) @ x / 2, b, tol=1e-14)[0]


def root(x: Any, has_aux: bool = False) -> Any:
    def newton(f: Any, y: Any) -> Any:
        z = lax.while_loop(lambda z: jnp.abs(f(z)) > 1e-12, lambda z: z - f(z) / jax.grad(f)(z), y)
        return (z, x) if has_aux else z

    return lax.custom_root(lambda y: y**3 - x, 1.0, newton, lambda g, y: y / g(1.0), has_aux=has_aux)


def roots(a: Any, b: Any) -> Any:
    """Of a system of equations, of which what solves it closes over less than the equations."""

    def newton(f: Any, y: Any) -> Any:
        return lax.while_loop(lambda z: jnp.max(jnp.abs(f(z))) > 1e-12, lambda z: z - jnp.linalg.solve(jax.jacobian(f)(z), f(z)), y)

    def tangents(g: Any, y: Any) -> Any:
        return jnp.linalg.solve(jax.jacobian(g)(y), y)

    return lax.custom_root(lambda y: a @ y + y**3 / 9 - b, b, newton, tangents)


DIFFERENTIATED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a system by a loop": (solved_step_by_step, (S, V)),
    "a large system": (
        lambda x: lax.slice(jax.scipy.sparse.linalg.cg(lambda y: 2 * y * x[0], jnp.ones(3000) * x[1])[0], (0,), (4,)),
        (V,),
    ),
    "a system that is not symmetric": (lambda a, b: jax.scipy.sparse.linalg.gmres(lambda y: a @ y, b, tol=1e-14)[0], (S, V)),
    "bicgstab": (lambda a, b: jax.scipy.sparse.linalg.bicgstab(lambda y: a @ y, b, tol=1e-14)[0], (S, V)),
    "a complex system": (
        lambda a, b: jnp.abs(jax.scipy.sparse.linalg.bicgstab(lambda y: (a + 1j * a.T) @ y, b + 1j, tol=1e-14)[0]),
        (S, V),
    ),
    "a system of what is held constant": (lambda a, b: jnp.linalg.solve(lax.stop_gradient(a), b), (S, V)),
    "a root": (root, (2.0,)),
    "a root of several": (roots, (S, V)),
    "roots in a batch": (jax.vmap(root), (V**2 + 1,)),
    "a root beside other results": (lambda x: root(x, has_aux=True)[0], (2.0,)),
    "ldexp": (lambda x: jnp.ldexp(x, 3), (V,)),
    "frexp": (lambda x: jnp.frexp(x)[0], (V,)),
    "the sign bit": (lambda x: jnp.where(jnp.signbit(x), x, x**2), (V,)),
    "reduce": (lambda x: jnp.logaddexp.reduce(x, axis=1), (X,)),
    "windows": (lambda x: lax.reduce_window(x, 1.0, lax.mul, (1, 2, 2), (1, 1, 2), "SAME"), (X,)),
    "batch groups": (
        lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME", batch_group_count=2),
        (RNG.standard_normal((4, 2, 6)), RNG.standard_normal((4, 2, 3))),
    ),
    "tile": (lambda x: jnp.tile(x, (2, 1, 3)), (X,)),
    "stack": (lambda x: jnp.stack([x, 2 * x], 1), (X,)),
    "remat": (jax.checkpoint(lambda x: jnp.sin(jnp.sin(x))), (V,)),
    "branches": (lambda x, i: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), (V, np.int32(1))),
    "linear_call": (lambda x: jax.custom_derivatives.linear_call(lambda r, v: r * v, lambda r, v: r * v, 2.0, x), (1.5,)),
    "associative_scan": (lambda x: lax.associative_scan(jnp.multiply, x), (V,)),
    "apply": (lambda x: jnp.asarray(x).at[jnp.array([0, 2])].apply(jnp.sin, unique_indices=True), (V,)),
    "take with fill": (lambda x: jnp.take(x, jnp.array([1, 9]), fill_value=2.0), (V,)),
    "diagonals": (
        lambda d, b: lax.linalg.tridiagonal_solve(jnp.zeros(4).at[1:].set(0.5), d, jnp.zeros(4).at[:-1].set(0.3), b),
        (V + 4, S[:, :2]),
    ),
    "symmetric product": (lambda a: lax.linalg.symmetric_product(a, a, alpha=2.0, beta=0.5), (S,)),
    "ragged_dot": (lambda x, w: lax.ragged_dot(x, w, jnp.array([2, 3])), (X[0], RNG.standard_normal((2, 4, 3)))),
}
"""Functions by what is special in them, with arguments."""

VALUE, FORWARD = {"forward": False}, {"reverse": False}
LESS = {"diagonals": FORWARD, "windows": FORWARD, "symmetric product": VALUE, "apply": VALUE}
"""Of which JAX has no reverse mode, or no derivative."""


@pytest.mark.parametrize("name", few(DIFFERENTIATED, 8))
def test_is_differentiated_as_by_jax(name: str) -> None:
    function, args = DIFFERENTIATED[name]
    for kind, distance in compared(function, *args, **LESS.get(name, {})).items():
        assert distance < 1e-9, f"{kind}: {distance}"


def test_a_root_is_read_as_a_root() -> None:
    assert [case.op for case, _ in from_jax(root, 2.0).head.nodes() if case.op != "constant"] == ["root"]
    document = from_jax(roots, S, V)  # whose solvers take other constants, in an order of their own
    assert [case.op for case, _ in document.head.nodes()].count("root") == 1
    (y,) = tidu_cli.evaluate(document, dict(zip(map(str, document.inputs), (S, V), strict=True))).values()
    np.testing.assert_allclose(y, roots(S, V), rtol=1e-12, atol=1e-12)


VALUES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "greatest": (lambda x: lax.approx_max_k(x, 2), (X,)),
    "least": (lambda x: lax.approx_min_k(x, 2), (X,)),
    "reflections": (lambda a, t: lax.linalg.householder_product(a, t), (X[0, :, :3] / 5, np.array([0.1, 0.2, 0.3]))),
    "bools": (lambda x: (jnp.max(x > 0, axis=0), jnp.maximum(x > 0, x < 1), jnp.any(x > 0)), (X,)),
    "a batch of loops": (
        jax.vmap(lambda x: lax.while_loop(lambda v: v < 10, lambda v: v * 2.0, x)),
        (np.array([1.0, 30.0, 3.0]),),
    ),
    "products of bools": (lambda x: jnp.dot(x > 0, (x < 1).T), (X[0],)),
    "a conjugate of a real number": (lambda x: lax.conj(x), (V,)),
    "places in a sorted array": (lambda a, x: jnp.searchsorted(a, x), (np.array([1.0, 2, np.nan]), np.array([np.nan, 2, 0, 9]))),
    "orders with NaN": (
        lambda x, y: [p.bind(x, y) for p in (lax.lt_to_p, lax.le_to_p, lax.eq_to_p)],
        (np.array([1.0, np.nan, 1, np.nan]), np.array([np.nan, 1, 1, np.nan])),
    ),
    "bits": (lambda x: lax.bitcast_convert_type(x, jnp.uint8), (V,)),
    "high product": (lambda x: lax.mulhi(x, x) if hasattr(lax, "mulhi") else x, (np.uint32([2**31, 7]),)),
}


@pytest.mark.parametrize("name", VALUES)
def test_has_the_values_of_jax(name: str) -> None:
    function, args = VALUES[name]
    close(function, *args)


# What is refused.


REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "debug.print": (lambda x: [jax.debug.print("{}", x), x][1], "equation 'debug_.*: it calls back into Python"),
    "callback": (
        lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct((4,), "float64"), x),
        "equation 'pure_callback' .*: it calls back into Python",
    ),
    "collective": (lambda x: mapped(x), "equation 'shard_map' .* on one device"),
    "hessenberg": (lambda x: jax.scipy.linalg.hessenberg(jnp.outer(x, x)), "equation 'hessenberg' .* write jax.scipy.linalg.schur"),
    "if": (lambda x: x if x[0] > 0 else -x, "TracerBoolConversionError.*write jnp.where or jax.lax.cond"),
    "numpy": (lambda x: np.sin(x), "TracerArrayConversionError.*jax.numpy"),
    "text": (lambda x: "no array", "no array|not a valid JAX type"),
    "dtype": (lambda x: x.astype(jnp.float8_e4m3fn).astype(x.dtype), "equation 'convert_element_type' .*: a value of dtype float8"),
    "nothing": (lambda x: None, "returns nothing"),
    "error": (lambda x: 1 / 0, "ZeroDivisionError"),
    "apply": (lambda x: jnp.asarray(x).at[jnp.array([0, 0])].apply(jnp.sin), "unique_indices=True"),
}


def mapped(x: Any) -> Any:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
    spec = jax.sharding.PartitionSpec
    return jax.shard_map(lambda y: lax.psum(y, "i"), mesh=mesh, in_specs=spec("i"), out_specs=spec())(x)


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_in_one_line(name: str) -> None:
    function, told = REFUSED[name]
    with pytest.raises(BuildError, match=told) as caught:
        from_jax(function, V)
    assert "\n" not in str(caught.value)


def test_the_line_of_the_source_is_told() -> None:
    with pytest.raises(BuildError) as caught:
        from_jax(lambda x: jax.scipy.linalg.hessenberg(x), S)  # this line
    lines = Path(__file__).read_text().splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.endswith("# this line"))
    assert f"test_from_jax.py:{line}: " in str(caught.value)


def test_a_dataclass_that_jax_does_not_know_is_no_argument() -> None:
    with pytest.raises(BuildError, match="register_dataclass"):
        from_jax(lambda p: p.loss, Plain(1.0, 2.0))
