"""Loops that run on: engines count steps alike, and what runs more of them than the limit is refused, or gets no verdict."""

from __future__ import annotations

import json
import random
import re
from importlib.util import find_spec

import pytest

import tidu_cli
from tests.cli.running import invoke, succeed
from tests.custom.making import body, unary
from tests.graphs.loops import F64, NESTED, SCAN, WHILE, document, graph, node
from tests.programs import needs
from tidu_cli import limits
from tidu_cli.errors import StepsError
from tidu_cli.formats.read import parse_document

LOOPS = {
    "while": (WHILE, {"tol": 1.0, "h": 0.5, "a": 1000.0}, 10),
    "scan": (SCAN, {"k": 1.0, "s0": 1.0, "xs": [1.0] * 4}, 4),
    "nested": (NESTED, {"a": 1.0, "y": 1.0, "ks": [False, True, False, False, True]}, 14),
}
"""A document, inputs, and how many steps its loops run at them, counted by hand."""

ENGINES = ["numpy", pytest.param("native", marks=needs("llvmlite"))]


def read(data: bytes) -> tidu_cli.Document:
    return parse_document(data, "here")[0]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", LOOPS)
def test_as_many_steps_as_there_are_are_enough_and_one_fewer_is_not(name, engine):
    data, inputs, n = LOOPS[name]
    expected = tidu_cli.evaluate(read(data), inputs)
    assert str(tidu_cli.evaluate(read(data), inputs, engine=engine, max_steps=n)) == str(expected)
    place = rf"graph 'f', node \d+ \({'while' if name == 'while' else 'scan'}\)"
    with pytest.raises(StepsError, match=rf"^{place}: its loops run on, more than the limit of {n - 1} steps; allow more with"):
        tidu_cli.evaluate(read(data), inputs, engine=engine, max_steps=n - 1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("allowed", "place"), [(5, "node 1 (loop)"), (15, "node 2 (scan)")])
def test_the_node_is_the_one_that_runs_on(allowed, place, engine):
    scan = {"length": 10, "num_consts": 0, "num_carry": 1, "body": graph({"s": F64}, [node("sin", 0)], {"s": 1})}
    ops = {"loop": unary(body("x", [("scan", 0, scan)], {"y": 1}), F64)}
    both = graph({"x": F64}, [node("sin", 0), node("loop", 1), node("scan", 2, **scan), node("cos", 3)], {"y": 4})
    with pytest.raises(StepsError, match=re.escape(f"graph 'f', {place}: its loops run on, ")):
        tidu_cli.evaluate(read(document(both, ops=ops)), x=1.0, engine=engine, max_steps=allowed)


@pytest.mark.parametrize("engine", ENGINES)
def test_batches_count_the_steps_of_each_item(engine):
    batch = {"tol": 1.0, "h": 0.5, "a": [1000.0, 2.0, 3.0]}
    for n, fits in ((10, True), (9, False)):
        if fits:
            assert tidu_cli.evaluate(read(WHILE), batch, batch={"a": 0}, engine=engine, max_steps=n)["a"].shape == (3,)
            continue
        with pytest.raises(StepsError, match=r"graph 'f', node 0 \(while\): its loops run on"):
            tidu_cli.evaluate(read(WHILE), batch, batch={"a": 0}, engine=engine, max_steps=n)


def test_the_command_names_graph_node_number_and_option():
    told = invoke("eval", "-", "--set", "tol=1", "--set", "h=1", "--set", "a=2", "--max-steps", "1k", input=WHILE)
    assert told.exit_code == 1
    assert told.stderr == (
        "tidu eval: error: graph 'f', node 0 (while): its loops run on, more than the limit of 1,000 steps;"
        " allow more with --max-steps N\n"
    )


def long_scan(length: int, *outputs: str) -> bytes:
    body = graph({"s": F64}, [node("sin", 0)], {"s": 1, **dict.fromkeys(outputs, 1)})
    return document(
        graph(
            {"s": F64},
            [node("scan", 0, length=length, num_consts=0, num_carry=1, body=body)],
            {"s": 1, **dict.fromkeys(outputs, 2)},
        )
    )


def test_a_scan_as_long_as_one_likes_is_planned_at_once_and_refused_by_what_it_takes():
    told = invoke("eval", "-", "--set", "s=1", "--engine", "numpy", "--max-steps", "1M", input=long_scan(10**12))
    assert told.exit_code == 1 and "node 0 (scan): its loops run on, more than the limit of 1,000,000 steps" in told.stderr
    told = invoke("eval", "-", "--set", "s=1", "--max-memory", "1G", input=long_scan(10**12, "y"))
    assert told.exit_code == 1 and "TiB, more than the limit of 1 GiB" in told.stderr and "--max-memory" in told.stderr


@pytest.mark.check
def test_check_gives_no_verdict_on_a_loop_that_never_ends():
    condition, body = graph({"x": F64}, [node("eq", 0, 0)], {"go": 1}), graph({"x": F64}, [node("neg", 0)], {"x": 1})
    endless = node("while", 0, cond_consts=0, body_consts=0, condition=condition, body=body)
    text = succeed("check", "-", "--numeric", input=document(graph({"x": F64}, [endless], {"x": 1}))).decode()
    assert "no verdict" in text and "more than the limit of 1,000,000 steps" in text


