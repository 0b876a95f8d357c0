"""The sample graphs: laid out as tidu writes, listed in the README, and differentiated as calculus does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.keys import parse_key
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

SAMPLES = Path(__file__).parents[2] / "samples"
GRAPHS = [*sorted(SAMPLES.glob("*.json")), SAMPLES / "logistic_regression" / "loss.json"]


def load(name):
    return parse_document((SAMPLES / name).read_bytes(), name)[0]


def derive(document, *steps):
    """Each step is the keys to linearize by, or "T" for transpose."""
    for step in steps:
        document = transpose(document) if step == "T" else linearize(document, [parse_key(k) for k in step.split()])
    return materialize(document)


def values(document, /, **inputs):
    given = {parse_key(k): np.asarray(x, complex if np.iscomplexobj(x) else float) for k, x in inputs.items()}
    return {str(k): v for k, v in evaluate(document.head, given).items()}


@pytest.mark.parametrize("path", GRAPHS, ids=lambda p: p.stem)
def test_layout(path):
    document, source_format = parse_document(path.read_bytes(), path.name)
    assert source_format == "json"
    assert format_document(document, "json") == path.read_bytes()


@pytest.mark.parametrize("path", GRAPHS, ids=lambda p: p.stem)
def test_materialize_leaves_them_as_they_are(path):
    document, _ = parse_document(path.read_bytes(), path.name)
    assert format_document(materialize(document), "json") == path.read_bytes()


def test_readme_lists_what_is_there():
    rows = dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", (SAMPLES / "README.md").read_text(), re.MULTILINE))
    there = {p.name + ("/" if p.is_dir() else "") for p in SAMPLES.iterdir()} - {"README.md"}
    assert {name.removesuffix(" N") for name in rows} == there
    for path in SAMPLES.glob("*.json"):
        meta = json.loads(path.read_text()).get("meta")
        if path.name not in ("f.json", "logistic_map.json"):  # which pages show whole
            assert meta["purpose"] == rows[path.name].replace("\\|", "|")


def test_values():
    assert values(load("f.json"), x=3)["y"] == 18
    assert values(load("cube.json"), x=3)["y"] == 27
    assert values(load("quartic.json"), x=3)["y"] == 81
    assert values(load("exp_ax.json"), a=2, x=0.5)["y"] == np.exp(1)
    assert values(load("rosenbrock.json"), x=1, y=1)["f"] == 0
    assert values(load("rosenbrock.json"), x=2, y=1)["f"] == 901
    x = np.array([1e3, 999.0, 998.0, 1e3])
    np.testing.assert_allclose(values(load("softmax.json"), x=x)["y"], np.exp(x - 1e3) / np.exp(x - 1e3).sum(), rtol=1e-14)
    np.testing.assert_allclose(values(load("logsumexp.json"), x=x)["y"], np.logaddexp.reduce(x), rtol=1e-14)


@pytest.mark.parametrize(("n", "expected"), [(1, 32.0), (2, 48.0), (3, 48.0), (4, 24.0)])
def test_quartic(n, expected):
    tangents = {f"x@{k + 1}": 1 for k in range(n)}
    (derivative,) = values(derive(load("quartic.json"), *["x"] * n), x=2, **tangents).values()
    assert derivative == expected


N = np.array([[1, 2, -1], [0.5, -1, 1]])
W = np.array([[1, 0, 2], [0, -1, 1.0]])
X = np.array([0.3, -0.7, 1.1])


def test_vector_jacobian():
    jacobian = np.cos(N @ X)[:, None] * N + 3 * W * X**2
    forward, reverse = derive(load("vector.json"), "x"), derive(load("vector.json"), "x", "T")
    columns = [values(forward, x=X, **{"x@1": e})["y@1"] for e in np.eye(3)]
    rows = [values(reverse, x=X, **{"y@-1": e})["x@-1"] for e in np.eye(2)]
    np.testing.assert_allclose(np.transpose(columns), jacobian, rtol=1e-14)
    np.testing.assert_allclose(rows, jacobian, rtol=1e-14)


@pytest.mark.parametrize("steps", [("x", "x", "x"), ("x", "T", "x", "x"), ("x", "x", "T", "x"), ("x", "x", "x", "T")])
def test_vector_third_derivative(steps):
    # T[i,j,k,l] = -cos(u_i) N_ij N_ik N_il + 6 W_ij where j = k = l, contracted with y's cotangent c and three vectors.
    third = np.einsum("i,ij,ik,il->ijkl", -np.cos(N @ X), N, N, N)
    for j in range(3):
        third[:, j, j, j] += 6 * W[:, j]
    a, b, c, out = np.array([1, -2, 0.5]), np.array([0.25, 1, 3]), np.array([-1, 1, 2.0]), np.array([2, -3.0])
    graph = derive(load("vector.json"), *steps)
    (key,) = (str(o.key) for o in graph.head.outputs)
    if steps == ("x", "x", "x"):
        given, expected = {"x@1": a, "x@2": b, "x@3": c}, np.einsum("ijkl,j,k,l->i", third, a, b, c)
    elif steps == ("x", "T", "x", "x"):
        given, expected = {"y@-1": out, "x@2": a, "x@3": b}, np.einsum("ijkl,i,j,k->l", third, out, a, b)
    elif steps == ("x", "x", "T", "x"):
        given, expected = {"x@1": a, "y@1@-2": out, "x@3": b}, np.einsum("ijkl,i,j,k->l", third, out, a, b)
    else:
        given, expected = {"x@1": a, "x@2": b, "y@1@2@-3": out}, np.einsum("ijkl,i,j,k->l", third, out, a, b)
    np.testing.assert_allclose(values(graph, x=X, **given)[key], expected, rtol=1e-13)


def test_two_outputs():
    graph = derive(load("two_outputs.json"), "r theta", "T")
    cotangents = values(graph, r=2, theta=0.5, **{"x@-1": 3, "y@-1": -1})
    c, s = np.cos(0.5), np.sin(0.5)
    np.testing.assert_allclose(cotangents["r@-1"], 3 * c - s, rtol=1e-15)
    np.testing.assert_allclose(cotangents["theta@-1"], -3 * 2 * s - 2 * c, rtol=1e-15)


def test_affine_gradients():
    w, x, ct = np.arange(6.0).reshape(2, 3), np.array([1.0, -2, 3]), np.array([5.0, 7])
    cotangents = values(derive(load("affine.json"), "W x b", "T"), W=w, x=x, b=ct, **{"y@-1": ct})
    np.testing.assert_array_equal(cotangents["W@-1"], np.outer(ct, x))
    np.testing.assert_array_equal(cotangents["x@-1"], w.T @ ct)
    np.testing.assert_array_equal(cotangents["b@-1"], ct)


@pytest.mark.parametrize("x", [[0.1, -0.4, 0.3, 0.2], [2.0, 2.0, 2.0, 2.0], [0.0, 800.0, 1.0, -800.0]], ids=str)
def test_softmax_is_the_gradient_of_logsumexp(x):
    p = values(load("softmax.json"), x=x)["y"]
    v = np.array([1.0, -2, 3, 0.5])
    gradient = values(derive(load("logsumexp.json"), "x", "T"), x=x, **{"y@-1": 1})["x@-1"]
    hessian_vector = values(derive(load("logsumexp.json"), "x", "T", "x"), x=x, **{"y@-1": 1, "x@2": v})["x@-1@2"]
    jvp = values(derive(load("softmax.json"), "x"), x=x, **{"x@1": v})["y@1"]
    np.testing.assert_allclose(gradient, p, atol=1e-15)
    np.testing.assert_allclose(hessian_vector, p * v - p * (p @ v), atol=1e-15)
    np.testing.assert_allclose(jvp, p * v - p * (p @ v), atol=1e-15)


def test_mlp_gradients():
    draw = np.random.default_rng(1).normal
    x, w1, b1, w2, b2, target = draw(size=2), draw(size=(3, 2)), draw(size=3), draw(size=(1, 3)), draw(size=1), draw(size=1)
    h = np.tanh(w1 @ x + b1)
    error = 2 * (w2 @ h + b2 - target)
    back = (w2.T @ error) * (1 - h**2)
    graph = derive(load("mlp.json"), "W1 b1 W2 b2", "T")
    cotangents = values(graph, x=x, W1=w1, b1=b1, W2=w2, b2=b2, target=target, **{"loss@-1": 1})
    expected = {"W1@-1": np.outer(back, x), "b1@-1": back, "W2@-1": np.outer(error, h), "b2@-1": error}
    assert list(cotangents) == list(expected)
    for key, value in expected.items():
        np.testing.assert_allclose(cotangents[key], value, rtol=1e-13, err_msg=key)


def test_kinks_follow_the_conventions():
    tangents = values(derive(load("kinks.json"), "x"), x=[-2, -1, 0, 1, 2], **{"x@1": np.ones(5)})
    np.testing.assert_array_equal(tangents["relu@1"], [0, 0, 0.5, 1, 1])
    np.testing.assert_array_equal(tangents["magnitude@1"], [-1, -1, 0, 1, 1])
    np.testing.assert_array_equal(tangents["clipped@1"], [0, 0.5, 1, 0.5, 0])


def test_complex():
    z, w, t = 1.5 - 0.5j, -2 + 1j, 0.25 + 2j
    forward = derive(load("complex.json"), "z w")
    tangents = values(forward, z=z, w=w, **{"z@1": t, "w@1": 1j * t})
    np.testing.assert_allclose(tangents["abs2@1"], 2 * (z.conjugate() * t).real, rtol=1e-15)
    np.testing.assert_allclose(tangents["square@1"], 2 * z * t, rtol=1e-15)
    np.testing.assert_allclose(tangents["product@1"], t * w.conjugate() + z * (1j * t).conjugate(), rtol=1e-15)

    # ct_z = ct_y conj(∂f/∂z) + conj(ct_y) ∂f/∂z̄: a real loss of cotangent 1 gives 2 ∂L/∂z̄ = 2z.
    a, b, c = 1.0 + 0j, 2 - 1j, 0.5j
    reverse = derive(load("complex.json"), "z w", "T")
    cotangents = values(reverse, z=z, w=w, **{"abs2@-1": a.real, "square@-1": b, "product@-1": c})
    np.testing.assert_allclose(cotangents["z@-1"], 2 * z + b * (2 * z).conjugate() + c * w, rtol=1e-15)
    np.testing.assert_allclose(cotangents["w@-1"], c.conjugate() * z, rtol=1e-15)


def test_constants():
    constants = values(load("constants.json"), x=2)
    assert constants["y"] == 5
    np.testing.assert_array_equal(constants["not_finite"], [np.nan, np.inf, -np.inf, 0])
    assert np.signbit(constants["not_finite"][3])
    np.testing.assert_array_equal(constants["complex"], [1 + 2j, -1j])
    np.testing.assert_array_equal(constants["half"].astype(float), [1, -0.5])
    np.testing.assert_array_equal(constants["integers"], [[1, 2], [3, 4]])
    np.testing.assert_array_equal(constants["flags"], [True, False])
    derivative = values(derive(load("constants.json"), "x"), **{"x@1": 1})
    assert derivative.pop("y@1") == 2.5
    assert all(not np.any(v) for v in derivative.values()), "a constant's derivative is zero"


def test_composition():
    whole = resolve([load("compose_f.json"), load("compose_g.json")], bind=[(parse_key("u"), parse_key("v"))])
    x = 0.75
    assert values(materialize(whole), x=x)["y"] == np.sin(x * x)
    np.testing.assert_allclose(values(derive(whole, "x"), x=x, **{"x@1": 1})["y@1"], 2 * x * np.cos(x * x), rtol=1e-15)
    derivative = values(derive(whole, "x", "T", "x"), x=x, **{"y@-1": 1, "x@2": 1})["x@-1@2"]
    np.testing.assert_allclose(derivative, 2 * np.cos(x * x) - 4 * x * x * np.sin(x * x), rtol=1e-14)


def test_activations():
    from scipy.special import erfc

    x = np.array([-800.0, -1.5, 0.0, 0.25, 800.0])
    logistic = np.exp(-np.logaddexp(0, -x))
    normal, density = erfc(-x / np.sqrt(2)) / 2, np.exp(-x * x / 2) / np.sqrt(2 * np.pi)
    clipped = np.clip(x, -0.5, 0.5)
    library = load("activations.json")
    results = values(library, x=x)
    expected = {"softplus": np.logaddexp(0, x), "silu": x * logistic, "gelu": x * normal, "huber": clipped * (x - clipped / 2)}
    slopes = {
        "softplus": logistic,
        "silu": logistic + x * logistic * (1 - logistic),
        "gelu": normal + x * density,
        "huber": clipped,
    }
    forward = values(derive(library, "x"), x=x, **{"x@1": np.ones(5)})
    for name, value in expected.items():
        np.testing.assert_allclose(results[name], value, rtol=1e-14, atol=1e-15, err_msg=name)
        np.testing.assert_allclose(forward[f"{name}@1"], slopes[name], rtol=1e-14, atol=1e-15, err_msg=name)
    weights = {f"{name}@-1": np.full(5, 2.0**k) for k, name in enumerate(expected)}
    backward = values(derive(library, "x", "T"), x=x, **weights)["x@-1"]
    np.testing.assert_allclose(backward, sum(2.0**k * slopes[name] for k, name in enumerate(slopes)), rtol=1e-14, atol=1e-15)
