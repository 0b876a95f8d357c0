"""Functions that jax.export writes out as polynomials are read as what they are; what differs from them anywhere is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
import pytest

import tidu_cli
from tests.stablehlo.claims.written import in_this_process
from tests.stablehlo.modules import of_text, operations
from tests.tiers import few
from tidu_cli.adapters.stablehlo.reading import importer, special
from tidu_cli.graph.graph import Document
from tidu_cli.rules.recording.known import Recording


@pytest.fixture(autouse=True)
def _wide() -> Any:
    with jax.enable_x64(True):
        yield


def text_of(function: Callable[[Any], Any], x: Any) -> str:
    """The module that jax.export writes of a function."""
    return str(jax.export.export(jax.jit(function))(jax.ShapeDtypeStruct(x.shape, x.dtype)).mlir_module())


def derivatives(document: Document, x: Any) -> list[Any]:
    """Orders 0 to 2 at each element, of what is elementwise."""
    total = tidu_cli.compose(document, tidu_cli.formula("sum(x)", x=f"f{8 * x.itemsize}[{x.size}]"), by="position")
    results = [tidu_cli.evaluate(d, {"0": x}) for d in (document, tidu_cli.grad(total, "0"), tidu_cli.hessian(total, "0"))]
    value, slope, second = (next(iter(r.values())) for r in results)
    return [value, slope, np.diag(second)]


BETWEEN, AROUND = [0.0, 0.3, -0.7, 0.99], [0.0, 0.3, -0.7, 2.5, -6.0]
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], list[float], set[str]]] = {
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), AROUND, {"erfc", "mul", "neg"}),
    "erf": (jsp.erf, AROUND, {"erf"}),
    "erfc": (jsp.erfc, AROUND, {"erfc"}),
    "erf_inv": (jsp.erfinv, BETWEEN, {"erf_inv"}),
    "asinh": (jnp.arcsinh, AROUND, {"asinh"}),
    "acosh": (jnp.arccosh, [1.5, 2.0, 7.0], {"acosh"}),
    "atanh": (jnp.arctanh, BETWEEN, {"atanh"}),
    "asin": (jnp.arcsin, BETWEEN, {"asin"}),
    "acos": (jnp.arccos, BETWEEN, {"acos"}),
    "sinh": (jnp.sinh, AROUND, {"sinh"}),
    "cosh": (jnp.cosh, AROUND, {"cosh"}),
    "bessel_i0e": (jsp.i0e, AROUND, {"bessel_i0e"}),
    "bessel_i1e": (jsp.i1e, AROUND, {"bessel_i1e"}),
    "lgamma": (jsp.gammaln, [0.3, 2.5, 9.0], {"lgamma"}),
    "digamma": (jsp.digamma, [0.3, 2.5, -1.3], {"digamma"}),
    "log_ndtr": (jsp.log_ndtr, [0.0, 0.3, -0.7, 2.5, -3.0], set()),
    "ndtr": (jsp.ndtr, AROUND, set()),
}


@pytest.mark.every
@pytest.mark.parametrize("name", FUNCTIONS)
def test_orders_0_to_2_are_those_of_jax(name: str) -> None:
    function, points, ops = FUNCTIONS[name]
    for dtype, rtol in (("f8", 1e-12), ("f4", 2e-5)):
        x = np.array(points, dtype)
        document = of_text(text_of(function, x))
        assert not ops or operations(document) - {"constant", "broadcast_in_dim"} == ops
        orders = (function, jax.grad(function), jax.grad(jax.grad(function)))
        theirs = jax.jit(jax.vmap(lambda x, orders=orders: [f(x) for f in orders]))(x)
        for one, other in zip(derivatives(document, x), theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol / 10)


def test_bessel_functions_of_0_are_smooth() -> None:
    """JAX has the slope 1 of |x| there, in exp(|x|) times the scaled function."""
    x = np.zeros(1)
    np.testing.assert_allclose(derivatives(of_text(text_of(jsp.i0, x)), x), [[1], [0], [0.5]], atol=1e-15)
    np.testing.assert_allclose(derivatives(of_text(text_of(jsp.i1, x)), x), [[0], [0.5], [0]], atol=1e-15)


def test_they_are_found_among_others_and_in_loops() -> None:
    def function(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, y: jnp.sin(jsp.erfc(2 * y) * y), x) + jsp.i0e(x @ jnp.ones((2, 2)))

    document = of_text(text_of(function, np.zeros(2)))
    assert {"erfc", "bessel_i0e"} <= operations(document) and "exp" not in operations(document)


def constants(text: str) -> list[re.Match[str]]:
    """Those that have digits, as coefficients have."""
    found = re.finditer(r"dense<(-?\d\.\d+(?:E[-+]\d+)?)> : tensor<\dxf64>", text)
    return [m for m in found if len(m[1]) > 12]


@pytest.mark.parametrize("name", ["acosh", "bessel_i0e", "bessel_i1e", "digamma", "erf", "erf_inv", "erfc", "lgamma"])
def test_what_has_other_values_anywhere_is_read_as_written(name: str) -> None:
    """With another coefficient it is recognised only where its values are the function's, to some ten digits."""
    function, _, ops = FUNCTIONS[name]
    low, high = special.DOMAINS[name]
    x = np.concatenate([np.geomspace(low, high, 499), 1 - np.geomspace(1e-14, 0.1, 500)])
    text = text_of(function, x)
    assert operations(of_text(text)) == ops
    numbers = constants(text)
    for k in few(range(len(numbers)), 3):
        m = numbers[k]
        document = of_text(text[: m.start(1)] + repr(float(m[1]) * (1 + 1e-4)) + text[m.end(1) :])
        with np.errstate(all="ignore"):
            (values,) = tidu_cli.evaluate(document, {"0": x}).values()
            differs = np.abs(values - function(x)) > 1e-10 * (np.abs(values) + (name in special.CROSSING))
        assert ops.isdisjoint(operations(document)) or not differs.any()


