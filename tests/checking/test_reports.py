"""Reports and the command: what is said, in text and in JSON, and when the status is 1."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from tests.checking.sets import applied, changed, including, sample
from tests.checking.test_static import linear_document
from tests.cli.running import ROOT, invoke, succeed
from tests.cli.running import F as SAMPLE
from tidu_cli.checking.report import PARTS, check_document, check_primitive
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import INEXACT
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.families import linear_transpose, unary

WRONG = linear_document((False, True), key="x@2", output="y@2")


def encoded(document: Document) -> bytes:
    return format_document(document, "json")


def data_of(*args: str, input: bytes = b"", status: int = 0) -> Any:
    result = invoke(*args, "--json", input=input)
    assert result.exit_code == status
    return json.loads(result.stdout)


def test_a_report_has_the_parts_asked_for() -> None:
    document = sample("f")
    assert check_document(document, BUILTIN, ["static"]).to_data() == {"ok": True, "static": []}
    assert set(check_document(document, BUILTIN, PARTS).to_data()) == {"ok", "static", "closure", "numeric"}
    assert list(check_document(document, BUILTIN, []).lines()) == []


def test_a_report_of_what_is_wrong() -> None:
    report = check_document(WRONG, BUILTIN, ["static"])
    assert len(report.failures) == 2
    assert report.to_data() == {"ok": False, "static": [{"serious": True, "text": text} for text in report.failures]}
    assert list(report.lines()) == [f"static: error: {text}" for text in report.failures]


def test_a_report_of_a_missing_rule() -> None:
    primitives = changed("mul", transpose=None)
    report = check_primitive(primitives["mul"], primitives, ["closure"], dtypes=[])
    assert report.failures == report.closure.missing != []
    assert report.to_data()["closure"]["missing"] == report.failures
    assert all(line.startswith("closure: error: missing transpose rule for mul (") for line in report.lines())


def test_a_report_of_a_wrong_derivative() -> None:
    primitives = changed("neg", transpose=linear_transpose(lambda attrs, ct, type_: ct))
    report = check_primitive(primitives["neg"], primitives, ["numeric"], dtypes=["f64"])
    assert report.failures[0] == "numeric: adjoint has relative error 2e+00, above 1e-11"
    assert [text.split()[1] for text in report.failures] == ["adjoint", "integers"]  # neg takes integers, too
    adjoint = report.to_data()["numeric"]["adjoint"]
    assert adjoint["ok"] is False and adjoint["tolerance"] == 1e-11 and 1 < adjoint["error"] <= 2
    (line,) = report.lines()
    assert "adjoint 2e+00 (above 1e-11)" in line


def test_rules_are_to_emit_what_is_linear() -> None:
    """A JVP that emits a node which is not linear: two tangents multiplied."""
    wrong = unary("wrong", INEXACT, tangent=lambda t, x, y: t * t, kernel=lambda *_: lambda x: x, formula="", summary="")
    primitives = including(wrong)
    report = check_primitive(wrong, primitives, ["closure"], dtypes=[])
    assert any("the JVP rule of wrong emits mul, which is not linear in its active inputs 0, 1" in t for t in report.failures)
    assert check_primitive(BUILTIN["mul"], BUILTIN, ["static", "closure"], dtypes=[]).failures == []


@pytest.mark.parametrize(("op", "results"), [("neg", 1), ("top_k", 2), ("split", 2)])
def test_the_number_of_results_is_that_of_the_types(op: str, results: int) -> None:
    """It is all that is known where a detached reference hides operand types, so no other check sees that it is wrong."""
    wrong = changed(op, n_results=lambda attrs, n_operands: 7)
    report = check_primitive(wrong[op], wrong, ["static"], dtypes=[])
    assert report.failures[0].startswith(f"n_results is 7, but the types of {op}(")
    assert report.failures[0].endswith(f") give {results}")
    assert next(report.lines()) == f"static: error: {report.failures[0]}"


def test_documents_are_checked_statically_by_default() -> None:
    assert succeed("check", SAMPLE) == f"{SAMPLE}: valid json, 1 graph, 2 nodes\n".encode()
    assert data_of("check", SAMPLE) == {SAMPLE: {"ok": True, "static": []}}
    assert set(data_of("check", SAMPLE, "--all")[SAMPLE]) == {"ok", "static", "closure", "numeric"}
    assert set(data_of("check", SAMPLE, "--closure", "--numeric")[SAMPLE]) == {"ok", "closure", "numeric"}


def test_what_is_wrong_is_named_and_counted() -> None:
    misnamed = encoded(linear_document((False, True), key="x@2", output="y@2"))
    result = invoke("check", input=misnamed)
    assert result.exit_code == 1
    first = "graph 'f@1': 'x@2' is not a tangent or cotangent of pass 1, in a linear graph"
    assert result.stderr == f"tidu check: error: stdin: {first} (and 1 more)\n"
    assert f"  static: error: {first}\n" in result.stdout
    assert data_of("check", input=misnamed, status=1)["stdin"]["ok"] is False


def test_notes_are_no_errors() -> None:
    dead = b'{"tidu": 1, "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": [], "outputs": []}]}'
    assert b"static: note: graph 'f': no output depends on input 'x'" in succeed("check", input=dead)


def test_primitives_are_checked_in_every_way_by_default() -> None:
    by_op = data_of("check", "--ops", "mul", "floor")
    assert list(by_op) == ["mul", "floor"]
    assert set(by_op["mul"]) == {"ok", "static", "closure", "numeric"}
    assert set(data_of("check", "--ops", "mul", "--static")["mul"]) == {"ok", "static"}
    assert invoke("check", "--ops", "mull").exit_code == 1


@pytest.mark.campaign
def test_the_whole_set_passes() -> None:
    """The numeric part of each primitive is looked at where that part is tested."""
    by_op = data_of("check", "--ops", "--static", "--closure")
    assert list(by_op) == [primitive.name for primitive in BUILTIN]
    assert all(part["ok"] for part in by_op.values())
    assert all(part["closure"]["reached"] > 0 and part["static"] == [] for part in by_op.values())


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64", "c64", "c128"])
def test_dtypes_of_primitives(dtype: str) -> None:
    numeric = data_of("check", "--ops", "mul", "--numeric", "--dtype", dtype)["mul"]["numeric"]
    tolerances = {"f16": 5e-2, "bf16": 0.3, "f32": 1e-4, "c64": 1e-4}
    assert numeric["adjoint"]["tolerance"] == tolerances.get(dtype, 1e-11)
    assert (numeric["jvp"]["error"] is None) == (dtype in ("f16", "bf16"))  # where differences say nothing


def test_several_dtypes_give_the_worst() -> None:
    def jvp_error(*dtypes: str) -> float:
        chosen = [word for dtype in dtypes for word in ("--dtype", dtype)]
        return float(data_of("check", "--ops", "sin", "--numeric", *chosen)["sin"]["numeric"]["jvp"]["error"])

    alone = jvp_error("f64"), jvp_error("c128")
    assert jvp_error("f64", "c128") == jvp_error() == max(alone)


def test_the_seed_of_random_inputs() -> None:
    path = str(ROOT / "samples" / "rosenbrock.json")

    def numeric(*args: str) -> Any:
        return data_of("check", path, "--numeric", *args)[path]["numeric"]

    assert numeric() == numeric("--seed", "0") != numeric("--seed", "1")
    assert invoke("check", path, "--seed", "-1").exit_code == 2


def test_inputs_say_where(tmp_path: Any) -> None:
    """log has no value at -1, and so no verdict; the values of other inputs are drawn."""
    values = tmp_path / "values.npz"
    np.savez(values, x0=np.array(-1.0), unknown=np.array(1.0))
    document = encoded(applied("log", "f64[]"))
    numeric = data_of("check", "--numeric", "--inputs", str(values), input=document)["stdin"]["numeric"]
    assert {law["error"] for law in numeric.values()} == {None}
    np.savez(values, x0=np.array(0.5))
    numeric = data_of("check", "--numeric", "--inputs", str(values), input=document)["stdin"]["numeric"]
    assert None not in {law["error"] for law in numeric.values()}
    np.savez(values, x0=np.array([0.5]))
    result = invoke("check", "--numeric", "--inputs", str(values), input=document)
    assert result.exit_code == 1 and "x0: expected f64[]" in result.stderr


def test_given_values_reach_the_check() -> None:
    report = check_document(applied("log", "f64[]"), BUILTIN, ["numeric"], given={Key("x0"): np.array(-1.0)})
    assert [v.error for v in report.numeric or []] == [None] * 5
    assert list(report.lines()) == [
        "numeric: jvp no verdict, adjoint no verdict, linear no verdict, second no verdict, symmetry no verdict"
    ]
