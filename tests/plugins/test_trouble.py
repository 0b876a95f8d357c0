"""Packages that clash or are broken: they are named where their ops are used, and stop nobody else."""

from __future__ import annotations

import json

import pytest

from tests.cli.running import document, graph, process
from tests.plugins.packages import GOOD, environment, message, tidu, write

IMPORTS = """
from tidu_cli.rules.families import changed, linear_jvp, linear_transpose
from tidu_cli.rules.terms import op
"""
LINEAR = "jvp=linear_jvp('mine'), transpose=linear_transpose(lambda attrs, ct, type_: op('mine')(ct))"
USES_SIN = document(graph([("sin", 0)], outputs=[("y", 1)]))


def using(op, *operands):
    return document(graph([(op, *(operands or (0,)))], outputs=[("y", 1)]))


def works(folder, *args, input=b""):
    done = tidu(folder, *args, input=input)
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return done.stdout.decode()


def listed(folder, op):
    """The lines of `tidu ops` on an op."""
    return [line for line in tidu(folder, "ops").stdout.decode().splitlines() if line.split()[0] == op]


@pytest.mark.check
def test_two_packages_of_one_op_clash(tmp_path):
    for name in ("ann", "bob"):
        write(tmp_path, name, {"same": f"{name}:P"}, GOOD.format(op="same"))
    failure = "op 'same': packages ann 1.0 and bob 1.0 both bring one of this name; name one of them only"
    assert message(tidu(tmp_path, "check", input=using("same"))).endswith(f"node 0 (same): {failure}")
    assert message(tidu(tmp_path, "ops", "same")) == f"tidu ops: error: {failure}"
    done = tidu(tmp_path, "ops")
    assert done.returncode == 1 and done.stderr.decode() == f"tidu ops: error: {failure}\n"
    assert len(listed(tmp_path, "same")) == 2 and listed(tmp_path, "sin")
    works(tmp_path, "check", input=USES_SIN)
    works(tmp_path, "ops", "sin")


@pytest.mark.check
def test_a_package_and_tidu_clash_where_the_op_is_used(tmp_path):
    write(tmp_path, "ann", {"mul": "ann:P", "mine": "ann:P"}, GOOD.format(op="mine"))
    failure = "op 'mul': package ann 1.0 brings one, but tidu has one of this name; uninstall the former"
    assert message(tidu(tmp_path, "check", input=using("mul", 0, 0))).endswith(f"graph 'f', node 0 (mul): {failure}")
    assert message(tidu(tmp_path, "ops", "mul")) == f"tidu ops: error: {failure}"
    assert tidu(tmp_path, "ops").returncode == 1
    works(tmp_path, "check", input=USES_SIN)
    works(tmp_path, "check", input=using("mine"))


def test_an_op_of_the_document_that_uses_a_clashing_one(tmp_path):
    write(tmp_path, "ann", {"mul": "ann:P"})
    definition = {
        "inputs": [{"key": "x", "type": "f64[]"}],
        "outputs": [{"key": "y", "type": "f64[]"}],
        "forward": {"inputs": [{"key": "x"}], "nodes": [{"op": "mul", "inputs": [0, 0]}], "outputs": [{"key": "y", "value": 1}]},
    }
    own = document(graph([("square_of", 0)], outputs=[("y", 1)]), ops={"square_of": definition})
    assert "its forward, node 0: op 'mul': package ann 1.0 brings one" in message(tidu(tmp_path, "check", input=own))


@pytest.mark.check
@pytest.mark.parametrize(
    ("value", "module", "reason"),
    [
        ("ann:P", "import no_such_module", "ann:P: ModuleNotFoundError: No module named 'no_such_module'"),
        ("ann:P", "P = 1 / 0", "ann:P: ZeroDivisionError: division by zero"),
        ("ann:P", "syntax error", "ann:P: SyntaxError: "),
        ("ann:P", "raise SystemExit('gone')", "ann:P: SystemExit: gone"),
        ("ann:P", "raise Exception('two\\nlines')", "ann:P: Exception: two lines"),
        ("ann:Q", GOOD.format(op="mine"), "ann:Q: AttributeError: "),
        ("nobody:P", "", "nobody:P: ModuleNotFoundError: "),
        ("ann", GOOD.format(op="mine"), "ann is of type module, not a Primitive"),
        ("ann:P", "P = dict", "ann:P is of type type, not a Primitive"),
        ("ann:P", GOOD.format(op="other"), "ann:P is a Primitive of another name, 'other'"),
        ("!!", "", "!!: "),
    ],
)
def test_a_broken_package_names_itself(tmp_path, value, module, reason):
    write(tmp_path, "ann", {"mine": value}, module)
    failure = message(tidu(tmp_path, "check", input=using("mine")))
    assert f"graph 'f', node 0 (mine): op 'mine': package ann 1.0 is broken ({reason}" in failure
    assert failure.endswith("; repair or uninstall it")


