"""Products of matrices, contractions and determinants of ONNX against other evaluators."""

import ml_dtypes
import numpy as np
import pytest

from tests.lax.sampling.decomposition_samples import derivative
from tests.onnx.operators.derivatives import require_right
from tests.onnx.operators.node_tests import imported
from tests.onnx.operators.one_node import NEWEST, One, by_tidu, draw, dtypes, eps, require_agreement, require_equal, versions
from tidu_cli.api import evaluate, jvp
from tidu_cli.errors import TiduError


def numbers(dtype, *shape, seed=0):
    return draw(np.random.default_rng(seed), dtype, shape, special=False)


def exact(function, dtype, *operands):
    """What f64 gives of operands, in their dtype."""
    return function(*(x.astype("f8") for x in operands)).astype(dtype)


SHAPES = [
    ((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (2, 4, 5)), ((2, 3, 4), (4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((0, 4), (4, 2)), ((3, 0), (0, 2)), ((1, 0, 3, 4), (4, 4)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul_broadcasts_as_numpys(shapes):
    x, y = numbers("f4", *shapes[0]), numbers("f4", *shapes[1], seed=1)
    one = One("MatMul", [x, y])
    for fold in (False, True):
        require_equal(by_tidu(one, fold), [np.matmul(x, y)], f"{one}", 1e-5, 1e-5)
    if all(n for shape in shapes for n in shape):
        require_agreement(one, 1e-5, 1e-5)
        require_right(one.model, one.given)


def test_products_of_all_dtypes():
    for op in ("MatMul", "Gemm"):
        for version in versions(op):
            for dtype in dtypes(op, version):
                x, y = numbers(dtype, 3, 4), numbers(dtype, 4, 2, seed=1)
                one = One(op, [x, y, numbers(dtype, 2)] if op == "Gemm" else [x, y], {}, version)
                expected = exact(lambda a, b, c=0.0: a @ b + c, dtype, *one.operands)
                for fold in (False, True):
                    require_equal(by_tidu(one, fold), [expected], f"{one}", 8 * eps(dtype), 8 * eps(dtype))


@pytest.mark.parametrize(
    "attrs", [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1, "alpha": 0.5, "beta": 2.0}, {"beta": 0.0}]
)
@pytest.mark.parametrize("c", [None, (), (1,), (2,), (3, 1), (1, 2), (3, 2)], ids=str)
def test_gemm(attrs, c):
    x, y = numbers("f4", 3, 4), numbers("f4", 4, 2, seed=1)
    x, y = (v.T.copy() if attrs.get(f"trans{k}") else v for k, v in zip("AB", (x, y), strict=True))
    operands = [x, y] if c is None else [x, y, numbers("f4", *c, seed=2)]
    for version in (7, 9, 11, NEWEST) if c is not None else (11, NEWEST):
        one = One("Gemm", operands, attrs, version)
        require_agreement(one, 1e-5, 1e-5)
    require_right(one.model, one.given, wrt=["x0", "x1"])


def test_gemm_does_what_is_asked_and_no_more():
    x, y = numbers("f4", 3, 4), numbers("f4", 2, 4)
    document = imported(One("Gemm", [x, y], {"transB": 1}).model, {"x0": x, "x1": y}).document
    assert [case.op for case, _ in document.head.nodes()] == ["dot_general"]


def test_gemm_of_integers_has_whole_factors():
    x = numbers("i4", 3, 3)
    require_equal(by_tidu(One("Gemm", [x, x], {"alpha": 2.0})), [2 * x @ x], "twice")
    with pytest.raises(TiduError, match=r"multiplies integers by 0\.5"):
        by_tidu(One("Gemm", [x, x], {"alpha": 0.5}))


@pytest.mark.parametrize(("op", "shapes", "text"), [
    ("MatMul", [(3, 4), (3, 4)], "axis 1 of f32"),
    ("MatMul", [(3,), ()], "takes arrays with axes"),
    ("Gemm", [(3, 4), (3, 4)], "axis 1 of A has 4 elements, axis 0 of B 3"),
    ("Gemm", [(2, 3, 4), (4, 2)], "multiplies matrices, and is given arrays of 3 and 2 axes"),
    ("Gemm", [(3, 4), (4, 2), (4,)], "C of shape .4. does not broadcast to the product's"),
    ("Det", [(3, 4)], "is of square matrices"),
])  # fmt: skip
def test_shapes_that_do_not_fit(op, shapes, text):
    with pytest.raises(TiduError, match=rf"node 0 \({op}\): .*{text}"):
        by_tidu(One(op, [numbers("f4", *shape) for shape in shapes]))


EQUATIONS = [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("ij,jk", [(2, 3), (3, 4)]), ("b i j , b j k -> b i k", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]), ("i...->...", [(3, 2, 4)]), ("ii->i", [(3, 3)]), ("ii", [(3, 3)]),
    ("ij->ji", [(2, 3)]), ("i,j,k->kji", [(2,), (3,), (4,)]), ("iij,jk->ik", [(2, 2, 3), (3, 4)]), ("bA,AB->bB", [(2, 3), (3, 4)]),
    ("...a,...a->...", [(2, 3), (2, 3)]), ("ij,->ij", [(2, 3), ()]), ("ba", [(2, 3)]), ("ij->", [(2, 3)]), ("Ba", [(2, 3)]),
]  # fmt: skip


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation, shapes):
    operands = [numbers("f4", *shape, seed=k) for k, shape in enumerate(shapes)]
    one = One("Einsum", operands, {"equation": equation})
    for fold in (False, True):
        require_equal(by_tidu(one, fold), [np.einsum(equation, *operands)], f"{one}", 1e-5, 1e-5)
    require_agreement(One("Einsum", operands, {"equation": equation}, 12), 1e-5, 1e-5)
    require_right(one.model, one.given)


def test_einsum_of_other_dtypes():
    for dtype in ("f2", "f8", "i4", "i8", "u1", ml_dtypes.bfloat16):
        x, y = numbers(dtype, 2, 3), numbers(dtype, 3, 4, seed=1)
        for fold in (False, True):
            (product,) = by_tidu(One("Einsum", [x, y], {"equation": "ij,jk->ik"}), fold)
            require_equal([product], [exact(np.matmul, dtype, x, y)], str(dtype), 8 * eps(dtype), 8 * eps(dtype))


@pytest.mark.parametrize("equation", ["ij,jk->il", "ij->ij", "i1,1j->ij", "ij,jk->ikk", "ijk,jk->i", "->", ""])
def test_equations_that_are_none(equation):
    with pytest.raises(TiduError, match=r"node 0 \(Einsum\): "):
        by_tidu(One("Einsum", [numbers("f4", 2, 3), numbers("f4", 3, 4)], {"equation": equation}))


def test_determinants():
    for version in versions("Det"):
        for dtype in dtypes("Det", version):
            for shape in ((3, 3), (2, 4, 2, 2), (1, 1)):
                x = numbers(dtype, *shape)
                one = One("Det", [x], {}, version)
                expected = exact(np.linalg.det, dtype, x)
                for fold in (False, True):
                    require_equal(by_tidu(one, fold), [expected], f"{one}", 16 * eps(dtype), 16 * eps(dtype))
    one = One("Det", [numbers("f8", 2, 3, 3)])
    require_right(one.model, one.given)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_determinants_have_derivatives_at_singular_matrices(rank):
    """As np.linalg.det: of the first and second order, by minors, where factors have none."""
    x, e, f = (numbers("f8", 2, 4, 4, seed=k) for k in range(3))
    x[:, rank:] = 0
    model = One("Det", [x]).model
    require_right(model, {"x0": x})
    second = jvp(jvp(imported(model, {"x0": x}).document, "x0"), "x0")
    mixed = evaluate(second, {"x0": x, "x0@1": e, "x0@2": f}, output="y0@1@2")["y0@1@2"]
    np.testing.assert_allclose(mixed, derivative(x, e, f), 1e-11, 1e-11)
