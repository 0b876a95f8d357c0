"""NumPy source of programs: random ones and their derivatives, samples, loops; whatever their names are."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings

import tidu_cli
from tests.c.test_programs import HOSTILE, chain, values_for
from tests.control_flow.strategies import looping
from tests.docs.blocks import ROOT
from tests.graphs.derived import derivatives
from tests.graphs.strategies import REAL, documents, seeds
from tests.lax.sampling.samples import by_op
from tests.programs import needs
from tests.python_source.running import alike, expected, function_of, run, source_of
from tests.tiers import examples, few
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.adapters.python_source.port import PYTHON
from tidu_cli.errors import DocumentError
from tidu_cli.formats.read import parse_document
from tidu_cli.graph.closed import cases_within
from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.types import ITEMSIZE, TensorType
from tidu_cli.lax.arrays.structural import numpy_dtype
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose


def agree(document, values, few=64):
    """Holds the source of a document to what evaluation gives."""
    document = materialize(document)
    made, due = run(document, values), expected(document, values)
    for output in document.head.outputs:
        alike(made[str(output.key)], due[str(output.key)], output.key, few)


def is_plain(document):
    """Whether all types in a document are of arrays that NumPy has."""
    types = [t for case in cases_within(document.cases.cases) for t in (*case.operands, *case.results)]
    types += [i.type for graph in document.graphs for i in graph.inputs]
    return all(isinstance(t, TensorType) and t.dtype in ITEMSIZE and t.dtype != "bf16" for t in types)


@settings(max_examples=examples(400, check=60))
@given(documents(makers=REAL, dtypes=("f64", "f32"), shapes=((), (3,), (2, 3))), seeds)
def test_random_documents(document, seed):
    agree(document, values_for(document, seed))


@settings(max_examples=examples(300, check=30))
@given(documents(makers=REAL, dtypes=("f64",), max_graphs=2, max_nodes=12), seeds)
def test_derivatives_of_random_documents(document, seed):
    for derivative in derivatives(document):
        agree(derivative, values_for(derivative, seed))


@settings(max_examples=examples(200, check=30))
@given(looping(), seeds)
def test_random_loops(document, seed):
    if is_plain(document):
        agree(document, values_for(document, seed))


def taken(sample):
    types = (*sample.case.operands, *sample.case.results)
    return all(isinstance(t, TensorType) and t.dtype in ITEMSIZE and t.dtype != "bf16" for t in types)


@pytest.mark.check
@pytest.mark.parametrize("name", [p.name for p in BUILTIN if p.domain.arity != 0])
def test_samples(name):
    """All ranks, empty arrays, and the attrs that examples leave out."""
    from tests.python_source.test_primitives import check, is_written

    own = [sample for sample in by_op().get(name, []) if taken(sample)]
    empty = [sample for sample in own if any(0 in np.shape(x) for x in sample.operands)]
    chosen = {id(s): s for s in (*few(own, 30), *few(empty, 4)) if is_written(s.case)}.values()
    if chosen:
        check([s.case for s in chosen], [list(s.operands) for s in chosen])


SAMPLES = sorted(path.relative_to(ROOT / "samples").as_posix() for path in (ROOT / "samples").glob("*.json"))


def sample(name):
    return parse_document((ROOT / "samples" / name).read_bytes(), name)[0]


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_of_documents_and_their_gradients(name):
    document = sample(name)
    if not is_plain(document):
        with pytest.raises(DocumentError, match="NumPy source is written of"):
            source_of(document)
        return
    agree(document, values_for(document, 1))
    floats = [i.key for i in document.head.inputs if i.type.inexact]
    gradient = transpose(linearize(document, floats))
    agree(gradient, values_for(gradient, 1))


FORMAT = "loop loops_nested own_ops own_derivative own_loop bindings attrs structural_zeros no_nodes keys"


@pytest.mark.parametrize("name", FORMAT.split())
def test_documents_of_the_format(name):
    document = sample(f"conformance/valid/{name}.json")
    if is_plain(document):
        agree(document, values_for(document, 1))


_MEANT = 'a"""b class np lambda v1 d2 C1 body_2 print x\\ \u202e _ __class__ loss loss_2 special True return'
"""Names that Python, or a file, has for something else."""


NAMES = [*HOSTILE, *_MEANT.split()]


