"""How commands behave as programs: files, pipes, terminals, signals, names, size, and what they import."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
import sys
import time

import pytest

from tests import forking
from tests.cli.running import ENVIRONMENT, ROOT, F, document, graph, invoke, process, shell, succeed
from tests.tiers import campaign
from tests.waiting import LIMIT, until
from tidu_cli.cli.main import COMMANDS, cli, module_of

LINEARIZE = ("linearize", F, "--wrt", "x")


# --- files


def test_out_is_written_with_the_permissions_of_a_new_file(tmp_path):
    out = tmp_path / "out.json"
    assert succeed(*LINEARIZE, "-o", out) == b""
    assert out.read_bytes() == succeed(*LINEARIZE)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(out.stat().st_mode) == 0o666 & ~umask


def test_out_keeps_the_permissions_of_the_file_it_replaces(tmp_path):
    out = tmp_path / "out.json"
    out.write_text("{} before")
    out.chmod(0o640)
    succeed(*LINEARIZE, "-o", out)
    assert stat.S_IMODE(out.stat().st_mode) == 0o640


def test_out_is_replaced_at_once(tmp_path):
    out = tmp_path / "out.json"
    out.write_text("{} before")
    with out.open() as reader:
        succeed(*LINEARIZE, "-o", out)
        assert reader.read() == "{} before"
    assert os.listdir(tmp_path) == ["out.json"]


def test_out_that_is_a_link_stays_one(tmp_path):
    target = tmp_path / "target.json"
    target.write_text("{} before")
    link = tmp_path / "link.json"
    link.symlink_to("target.json")
    succeed(*LINEARIZE, "-o", link)
    assert link.is_symlink() and target.read_bytes() == succeed(*LINEARIZE)


def test_out_may_be_a_device_or_standard_output():
    assert succeed(*LINEARIZE, "-o", "/dev/null") == b""
    assert succeed(*LINEARIZE, "-o", "-") == succeed(*LINEARIZE)


@pytest.mark.parametrize("command", ["linearize --wrt z", "transpose", "eval --set x=three", "materialize --output z", "resolve -"])
def test_a_failure_leaves_out_untouched_and_nothing_beside_it(tmp_path, command):
    out = tmp_path / "out.json"
    out.write_text("{} before")
    name, *rest = command.split()
    broken = document(graph([("nope", 0)])) if name == "resolve" else document(graph(outputs=[("y", 0)]))
    assert invoke(name, *rest, "-o", out, input=broken).exit_code == 1
    assert (out.read_text(), os.listdir(tmp_path)) == ("{} before", ["out.json"])


def test_the_suffix_says_the_format_and_what_contradicts_it_is_wrong_usage(tmp_path):
    as_json, as_msgpack = tmp_path / "a.JSON", tmp_path / "a.msgpack"
    for order in (["-o", as_json, "--format", "msgpack"], ["--format", "msgpack", "-o", as_json]):
        result = invoke("convert", F, *order)
        assert result.exit_code == 2 and "ends in '.JSON', and --format says msgpack; leave out one of them" in result.stderr
    assert os.listdir(tmp_path) == []
    succeed("convert", F, "-o", as_json)
    succeed("convert", F, "-o", as_msgpack, "--format", "msgpack")
    assert json.loads(as_json.read_bytes())["tidu"] == 1
    assert as_msgpack.read_bytes()[0] == 0x82
    for other in (tmp_path / "without", tmp_path / ".hidden"):
        succeed("convert", as_msgpack, "-o", other)
        assert other.read_bytes() == as_msgpack.read_bytes(), "what came in"
        succeed("convert", as_msgpack, "-o", other, "--format", "json")
        assert other.read_bytes() == (ROOT / "samples" / "f.json").read_bytes()


WRITES = {
    "build x -i x:f64[]": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "resolve -": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "compose -": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "linearize --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "transpose": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "materialize": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "matrix": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "convert": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "rename": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c or .py, or give --format",
    "eval": ".json, .msgpack, .csv, .txt, .npy, .npz, .mtx or .zarr, or give --format",
    "grad --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c, .py, .csv, .txt, .npy, .npz or .mtx, or give --format",
    "jvp --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c, .py, .csv, .txt, .npy, .npz or .mtx, or give --format",
    "vjp --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c, .py, .csv, .txt, .npy, .npz or .mtx, or give --format",
    "hvp --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c, .py, .csv, .txt, .npy, .npz or .mtx, or give --format",
    "jacobian --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c, .py, .csv, .txt, .npy, .npz or .mtx, or give --format",
    "hessian --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c, .py, .csv, .txt, .npy, .npz or .mtx, or give --format",
    "derivative --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c, .py, .csv, .txt, .npy, .npz or .mtx, or give --format",
    "step --wrt x": ".json, .msgpack, .onnx, .mlir, .mlirbc, .c, .py or .npz, or give --format",
    "sparsity --wrt x": ".json, .npz, .mtx, .svg or .png, or give --format",
    "minimize --wrt x": ".json, .msgpack or .npz, or give --format",
    "dot": ".dot, .gv, .svg, .png or .pdf, or give --format",
    "view": ".html",
    "schema": ".json",
}


def test_these_commands_have_the_option():
    having = [name for name in COMMANDS if any("-o" in p.opts for p in cli.get_command(None, name).params)]
    assert sorted(having) == sorted(command.partition(" ")[0] for command in WRITES)


@pytest.mark.parametrize("command", WRITES)
def test_another_suffix_is_wrong_usage_and_nothing_is_read_or_written(tmp_path, command):
    """The input would be an error, too."""
    out = tmp_path / "f.rb"
    out.write_text("before")
    result = invoke(*command.split(), "-o", out, input=b"broken")
    assert result.stderr.splitlines()[-1] == (
        f"Error: Invalid value for '-o': '{out}' ends in '.rb', which is not a format of the result; end it in {WRITES[command]}"
    )
    assert (result.exit_code, out.read_text(), os.listdir(tmp_path)) == (2, "before", ["f.rb"])


@pytest.mark.parametrize(("command", "suffix"), [("convert", ".npz"), ("eval", ".svg"), ("dot", ".json"), ("view", ".svg")])
def test_the_suffix_of_another_command_s_format_is_wrong_usage_even_with_format(tmp_path, command, suffix):
    option = {"convert": ["--format", "json"], "eval": ["--format", "json"], "dot": ["--format", "dot"]}.get(command, [])
    result = invoke(command, F, "-o", tmp_path / f"f{suffix}", *option)
    assert result.exit_code == 2 and f"ends in '{suffix}', which is not a format of the result; end it in ." in result.stderr
    assert "give --format" not in result.stderr and os.listdir(tmp_path) == []


def test_with_format_any_other_suffix_will_do(tmp_path):
    out = tmp_path / "tmp.u7Gz3Kq"
    for order in (["--format", "json", "-o", out], ["-o", out, "--format", "json"]):
        succeed("convert", F, *order)
        assert out.read_bytes() == (ROOT / "samples" / "f.json").read_bytes()
        out.unlink()


def test_the_name_of_a_pipe_says_nothing(tmp_path):
    pipe = tmp_path / "pipe.f"
    os.mkfifo(pipe)
    done = shell(f"tidu convert samples/f.json -o {pipe} & cat {pipe}; wait")
    assert (done.returncode, done.stdout) == (0, (ROOT / "samples" / "f.json").read_text())


# --- pipes, terminals, signals


@pytest.mark.parametrize("line", ["tidu ops | head -n 1", "tidu --help | true", "tidu linearize $BIG --wrt x | head -c 10"])
def test_a_reader_that_leaves_is_no_error(tmp_path, line):
    big = tmp_path / "big.json"
    big.write_bytes(document(graph([("neg", k) for k in range(20_000)], outputs=[("y", 20_000)])))
    done = shell("set +o pipefail; " + line.replace("$BIG", str(big)))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("args", [("convert", F, "--format", "msgpack"), ("dot", F, "--format", "png", "-o", "-")])
def test_binary_is_not_printed_to_a_terminal(args):
    status, shown, stderr = in_terminal(*args)
    assert (status, shown) == (1, b"")
    assert re.fullmatch(rb"tidu \w+: error: \w+ is not printed to a terminal; redirect it, or give -o FILE\n", stderr)


def test_json_is_printed_to_a_terminal():
    status, shown, stderr = in_terminal("convert", F)
    assert (status, stderr) == (0, b"")
    assert shown.replace(b"\r\n", b"\n") == (ROOT / "samples" / "f.json").read_bytes()


def in_terminal(*args):
    """Status, what the terminal shows, and stderr, of a command whose stdout is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        ["tidu", *args], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, env=ENVIRONMENT
    ) as child:
        os.close(theirs)
        shown = b""
        while select.select([ours], [], [], 30)[0]:
            try:
                read = os.read(ours, 65536)
            except OSError:  # the terminal has closed
                break
            if not read:
                break
            shown += read
        stderr = child.stderr.read()
    os.close(ours)
    return child.returncode, shown, stderr