@pytest.mark.check
@pytest.mark.parametrize(
    ("value", "module", "reason"),
    [
        ("ann:P", "import no_such_module", "ann:P: ModuleNotFoundError: No module named 'no_such_module'"),
        pytest.param("ann:P", GOOD.format(op="other"), "ann:P is a Primitive of another name, 'other'", marks=pytest.mark.campaign),
    ],
)
def test_ops_shows_a_broken_package_and_other_commands_do_without(tmp_path, value, module, reason):
    write(tmp_path, "ann", {"mine": value}, module)
    assert message(tidu(tmp_path, "ops", "mine")).startswith(f"tidu ops: error: op 'mine': package ann 1.0 is broken ({reason}")
    assert works(tmp_path, "ops").splitlines()[-1].startswith("mine") and "broken: " in listed(tmp_path, "mine")[0]
    (entry,) = [entry for entry in json.loads(works(tmp_path, "ops", "--json")) if entry["op"] == "mine"]
    assert entry["origin"] == {"package": "ann", "version": "1.0"} and reason in entry["broken"]
    works(tmp_path, "grad", "--wrt", "x", input=USES_SIN)


@pytest.mark.check
def test_a_package_is_not_imported_where_its_ops_do_not_occur(tmp_path):
    mark = tmp_path / "imported"
    write(tmp_path, "ann", {"mine": "ann:P"}, f"open({str(mark)!r}, 'w')\n{GOOD.format(op='mine')}")
    works(tmp_path, "grad", "--wrt", "x", input=USES_SIN)
    works(tmp_path, "ops", "sin")
    assert "did you mean 'mine'" in message(tidu(tmp_path, "check", input=using("minee")))
    assert not mark.exists()
    works(tmp_path, "check", input=using("mine"))
    assert mark.exists()


def test_what_a_package_prints_is_no_part_of_the_document(tmp_path):
    write(tmp_path, "ann", {"mine": "ann:P"}, f"print('hello')\n{GOOD.format(op='mine')}")
    done = tidu(tmp_path, "convert", input=using("mine"))
    assert done.returncode == 0 and done.stderr == b"hello\n" and json.loads(done.stdout)["tidu"] == 1


@pytest.mark.check
@pytest.mark.parametrize(
    ("change", "command", "says"),
    [
        ("types=lambda attrs, operands: 1 / 0", ["check"], "its type rule in package ann 1.0 is broken (ZeroDivisionError: "),
        ("jvp=lambda node: 1 / 0", ["grad", "--wrt", "x"], "its JVP rule in package ann 1.0 is broken (ZeroDivisionError"),
        ("jvp=lambda node: []", ["grad", "--wrt", "x"], "the rule of mine gives 0 tangents where 1 are due"),
        (f"{LINEAR}, batch=lambda node: 1 / 0", ["jacobian", "--wrt", "x"], "its batch rule in package ann 1.0 is broken"),
        (f"{LINEAR}, batch=None", ["jacobian", "--wrt", "x"], "missing batch rule for mine"),
        ("jvp=None", ["grad", "--wrt", "x"], "missing JVP rule for mine"),
        ("kernel=lambda *_: 1 / 0", ["eval", "--set", "x=1"], "its evaluation in package ann 1.0 is broken (ZeroDivisionError"),
        ("kernel=lambda *_: lambda x: 1 / 0", ["eval", "--set", "x=1"], "its evaluation in package ann 1.0 is broken (Zero"),
        ("kernel=lambda *_: float", ["eval", "--set", "x=1"], "is broken (it gives float where f64[] is due)"),
        ("kernel=lambda *_: numpy.float32", ["eval", "--set", "x=1"], "is broken (it gives f32[] where f64[] is due)"),
        ("kernel=lambda *_: lambda x: x[None]", ["eval", "--set", "x=1"], "is broken (it gives f64[1] where f64[] is due)"),
        ("flops=lambda *_: 1 / 0", ["info"], "its rule of flops in package ann 1.0 is broken (ZeroDivisionError"),
    ],
)  # fmt: skip
def test_a_broken_rule_names_the_package(tmp_path, change, command, says):
    module = GOOD.format(op="mine").replace("lambda t, x, y: t,", "lambda t, x, y: t * x,")
    write(tmp_path, "ann", {"mine": "ann:P"}, f"{module}\n{IMPORTS}\nP = changed(P, {change})")
    failure = message(tidu(tmp_path, *command, input=using("mine")))
    assert says in failure and "internal error" not in failure
    assert "mine" in failure


def test_metadata_that_cannot_be_read(tmp_path):
    write(tmp_path, "ann", {"mine": "ann:P"}, GOOD.format(op="mine"), metadata=False)
    (write(tmp_path, "bob", {}) / "bob-1.0.dist-info" / "entry_points.txt").write_bytes(b"\xff\xfe[tidu.primitives]\n")
    (write(tmp_path, "cat", {}) / "cat-1.0.dist-info" / "entry_points.txt").write_text("[tidu.primitives]\nno equals sign\n")
    works(tmp_path, "check", input=USES_SIN)
    works(tmp_path, "check", input=using("mine"))
    assert listed(tmp_path, "mine")[0].endswith("(from ann)")


