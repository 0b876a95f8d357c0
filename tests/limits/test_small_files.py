"""Small files that stand for much: the work is bounded, or refused in one line that names what is too large and the limit."""

from __future__ import annotations

import gzip
import io
import json
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import format as npy

import tidu_cli
from tests.cli.running import F, document, graph
from tests.custom.making import body, unary
from tests.limits.bounded import refused, succeeds
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.recorder import Recorder
from tidu_cli.errors import did_you_mean
from tidu_cli.formats.read import parse_document


def member(shape: tuple[int, ...], n_zeros: int) -> bytes:
    """The beginning of an .npy file of zeros, of that shape."""
    out = io.BytesIO()
    npy.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return out.getvalue() + bytes(n_zeros)


def inflating(path, name: str, shape: tuple[int, ...], n_bytes: int, method: int = ZIP_BZIP2) -> str:
    """An npz of an x that is 3, and a member of so many zeros."""
    with ZipFile(path, "w", method) as archive:
        archive.writestr("x.npy", member((), 0) + np.float64(3).tobytes())
        with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
            file.write(member(shape, 0))
            for _ in range(n_bytes >> 24):
                file.write(bytes(2**24))
    return str(path)


@pytest.mark.check
def test_members_that_are_no_inputs_stay_compressed(tmp_path):
    path = inflating(tmp_path / "v.npz", "junk", (2**26,), 2**29)
    assert (tmp_path / "v.npz").stat().st_size < 2**12
    assert json.loads(succeeds("eval", F, "--inputs", path)) == {"y": 18.0}


def test_members_that_are_asked_for_are_refused_by_what_they_declare(tmp_path):
    path = inflating(tmp_path / "v.npz", "a", (2**40,), 2**24, ZIP_DEFLATED)
    two = document(graph([("sin", 0)], [("a", "f64[]")], [("y", 1)]))
    line = refused("eval", "-", "--inputs", path, "--max-memory", "1G", input=two)
    assert "v.npz: a: an array of 8 TiB, more than the limit of 1 GiB; allow more with --max-memory SIZE" in line


@pytest.mark.check
def test_no_more_is_decompressed_than_a_member_declares(tmp_path):
    path = inflating(tmp_path / "v.npz", "a", (2,), 2**29)
    two = document(graph([("neg", 0)], [("a", "f64[2]")], [("y", 1)]))
    assert json.loads(succeeds("eval", "-", "--inputs", path, input=two)) == {"y": [-0.0, -0.0]}


def test_members_count_together(tmp_path):
    with ZipFile(tmp_path / "v.npz", "w", ZIP_DEFLATED) as archive:
        for name in "abcd":
            archive.writestr(f"{name}.npy", member((2**17,), 2**20))
    four = document(graph([], [(k, f"f64[{2**17}]") for k in "abcd"], [("y", 0)]))
    line = refused("eval", "-", "--inputs", tmp_path / "v.npz", "--max-memory", "3M", input=four)
    assert "v.npz: d: an array of 1 MiB, more than the limit of " in line


def test_an_npy_file_is_refused_by_what_it_declares(tmp_path):
    (tmp_path / "a.npy").write_bytes(member((2**40,), 64))
    line = refused("eval", F, "--set", f"x=@{tmp_path / 'a.npy'}", "--max-memory", "1G")
    assert "--set x: an array of 8 TiB, more than the limit of 1 GiB" in line


def doubling(n: int, **more) -> bytes:
    """n own ops, each of which applies the one before twice."""
    twice = [("sin", 0), *((f"o{k}", 0) for k in range(n))]
    ops = {f"o{k}": unary(body("x", [twice[k], (twice[k][0], 1)], {"y": 2}), "f64[]") for k in range(n)}
    return document(graph([(f"o{n - 1}", 0)], outputs=[("y", 1)]), ops=ops, **more)