def test_a_composite_is_what_it_is_decomposed_into() -> None:
    """Its name is a claim."""
    t = "tensor<2xf64>"
    text = (
        f"func.func public @main(%x: {t}) -> {t} {{\n"
        f'%0 = stablehlo.composite "chlo.erf" %x {{decomposition = @impl}} : ({t}) -> {t}\nreturn %0 : {t}\n}}\n'
        f"func.func private @impl(%x: {t}) -> {t} {{\n%0 = stablehlo.tanh %x : {t}\nreturn %0 : {t}\n}}\n"
    )
    assert operations(of_text(text)) == {"tanh"}


def test_looking_takes_a_bounded_number_of_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of a thousand selects is a function of all that comes before it."""
    made: list[Recording] = []

    class Kept(Recording):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            made.append(self)

    monkeypatch.setattr(importer, "Recording", Kept)
    t, n = "tensor<2xf64>", 1000
    lines = ["%y0 = stablehlo.sine %x : " + t, "%b0 = stablehlo.compare LT, %x, %y0 : (" + f"{t}, {t}) -> tensor<2xi1>"]
    for k in range(n):
        lines += [f"%a{k} = stablehlo.add %y{k}, %x : {t}", f"%y{k + 1} = stablehlo.select %b0, %a{k}, %y{k} : tensor<2xi1>, {t}"]
    text = f"func.func public @main(%x: {t}) -> {t} {{\n" + "\n".join([*lines, f"return %y{n} : {t}", "}"])
    document = importer.import_module(in_this_process(text.encode(), "text"))
    assert document.head.n_nodes > n
    (recording,) = made
    assert special.STEPS < recording.looked <= special.STEPS + (special.STEPS_A_NODE + 2) * len(recording.nodes) + 4 * special.MOST