@pytest.mark.check
def test_an_interrupt_ends_it_quietly(tmp_path):
    out = tmp_path / "out.json"
    child = subprocess.Popen(
        ["tidu", "convert", "-o", out], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    child.stdin.write(b'{"tidu": 1')
    child.stdin.flush()
    # Interrupted while it waits for the rest of its input: asleep, and past its start-up.
    until(lambda: b"pipe" in _waits_in(child.pid))
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=LIMIT)
    assert (child.returncode, stdout, stderr) == (-signal.SIGINT, b"", b"")
    assert os.listdir(tmp_path) == []


def _waits_in(pid):
    try:
        with open(f"/proc/{pid}/wchan", "rb") as file:
            waits_in = file.read()
        if waits_in not in (b"", b"0"):
            return waits_in
    except OSError:
        pass
    time.sleep(1.5)  # the system does not say: long enough for the start
    return b"pipe"


def test_standard_input_by_default_and_by_dash():
    data = (ROOT / "samples" / "f.json").read_bytes()
    assert (
        succeed("linearize", "--wrt", "x", input=data) == succeed("linearize", "-", "--wrt", "x", input=data) == succeed(*LINEARIZE)
    )


@pytest.mark.parametrize(
    "args",
    [("check", "-", "-"), ("resolve", "-", F, "-"), ("eval", "--inputs", "-"), ("eval", F, "--inputs", "-", "--inputs", "-")],
)
def test_standard_input_is_read_once(args):
    result = invoke(*args, input=b"{}")
    assert result.exit_code == 2 and "can be read once only" in result.stderr


