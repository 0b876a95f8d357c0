"""Complex numbers: linearize is the full R-linear derivative, transpose the adjoint for Re(conj(a) b)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.graphs.interpret import evaluate
from tests.graphs.sketch import Value, function, key, op
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

conj, exp, real, imag, absolute, make_complex, convert = map(
    op, ("conj", "exp", "real", "imag", "abs", "complex", "convert_element_type")
)
Z, W, C = 0.7 - 1.1j, -0.4 + 0.9j, 1.3 + 0.2j
DZ, CT = 0.35 + 1.6j, -0.8 + 0.45j

# f(z), ∂f/∂z and ∂f/∂z̄.
FUNCTIONS: dict[str, tuple[Callable[[Value], Value], complex, complex]] = {
    "conj z": (conj, 0, 1),
    "z²": (lambda z: z * z, 2 * Z, 0),
    "|z|² as z conj z": (lambda z: z * conj(z), np.conj(Z), Z),
    "c z": (lambda z: z.sketch.full(C, z.type) * z, C, 0),
    "exp z": (exp, np.exp(Z), 0),
    "z³": (lambda z: z.sketch.apply("integer_pow", z, y=3), 3 * Z**2, 0),
    "1/z": (lambda z: z.sketch.apply("div", 1.0, z), -1 / Z**2, 0),
    "exp conj z": (lambda z: exp(conj(z)), 0, np.exp(np.conj(Z))),
    "z + 2 conj z": (lambda z: z + 2.0 * conj(z), 1, 2),
    "Re z as complex": (lambda z: convert(real(z), new_dtype="c128"), 0.5, 0.5),
    "Im z as complex": (lambda z: convert(imag(z), new_dtype="c128"), -0.5j, 0.5j),
    "i Re z + Im z": (lambda z: make_complex(imag(z), real(z)), 0.0, 1j),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_and_reverse_of_one_complex_variable(name: str) -> None:
    body, dz, dz_bar = FUNCTIONS[name]
    forward = linearize(function("f", {"z": "c128[]"}, body), [key("z")])
    tangent = evaluate(forward, {key("z"): Z, key("z@1"): DZ})[key("y@1")]
    np.testing.assert_allclose(tangent, dz * DZ + dz_bar * np.conj(DZ), rtol=1e-13)
    cotangent = evaluate(transpose(forward), {key("z"): Z, key("y@-1"): CT})[key("z@-1")]
    np.testing.assert_allclose(cotangent, CT * np.conj(dz) + np.conj(CT) * dz_bar, rtol=1e-13)


def test_z_times_conj_w() -> None:
    forward = linearize(function("f", {"z": "c128[]", "w": "c128[]"}, lambda z, w: z * conj(w)), [key("z"), key("w")])
    at = {key("z"): Z, key("w"): W}
    tangent = evaluate(forward, at | {key("z@1"): DZ, key("w@1"): C})[key("y@1")]
    np.testing.assert_allclose(tangent, DZ * np.conj(W) + Z * np.conj(C), rtol=1e-14)
    cotangents = evaluate(transpose(forward), at | {key("y@-1"): CT})
    np.testing.assert_allclose(cotangents[key("z@-1")], CT * W, rtol=1e-14)
    np.testing.assert_allclose(cotangents[key("w@-1")], np.conj(CT) * Z, rtol=1e-14)


LOSSES: dict[str, tuple[Callable[[Value], Value], complex]] = {
    "Re(z conj z)": (lambda z: real(z * conj(z)), 2 * Z),
    "|z|": (absolute, Z / abs(Z)),
    "Re z": (real, 1),
    "Im z": (imag, 1j),
    "Re(z) as f64": (lambda z: convert(z, new_dtype="f64"), 1),
    "Re exp z": (lambda z: real(exp(z)), np.conj(np.exp(Z))),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_real_loss_with_cotangent_1_gives_twice_the_conjugate_derivative(name: str) -> None:
    body, twice_dz_bar = LOSSES[name]
    forward = linearize(function("f", {"z": "c128[]"}, body), [key("z")])
    (output,) = forward.head.outputs
    assert output.type.dtype == "f64"
    cotangent = evaluate(transpose(forward), {key("z"): Z, key("y@-1"): np.float64(1)})[key("z@-1")]
    np.testing.assert_allclose(cotangent, twice_dz_bar, rtol=1e-14)
    tangent = evaluate(forward, {key("z"): Z, key("z@1"): DZ})[key("y@1")]
    np.testing.assert_allclose(tangent, np.real(np.conj(twice_dz_bar) * DZ), rtol=1e-14)


def test_the_transpose_of_a_real_graph_conjugates_nothing() -> None:
    doc = transpose(linearize(function("f", {"x": "f64[]"}, lambda x: exp(x * x)), [key("x")]))
    assert all(g.case(n).op != "conj" for g in doc.graphs for n in range(g.n_nodes))


def test_a_dot_product_conjugates_the_other_operand() -> None:
    numbers = (([0], [0]), ([], []))
    doc = function(
        "f", {"a": "c128[2]", "b": "c128[2]"}, lambda a, b: a.sketch.apply("dot_general", a, b, dimension_numbers=numbers)
    )
    a, b = np.array([Z, W]), np.array([C, DZ])
    reverse = transpose(linearize(doc, [key("a"), key("b")]))
    cotangents = evaluate(reverse, {key("a"): a, key("b"): b, key("y@-1"): np.complex128(CT)})
    np.testing.assert_allclose(cotangents[key("a@-1")], CT * np.conj(b), rtol=1e-14)
    np.testing.assert_allclose(cotangents[key("b@-1")], CT * np.conj(a), rtol=1e-14)