def hostile(graph_name):
    """A document whose names are whatever they may be."""
    table = CaseTable(BUILTIN)
    type_ = TensorType("f64")
    builder = GraphBuilder(table, [Input(Key(name), type_) for name in NAMES])
    neg = table.intern(BUILTIN.case("neg", BUILTIN.parse_attrs("neg", {}), None, [type_]))
    outputs = [Output(Key(name), builder.append(neg, [k]), type_) for k, name in enumerate(NAMES)]
    return Document((builder.build(graph_name, outputs),), table)


@pytest.mark.parametrize("graph_name", ["def", "main", '"""; evil()', "np", "", "x" * 10_000, "1", "v1", "_lu", "\n", "é"])
def test_names_never_become_code(graph_name):
    document = hostile(graph_name)
    source = source_of(document)
    assert source.isascii() and source == source_of(document)
    called = {node.func.value.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)}
    assert called == {"np"}
    made = function_of(source)(*range(len(NAMES)))
    assert {key: float(x) for key, x in made.items()} == {str(Key(name)): -float(k) for k, name in enumerate(NAMES)}


@pytest.mark.parametrize("dtype", [dtype for dtype in ITEMSIZE if dtype != "bf16"])
def test_constants_keep_their_bits(dtype):
    rng = np.random.default_rng(1)
    given_ = np.frombuffer(rng.bytes(17 * ITEMSIZE[dtype]), numpy_dtype(np, dtype if dtype != "bool" else "u8"))
    array = (given_ % 2 == 0 if dtype == "bool" else given_).copy()
    if array.dtype.kind in "fc":
        array[:4] = [np.nan, np.inf, -np.inf, -0.0]
    for size in (1, 3, 17):
        document = trace(lambda x, some=array[:size]: {"some": some.copy(), "sum": x + np.sum(some[:1] != some[:1])}, "f64[]")
        made = np.asarray(run(document, [1.0])["some"])
        assert (made.dtype, made.shape) == (array.dtype, (size,))
        same = made.view(np.uint8) == array[:size].view(np.uint8)
        assert (same.reshape(size, -1).all(-1) | (np.isnan(made) & np.isnan(array[:size]))).all()


def test_results_may_be_written_into():
    (made,) = run(trace(lambda x: np.broadcast_to(x, (3,)), "f64[]"), [2.0]).values()
    made += 1
    assert made.tolist() == [3.0, 3.0, 3.0]


def written(inputs, nodes, outputs, values):
    """The results of the source of a graph in JSON, which are those of its evaluation."""
    ports = [[{"key": key, "type": type_} for key, type_ in some.items()] for some in (inputs, outputs)]
    ends = {"inputs": ports[0], "outputs": [port | {"value": len(inputs) + len(nodes) - 1} for port in ports[1]]}
    document = parse_document(json.dumps({"tidu": 1, "graphs": [{"name": "f", "nodes": nodes} | ends]}).encode(), "f")[0]
    made, due = function_of(source_of(document))(*values), expected(document, values)
    (only,) = due.values()
    value = made[str(document.head.outputs[0].key)] if isinstance(made, dict) else made
    assert (np.asarray(value).dtype, np.asarray(value).tobytes()) == (only.dtype, only.tobytes())
    return made


@pytest.mark.parametrize("op", ["add", "mul", "div", "pow", "eq", "max"])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_constants_of_constants_have_their_dtype(op, dtype):
    nodes = [{"op": "constant", "inputs": [], "attrs": {"value": {"type": f"{dtype}[]", "data": [x]}}} for x in (0.1, 0.7)]
    written({}, [*nodes, {"op": op, "inputs": [0, 1]}], {"z": "bool[]" if op == "eq" else f"{dtype}[]"}, [])


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 9])
def test_branches_are_clamped(index):
    def branch(op):
        ends = {"inputs": [{"key": "a", "type": "f64[]"}], "outputs": [{"key": "b", "value": 1, "type": "f64[]"}]}
        return {"nodes": [{"op": op, "inputs": [0]}]} | ends

    node = {"op": "cond", "inputs": [0, 1], "attrs": {"branches": list(map(branch, ["sin", "exp", "neg"]))}}
    written({"i": "i32[]", "x": "f64[]"}, [node], {"z": "f64[]"}, [index, 0.5])