def test_a_traceback_on_demand(monkeypatch):
    done = process("linearize", F, "--wrt", "z", env={**ENVIRONMENT, "TIDU_TRACEBACK": "1"})
    assert done.returncode == 1 and b"Traceback (most recent call last)" in done.stderr and b"UnknownNameError" in done.stderr
    done = process("linearize", F, "--wrt", "z", env={**ENVIRONMENT, "TIDU_TRACEBACK": "0"})
    assert done.stderr.count(b"\n") == 1


# --- help


def test_every_command_is_in_the_help():
    listed = re.findall(r"^  (\w+)  ", succeed("--help").decode().partition("Commands:")[2], re.MULTILINE)
    assert tuple(listed) == COMMANDS
    assert "..." not in succeed("--help").decode().partition("Commands:")[2], "a summary is cut short"
    modules = {path.stem for path in (ROOT / "tidu_cli" / "cli" / "commands").glob("*.py")} - {"__init__"}
    assert modules == set(map(module_of, COMMANDS))


@pytest.mark.check
@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_shows_an_example_that_runs(command):
    text = succeed(command, "--help").decode()
    example = text.partition("\n  Example:\n")[2]
    assert f"tidu {command}" in example
    done = shell(f'cd "$(mktemp -d)"; ln -s {ROOT}/samples .\n{example}', env=ENVIRONMENT | {"PATH": forking.path()})
    assert (done.returncode, done.stderr) == (0, "") and (done.stdout or " -o " in example)


# --- names


@pytest.mark.parametrize(
    "name", ["a=b", "a b", "é日本🎉", "a@b", "@", "@@", "-x", "=", "=3=", '"', "a@@1", "line\nend", "", "\\", "$x", "x@1"]
)
def test_names_of_all_kinds_on_the_command_line(name):
    text = name.replace("@", "@@")
    data = document(graph([("mul", 0, 0)], inputs=[(name, "f64[]")], outputs=[(name + "!", 1)]))
    assert json.loads(succeed("eval", f"--set={text}=3", "--output", text + "!", input=data)) == {text + "!": 9.0}
    derivative = succeed("linearize", f"--wrt={text}", input=data)
    assert json.loads(succeed("eval", f"--set={text}=3", f"--set={text}@1=1", input=derivative)) == {f"{text}!@1": 6.0}
    gradient = succeed("transpose", input=derivative)
    assert json.loads(succeed("eval", f"--set={text}=3", f"--set={text}!@-1=1", input=gradient)) == {f"{text}@-1": 6.0}
    for command in ("dot", "info", "check", "convert"):
        succeed(command, input=gradient)


def test_a_key_that_holds_an_equals_sign_is_split_where_it_is_declared():
    data = document(graph(inputs=[("a", "f64[]"), ("a=b", "f64[]")], outputs=[("y", 0), ("z", 1)]))
    assert json.loads(succeed("eval", "--set", "a=b=3", "--set", "a=1", input=data)) == {"y": 1.0, "z": 3.0}


def test_binding_names_that_hold_an_equals_sign(tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_bytes(document(graph(outputs=[("y=1", 0)], name="a")))
    second.write_bytes(document(graph(inputs=[("u=v", "f64[]")], outputs=[("w", 0)], name="b")))
    bound = succeed("resolve", first, second, "--bind", "u=v=y=1")
    assert json.loads(succeed("eval", "--set", "x=2", input=bound)) == {"w": 2.0}


def test_arguments_that_are_not_unicode():
    done = process("linearize", F, "--wrt", b"\xff".decode("utf-8", "surrogateescape"))
    assert done.returncode == 2 and b"Traceback" not in done.stderr
    done = process("check", b"\xff.json".decode("utf-8", "surrogateescape"))
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)


