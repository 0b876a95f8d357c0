"""NumPy source with open sizes: what it gives at each number is what evaluation gives, and what disagrees is refused."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings

import tests.tiers as tiers
import tidu_cli
from tests.c.test_primitives import documented
from tests.graphs.strategies import REAL, documents, seeds
from tests.lax.test_batching import drawn
from tests.programs import needs
from tests.python_source.running import alike, expected, function_of, source_of
from tests.python_source.test_primitives import REFUSED
from tests.sizes.opened import opened, opened_documents
from tests.tiers import few
from tidu_cli.adapters.numpy.api import trace
from tidu_cli.adapters.python_source.text import read_sizes
from tidu_cli.checking.numeric.trials import example_cases, of_operand, with_diagonal
from tidu_cli.errors import DocumentError, MissingRuleError, TransformError, UndecidedSizeError
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.link import GraphBuilder
from tidu_cli.graph.open_sizes import open_names
from tidu_cli.graph.sizes.algebra import names_of
from tidu_cli.graph.sizes.names import substituted
from tidu_cli.graph.sizes.reading import declaring, names_from_file
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import ITEMSIZE, TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.runtime.sizing import specialized

WITHOUT = {"constant", "size", "scan", "cond", "while", "linear_solve", "root", "fixed_point", "dynamic_update_slice"}
"""Whose examples have no size that may be open alone; loops and branches are tested by themselves."""
NUMBERS = (1, 2, 3, 7)


def agree(source, fixed, values):
    """Hold what the source gives to what a document of fixed sizes does."""
    with np.errstate(all="ignore"):
        made = function_of(source)(*values)
    keys = [str(o.key) for o in fixed.head.outputs]
    made = made if isinstance(made, dict) else dict(zip(keys, [made], strict=True))
    due = expected(fixed, values)
    for key in keys:
        alike(made[key], due[key], key, 512)


def cases(name):
    plain = [
        (example, case)
        for example, case in example_cases(BUILTIN, BUILTIN[name])
        if all(isinstance(t, TensorType) and t.dtype in ITEMSIZE and t.dtype != "bf16" for t in (*case.operands, *case.results))
    ]
    return [(example, case, number) for example, old in few(plain, 8) for case, number in opened(old)]


def with_sizes(case):
    """A document of a case, and of an input that says what N is."""
    document = tidu_cli.materialize(documented([case]))
    head = document.head
    known = {name.text for i in head.inputs for n in i.type.shape for name in names_of(n)}
    if "N" in known:
        return document
    builder = GraphBuilder(document.cases, [*head.inputs, Input(Key("sized"), parse_value_type("f64[N]"))])
    n = len(head.inputs)
    for case_, args in head.nodes():
        builder.append(document.cases.intern(case_), [a if a < n else a + 1 for a in args])
    outputs = [replace(o, value=o.value if o.value < n else o.value + 1) for o in head.outputs]
    return replace(document, graphs=(builder.build(head.name, outputs),))


@pytest.mark.parametrize("name", [p.name for p in BUILTIN if p.name not in REFUSED | WITHOUT])
def test_primitives(name):
    refused, compared = [], 0
    for example, case, number in cases(name):
        document = with_sizes(case)
        try:
            source = source_of(document)
        except DocumentError as error:
            refused.append(str(error))
            continue
        for n in {number, *NUMBERS}:
            try:
                fixed = specialized(document, {"N": n}, BUILTIN)
            except TransformError:
                assert n != number
                continue
            if sum(i.type.size for i in fixed.free_inputs) > 3000:
                continue
            rng = np.random.default_rng(3)
            values = [
                with_diagonal(drawn(rng, i.type, of_operand(example.within, k)), of_operand(example.diagonals, k))
                for k, i in enumerate(fixed.free_inputs)
            ]
            agree(source, fixed, values)
            compared += 1
    assert compared, refused
    assert all(f"node 0 ({name}): " in error and "\n" not in error for error in refused)


def derived(document, order):
    for _ in range(order):
        document = tidu_cli.transpose(tidu_cli.linearize(document, [str(i.key) for i in document.free_inputs if i.type.inexact]))
    return tidu_cli.materialize(document)


def check(document, numbers, seed, orders=(0, 1, 2)):
    """Compare a document and its derivatives at these numbers; give how often that was."""
    compared = 0
    for order in orders:
        try:
            open_one = derived(document, order)
        except (MissingRuleError, UndecidedSizeError):
            return compared
        source = source_of(open_one)
        for n in numbers:
            try:
                fixed = specialized(open_one, dict.fromkeys(open_names(open_one), n), BUILTIN)
            except TransformError:
                continue
            rng = np.random.default_rng(seed)
            agree(source, fixed, [drawn(rng, i.type, (0.5, 1.5)) for i in fixed.free_inputs])
            compared += 1
    return compared


@settings(max_examples=tiers.examples(60, check=8))
@given(documents(makers=REAL, dtypes=("f64",)), seeds)
def test_random_programs(document, seed):
    document = tidu_cli.materialize(document)
    programs = opened_documents(document)
    assume(programs)
    for made, number in programs:
        assert check(made, {number, *NUMBERS}, seed) > 0


def attention(w, x):
    length, width = x.shape
    time = np.arange(length)
    scores = np.where(time[:, None] >= time, (x @ w) @ x.T / np.sqrt(width), -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.mean((e / e.sum(-1, keepdims=True) @ x) ** 2)


def recurrent(w, x, h):
    return tidu_cli.scan(lambda h, x: ((h := np.tanh(w * h + x)), h * x.shape[0]), h, x)


def steps(x):
    return tidu_cli.fori_loop(0, x.shape[0], lambda i, y: y * x[i] + i, 1.0), x[1:] - x[:-1], np.max(x[1:], initial=-9.0)


def pieces(x, y):
    """An axis in parts, one of them empty where N is 1."""
    return np.pad(x[1:], (2, 1)), np.concatenate([y[::2], x]), x.reshape(-1, 1) * y[: x.shape[0] - 1], y[::-1].cumsum()


PROGRAMS = [
    (attention, ["f64[3,3]", "f64[N,3]"]), (recurrent, ["f64[]", "f64[N,M]", "f64[M]"]), (steps, ["f64[N]"]),
    (pieces, ["f64[N]", "f64[2*N+1]"]), (lambda x, y: x.sum(0) / x.shape[0] + y.shape[0] ** 2, ["f32[N,2]", "f32[(N+1)//2]"]),
    (lambda x, y, z: (x @ y) @ z / x.shape[0], ["f64[A,B]", "f64[B,C]", "f64[C,A]"]),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(PROGRAMS)))
def test_programs(k):
    function, types = PROGRAMS[k]
    assert check(trace(function, *types, name="f"), NUMBERS, 1, (0, 1)) == 2 * len(NUMBERS)


def source(function, *types):
    return source_of(trace(function, *types, name="f"))


DISAGREE = {
    "y has shape (2,), expected (N,) = (3,)": (["f64[N]", "f64[N]"], (3, 2)),
    "x has shape (4,), expected (2 * N + 1,) = (3,)": (["f64[2*N+1]", "f64[M]"], (4, 1)),
    "x: N is 0, and it is at least 1": (["f64[N]", "f64[M]"], (0, 1)),
    "y has shape (3,), expected (2 * max(N, 2),) = (4,)": (["f64[N]", "f64[max(N,2)*2]"], (2, 3)),
    "y: M is -1, and it is at least 1": (["f64[N]", "f64[N+M]"], (3, 2)),
}


@pytest.mark.parametrize("told", DISAGREE)
def test_what_disagrees_is_refused(told):
    types, shapes = DISAGREE[told]
    function = function_of(source(lambda x, y: (x.sum() + y.sum(), y), *types))
    with pytest.raises(ValueError, match=f"^{re.escape(told)}$"):
        function(*map(np.ones, shapes))


SOLVED = [
    ["f64[2*N+1]"], ["f64[3*N-2,N+M]"], ["f64[M*N]", "f64[M]"], ["f64[M+N]", "f64[N]"], ["f64[N//2]", "f64[N]"], ["f64[9-N]"],
    ["f64[40-3*N]"], ["f64[2*M*N+M]", "f64[M]"], ["f64[max(N,M)]", "f64[N]", "f64[M+2*N-1]"], ["f64[K]", "f64[N+2*K,K]"],
    ["f64[3*K]", "f64[K+N//K]", "f64[N]"], ["f64[E]", "f64[E//4]"], ["f64[3*E+2]"], ["f64[E//2+1]"], ["f64[2*M-N+9]", "f64[M]"],
]  # fmt: skip


@pytest.mark.parametrize("types", SOLVED, ids=" ".join)
def test_names_are_solved_for(types):
    """The first lines find the numbers that shapes were made of, and what they compare is equal."""
    with declaring(names_from_file({"E": {"multiple_of": 4}, "N": {"max": 8}})):
        graph = trace(lambda *xs: xs[0].sum(), *types, name="f").head
    names = {name.text: name for i in graph.inputs for n in i.type.shape for name in names_of(n)}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        due = {name: int(rng.integers(1, 8)) * names[name].multiple for name in sorted(names)}
        parameters = [f"x{k}" for k in range(len(types))]
        shapes = [[substituted(n, due) for n in i.type.shape] for i in graph.inputs]
        space = {p: np.zeros(shape) for p, shape in zip(parameters, shapes, strict=True)}
        for statement in read_sizes(graph, parameters, names):
            if isinstance(statement, str):
                exec(statement, space)
            else:
                assert not eval(statement[0], space), statement
        assert {name: space[name] for name in due} == due


@pytest.mark.parametrize(
    ("bounds", "number", "told"),
    [({"min": 2}, 1, "at least 2"), ({"max": 4}, 5, "at most 4"), ({"multiple_of": 4}, 6, "a multiple of 4")],
)
def test_bounds_of_the_document_hold(bounds, number, told):
    with declaring(names_from_file({"N": bounds})):
        document = trace(lambda x: x.reshape(2, -1) if "multiple_of" in bounds else x.sum(), "f64[N]", name="f")
    function = function_of(source_of(document))
    function(np.ones(4))
    with pytest.raises(ValueError, match=f"^x: N is {number}, and it is {told}$"):
        function(np.ones(number))


def test_a_size_that_no_input_says_is_refused():
    with pytest.raises(DocumentError, match=r"graph 'f': no input says what the size M is; .*size={'M': 32}.*; or write it with"):
        source(lambda x: x.sum(), "f64[M*N]")
    assert "M = " in source(lambda x, y: x.sum(), "f64[M*N]", "f64[N]")


def test_names_of_sizes_never_become_code():
    """Nor do they hide inputs, functions or modules."""
    names = ["np", "x", "v1", "d1", "k1", "f", "lambda", "len", "_", "__import__", "special", "body", "y", "ValueError"]
    types = [f"f64[{name}]" for name in names]
    text = source(lambda x, *others: x * x.shape[0] + sum(y.sum() * y.shape[0] for y in others), *types)
    assert text == source(lambda x, *others: x * x.shape[0] + sum(y.sum() * y.shape[0] for y in others), *types)
    made = function_of(text)(*[np.ones(k + 1) for k in range(len(names))])
    assert made.tolist() == [1 + sum(k**2 for k in range(2, len(names) + 1))]


def test_no_line_is_added_where_no_size_is_open():
    text = source(lambda x: x.sum(), "f64[3]")
    assert ".shape" not in text and "raise" not in text


@needs("ruff")
def test_black_leaves_it(tmp_path):
    made = [tidu_cli.materialize(trace(function, *types, name="f")) for function, types in PROGRAMS]
    made += [derived(document, 1) for document in made]
    made += [with_sizes(case) for p in BUILTIN if p.name not in REFUSED | WITHOUT for _, case, _ in cases(p.name)[:1]]
    long = "f64[" + "+".join(f"{c * 5}" for c in "abcdefgh") + "]"
    made.append(trace(lambda *xs: xs[0] * 2, long, *[f"f64[{c * 5}]" for c in "abcdefgh"], name="f"))
    made.append(trace(lambda x, y: (np.zeros(y.shape[0]) + y, x[: x.shape[0] - 1 : 2]), "f64[N]", "f64[max(N,4)*2+N%3]", name="f"))
    for k, document in enumerate(made):
        with contextlib.suppress(DocumentError):
            (tmp_path / f"f{k}.py").write_text(source_of(document))
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[:3000]
