"""Bad input never gives a traceback: whatever the documents and arguments, a status, and one line that says what is wrong.

Documents are broken in their structure, their text and their bytes; and what the command line accepts and writes, it must accept.
"""

from __future__ import annotations

import json
import random
import re
from functools import cache

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.cli.running import ROOT, F, document, graph, invoke, succeed
from tests.tiers import examples
from tidu_cli.cli.main import COMMANDS
from tidu_cli.lax.vocabulary import BUILTIN

DOCUMENTS = {"resolve", "linearize", "transpose", "materialize", "convert"}
"""The commands that write documents."""

CALLS = (
    ("check",),
    ("info",),
    ("info", "--json"),
    ("diff", F, "-", "--exact"),
    ("diff", "-", F, "--json"),
    ("dot",),
    ("convert", "--format", "json"),
    ("convert", "--format", "msgpack"),
    ("convert", "--types"),
    ("convert", "--nodes", "packed"),
    ("linearize", "--wrt", "x"),
    ("linearize", "--wrt", "x", "--wrt", "v", "--detach"),
    ("linearize", "--wrt", "x", "--output", "y", "--pass", "9"),
    ("transpose",),
    ("materialize",),
    ("materialize", "--output", "y"),
    ("resolve",),
    ("resolve", "--bind", "x=y"),
    ("eval", "--max-memory", "1M", "--set", "x=2"),
    ("eval", "--max-memory", "1M", "--inputs", str(ROOT / "tests" / "cli" / "cases" / "commands" / "values.json")),
)
ORDINARY = settings(max_examples=examples(120, check=40), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@cache
def seeds() -> tuple[bytes, ...]:
    """Valid documents with something of everything, in JSON."""
    f = (ROOT / "samples" / "f.json").read_bytes()
    arrays = {
        "name": "arrays",
        "inputs": [{"key": "x", "type": "f64[2,3]", "meta": {"a": [1, None]}}, {"key": "v", "type": "c128[3]"}],
        "nodes": [
            {"op": "reduce_sum", "inputs": [0], "attrs": {"axes": [0]}, "types": ["f64[3]"]},
            {"op": "broadcast_in_dim", "inputs": [2], "attrs": {"shape": [3, 3], "broadcast_dimensions": [1]}, "meta": {"b": "c"}},
            {"op": "integer_pow", "inputs": [3], "attrs": {"y": 3}},
            {"op": "dot_general", "inputs": [4, 3], "attrs": {"dimension_numbers": [[[1], [0]], [[], []]]}},
            {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[2]", "data": [1.5, "NaN"]}}},
            {"op": "real", "inputs": [1]},
            {"op": "sin", "inputs": [7]},
            {"op": "convert_element_type", "inputs": [8], "attrs": {"new_dtype": "f32"}},
        ],
        "outputs": [{"key": "y", "value": 5}, {"key": "s", "value": 9}, {"key": "zero", "value": None, "type": "f64[]"}],
        "meta": {},
    }
    mixed = document(arrays, graph([("mul", 0, [0, 7])], inputs=[("u", "f64[3]")], outputs=[("w", 1)], name="g"))
    bound = document(
        graph([("mul", 0, 0)], outputs=[("y", 1)], name="f"),
        graph([("exp", 0)], inputs=[("u", "f64[]")], outputs=[("w", 1)], name="g"),
        bindings=[{"input": "u", "value": [0, 1]}],
    )
    jvp = succeed("linearize", "--wrt", "x", input=mixed)
    return (
        f,
        mixed,
        bound,
        jvp,
        succeed("transpose", input=jvp),
        succeed("linearize", F, "--wrt", "x", "--detach"),
        succeed("convert", "--nodes", "packed", input=succeed("linearize", F, "--wrt", "x")),
        succeed("linearize", "--wrt", "x", input=bound),
    )


# JSON without blanks, most of it of the kinds that documents hold.
_SCRAPS = r"""
null true -1 0 1 2 3 7 65 1.5 1e999 9007199254740992 2147483648 99999999999999999999
"" "x" "y" "x@1" "f" "f64[]" "f32[2]" "c128[3]" "i32[]" "bool[]" "f64[0]" "f64[100000,100000]" "f64[4611686018427387904]"
"mul" "neg" "constant" "select_n" "dot_general" "reshape" "NaN" "\ud800" "\u0000\n\u001b"
[] [0] [0,0] [0,1] [1,0] [[0,0]] [true] [true,false] [-1] {} {"pass":1} {"axes":[5]} {"op":"neg","inputs":[0]}
{"linearized":{"active_mask":[true]}} {"tangent":{"of":"x","pass":1}} {"tangent":{"of":"x"}}
{"cotangent":{"of":{"tangent":{"of":"y","pass":2}},"pass":1}} {"type":"f64[2]","data":[1,2]} {"dtype":"i8","data":[0]}
"sha256:0000000000000000000000000000000000000000000000000000000000000000"
"""
SCRAPS = _SCRAPS.split()
_NAMES = "name op inputs outputs nodes attrs role types meta key type value bindings linear x"
NAMES = _NAMES.split()


def mutated(chooser: random.Random, value):
    """The value with one change somewhere in it."""
    places = list(_places(value))
    if not places:
        return json.loads('"x"')
    container, index = chooser.choice(places)
    kind = chooser.randrange(10)
    scrap = json.loads(chooser.choice(SCRAPS))
    if kind >= 5:  # like for like, which more often leaves the document valid
        container, index = chooser.choice([(c, i) for c, i in places if not isinstance(c[i], list | dict)] or places)
        alike = [other for other in map(json.loads, SCRAPS) if type(other) is type(container[index])]
        scrap = chooser.choice(sorted(BUILTIN.primitives)) if index == "op" else chooser.choice(alike or [scrap])
    if kind == 0:
        del container[index]
    elif kind == 1 and isinstance(container, list):
        container.insert(index, json.loads(json.dumps(container[index])))
    elif kind == 1:
        container[chooser.choice(NAMES)] = scrap
    elif kind == 2:
        other, at = chooser.choice(places)
        if other is not container:
            container[index] = json.loads(json.dumps(other[at]))
    elif kind == 3 and type(container[index]) is int:
        container[index] += chooser.choice((-1, 1))
    else:
        container[index] = scrap
    return value


def _places(value):
    stack = [value]
    while stack:
        inner = stack.pop()
        for index, part in list(enumerate(inner) if isinstance(inner, list) else inner.items()):
            yield inner, index
            if isinstance(part, list | dict):
                stack.append(part)


def broken_bytes(chooser: random.Random, data: bytes) -> bytes:
    """The bytes with one change."""
    at, kind = chooser.randrange(len(data) + 1), chooser.randrange(5)
    if kind == 0:
        return data[:at]
    if kind == 1:
        return data[:at] + bytes([chooser.randrange(256)]) + data[at + 1 :]
    if kind == 2:
        return data[:at] + data[at + chooser.randrange(1, 20) :]
    if kind == 3:
        return data[:at] + chooser.choice(SCRAPS).encode() + data[at:]
    return data[:at] + data[chooser.randrange(len(data)) :][: chooser.randrange(40)] + data[at:]


def require_good_manners(args, result):
    """A status of 0, 1 or 2; of a failure one line on stderr, with no traceback and nothing to steer a terminal.

    The status of a failure is 1, of diff 2, as it says by 1 that documents differ.
    """
    assert result.exit_code in (0, 1, 2), args
    assert "Traceback" not in result.stderr and "internal error" not in result.stderr, (args, result.stderr)
    if args[0] == "diff" and result.exit_code == 1:  # they differ
        assert result.stderr == "" and result.stdout_bytes
    elif result.exit_code == 1 or (args[0] == "diff" and result.exit_code and not _is_wrong_usage(result)):
        assert re.fullmatch(rf"tidu {args[0]}: error: [^\n]+\n", result.stderr), (args, result.stderr)
        assert result.stderr[:-1].isprintable() and len(result.stderr) < 1000, (args, result.stderr)
        assert result.stdout_bytes == b"" or args[0] == "check"
    elif result.exit_code == 2:
        assert _is_wrong_usage(result), (args, result.stderr)


def _is_wrong_usage(result):
    return result.stderr.splitlines()[-1].startswith("Error: ") or "Usage: tidu" in result.stderr


def require_good_manners_of_all(data: bytes):
    valid = invoke("convert", input=data).exit_code == 0  # check looks closer than a reader does
    for args in CALLS:
        result = invoke(*args, input=data)
        require_good_manners(args, result)
        if args[0] == "diff":
            assert result.exit_code in ((0, 1) if valid else (2,)), (args, result.stderr)
            continue
        assert result.exit_code != 2, (args, result.stderr)
        assert valid or result.exit_code == 1, args
        if result.exit_code == 0 and args[0] in DOCUMENTS:
            again = invoke("convert", input=result.stdout_bytes)
            assert again.exit_code == 0, (args, again.stderr)
        if valid and args[0] in ("convert", "info", "dot"):
            assert result.exit_code == 0, (args, result.stderr)


@ORDINARY
@given(seed=st.integers(0, 2**32), which=st.integers(0, 7), times=st.integers(1, 3), binary=st.booleans())
def test_broken_structure(seed, which, times, binary):
    chooser, value = random.Random(seed), json.loads(seeds()[which])
    for _ in range(times):
        value = mutated(chooser, value)
    try:
        data = msgpack.packb(value) if binary else json.dumps(value).encode()
    except (UnicodeEncodeError, OverflowError):  # half a surrogate pair; an integer of more than 64 bits
        data = json.dumps(value).encode()
    require_good_manners_of_all(data)


@ORDINARY
@given(seed=st.integers(0, 2**32), which=st.integers(0, 7), times=st.integers(1, 3), form=st.sampled_from(["json", "msgpack"]))
def test_broken_bytes(seed, which, times, form):
    chooser, data = random.Random(seed), seeds()[which]
    if form == "msgpack":
        data = succeed("convert", "--format", form, input=data)
    for _ in range(times):
        data = broken_bytes(chooser, data)
    require_good_manners_of_all(data)


@ORDINARY
@given(data=st.binary(max_size=40))
def test_any_bytes(data):
    require_good_manners(("check",), invoke("check", input=data))
    args = ("eval", F, "--inputs", "-")
    require_good_manners(args, invoke(*args, input=data))


WORDS = st.sampled_from(
    [
        *(
            "f.json",
            "-",
            "--",
            "-o",
            "--format",
            "json",
            "msgpack",
            "npz",
            "out.png",
            "--wrt",
            "x",
            "x@1",
            "x@",
            "--output",
            "y",
            "",
        ),
        *("--set", "x=3", "x=", "=", "x=@", "x=@nowhere", "x=[1", "x=1e999", 'x={"re": 1}', "--inputs", "--max-memory", "1K"),
        *("--pass", "1", "--detach", "--types", "--nodes", "--bind", "x=y", "--json", "-h", "--version", "mul", *COMMANDS),
    ]
)
ANY_TEXT = st.text(st.characters(exclude_characters="/"), max_size=6)  # -o may write to it


@settings(ORDINARY, max_examples=examples(300))
@given(
    command=st.sampled_from(COMMANDS),
    args=st.lists(WORDS | ANY_TEXT, max_size=6),
    data=st.sampled_from([b"", b"{}", b"f"]),
)
@pytest.mark.usefixtures("elsewhere")
def test_any_arguments(command, args, data):
    data = seeds()[0] if data == b"f" else data
    require_good_manners((command,), invoke(command, *args, input=data))


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """A folder to run in, with a copy of f.json: -o may name anything."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "f.json").write_bytes(seeds()[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


@pytest.mark.parametrize("op", ["exp", "integer_pow", "max", "abs", "tanh", "log1p", "sign"])
def test_types_of_any_size_cost_nothing_until_they_are_evaluated(op):
    attrs = {"attrs": {"y": 3}} if op == "integer_pow" else {}
    node = {"op": op, "inputs": [0, 0] if op == "max" else [0], **attrs}
    data = document({**graph(inputs=[("x", "f64[1000000,1000000]")], outputs=[("y", 1)]), "nodes": [node]})
    vjp = succeed("transpose", input=succeed("linearize", "--wrt", "x", input=data))
    assert len(succeed("materialize", input=vjp)) < 10_000
    result = invoke("eval", "--set", "x=1", "--set", "y@-1=1", input=vjp)
    assert result.exit_code == 1 and len(result.stderr) < 1000