def test_branches_that_no_bool_chooses_are_left_out():
    def branch(op):
        ends = {"inputs": [{"key": "a", "type": "f64[]"}], "outputs": [{"key": "b", "value": 1, "type": "f64[]"}]}
        return {"nodes": [{"op": op, "inputs": [0]}]} | ends

    node = {"op": "cond", "inputs": [0, 1], "attrs": {"branches": list(map(branch, ["sin", "exp", "neg"]))}}
    source = written({"i": "bool[]", "x": "f64[]"}, [node], {"z": "f64[]"}, [True, 0.5])
    assert source["z"] == np.exp(0.5)
    ports = {"inputs": [{"key": "i", "type": "bool[]"}, {"key": "x", "type": "f64[]"}], "outputs": [{"key": "z", "value": 2}]}
    document = parse_document(json.dumps({"tidu": 1, "graphs": [{"name": "f", "nodes": [node]} | ports]}).encode(), "f")[0]
    assert source_of(document).count("def ") == 3


def test_one_result_is_by_itself_where_build_calls_it_so():
    nodes = [{"op": "sin", "inputs": [0]}]
    assert isinstance(written({"x": "f64[]"}, nodes, {"y": "f64[]"}, [0.5]), float)
    assert isinstance(written({"y": "f64[]"}, nodes, {"out": "f64[]"}, [0.5]), float)
    assert isinstance(written({"y": "f64[]"}, nodes, {"y": "f64[]"}, [0.5]), dict)


def test_many_nodes_take_time_in_proportion():
    """A hundred thousand nodes are a function of as many statements, and no expression nests deeply."""
    took, sources = [], []
    for n in (3_000, 30_000):
        document, began = chain(n), process_time()
        sources.append(source_of(document))
        took.append(process_time() - began)
    assert max(map(len, sources[1].splitlines())) <= 88
    assert len(sources[1]) < 13 * len(sources[0]) and took[1] < 40 * took[0] + 0.5


@needs("ruff")
@pytest.mark.parametrize("kind", ["samples", "gradients", "primitives", "names"])
def test_black_leaves_it(kind, tmp_path):
    from tests.c.test_primitives import documented
    from tests.python_source.test_primitives import REFUSED
    from tests.python_source.test_primitives import examples as examples_of

    if kind == "primitives":
        made = [documented([case for case, _ in examples_of(p.name)]) for p in BUILTIN if p.name not in REFUSED]
    elif kind == "names":
        made = [hostile(name) for name in (" f ", '"f"', "f\\", "x" * 100)]
    else:
        made = [document for name in SAMPLES if is_plain(document := sample(name))]
    if kind == "gradients":
        made = [transpose(linearize(d, [i.key for i in d.head.inputs if i.type.inexact])) for d in made]
    for k, document in enumerate(made):
        (tmp_path / f"f{k}.py").write_text(source_of(document))
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:3000]


def test_it_is_written_and_not_read():
    with pytest.raises(DocumentError, match=r"tidu build FILE\.py:FUNCTION"):
        PYTHON.read(None, "f.py", {}, None)


def test_files_of_others_stay(tmp_path):
    """A function overwrites what tidu wrote, or nothing did."""
    document, path = sample("f.json"), tmp_path / "f.py"
    path.write_text("print(1)\n")
    with pytest.raises(DocumentError, match="would be replaced, and tidu did not write it; give another name, or remove it before"):
        tidu_cli.save(document, path)
    assert path.read_text() == "print(1)\n"
    path.write_text("")
    for name in ("f.json", "cube.json"):
        tidu_cli.save(sample(name), path)
        assert path.read_text() == source_of(sample(name))


def test_a_refusal_leaves_no_file(tmp_path):
    with pytest.raises(DocumentError, match="NumPy source is written of arrays alone"):
        tidu_cli.save(sample("segment.json"), tmp_path / "f.py")
    assert list(tmp_path.iterdir()) == []


def test_nests_of_loops():
    """As deep as graphs nest, within the levels that Python indents."""
    graph = {"nodes": [{"op": "sin", "inputs": [0]}]}
    ends = {"inputs": [{"key": "a", "type": "f64[]"}], "outputs": [{"key": "a", "value": 1}]}
    for _ in range(60):
        attrs = {"length": 1, "num_consts": 0, "num_carry": 1, "body": graph | ends}
        graph = {"nodes": [{"op": "scan", "inputs": [0], "attrs": attrs}]}
    document = parse_document(json.dumps({"tidu": 1, "graphs": [{"name": "f"} | graph | ends]}).encode(), "f")[0]
    assert run(document, [0.5])["a"] == np.sin(0.5)