@pytest.mark.check
@pytest.mark.parametrize(
    "command",
    [
        "linearize --wrt x",
        "eval --set x=1",
        "grad --wrt x",
        "check --all",
        "check --closure",
        "view --set x=1",
    ],
)
def test_ops_of_ops_are_refused_by_name(command):
    name, *rest = command.split()
    source = doubling(30)
    assert len(source) < 9000
    line = refused(name, "-", *rest, input=source)
    assert "op 'o29': it is of ops of ops, and stands for 1,073,741,824 nodes, more than the limit of 200,000" in line
    assert "allow more with --max-expansion N" in line


@pytest.mark.check
@pytest.mark.parametrize("name", ["convert", "info", "check", "resolve", "materialize", "dot"])
def test_who_writes_no_ops_out_takes_them_all(name):
    succeeds(name, "-", input=doubling(30))


def test_ops_of_ops_within_the_limit_are_differentiated():
    assert json.loads(succeeds("grad", "-", "--wrt", "x", "--set", "x=0", input=doubling(10)))["x@-1"] == 1.0
    assert "stands for 1,024 nodes" in refused("grad", "--wrt", "x", "--max-expansion", "500", input=doubling(10))
    assert "stands for 1,024 nodes" in refused("grad", "--wrt", "x", input=doubling(10), TIDU_MAX_EXPANSION="500")


def test_what_is_written_is_no_expansion():
    long = unary(body("x", [("sin", k) for k in range(2000)], {"y": 2000}), "f64[]")
    source = document(graph([("long", 0)], outputs=[("y", 1)]), ops={"long": long})
    succeeds("linearize", "-", "--wrt", "x", "--max-expansion", "1", input=source)


def test_the_expansion_of_all_cases_counts_together():
    ops = json.loads(doubling(10))["ops"]
    anew = {name: json.loads(json.dumps(op).replace("f64[]", "f64[...]")) for name, op in ops.items()}
    inputs = [(f"x{n}", f"f64[{n}]") for n in range(1, 400)]
    source = document(graph([("o9", k) for k in range(399)], inputs, [("y", 797)]), ops=anew)
    assert "op 'o9': it is of ops of ops, and, with own ops before it and at other types, stands for " in refused(
        "check", "--closure", input=source
    )


def test_nodes_count_with_own_ops_written_out():
    source = json.loads(doubling(10))
    source["graphs"][0] |= graph([("o9", k) for k in range(50)], outputs=[("y", 50)])
    line = refused("eval", "-", "--set", "x=1", "--max-nodes", "50k", input=json.dumps(source).encode())
    assert "the document, with its own ops written out: 51,200 nodes, more than the limit of 50,000; allow more" in line


def test_a_document_has_as_many_nodes_as_the_limit_allows():
    source = document(graph([("sin", k) for k in range(100)], outputs=[("y", 100)]))
    assert succeeds("linearize", "--wrt", "x", "--max-nodes", "201", input=source), "residuals and a tangent for each, and no more"
    assert "the document: 100 nodes, more than the limit of 99" in refused("check", "--max-nodes", "99", input=source)
    assert "the derivative, so far: " in refused("linearize", "--wrt", "x", "--max-nodes", "150", input=source)


def test_many_nodes_derived_by_columns_are_bounded_before_they_are_made():
    source = document(graph([("sin", k) for k in range(40_000)], outputs=[("y", 40_000)]))
    line = refused("linearize", "--wrt", "x", "--max-nodes", "70k", input=source)
    assert "the derivative: 80,000 nodes, more than the limit of 70,000" in line


def n_ary(op: str, n: int, *, first=(), attrs=None, results: int = 1) -> bytes:
    """A document of one node with n inputs."""
    inputs = [*first, *((f"x{k}", "f64[1]") for k in range(n))]
    made = graph([], inputs, [(f"y{k}", len(inputs) + k) for k in range(results)])
    made["nodes"] = [{"op": op, "inputs": list(range(len(inputs))), **({"attrs": attrs} if attrs else {})}]
    return document(made)


