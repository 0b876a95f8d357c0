"""Programs in files: what is not the program that was written is refused."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from benchmarks.generate import dag
from tests.strategies import seeds
from tidu_cli.errors import DocumentError, EvaluationError, UnknownNameError
from tidu_cli.formats import programs
from tidu_cli.formats.programs import format_program, is_program, parse_program
from tidu_cli.formats.source import Source
from tidu_cli.runtime.plans.program import compile_graph, grouped_program
from tidu_cli.runtime.stored import restored, stored

ROSENBROCK = tidu.load("samples/rosenbrock.json")
DAG = dag(600)
FILES = [
    format_program(*stored(program))
    for program in (compile_graph(tidu.materialize(ROSENBROCK).head), compile_graph(DAG.head), grouped_program(DAG.head))
    if program is not None
]


def read(data: bytes) -> Any:
    return restored(*parse_program(data, "p"), "p")


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(FILES), seeds, st.sampled_from(["flip", "cut", "extend"]))
def test_damage_is_found(data: bytes, seed: int, how: str) -> None:
    at = seed % len(data)
    broken = {"flip": data[:at] + bytes([data[at] ^ 1 << seed % 8]) + data[at + 1 :], "cut": data[:at], "extend": data + b"\0"}[how]
    with pytest.raises(DocumentError, match=r"^p: .*make it anew with tidu compile$"):
        read(broken)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(FILES), seeds)
def test_plans_that_are_none_are_refused(data: bytes, seed: int) -> None:
    """A plan of other numbers under a right digest is refused, or another plan: reading it raises nothing else."""
    cases, interface, plan = parse_program(data, "p")
    rng = np.random.default_rng(seed)
    name: Any = sorted(plan)[seed % len(plan)]
    fields = plan
    if isinstance(plan[name], list) and rng.random() < 0.9:
        fields, name = plan[name], rng.integers(len(plan[name]))
    if isinstance(fields[name], bytes) and fields[name]:
        numbers = bytearray(fields[name])
        numbers[rng.integers(len(numbers))] = rng.integers(256)
        fields[name] = bytes(numbers) if rng.random() < 0.7 else bytes(numbers[: rng.integers(len(numbers))])
    else:
        fields[name] = rng.choice([None, -1, 10**9, "x"])
    with suppress(EvaluationError):
        restored(cases, interface, plan, "p")


def test_files_are_of_either_plan() -> None:
    assert {parse_program(data, "p")[2]["kind"] for data in FILES} == {"steps", "groups"}


COLUMNS = {
    "steps": ("code", "left", "right", "target", "cleared", "input_slots", "output_slots"),
    "groups": ("code", "size", "begin", "input_places", "output_places", "operands"),
}


@pytest.mark.parametrize("wrong", [-5, 10**6])
@pytest.mark.parametrize(("data", "column"), [(f, c) for f in FILES for c in COLUMNS[parse_program(f, "p")[2]["kind"]]])
def test_numbers_out_of_range_are_refused(data: bytes, column: str, wrong: int) -> None:
    cases, interface, plan = parse_program(data, "p")
    fields = plan[column] if isinstance(plan[column], list) else [plan[column]]
    for k, field in enumerate(fields):
        numbers = np.frombuffer(field, "<i4")
        for at in {0, len(numbers) // 2, len(numbers) - 1}:
            broken = numbers.copy()
            broken[at] = wrong
            fields_of_it = [*fields[:k], broken.tobytes(), *fields[k + 1 :]]
            changed = {**plan, column: fields_of_it if isinstance(plan[column], list) else fields_of_it[0]}
            with pytest.raises(EvaluationError, match=r"^p: the program is damaged; make it anew with tidu compile$"):
                restored(cases, interface, changed, "p")


def test_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "__version__", "9.9")
    with pytest.raises(
        DocumentError, match=r"^p: a program made by tidu .*, and this is tidu 9\.9; make it anew with tidu compile$"
    ):
        read(FILES[0])
    packed = msgpack.packb({"tidu_program": 7, "made_by": "9.9", "sha256": b"", "content": b""})
    with pytest.raises(DocumentError, match=r"made by tidu 9\.9"):
        read(packed)


def test_told_apart_from_documents() -> None:
    assert all(is_program(Source(data)) for data in FILES)
    assert not is_program(Source(Path("samples/rosenbrock.json").read_bytes()))
    with pytest.raises(DocumentError, match="a compiled program, which only tidu eval takes"):
        tidu.api.parse_document(FILES[0], "p")


def test_same_program_same_bytes() -> None:
    assert FILES[1] == format_program(*stored(compile_graph(tidu.materialize(DAG).head)))


def test_compiled(tmp_path: Path) -> None:
    gradient = tidu.compile(tidu.grad(ROSENBROCK, ["x", "y"]))
    assert gradient.inputs == {"x": "f64[]", "y": "f64[]"}
    assert gradient.outputs == {"x@-1": "f64[]", "y@-1": "f64[]"}
    gradient.save(tmp_path / "g")
    for function in (gradient, tidu.load_program(tmp_path / "g")):
        assert {k: float(v) for k, v in function(x=2.0, y=1.0).items()} == {"x@-1": 2402.0, "y@-1": -600.0}
        assert {k: float(v) for k, v in function({"x": 2, "y": 1}).items()} == {"x@-1": 2402.0, "y@-1": -600.0}


def test_into_arrays_of_the_caller() -> None:
    step = tidu.compile(tidu.trace(lambda x: {"x2": x * 2, "s": x.sum()}, x="f64[3]"))
    x = np.ones(3)
    for _ in range(3):
        found = step(x=x, out={"x2": x})  # an input, too
        assert found["x2"] is x
    assert x.tolist() == [8, 8, 8] and found["s"] == 12
    with pytest.raises(UnknownNameError, match="no output 'z'"):
        step(x=x, out={"z": x})
    for wrong in (np.ones(2), np.ones(3, np.float32), [1.0, 2.0, 3.0]):
        with pytest.raises(EvaluationError, match=r"output x2: its array must be of float64\[3\], got "):
            step(x=x, out={"x2": wrong})
    x.flags.writeable = False
    with pytest.raises(EvaluationError, match="read-only"):
        step(x=x, out={"x2": x})


def test_memory_is_bounded() -> None:
    with pytest.raises(EvaluationError, match="more than the limit"):
        tidu.compile(tidu.trace(lambda x: {"y": x + 1}, x="f64[1000]"))(x=np.ones(1000), max_memory="1K")


def test_own_ops_and_records_go_along() -> None:
    for name in ("activations", "segment", "events"):
        document = tidu.load(f"samples/{name}.json")
        program = compile_graph(tidu.materialize(document).head)
        again = restored(*parse_program(format_program(*stored(program)), "p"), "p")
        assert again.n_steps == program.n_steps
        assert [c.op for c in map(again.graph.cases.__getitem__, again.code)] == [
            c.op for c in map(program.graph.cases.__getitem__, program.code)
        ]
        assert (again.inputs, again.outputs) == (program.inputs, tuple(replace(o, value=None) for o in program.outputs))
