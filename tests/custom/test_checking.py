"""tidu check judges users' rules: right ones pass, wrong ones are named, with the inputs where they fail."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import invoke, succeed
from tests.custom.making import SINE, body, definition, encoded, unary, using

TWO = {"x": "f64[...]", "w": "f64[...]"}
PRODUCT = body("x w", [("mul", 0, 1)], {"y": 2})


def product(**more):
    return definition(TWO, {"y": "f64[...]"}, PRODUCT, **more)


RIGHT = {
    "forward": product(),
    "jvp": product(jvp=body("x w x@1 w@1", [("mul", 0, 3), ("mul", 1, 2), ("add", 4, 5)], {"y@1": 6})),
    "backward": product(backward=body("x w y@-1", [("mul", 1, 2), ("mul", 0, 2)], {"x@-1": 3, "w@-1": 4})),
    "transpose": product(transpose=body("w y@-1", [("mul", 0, 1)], {"x@-1": 2})),
    "reading the output": unary(body("x", [("exp", 0)], {"y": 1}), jvp=body("y x@1", [("mul", 0, 1)], {"y@1": 2})),
}
WRONG = {
    "jvp": (product(jvp=body("x w x@1 w@1", [("mul", 0, 3), ("mul", 0, 2), ("add", 4, 5)], {"y@1": 6})), "jvp", "by x, at x = "),
    "jvp of w": (product(jvp=body("x w x@1 w@1", [("mul", 1, 2)], {"y@1": 4})), "jvp", "by w, at x = "),
    "backward": (
        product(backward=body("x w y@-1", [("mul", 1, 2), ("mul", 1, 2)], {"x@-1": 3, "w@-1": 4})),
        "jvp",
        "by w, at x = ",
    ),
    "backward, null": (product(backward=body("x w y@-1", [("mul", 1, 2)], {"x@-1": 3, "w@-1": None})), "jvp", "by w, at x = "),
    "transpose": (product(transpose=body("w y@-1", [("neg", 1), ("mul", 0, 2)], {"x@-1": 3})), "adjoint", ", at x = "),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_rules_pass_in_documents_and_libraries(name):
    types = ["f64[3]"] * len(RIGHT[name]["inputs"])
    report = json.loads(succeed("check", "--all", "--json", input=encoded(using({"o": RIGHT[name]}, "o", *types))))["stdin"]
    assert report["ok"] and report["static"] == []
    (verdicts,) = report["ops"].values()
    assert set(verdicts) >= {"jvp", "adjoint", "linear", "second", "symmetry"} and all(v["ok"] for v in verdicts.values())
    library = json.loads(succeed("check", "--all", "--json", input=encoded({"tidu": 1, "ops": {"o": RIGHT[name]}})))["stdin"]
    assert library["ok"] and len(library["ops"]) == 2  # of shape [2,3] and []


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_are_named(name):
    op, law, where = WRONG[name]
    data = encoded(using({"o": op}, "o", "f64[2]", "f64[2]"))
    assert invoke("check", input=data).exit_code == 0  # nothing is to be seen without numbers
    result = invoke("check", "--numeric", input=data)
    kind = name.split(",")[0].split()[0]
    assert result.exit_code == 1
    assert f"op o(f64[2], f64[2]): its {kind} does not fit its forward: {law} has relative error" in result.stderr
    assert where in result.stderr and result.stderr.count("\n") == 1
    assert "numeric: op o(f64[2], f64[2]): " in result.stdout


def test_ops_within_ops_are_judged_too():
    ops = {"o": WRONG["jvp"][0], "p": unary(body("x", [("o", 0, 0)], {"y": 1}))}
    result = invoke("check", "--numeric", input=encoded(using(ops, "p", "f64[2]")))
    assert result.exit_code == 1 and "op o(f64[2], f64[2]): its jvp does not fit" in result.stdout + result.stderr


def test_notes():
    ops = {"o": unary(body("x", [("cos", 0), ("sin", 0)], {"y": 2})), "p": unary(SINE)}
    text = succeed("check", input=encoded(using(ops, "o", "f64[2]"))).decode()
    assert "note: op 'p': no graph uses it" in text
    assert "note: op o(f64[2]): its forward, node 0 (cos): no output depends on it" in text


def test_variables_of_libraries_are_tried():
    ops = {
        "t": unary(type_="T[...]"),
        "n": definition({"x": "f64[n,m]", "w": "f64[m]"}, {"y": "f64[n]"}, body(
            "x w", [("dot_general", 0, 1, {"dimension_numbers": [[[1], [0]], [[], []]]})], {"y": 2})),
        "k": unary(body("x", [("integer_pow", 0, {"y": {"attr": "k"}})], {"y": 1}), attrs={"k": None}),
    }  # fmt: skip
    report = json.loads(succeed("check", "--all", "--json", input=encoded({"tidu": 1, "ops": ops})))["stdin"]
    assert set(report["ops"]) == {"t(f64[2,3])", "t(c128[2,3])", "t(f64[])", "t(c128[])", "n(f64[3,2], f64[2])"}
    assert [f["text"] for f in report["static"]] == [
        "op 'k': not tried, since an attr has no default; check a document that uses it"
    ]


def test_a_library_that_fits_nothing():
    ops = {"o": unary(body("x", [("reduce_sum", 0, {"axes": [9]})], {"y": 1}))}
    result = invoke("check", input=encoded({"tidu": 1, "ops": ops}))
    assert result.exit_code == 1 and "op o(f64[2,3]): its forward: node 0 (reduce_sum): " in result.stderr