SPLIT = document(
    {
        **graph([], [("x", "f64[20]")], [(f"y{k}", k + 1) for k in range(20)]),
        "nodes": [{"op": "split", "attrs": {"sizes": [1] * 20, "axis": 0}, "inputs": [0]}],
    }
)


@pytest.mark.check
@pytest.mark.parametrize(
    "source",
    [SPLIT, n_ary("concatenate", 200, attrs={"dimension": 0}), n_ary("select_n", 1000, first=[("i", "i32[]")])],
    ids=["split", "concatenate", "select_n"],
)
def test_closure_tries_a_bounded_number_of_masks(source):
    assert b"every rule is there" in succeeds("check", "-", "--closure", input=source)


def selection(n: int) -> bytes:
    """y is the one of n numbers that i selects."""
    inputs = [("i", "i32[]"), *((f"x{k}", "f64[]") for k in range(n))]
    return document(graph([("select_n", *range(n + 1))], inputs, [("y", n + 1)]))


def test_the_gradient_of_a_selection_is_linear_in_its_cases():
    made = json.loads(succeeds("grad", "-", *(f"--wrt=x{k}" for k in range(2000)), input=selection(2000)))
    read = sum(len(node["inputs"]) for g in made["graphs"] for node in g["nodes"])
    assert read < 20 * 2000, "and not its square"


@given(st.integers(1, 9), st.integers(-12, 12))
def test_the_case_that_is_taken_gets_the_cotangent(n, index):
    """Also where the selector is out of range."""
    loaded = parse_document(selection(n), "test")[0]
    wrt = [f"x{k}" for k in range(n)]
    gradient = tidu_cli.evaluate(tidu_cli.grad(loaded, wrt), {"i": np.int32(index), "y@-1": 1.0})
    assert {key: float(x) for key, x in gradient.items()} == {f"x{k}@-1": float(k == min(max(index, 0), n - 1)) for k in range(n)}


@pytest.mark.check
@pytest.mark.parametrize("n", [25_000, 80_000])
@pytest.mark.parametrize("form", ["json", "msgpack"])
def test_a_key_that_occurs_twice_is_found_in_one_walk(n, form):
    keys = [f"k{k}" for k in range(n)] + [f"k{n - 1}"]
    if form == "json":
        source = ("{" + ",".join(f'"{key}":1' for key in keys) + "}").encode()
    else:
        packer = msgpack.Packer()
        source = packer.pack_map_header(len(keys)) + b"".join(packer.pack(key) + b"\x01" for key in keys)
    assert f"has the key 'k{n - 1}' twice" in refused("check", "-", input=source)


def test_long_names_get_no_hint():
    long = "ab" * 80_000
    assert did_you_mean(long, [f"{long}{k}" for k in range(1000)]) == ""
    ops = {long: unary(type_="f64[]")}
    assert "node 0 (abab" in refused("check", "-", input=document(graph([(long + "c", 0)], outputs=[("y", 1)]), ops=ops))
    keys = document(graph([], [(f"{long}{k}", "f64[]") for k in range(20)], [("y", 0)]))
    assert "no graph has an output" in refused("materialize", "-", "--output", long[:100_000], input=keys)


@pytest.mark.check
def test_misspelt_names_are_compared_with_a_bounded_number():
    assert did_you_mean("velocty", ["velocity", *(f"input{k}" for k in range(10**6))]) == "; did you mean 'velocity'?"
    many = document(graph([], [(f"input{k:07}", "f64[]") for k in range(100_000)], [("y", 0)]))
    assert "no graph has an input 'inptu0099999'" in refused("linearize", "--wrt", "inptu0099999", input=many)


BIG = document(graph([("sin", 0)], [("x", "f64[8000,8000]")], [("y", 1)]))


@pytest.mark.parametrize("part", ["--all", "--numeric"])
def test_checks_are_refused_that_take_more_memory_than_there_is(part):
    line = refused("check", "-", part, "--max-memory", "2G", input=BIG)
    assert "trying derivatives at random inputs: " in line and "more than the limit of 2 GiB" in line