def test_messages_stay_on_one_line_and_do_not_steer_the_terminal():
    result = invoke("linearize", F, "--wrt", "x\n\x1b[31m\u2028y")
    assert result.exit_code == 1 and result.stderr.endswith("'x\\n\\x1b[31m\\u2028y' (inputs: x)\n")
    assert "\x1b" not in succeed("info", input=document(graph(name="\x1b[31m"))).decode()


# --- size


def chain(n):
    return document(graph([("mul", k, k) if k % 2 else ("neg", k) for k in range(n)], outputs=[("y", n)]))


def doublings():
    def doubled(first, n=30):
        return [("add", first, first), *[("add", k, k) for k in range(1, n)]]

    one = graph(doubled(0), outputs=[("y", 30)], name="f")
    two = graph([("add", [0, 30], [0, 30]), *[("add", k, k) for k in range(29)]], inputs=[], outputs=[("z", 29)], name="g")
    return document(one, two)


GRAPHS = 1000 if campaign() else 300


def many_graphs(n):
    first = graph([("neg", 0)], outputs=[("y0", 1)], name="f0")
    rest = [graph([("neg", [g - 1, 1 if g == 1 else 0])], inputs=[], outputs=[(f"y{g}", 0)], name=f"f{g}") for g in range(1, n)]
    return document(first, *rest)


@pytest.mark.check
@pytest.mark.parametrize(
    ("form", "make", "output", "value", "derivative"),
    [
        ("json", lambda: chain(10_000 if campaign() else 3_000), "y", 1.0, None),
        ("msgpack", doublings, "z", 2.0**60, 2.0**60),
        ("json", lambda: many_graphs(GRAPHS), f"y{GRAPHS - 1}", 1.0, 1.0),
    ],
    ids=["chain", "doublings", "graphs"],
)
def test_every_command_takes_large_documents(make, output, value, derivative, form):
    primal = succeed("convert", "--format", form, input=make())
    assert json.loads(succeed("eval", "--set", "x=1", input=primal)) == {output: value}
    jvp = succeed("linearize", "--wrt", "x", input=primal)
    vjp = succeed("transpose", input=jvp)
    slope = json.loads(succeed("eval", "--set", "x=1", "--set", "x@1=1", input=jvp))[f"{output}@1"]
    assert derivative is None or slope == derivative
    assert json.loads(succeed("eval", "--set", "x=1", "--set", f"{output}@-1=1", input=vjp)) == {"x@-1": slope}
    one = succeed("materialize", input=vjp)
    if len(vjp) < 10_000_000:  # seconds each
        assert succeed("materialize", input=one) == one
        assert succeed("convert", "--format", form, input=succeed("convert", "--format", "json", input=vjp)) == vjp
    assert b"valid" in succeed("check", input=vjp)
    assert b"head" in succeed("info", input=vjp)
    assert succeed("dot", input=vjp).startswith(b"digraph")
    assert succeed("resolve", "-", input=vjp) == vjp
    detached = succeed("linearize", "--wrt", "x", "--detach", input=primal)
    assert len(detached) > 0 and invoke("resolve", input=detached).exit_code == 0


# --- what is imported


@pytest.mark.check
@pytest.mark.parametrize(
    ("args", "unwanted"),
    [
        (("--version",), "numpy pydantic msgpack ml_dtypes"),
        (("--help",), "numpy ml_dtypes"),
        (("ops",), "numpy ml_dtypes"),
        (("check", F), "numpy ml_dtypes"),
        (("info", F), "numpy ml_dtypes"),
        (("convert", F), "numpy ml_dtypes"),
        (("resolve", F), "numpy ml_dtypes"),
        (("materialize", F), "numpy ml_dtypes"),
        (("dot", F), "numpy ml_dtypes"),
        (LINEARIZE, "numpy ml_dtypes"),
        (("transpose",), "numpy ml_dtypes"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_commands_import_what_they_need_only(args, unwanted):
    data = succeed(*LINEARIZE) if args == ("transpose",) else b""
    code = (
        "import sys\nfrom tidu_cli.cli.main import cli\n"
        "try:\n    cli(sys.argv[2:], prog_name='tidu')\n"
        "except SystemExit as exit:\n    assert not exit.code\n"
        "loaded = [name for name in sys.argv[1].split() if name in sys.modules]\n"
        "sys.exit(f'imported: {loaded}' if loaded else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, unwanted, *args], input=data, capture_output=True, check=False, cwd=ROOT, env=ENVIRONMENT
    )
    assert (done.returncode, done.stderr) == (0, b"")
