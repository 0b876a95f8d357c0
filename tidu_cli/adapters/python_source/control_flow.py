"""Loops and branches: functions within the function, called by plain loops and ifs of Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidu_cli.adapters.python_source.arrays import Results, Write
from tidu_cli.adapters.python_source.elements import dtype_text
from tidu_cli.adapters.python_source.text import Text, call, identifier, shape_text, size_text
from tidu_cli.graph.sizes.open import least


def _started(unit: Any, texts: Sequence[str], ports: Sequence[Any]) -> list[str]:
    """Variables that a loop changes, with their first values."""
    names = [unit.names.new(identifier(str(port.key))) for port in ports]
    for name, text in zip(names, texts, strict=True):
        unit.emit(f"{name} = {text}")
    return names


def _calls(unit: Any, targets: Sequence[str], function: str, arguments: Sequence[str], deeper: int = 1) -> None:
    """Assign what a function gives."""
    unit.emit(f"{', '.join(targets)}{' = ' if targets else ''}{function}({', '.join(arguments)})", deeper)


def _scan(unit: Any, case: Any, xs: list[Text]) -> Results:
    a, graph = case.attrs, case.attrs.body.graph
    first, end, length = a.num_consts, a.num_consts + a.num_carry, a.length
    texts = [unit.full(x, t) for x, t in zip(xs, case.operands, strict=True)]
    stacked = case.results[a.num_carry :]
    if length == 0:
        rest = [call(f"np.zeros({shape_text(t.shape)}, dtype={dtype_text(t.dtype)})", t.shape) for t in stacked]
        return [*xs[first:end], *rest]
    body = unit.module.inner(unit, graph, "body", "body")
    texts = [text if first <= k < end else unit.simple(call(text, ())).code for k, text in enumerate(texts)]
    carry = _started(unit, texts[first:end], graph.inputs[first:end])
    items = [unit.names.new(f"{identifier(str(o.key))}_k") for o in graph.outputs[a.num_carry :]]
    lists = [unit.names.new(f"{item}s") for item in items]
    for name in lists:
        unit.emit(f"{name} = []")
    k = unit.names.numbered("k")
    steps = f"range({size_text(length)})"
    unit.emit(f"for {k} in {f'reversed({steps})' if a.reverse else steps}:")
    scanned = [f"{text}[{k}]" for text in texts[end:]]
    _calls(unit, [*carry, *items], body, [*texts[:first], *carry, *scanned])
    for name, item in zip(lists, items, strict=True):
        unit.emit(f"{name}.append({item})", 1)
    results = [call(name, t.shape) for name, t in zip(carry, case.results, strict=False)]
    lists = [f"{name}[::-1]" if a.reverse else name for name in lists]
    if least(length) == 0:  # NumPy stacks one array at least
        return results + [call(_stacked(name, t), t.shape) for name, t in zip(lists, stacked, strict=True)]
    return results + [call(f"np.stack({name})", t.shape) for name, t in zip(lists, stacked, strict=True)]


def _stacked(name: str, type_: Any) -> str:
    """What a list of arrays is, which may be empty."""
    return f"np.reshape(np.array({name}, dtype={dtype_text(type_.dtype)}), {shape_text(type_.shape)})"


def _while(unit: Any, case: Any, xs: list[Text]) -> Results:
    a = case.attrs
    texts = [unit.full(x, t) for x, t in zip(xs, case.operands, strict=True)]
    condition = unit.module.inner(unit, a.condition.graph, "condition", "condition")
    body = unit.module.inner(unit, a.body.graph, "body", "body")
    *both, first = a.split(texts)
    of_condition, of_body = ([unit.simple(call(text, ())).code for text in some] for some in both)
    carry = _started(unit, first, a.body.graph.inputs[a.body_consts :])
    unit.emit(f"while {condition}({', '.join([*of_condition, *carry])}):")
    _calls(unit, carry, body, [*of_body, *carry])
    return [call(name, t.shape) for name, t in zip(carry, case.results, strict=True)]


def _cond(unit: Any, case: Any, xs: list[Text]) -> Results:
    of_bool = case.operands[0].dtype == "bool"
    branches = [b.graph for b in case.attrs.branches[: 2 if of_bool else None]]
    texts = [unit.full(x, t) for x, t in zip(xs, case.operands, strict=True)]
    index, *arguments = [unit.simple(call(text, ())).code for text in texts]
    functions = [unit.module.inner(unit, graph, "branch", f"branches[{k}]") for k, graph in enumerate(branches)]
    targets = [unit.named(k) for k in range(len(case.results))]
    last = len(functions) - 1
    if of_bool:
        tests = {1: index} if last else {}
        last = 0
    else:
        tests = {k: f"{index} <= 0" if not k else f"{index} == {k}" for k in range(last)}
    for n, (k, test) in enumerate(tests.items()):
        unit.emit(f"{'elif' if n else 'if'} {test}:")
        _calls(unit, targets, functions[k], arguments)
    if tests:
        unit.emit("else:")
    _calls(unit, targets, functions[last], arguments, int(bool(tests)))
    return [call(name, t.shape) for name, t in zip(targets, case.results, strict=True)]


CONTROL: dict[str, Write] = {"scan": _scan, "while": _while, "cond": _cond}
"""By op."""
