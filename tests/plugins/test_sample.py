"""samples/plugin: a package of primitives, built and installed by pip, and what commands do with it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.docs.blocks import agrees, blocks, run
from tests.plugins.packages import SAMPLE, environment, install, message, tidu
from tests.programs import needs
from tests.tiers import few

LOSS = SAMPLE / "loss.json"
X = np.array([1.0, -2.0, 3.0])


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return install(SAMPLE, tmp_path_factory.mktemp("site"))


@pytest.fixture
def output(sample):
    def output(*args, input=b""):
        done = tidu(sample, *args, input=input)
        assert (done.returncode, done.stderr) == (0, b""), done.stderr
        return done.stdout

    return output


def loss(x):
    """Σᵢⱼ softsign(xᵢ) xⱼ."""
    return np.sum(x / (1 + np.abs(x))) * np.sum(x)


def gradient(x):
    return np.sum(x) / (1 + np.abs(x)) ** 2 + np.sum(x / (1 + np.abs(x)))


def hessian(x):
    first, second = 1 / (1 + np.abs(x)) ** 2, -2 * np.sign(x) / (1 + np.abs(x)) ** 3
    return first[:, None] + first[None, :] + np.diag(second) * np.sum(x)


def at_x(*more):
    return ("--set", f"x={X.tolist()}", *more)


@pytest.mark.check
def test_values_and_derivatives(output):
    assert json.loads(output("eval", LOSS, *at_x()))["y"] == pytest.approx(loss(X), rel=1e-15)
    assert json.loads(output("grad", LOSS, "--wrt", "x", *at_x()))["x@-1"] == pytest.approx(gradient(X), rel=1e-14)
    assert np.array(json.loads(output("hessian", LOSS, "--wrt", "x", *at_x()))["y/x/x"]) == pytest.approx(hessian(X), rel=1e-14)


@pytest.mark.check
def test_third_order_agrees_with_the_hessian_at_two_points(output):
    once = output("linearize", LOSS, "--wrt", "x")
    document = output("materialize", input=output("linearize", "--wrt", "x", input=output("linearize", "--wrt", "x", input=once)))
    e = {1: [1.0, 0.5, 0.0], 2: [0.0, 1.0, -1.0], 3: [0.25, 0.0, 1.0]}
    seeds = [word for p, v in e.items() for word in ("--set", f"x@{p}={v}")]
    third = json.loads(output("eval", *at_x(*seeds), input=document))["y@1@2@3"]
    u, v, w = map(np.array, e.values())
    quotient = u @ (hessian(X + 1e-5 * w) - hessian(X - 1e-5 * w)) @ v / 2e-5
    assert third == pytest.approx(quotient, rel=1e-9)


@pytest.mark.check
def test_a_transpose_and_its_transpose_and_a_matrix(output):
    linear = output("linearize", LOSS, "--wrt", "x")
    twice = output("transpose", input=output("transpose", input=linear))
    matrix = output("matrix", input=linear)
    tangent = json.loads(output("eval", *at_x("--set", "x@1=[1,2,3]"), input=output("materialize", input=twice)))
    columns = json.loads(output("eval", *at_x(), input=output("materialize", input=matrix)))
    (value,) = tangent.values()
    assert value == pytest.approx(gradient(X) @ [1, 2, 3], rel=1e-14)
    assert columns["y/x"] == pytest.approx(gradient(X), rel=1e-14)


@pytest.mark.check
@pytest.mark.parametrize("dtype", few(["f16", "bf16", "f32", "f64", "c64", "c128"], 2))
def test_check_finds_the_rules_right(output, dtype):
    names = ["outer"] if dtype.startswith("c") else ["softsign", "outer"]
    assert b"closure: every rule is there" in output("check", "--ops", *names, "--dtype", dtype)
    assert b"numeric: jvp" in output("check", "--ops", *names, "--dtype", "f64")


@pytest.mark.check
@needs("dot")
def test_a_page_shows_it(output, tmp_path):
    page = tmp_path / "page.html"
    output("view", LOSS, "-o", page, *at_x())
    assert "softsign" in page.read_text()


@pytest.mark.check
def test_every_command_takes_such_a_document(output):
    assert b"closure: every rule" in output("check", "--all", LOSS)
    assert b"1 outer, 1 reduce_sum, 1 softsign" in output("info", LOSS)
    assert b'label="softsign' in output("dot", LOSS)
    packed = output("convert", LOSS, "--format", "msgpack")
    assert output("convert", "--format", "json", input=packed) == LOSS.read_bytes()
    assert b"are the same" in output("diff", LOSS, "-", input=packed)
    assert output("resolve", LOSS) == LOSS.read_bytes()
    assert output("materialize", "--inline", LOSS) == LOSS.read_bytes()


@pytest.mark.check
def test_ops_tells_where_each_comes_from(output):
    listed = {line.split()[0]: line for line in output("ops").decode().splitlines()}
    assert listed["softsign"].endswith("(from tidu-sample 0.1.0)") and "(from" not in listed["sin"]
    origins = {entry["op"]: entry["origin"] for entry in json.loads(output("ops", "--json"))}
    assert origins["outer"] == {"package": "tidu-sample", "version": "0.1.0"}
    assert origins["sin"]["package"] == "tidu"


def test_misspelt_ops_and_completion_know_of_them(sample, output):
    assert "did you mean 'softsign'" in message(tidu(sample, "ops", "softsgin"))
    document = LOSS.read_bytes().replace(b"softsign", b"sofsign")
    assert "did you mean 'softsign'" in message(tidu(sample, "check", input=document))


def test_without_the_package_the_op_is_named(tmp_path):
    failure = message(tidu(tmp_path, "grad", LOSS, "--wrt", "x"))
    assert "graph 'loss', node 0 (softsign): unknown op 'softsign'" in failure


@pytest.mark.check
def test_the_readme_shows_what_is_printed(sample):
    (block,) = [block for block in blocks((SAMPLE / "README.md").read_text()) if block.language == "console"]
    for step in block.steps():
        status, printed = run(step.command, SAMPLE.parents[1], environment(sample))
        assert status == 0 and agrees(step.output, printed), "\n".join(printed)
