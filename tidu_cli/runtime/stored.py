"""Programs as plain data and back: what `tidu compile` writes down, so that a later run need not plan anew.

The data are columns of integers, little-endian, of 32 bits; and two documents. In that of the cases node k is case k, whose
operands are inputs of its own; that of the interface has the inputs and outputs of the program, the latter without values. `needed`
are the numbers of the inputs that an output depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from tidu_cli.errors import EvaluationError
from tidu_cli.graph.builder import GraphBuilder
from tidu_cli.graph.columns.blocks import array_of, blocks, column_of, taken
from tidu_cli.graph.graph import CaseTable, Document, Graph, Input
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.rules.vocabulary import PrimitiveSet
from tidu_cli.runtime.plans.groups import LIST, SCALARS, GroupedProgram, Place, Single, vector_kernel
from tidu_cli.runtime.plans.interpreter import UNARY, WIDE, Program, Wide, reusing_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

NONE = -2
"""What stands for the place of a structural zero."""


def stored(program: Program | GroupedProgram) -> tuple[Document, Document, dict[str, object]]:
    """The cases, the interface and the plan of a program."""
    import numpy as np

    graph, code = program.graph, np.asarray(program.code, np.int32)
    used = list(dict.fromkeys(chain.from_iterable(code[block].tolist() for block in blocks(0, len(code)))))
    number = np.zeros(len(graph.cases), np.int32)
    number[used] = np.arange(len(used))
    plan = _plan_of_groups(program) if isinstance(program, GroupedProgram) else _plan_of_steps(program)
    interface = Graph(graph.name, graph.inputs, tuple(replace(o, value=None) for o in program.outputs), graph.cases)
    cases = _cases(graph.cases, used)
    place = {i.key: k for k, i in enumerate(graph.inputs)}
    plan |= {"needed": _bytes([place[i.key] for i in program.inputs]), "code": _bytes(taken(number, code))}
    return Document((cases,), cases.cases), Document((interface,), graph.cases), plan


def restored(cases: Document, interface: Document, plan: Mapping[str, Any], where: str) -> Program | GroupedProgram:
    """The program of this data, which was read from `where`. Raises EvaluationError where it is none."""
    primitives = vocabulary(cases.cases)
    nodes, ends = cases.head, interface.head
    try:
        code = _integers(plan["code"])
        _require(_within(code, nodes.n_nodes))
        code = taken(array_of(nodes.code), code)
        graph = Graph(ends.name, ends.inputs, ends.outputs, cases.cases)
        needed = _integers(plan["needed"])
        _require(_within(needed, len(ends.inputs)))
        inputs = tuple(ends.inputs[k] for k in needed.tolist())
        if plan["kind"] == "groups":
            return _groups(graph, inputs, primitives, plan, code)
        return _steps(graph, inputs, primitives, plan, code)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, StopIteration):
        raise EvaluationError(f"{where}: the program is damaged; make it anew with tidu compile") from None


def _cases(table: CaseTable, used: Sequence[int]) -> Graph:
    builder = GraphBuilder(CaseTable(table.vocabulary))
    cases = [replace(table[code], mask=None) for code in used]
    types = [t for case in cases for t in case.operands]
    builder.inputs += [Input(Key(f"x{k}"), t) for k, t in enumerate(types) if t is not None]
    builder.n_values = len(types)
    read = 0
    for case in cases:
        builder.append(builder.cases.intern(case), range(read, read + len(case.operands)))
        read += len(case.operands)
    return builder.build("cases", [])


def _plan_of_steps(program: Program) -> dict[str, object]:
    import numpy as np

    slots = [NONE if slot is None else slot for slot in program.output_slots]
    wide = [n for w in program.wide for part in (w.reads, w.writes, w.clears) for n in (len(part), *part)]
    columns = {name: _bytes(getattr(program, name)) for name in ("node", "left", "right", "target", "cleared")}
    # Of each step 0, or 1 more than the operand whose memory it takes.
    kernel, reuses = array_of(program.kernel), np.zeros(program.n_steps, np.uint8)
    for block in blocks(0, program.n_steps):
        reuses[block] = np.where(kernel[block] < 0, 1 + (-1 - kernel[block]) % 2, 0)
    return {
        "kind": "steps",
        "n_slots": program.n_slots,
        "input_slots": _bytes(program.input_slots),
        "output_slots": _bytes(slots),
        "reuses": reuses.tobytes(),
        "wide": _bytes(wide),
        "constant": program.constant,
        **columns,
    }


def _plan_of_groups(program: GroupedProgram) -> dict[str, object]:
    outputs = [(NONE, 0) if place is None else place for place in program.output_places]
    singles = [n for s in program.singles for part in (s.reads, s.writes) for n in (len(part), *_flat(part))]
    return {
        "kind": "groups",
        "input_places": _bytes(_flat(program.input_places)),
        "output_places": _bytes(_flat(outputs)),
        "dtypes": list(program.dtypes),
        "lengths": list(program.lengths),
        "n_entries": program.n_entries,
        "size": _bytes(program.size),
        "begin": _bytes(program.begin),
        "operands": [_bytes(numbers) for numbers in program.operands],
        "singles": _bytes(singles),
    }


def _steps(
    graph: Graph, inputs: tuple[Input, ...], primitives: PrimitiveSet, plan: Mapping[str, Any], code: NDArray[Any]
) -> Program:
    import numpy as np

    n, n_slots = len(code), int(plan["n_slots"])
    node, left, right, target, cleared = (_integers(plan[name]) for name in ("node", "left", "right", "target", "cleared"))
    _require({len(c) for c in (node, left, right, target, cleared)} == {n} and len(plan["reuses"]) == n)
    numbers = iter(_integers(plan["wide"]).tolist())
    wide = []
    for reads in numbers:
        wide.append(Wide(_take(numbers, reads), _take(numbers, next(numbers)), _take(numbers, next(numbers))))
    arity, n_results = (np.array(of_case, np.int32)[code] for of_case in (graph.cases.arity, graph.cases.n_results))
    is_wide = right == WIDE
    _require(bool(((arity == np.where(right == UNARY, 1, 2)) & (n_results == 1) | is_wide).all()))
    _require(_within(left[~is_wide], n_slots) and _within(right[right >= 0], n_slots) and bool((right >= WIDE).all()))
    _require(_within(left[is_wide], len(wide)) and _within(target, n_slots) and _within(cleared, n_slots))
    for step in np.flatnonzero(is_wide).tolist():
        slots = wide[left[step]]
        _require((len(slots.reads), len(slots.writes)) == (arity[step], n_results[step]))
        _require(_within(np.array([*slots.reads, *slots.writes, *slots.clears], np.int32), n_slots))
    entries, outputs = _integers(plan["input_slots"]), _integers(plan["output_slots"])
    _require(len(entries) == len(inputs) and len(outputs) == len(graph.outputs) and _within(entries, n_slots))
    _require(_within(outputs[outputs != NONE], n_slots))
    reuses = np.frombuffer(plan["reuses"], np.uint8)
    kernel = np.where(reuses > 0, -1 - (2 * code + reuses.astype(np.int32) - 1), code)
    for number in np.unique(kernel[kernel < 0]).tolist():
        case_number, operand = divmod(-1 - number, 2)
        case = graph.cases[case_number]
        _require(operand < 2 and reusing_kernel(np, primitives[case.op], case, operand) is not None)
    _require(bool((node >= 0).all()))
    constant = np.frombuffer(plan["constant"], bool)
    made = Program(
        graph=graph,
        primitives=primitives,
        inputs=inputs,
        input_slots=tuple(entries.tolist()),
        outputs=graph.outputs,
        output_slots=tuple(None if slot == NONE else slot for slot in outputs.tolist()),
        n_slots=n_slots,
        node=column_of(node),
        code=column_of(code),
        kernel=column_of(kernel),
        left=column_of(left),
        right=column_of(right),
        target=column_of(target),
        cleared=column_of(cleared),
        wide=tuple(wide),
        constant=constant.tobytes(),
    )
    _require(len(constant) == n)
    known: set[int] = set()
    for slots in map(made.slots, np.flatnonzero(constant).tolist()):
        _require(known.issuperset(slots.reads))
        known.update(slots.writes)
    return made


def _groups(
    graph: Graph, inputs: tuple[Input, ...], primitives: PrimitiveSet, plan: Mapping[str, Any], code: NDArray[Any]
) -> GroupedProgram:
    import numpy as np

    dtypes, lengths, n_entries = tuple(plan["dtypes"]), tuple(map(int, plan["lengths"])), int(plan["n_entries"])
    _require(len(dtypes) == len(lengths) and len(set(dtypes)) == len(dtypes) and set(dtypes) <= set(SCALARS))
    length = dict(zip(dtypes, lengths, strict=True))
    size, begin = _integers(plan["size"]), _integers(plan["begin"])
    _require(len(size) == len(begin) == len(code) and bool((size >= 0).all()))
    operands = tuple(_integers(data) for data in plan["operands"])
    arity = np.array(graph.cases.arity)[code]
    for k, numbers in enumerate(operands):
        reading = (arity > k) & (size > 0)
        bounds = [_length(length, graph.cases[c].operands[k]) for c in code[reading].tolist()]
        ends = np.cumsum(size[reading])
        _require(len(numbers) == (int(ends[-1]) if len(ends) else 0))
        if len(numbers):
            greatest = np.maximum.reduceat(numbers, ends - size[reading])
            _require(int(numbers.min()) >= 0 and bool((greatest < np.array(bounds)).all()))
    grouped = size > 0
    _require(all(vector_kernel(np, primitives, graph.cases[c]) is not None for c in set(code[grouped].tolist())))
    _require(int(arity[grouped].max(initial=0)) <= len(operands))
    ends = np.array([_length(length, graph.cases[c].results[0]) for c in code[grouped].tolist()], np.int64)
    _require(bool(((begin[grouped] >= 0) & (begin[grouped] + size[grouped] <= ends)).all()))

    def places(numbers: Iterable[int]) -> tuple[Place, ...]:
        flat = list(numbers)
        found = tuple(zip(flat[::2], flat[1::2], strict=True))
        _require(all(LIST <= array < len(lengths) and 0 <= k < (lengths[array] if array >= 0 else n_entries) for array, k in found))
        return found

    numbers = iter(_integers(plan["singles"]).tolist())
    singles = [Single(places(_take(numbers, 2 * n)), places(_take(numbers, 2 * next(numbers)))) for n in numbers]
    alone = code[~grouped].tolist()
    _require([(len(s.reads), len(s.writes)) for s in singles] == [(graph.cases.arity[c], graph.cases.n_results[c]) for c in alone])
    ways_out = _integers(plan["output_places"]).reshape(-1, 2)
    zero = ways_out[:, 0] == NONE
    found = iter(places(ways_out[~zero].reshape(-1).tolist()))
    made = GroupedProgram(
        graph=graph,
        primitives=primitives,
        inputs=inputs,
        input_places=places(_integers(plan["input_places"]).tolist()),
        outputs=graph.outputs,
        output_places=tuple(None if z else next(found) for z in zero.tolist()),
        dtypes=dtypes,
        lengths=lengths,
        n_entries=n_entries,
        code=code,
        size=size,
        begin=begin,
        operands=operands,
        singles=tuple(singles),
    )
    _require(len(made.input_places) == len(inputs) and len(made.output_places) == len(graph.outputs))
    return made


def _length(length: Mapping[str, int], type_: Any) -> int:
    return length[type_.dtype] if isinstance(type_, TensorType) else 0


def _require(condition: bool) -> None:
    if not condition:
        raise ValueError("not what a program is like")


def _within(numbers: NDArray[Any], end: int) -> bool:
    return not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < end)


def _flat(places: Iterable[Place]) -> list[int]:
    return [n for place in places for n in place]


def _take(numbers: Iterator[int], n: int) -> tuple[int, ...]:
    _require(n >= 0)
    return tuple([next(numbers) for _ in range(n)])


def _bytes(numbers: Sequence[int] | NDArray[Any]) -> memoryview:
    """The integers as they are in files, in the memory of the column where that is the same."""
    import numpy as np

    return np.asarray(numbers, "<i4").view(np.uint8).data


def _integers(data: bytes) -> NDArray[Any]:
    import numpy as np

    return np.frombuffer(data, "<i4").astype(np.int32, copy=False)