def test_of_two_versions_the_first_on_the_path_counts(tmp_path):
    new = write(tmp_path / "new", "ann", {"mine": "ann:P"}, GOOD.format(op="mine"), version="2.0")
    old = write(tmp_path / "old", "Ann", {"mine": "ann:P", "gone": "ann:P"}, "syntax error")
    environ = environment(new, old)
    done = process("ops", "mine", env=environ)
    assert done.returncode == 0 and b"from ann 2.0" in done.stdout
    assert b"unknown op 'gone'" in process("ops", "gone", env=environ).stderr


def test_what_a_document_defines_goes_before_what_is_installed(tmp_path):
    """A document means the same wherever it is read."""
    write(tmp_path, "ann", {"mine": "ann:P"}, "syntax error")
    definition = {
        "inputs": [{"key": "x", "type": "f64[]"}],
        "outputs": [{"key": "y", "type": "f64[]"}],
        "forward": {"inputs": [{"key": "x"}], "nodes": [{"op": "neg", "inputs": [0]}], "outputs": [{"key": "y", "value": 1}]},
    }
    own = document(graph([("mine", 0)], outputs=[("y", 1)]), ops={"mine": definition})
    assert json.loads(works(tmp_path, "eval", "--set", "x=2", input=own)) == {"y": -2.0}
    library = tmp_path / "lib.json"
    library.write_bytes(json.dumps({"tidu": 1, "ops": {"mine": definition}}).encode())
    assert "from $" in works(tmp_path, "ops", "--ops", library, "mine").replace(str(tmp_path), "$")


@pytest.mark.check
@pytest.mark.parametrize(
    ("jvp", "words"),
    [
        ("lambda n: [n.tangents[0] * n.tangents[0]]", "emits mul, which is not linear in its active inputs 0, 1"),
        ("lambda n: [n.tangents[0] + n.operands[0]]", "emits add, whose input 1 is added to what is linear in input 0"),
        ("lambda n: [op('sin')(n.tangents[0])]", "emits sin, which is not linear in its active input 0"),
        ("lambda n: [n.tangents[0] + 1.0]", "emits add, whose input 1 is added to what is linear in input 0"),
    ],
)
def test_a_rule_that_is_not_linear_is_stopped_when_it_is_recorded(tmp_path, jvp, words):
    module = IMPORTS + GOOD.format(op="mine").lstrip() + f"P = changed(P, jvp={jvp})\n"
    write(tmp_path, "ann", {"mine": "ann:P"}, module)
    failure = message(tidu(tmp_path, "linearize", "--wrt", "x", input=using("mine")))
    assert f"node 0 (mine): the JVP rule of mine {words}" in failure
    assert f"the JVP rule of mine {words}" in message(tidu(tmp_path, "check", "--ops", "mine"))


def test_a_transpose_rule_that_is_not_linear(tmp_path):
    rule = "linear_transpose(lambda attrs, ct, type_: ct * ct)"
    module = IMPORTS + GOOD.format(op="mine").lstrip() + f"P = changed(P, jvp=linear_jvp('mine'), transpose={rule})\n"
    write(tmp_path, "ann", {"mine": "ann:P"}, module)
    linear = tidu(tmp_path, "linearize", "--wrt", "x", input=using("mine")).stdout
    failure = message(tidu(tmp_path, "transpose", input=linear))
    assert "the transpose rule of mine emits mul, which is not linear in its active inputs 0, 1" in failure


@pytest.mark.check
@pytest.mark.parametrize("kernel", ["lambda x: x + 1", "lambda x: x + np.full(results[0].shape, 1.0)"])
def test_a_package_s_kernel_is_given_the_shapes_that_it_was_told(tmp_path, kernel):
    """Also where many scalars go through at once."""
    write(tmp_path, "ann", {"mine": "ann:P"}, GOOD.format(op="mine").replace("results: lambda x: x", f"results: {kernel}"))
    for more in ([], ["--chunk", "2"], ["--chunk", "1"]):
        text = works(tmp_path, "eval", "--set", "x=1,2,3", "--batch", "x=0", *more, input=using("mine"))
        assert json.loads(text) == {"y": [2, 3, 4]}


def test_chunks_of_a_package_s_other_version_are_not_gone_on_from(tmp_path):
    """Its op is the identity, and fails at 2 in version 1.0."""
    (tmp_path / "f.json").write_bytes(using("mine"))
    out = tmp_path / "y.npz"
    command = ["eval", tmp_path / "f.json", "--set", "x=1,2,3", "--batch", "x=0", "--chunk", "1", "-o", out]
    module = GOOD.format(op="mine")
    failing = module.replace("lambda x: x\n", "lambda x: x[:, None] if (x == 2).any() else x\n")
    write(tmp_path / "one", "ann", {"mine": "ann:P"}, failing)
    write(tmp_path / "two", "ann", {"mine": "ann:P"}, module, version="2.0")
    assert message(tidu(tmp_path / "one", *command)).endswith("what is done is kept, go on with --resume")
    says = f"{out}.partial: holds what another run has done: the package of op 'mine' differs; remove {out}.partial, or choose"
    assert says in message(tidu(tmp_path / "two", *command, "--resume"))