def test_the_variable_sets_the_limit(monkeypatch):
    monkeypatch.setenv("TIDU_MAX_STEPS", "9")
    told = invoke("eval", "-", *[x for k, v in LOOPS["while"][1].items() for x in ("--set", f"{k}={json.dumps(v)}")], input=WHILE)
    assert told.exit_code == 1 and "limit of 9 steps" in told.stderr


def random_loop(rng: random.Random, depth: int) -> tuple[dict, int]:
    """A graph x -> x of nested loops with fixed numbers of steps, and the total number of steps."""
    inner, n_inner = random_loop(rng, depth - 1) if depth else (graph({"x": F64}, [node("sin", 0)], {"x": 1}), 0)
    n = rng.randrange(5)
    total = n * (1 + n_inner)
    if rng.randrange(2):
        return graph({"x": F64}, [node("scan", 0, length=n, num_consts=0, num_carry=1, body=inner)], {"x": 1}), total
    condition = graph({"n": F64, "k": F64, "x": F64}, [node("lt", 1, 0)], {"go": 3})
    one = node("constant", value={"type": F64, "data": [1.0]})
    call = node("scan", 1, length=1, num_consts=0, num_carry=1, body=inner) if depth else node("sin", 1)
    body = graph({"k": F64, "x": F64}, [one, node("add", 0, 2), call], {"k": 3, "x": 4})
    limit, zero = (node("constant", value={"type": F64, "data": [float(v)]}) for v in (n, 0))
    loop = node("while", 1, 2, 0, cond_consts=1, body_consts=0, condition=condition, body=body)
    return graph({"x": F64}, [limit, zero, loop], {"x": 4}), n * (1 + (1 + n_inner if depth else 0))


def agree_on_random_loops(cases: int) -> None:
    for seed in range(cases):
        rng = random.Random(seed)
        data, n = random_loop(rng, rng.randrange(4))
        loops = read(document(data))
        expected = tidu_cli.evaluate(loops, x=0.5, engine="numpy")["x"]
        for engine in ("numpy", "native") if find_spec("llvmlite") else ("numpy",):
            given = {"x": 0.5}
            if n:
                assert abs(tidu_cli.evaluate(loops, given, engine=engine, max_steps=n)["x"] - expected) < 1e-14, seed
            if n > 1:
                with pytest.raises(StepsError):
                    tidu_cli.evaluate(loops, given, engine=engine, max_steps=n - 1)


def test_engines_count_nested_loops_alike():
    agree_on_random_loops(20)


@pytest.mark.campaign
def test_engines_count_nested_loops_alike_many_times():
    agree_on_random_loops(5000)


@pytest.mark.check
@pytest.mark.parametrize("steps", [20_000, pytest.param(limits.DRAWN_STEPS, marks=pytest.mark.campaign)])
def test_check_looks_for_inputs_at_which_loops_end(steps, monkeypatch):
    monkeypatch.setattr(limits, "DRAWN_STEPS", steps)
    # s <- s x while s < 100 runs on at |x| < 1, and comes to an end at a point from another interval.
    condition = graph({"h": F64, "s": F64}, [node("lt", 1, 0)], {"go": 2})
    body = graph({"x": F64, "s": F64}, [node("mul", 1, 0)], {"s": 2})
    nodes = [
        node("constant", value={"type": F64, "data": [100.0]}),
        node("constant", value={"type": F64, "data": [1.0]}),
        node("while", 1, 0, 2, cond_consts=1, body_consts=1, condition=condition, body=body),
    ]
    data = document(graph({"x": F64}, nodes, {"s": 3}))
    verdicts = [json.loads(succeed("check", "-", "--numeric", "--json", "--seed", str(seed), input=data)) for seed in range(6)]
    said = [v["stdin"]["numeric"]["jvp"] for v in verdicts]
    assert all(v["ok"] for v in said) and any(v["error"] is not None for v in said), said
    assert all(f"{steps:,} steps" in v["why"][0] for v in said if v["error"] is None), said


def test_laws_whose_loops_end_get_their_verdicts_where_others_run_on():
    # f takes 400 steps, f and its derivative 800, and what the second derivative needs as well more than 1,000.
    said = json.loads(succeed("check", "-", "--numeric", "--json", "--max-steps", "1000", input=long_scan(400)))["stdin"]["numeric"]
    assert {law for law, v in said.items() if v["error"] is None} == {"second", "symmetry"}
    assert all("more than the limit of 1,000 steps" in said[law]["why"][0] for law in ("second", "symmetry"))
    assert all(v["ok"] and "why" not in v for law, v in said.items() if v["error"] is not None)


@pytest.mark.check
@needs("distributed")
def test_machines_count_steps_too():
    batch = ("--set", "s=[1,2]", "--batch", "s=0", "--max-steps", "9")
    for scheduler in ((), ("--scheduler", "local:1")):
        told = invoke("eval", "-", *batch, *scheduler, input=long_scan(10))
        assert told.exit_code == 1 and told.stderr.count("\n") == 1, told.stderr
        assert "its loops run on, more than the limit of 9 steps; allow more with --max-steps N" in told.stderr
