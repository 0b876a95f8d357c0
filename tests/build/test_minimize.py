"""`minimize` and `tidu minimize` against SciPy alone, and what becomes of a search that does not end well."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import optimize

import tidu
from tests.cli.running import ENVIRONMENT, ROOT
from tidu_cli.api import objectives
from tidu_cli.arguments import BOUNDED, LEAST_SQUARES, METHODS, bounds_of
from tidu_cli.errors import ArgumentError, EvaluationError, KeyTextError

ROSENBROCK = tidu.formula("loss = sum(100 * (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)", x="f64[6]")
START = np.tile([-1.2, 1.0], 3)
SCALAR_METHODS = [method for method in METHODS if method != LEAST_SQUARES]

T = np.linspace(0, 4, 9)
Y = 2.5 * np.exp(-1.3 * T) + 0.1 * np.sin(40 * T) + 0.3
DECAY = tidu.trace(
    lambda p, c, t, seen: {"r": p["a"] * np.exp(-p["b"] * t) + c[0] - seen},
    p={"a": "f64[]", "b": "f64[]"}, c="f64[1]", t="f64[9]", seen="f64[9]",
)  # fmt: skip
FROM: dict[str, Any] = {"p": {"a": 1.0, "b": 1.0}, "c": [0.0], "t": T, "seen": Y}


@pytest.mark.parametrize("method", SCALAR_METHODS)
def test_each_method_goes_the_way_of_scipy_with_the_derivatives_written_by_hand(method: str) -> None:
    how: dict[str, Any] = {"jac": optimize.rosen_der, "tol": 1e-8, "method": method}
    if method in objectives.MATRICES:
        how["hess"] = optimize.rosen_hess
    elif method in ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"):
        how["hessp"] = optimize.rosen_hess_prod
    expected = optimize.minimize(optimize.rosen, START, **how)
    fit = tidu.minimize(ROSENBROCK, "x", {"x": START}, method=method, tolerance=1e-8)
    assert fit["success"] == expected.success and fit["method"] == method
    np.testing.assert_allclose(fit["values"]["x"], expected.x, atol=1e-2 if method == "TNC" else 2e-4)  # which stops early
    assert fit["iterations"] <= 2 * expected.nit
    assert fit["cost"] == pytest.approx(optimize.rosen(fit["values"]["x"]), rel=1e-9, abs=1e-25)
    assert fit["gradient_norm"] == pytest.approx(np.linalg.norm(optimize.rosen_der(fit["values"]["x"])), rel=1e-6, abs=1e-12)


def test_a_fit_has_the_errors_of_curve_fit() -> None:
    fit = tidu.minimize(DECAY, ["p.*", "c"], FROM, method="least_squares", tolerance=1e-13)
    best, covariance = optimize.curve_fit(lambda t, a, b, c: a * np.exp(-b * t) + c, T, Y, p0=(1, 1, 0), ftol=1e-13, xtol=1e-13)
    assert fit["unknowns"] == ["p.a", "p.b", "c[0]"] and fit["success"]
    np.testing.assert_allclose([fit["values"]["p.a"], fit["values"]["p.b"], *fit["values"]["c"]], best, rtol=1e-6)
    np.testing.assert_allclose(fit["covariance"], covariance, rtol=1e-4)
    np.testing.assert_allclose(fit["standard_errors"]["p.a"], covariance[0, 0] ** 0.5, rtol=1e-4)
    assert fit["standard_errors"]["c"].shape == (1,)
    values = tidu.evaluate(DECAY, {"t": T, "seen": Y, **fit["values"]})["r"]
    assert fit["cost"] == pytest.approx(values @ values / 2)
    on_its_way = tidu.minimize(DECAY, ["p.*", "c"], FROM, method="least_squares", max_iterations=3)
    a, b, c = (float(np.squeeze(on_its_way["values"][name])) for name in ("p.a", "p.b", "c"))
    e, r = np.exp(-b * T), a * np.exp(-b * T) + c - Y
    assert not on_its_way["success"]
    assert on_its_way["gradient_norm"] == pytest.approx(np.linalg.norm([e @ r, -a * T * e @ r, r.sum()]), rel=1e-9)


@pytest.mark.parametrize("n", [3, 40])  # unknowns: the Jacobian of 20 residuals is derived by columns, or by rows
def test_a_line_is_that_of_lstsq(n: int) -> None:
    random = np.random.default_rng(n)
    a, b = random.normal(size=(20, n)), random.normal(size=20)
    line = tidu.formula("r = a @ x - b", a=f"f64[20,{n}]", x=f"f64[{n}]", b="f64[20]")
    fit = tidu.minimize(line, "x", {"a": a, "b": b, "x": np.zeros(n)}, method="least_squares", tolerance=1e-12)
    np.testing.assert_allclose(a @ fit["values"]["x"], a @ np.linalg.lstsq(a, b)[0], atol=1e-6)
    if n > 20:
        assert fit["covariance"] is fit["standard_errors"] is None
        return
    spread = np.sum((a @ fit["values"]["x"] - b) ** 2) / (20 - n)
    np.testing.assert_allclose(fit["covariance"], spread * np.linalg.inv(a.T @ a), rtol=1e-6)


def test_several_outputs_are_residuals_together_and_records_are_unknowns() -> None:
    segment = tidu.load(ROOT / "samples" / "segment.json")
    start = {"s": {"a": {"x": 0.1, "y": 0.2}, "b": {"x": 1.0, "y": 1.0}}}
    fit = tidu.minimize(segment, "s", start, output=["length"], method="least_squares")
    assert fit["cost"] < 1e-8 and fit["unknowns"] == ["s.a.x", "s.a.y", "s.b.x", "s.b.y"] and fit["covariance"] is None
    assert set(fit["values"]["s"]) == {"a", "b"}
    assert tidu.evaluate(segment, fit["values"])["length"] == pytest.approx(0, abs=1e-4)
    two = tidu.formula("r = x * t - 2; q = y - x", x="f64[]", y="f64[2]", t="f64[3]", output=["r", "q"])
    fit = tidu.minimize(
        two, ["x", "y"], {"x": 1.0, "y": [0.0, 0.0], "t": [1.0, 2.0, 3.0]}, output=["r", "q"], method="least_squares"
    )
    assert fit["values"]["x"] == pytest.approx(6 / 7, rel=1e-6)
    np.testing.assert_allclose(fit["values"]["y"], 6 / 7, rtol=1e-6)


@pytest.mark.parametrize("method", [method for method in BOUNDED if method != LEAST_SQUARES])
def test_bounds_hold_and_the_gradient_norm_leaves_out_what_points_beyond(method: str) -> None:
    f = tidu.formula("sum((x - c)**2) + (y - 3)**2 + (z - 4)**2", x="f64[3]", c="f64[3]", y="f64[]", z="f64[]")
    given = {"x": [0.5, 0.5, 0.5], "c": [2.0, -1.0, 0.25], "y": 0.0, "z": 0.0}
    fit = tidu.minimize(
        f, ["x", "y", "z"], given, method=method, bounds={"x": ([0, 0, 0], 1), "y": (None, 2.5), "z": (-9, None)}, tolerance=1e-10
    )
    np.testing.assert_allclose(fit["values"]["x"], [1, 0, 0.25], atol=1e-4)
    assert (fit["values"]["y"], fit["values"]["z"]) == pytest.approx((2.5, 4), abs=1e-4)
    assert fit["gradient_norm"] < 1e-3


def test_least_squares_keeps_to_bounds() -> None:
    fit = tidu.minimize(DECAY, ["p.*", "c"], FROM, method="least_squares", bounds={"p": (0.0, 1.1)})
    expected = optimize.least_squares(
        lambda v: v[0] * np.exp(-v[1] * T) + v[2] - Y, [1, 1, 0], bounds=([0, 0, -np.inf], [1.1, 1.1, np.inf])
    )
    np.testing.assert_allclose([fit["values"]["p.a"], fit["values"]["p.b"], *fit["values"]["c"]], expected.x, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f16", "f32", "c64", "c128"])
def test_other_dtypes_are_evaluated_as_they_are(dtype: str) -> None:
    target = [0.5, -1.5] if dtype.startswith("f") else [0.5 + 2j, -1.5j]
    f = tidu.formula("sum(abs(x - c)**2 + 0.25)", x=f"{dtype}[2]", c=f"{dtype}[2]")
    for method in ("L-BFGS-B", "Newton-CG"):
        fit = tidu.minimize(f, "x", {"x": [0.0, 1.0], "c": target}, method=method)
        assert fit["success"], fit["message"]
        np.testing.assert_allclose(fit["values"]["x"], target, atol=1e-2 if dtype == "f16" else 1e-3)
        assert tidu.evaluate(f, {"c": target, **fit["values"]})  # of the same dtype, or it would be refused


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("dogleg", "Newton-CG")])  # which are for f64
def test_f32_converges_as_far_as_it_can(method: str) -> None:
    form = "a * exp(-b * t) + c - y"
    f = tidu.formula(
        form if method == LEAST_SQUARES else f"sum(({form})**2)", a="f32[]", b="f32[]", c="f32[]", t="f32[9]", y="f32[9]"
    )
    fit = tidu.minimize(f, ["a", "b", "c"], {"a": 1.0, "b": 1.0, "c": 0.0, "t": T.tolist(), "y": Y.tolist()}, method=method)
    assert fit["success"], fit["message"]
    assert fit["cost"] * (2 if method == LEAST_SQUARES else 1) == pytest.approx(0.0370583, rel=1e-4)


def test_one_document_is_planned_once_and_evaluated_once_a_point(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    original = objectives._Function.__init__
    monkeypatch.setattr(objectives._Function, "__init__", lambda self, *args: (made.append(self), original(self, *args))[1])
    points: list[bytes] = []
    call = objectives._Function.__call__
    monkeypatch.setattr(objectives._Function, "__call__", lambda self, x, *v: (points.append(x.tobytes()), call(self, x, *v))[1])
    fit = tidu.minimize(ROSENBROCK, "x", {"x": START})
    assert len(made) == 1
    assert len(points) == fit["evaluations"] == len(set(points))


def test_a_search_goes_on_from_its_result(tmp_path: Any) -> None:
    first = tidu.minimize(ROSENBROCK, "x", {"x": START}, max_iterations=5)
    assert not first["success"] and first["iterations"] == 5
    for name in ("fit.json", "fit.npz", "fit.msgpack"):
        tidu.save_values(first["values"], tmp_path / name)
        given = tidu.load_values(tmp_path / name, ROSENBROCK)
        again = tidu.minimize(ROSENBROCK, "x", given, trace=tmp_path / "trace.csv")
        assert again["success"] and again["cost"] < 1e-8
        header, *rows = csv.reader((tmp_path / "trace.csv").read_text().splitlines())
        assert header == ["iteration", "cost", "gradient_norm"]
        assert [int(row[0]) for row in rows] == list(range(again["iterations"] + 1))
        assert float(rows[0][1]) == first["cost"] and float(rows[-1][1]) == again["cost"]
        assert float(rows[-1][2]) == again["gradient_norm"]
        assert all(float(b[1]) <= float(a[1]) for a, b in pairwise(rows))


def test_an_interrupt_has_the_best_point(monkeypatch: pytest.MonkeyPatch) -> None:
    costs: list[float] = []
    call = objectives._Function.__call__

    def until_it_is_worse(self: Any, x: Any, *v: Any) -> Any:
        if costs and costs[-1] > min(costs):
            raise KeyboardInterrupt
        values = call(self, x, *v)
        costs.append(float(values[0]))
        return values

    monkeypatch.setattr(objectives._Function, "__call__", until_it_is_worse)
    with pytest.raises(KeyboardInterrupt) as interrupt:
        tidu.minimize(ROSENBROCK, "x", {"x": START})
    (report,) = interrupt.value.args
    assert report["cost"] == min(costs) and not report["success"] and report["message"] == "interrupted"
    assert optimize.rosen(report["values"]["x"]) == pytest.approx(min(costs))


def test_what_scipy_cannot_do_is_told_in_a_line() -> None:
    f = tidu.formula("-x**4 + 0.0 * y", x="f64[]", y="f64[]")
    with np.errstate(all="raise"):
        fit = tidu.minimize(f, ["x", "y"], {"x": 1.0, "y": 1.0})  # without a least value
    assert not fit["success"] or fit["cost"] < -1e10
    with pytest.raises(EvaluationError, match=r"^trust-exact: "):
        tidu.minimize(tidu.formula("log(x) + 1e308 * x**3", x="f64[]"), "x", {"x": 1e-200}, method="trust-exact")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "lbfgsb"}, "there is no method 'lbfgsb' by derivatives; did you mean 'l-bfgs-b'"),
        ({"method": "BFGS", "bounds": {"x": (0, 1)}}, "BFGS takes no bounds; methods that do are L-BFGS-B"),
        ({"bounds": {"x": 3}}, "argument 'bounds' takes a dict of pairs of bounds"),
        ({"bounds": {"x": ("a", 3)}}, "bounds of 'x' are numbers, or arrays of its shape"),
        ({"bounds": {"x": (np.nan, 3)}}, "bounds of x\\[0\\]: the lower one, nan, is not less"),
        ({"bounds": {"z": (0, 3)}}, "bounds of 'z', which is not among the unknowns \\(x\\)"),
        ({"bounds": {"x": (0, 3)}}, "x\\[0\\] starts at -1.2, outside its bounds 0 and 3"),
        ({"trace": "x.txt"}, "'x.txt' is not the name of a file of CSV"),
        ({"method": "least_squares", "strong_zeros": True}, "strong_zeros=True is of gradients"),
        ({"inputs": {"x": np.full(6, np.inf)}}, "x\\[0\\] starts at Infinity"),
        ({"inputs": {}}, "missing inputs: x: f64\\[6\\]; give them with"),
        ({"wrt": "z"}, "no graph has an input 'z'"),
    ],
)
def test_what_minimize_does_not_take(options: dict[str, Any], says: str) -> None:
    with pytest.raises(tidu.TiduError, match=says):
        tidu.minimize(ROSENBROCK, **{"wrt": "x", "inputs": {"x": START}, **options})


@pytest.mark.parametrize("text", ["x=1", "=0:1", "x=0:1:2", "x=a:", "x=[1:", f"x={'[' * 9999}:", "x"])
def test_bounds_that_are_none(text: str) -> None:
    with pytest.raises(KeyTextError, match=r"is not KEY=LOWER:UPPER, such as x=0:1"):
        bounds_of(text)
    assert bounds_of("a=b=[1, 2]:") == (tidu.Key("a=b"), ([1, 2], None))


def test_complex_numbers_have_no_bounds_and_no_residuals() -> None:
    f = tidu.formula("r = abs(z)**2", z="c128[]")
    with pytest.raises(EvaluationError, match="bounds of 'z': complex numbers have no order"):
        tidu.minimize(f, "z", {"z": 1j}, bounds={"z": (0, 1)})
    with pytest.raises(tidu.TiduError, match="input 'z' is c128\\[\\], and least_squares takes real numbers"):
        tidu.minimize(f, "z", {"z": 1j}, method="least_squares")


@pytest.mark.parametrize("out", [True, False])
def test_an_interrupted_command_keeps_the_best_point_if_it_has_a_file(out: bool, tmp_path: Any) -> None:
    command = [sys.executable, "-m", "tidu_cli", "minimize", "sum(100 * (x[1:] - x[:-1]**2)**2 + (1 - x[:-1])**2)", "--wrt", "x"]
    command += ["--inputs", str(ROOT / "samples" / "rosenbrock_1000" / "x.npz"), "--method", "CG", "--tolerance", "1e-14", "-v"]
    command += ["-o", str(tmp_path / "fit.json")] if out else []
    pipe: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=ENVIRONMENT, **pipe) as running:
        assert running.stderr is not None and running.stdout is not None
        while "iteration 20," not in running.stderr.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        said = running.stderr.read()
        assert running.stdout.read() == "" and running.wait() == -signal.SIGINT
    assert (f"interrupted; {tmp_path / 'fit.json'} has the best point, after" in said) == out
    assert (tmp_path / "fit.json").exists() == out
    if out:
        (x,) = json.loads((tmp_path / "fit.json").read_text()).values()
        assert optimize.rosen(x) < optimize.rosen(np.tile([-1.2, 1], 500)) / 10


def test_arguments_that_are_wrong_are_told_as_such() -> None:
    with pytest.raises(ArgumentError, match="minimize missing 1 required positional argument: 'wrt'"):
        tidu.minimize(ROSENBROCK)  # type: ignore[call-arg]