@pytest.mark.check
def test_pictures_count_edges():
    nodes = [("select_n", 1, *[0 if k == 0 else 1 + k] * 119) for k in range(480)]
    source = document(graph(nodes, [("x", "f64[]"), ("i", "i32[]")], [("y", 481)]))
    for command in (("dot", "--format", "svg", "--expand"), ("view", "--expand")):
        line = refused(*command, input=source)
        assert "would show 57601 edges, more than 2000" in line and "--limit 14401 draws all" in line
    assert succeeds("dot", input=source), "text is linear in the graph"


@pytest.mark.check
@pytest.mark.parametrize("entry", [b"\x90", b"\x81\xa1a\x90"], ids=["lists", "objects"])
def test_compressed_values_stand_for_a_bounded_number_of_objects(entry, tmp_path):
    n = 4_000_000
    values = b"\x82\xa1x\x03\xa1z\xdd" + n.to_bytes(4, "big") + entry * n
    (tmp_path / "v.msgpack.gz").write_bytes(gzip.compress(values))
    line = refused("eval", F, "--inputs", tmp_path / "v.msgpack.gz")
    assert "v.msgpack.gz: stands for numbers and objects of about 256 MiB, more than the limit of 256 MiB; allow more" in line
    few = gzip.compress(values[:4] + b"\xa1z\xdc\x03\xe8" + entry * 1000)
    (tmp_path / "few.msgpack.gz").write_bytes(few)
    assert json.loads(succeeds("eval", F, "--inputs", tmp_path / "few.msgpack.gz")) == {"y": 18.0}


def test_a_polynomial_is_refused_before_it_is_recorded(monkeypatch):
    recorded: list[object] = []
    plain = Recorder.emit
    monkeypatch.setattr(Recorder, "emit", lambda *args, **attrs: recorded.append(args) or plain(*args, **attrs))
    with pytest.raises(BuildError, match="stands for 200,001 nodes at least"):
        tidu_cli.formula("polyval(ones(10**5), x)", {"x": "f64[]"})
    assert len(recorded) < 10


@pytest.mark.check
@pytest.mark.parametrize("formula", ["polyval(ones(10**5), x)", "sum(polyval(ones(10**5), x * ones(3)))"])
def test_a_formula_stands_for_a_bounded_number_of_nodes(formula):
    line = refused("build", formula, "-i", "x:f64[]")
    assert "stands for 200,001 nodes at least, more than the limit of 200,000; write it with whole arrays" in line


def separate(n: int) -> bytes:
    """n outputs, each the sine of an input of its own."""
    outputs = [(f"y{k}", n + k) for k in range(n)]
    return document(graph([("sin", k) for k in range(n)], [(f"x{k}", "f64[]") for k in range(n)], outputs))


@pytest.mark.check
@pytest.mark.parametrize("n", [400, 3000])
def test_the_blocks_of_a_matrix_are_counted_before_they_are_made(n):
    line = refused("jacobian", "-", "--wrt", "x*", input=separate(n))
    assert (
        f"the {n * n:,} blocks of its matrix, one for each pair of arrays: {2 * n * n:,} nodes, more than the limit of 200,000"
        in line
    )
    assert "allow more with --max-expansion N" in line


def test_the_blocks_of_records_are_counted():
    fields = ", ".join(f"a{k}: f64[]" for k in range(512))
    same = graph([("add", 0, 0)], [("x", f"{{{fields}}}")], [("y", 1)])
    assert "the 262,144 blocks of its matrix" in refused("jacobian", "-", "--wrt", "x", input=document(same))


def test_as_many_blocks_are_made_as_the_limit_allows():
    assert b"x19" in succeeds("jacobian", "-", "--wrt", "x*", "--max-expansion", "800", input=separate(20))
    assert "the 400 blocks" in refused("jacobian", "-", "--wrt", "x*", "--max-expansion", "799", input=separate(20))
