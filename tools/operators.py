"""The tables of docs/onnx.md: which operators are read, what became of their tests, and what primitives are written as.

They stand between comments, `<!-- NAME: make generated -->` and `<!-- end -->`; the rest of the page is written by hand. This file
is not named as the package onnx is, which scripts beside it would import in its stead.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import onnx

from tests.onnx.operators.node_tests import Outcome, cases, has_tensors_only, outcome
from tidu_cli.adapters.onnx.reading.operators.index import operators, refusals
from tidu_cli.adapters.onnx.writing.lowering import Body, Lowering, NoMeaningError
from tidu_cli.adapters.onnx.writing.model import OPSET
from tidu_cli.adapters.onnx.writing.templates import LOWERINGS
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.graph.graph import Case
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import Primitive

PAGE = Path(__file__).parents[1] / "docs" / "onnx.md"

DOMAINS = {"ai.onnx": "", "ai.onnx.ml": "ai.onnx.ml", "com.microsoft": "com.microsoft"}

PART = re.compile(r"(<!-- ([\w. ]+): make generated -->\n).*?(<!-- end -->)", re.S)


def renewed(page: str) -> str:
    """The page with the tables of today."""
    return PART.sub(lambda match: "\n".join((match[1], *_part(match[2]), "", match[3])), page)


def _part(name: str) -> Iterable[str]:
    if name == "tests":
        return tests_table()
    return written_table() if name == "primitives" else operators_table(DOMAINS[name])


@cache
def outcomes() -> Mapping[str, Outcome]:
    """What becomes of the tests of operators in the package onnx that have tensors of numbers only, by name."""
    return {name: outcome(case) for name, case in cases().items() if has_tensors_only(case)}


def tests_table() -> Iterator[str]:
    """How many tests pass, and why the others do not."""
    results = outcomes()
    kinds = Counter(o.kind for o in results.values())
    why = Counter(_reason(o.text) for o in results.values() if o.kind == "refused")
    yield from (f"| tests of onnx {onnx.__version__} | |", "|---|---:|")
    yield f"| of strings, sequences, maps or optional values: not tried | {len(cases()) - len(results)} |"
    yield f"| of arrays of numbers | {len(results)} |"
    yield f"| the values are those of the test | {kinds['passed']} |"
    yield f"| **the values are others** | **{kinds['wrong'] + kinds['broken']}** |"
    yield f"| refused with a reason | {kinds['refused']} |"
    yield from (f"| refused: {reason} | {n} |" for reason, n in sorted(why.items(), key=lambda item: (-item[1], item[0])))


REASONS = {
    "elements of type": "floats of 4 or 8 bits, to which nothing is rounded",
    "not a type of integers": "floats of 4 or 8 bits, to which nothing is rounded",
    "does not read": "an operator that is not read",
    "is no operator": "an operator that is not read",
    "by chance": "random numbers",
    "random": "random numbers",
    "have no primitive": "numbers taken as the bits of others",
    "strings": "strings",
    "decodes files": "files of images",
    "as many results as": "shapes that depend on values",
    "shape of its result": "shapes that depend on values",
    "needs the value": "shapes that depend on values",
}


def _reason(text: str) -> str:
    return next((reason for part, reason in REASONS.items() if part in text), "another reason, which the message gives")


def operators_table(domain: str) -> Iterator[str]:
    """The operators of a domain: whether they are read, and how many of their tests pass."""
    schemas = {s.name: s for s in onnx.defs.get_all_schemas() if s.domain == domain}
    passed, tried = _tests_of(domain)
    yield from ("| operator | read | tests | |", "|---|---|---:|---|")
    for name in sorted({*schemas, *operators(domain), *refusals(domain)}):
        schema = schemas.get(name)
        is_read, note = name in operators(domain), ""
        if is_read:
            note = "deprecated, but in older models" if schema is not None and schema.deprecated else ""
        elif name not in refusals(domain) and schema is not None and _is_expanded(schema):
            is_read = bool(passed[name] or not tried[name])
            note = "as the function that defines it" if is_read else _kind(schema)
        else:
            note = refusals(domain).get(name) or _kind(schema)
        yield f"| `{name}` | {'yes' if is_read else 'no'} | {f'{passed[name]} of {tried[name]}' if tried[name] else ''} | {note} |"


KINDS = {"sequences": "seq(", "maps": "map(", "optional values": "optional(", "strings": "tensor(string"}
RANDOM = ("Bernoulli", "Multinomial", "Random")


def _is_expanded(schema: Any) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)


def _kind(schema: Any) -> str:
    """What an operator takes or gives that is not an array of numbers, if anything, or what else keeps it from being read."""
    for parameter in (*schema.inputs, *schema.outputs):
        for kind, start in KINDS.items():
            if parameter.types and all(t.startswith(start) for t in parameter.types):
                return f"of {kind}"
    return "of random numbers" if schema.name.startswith(RANDOM) else ""


def _tests_of(domain: str) -> tuple[Counter[str], Counter[str]]:
    """How many tests of each operator pass, and how many there are; those of its function's body are not counted."""
    passed: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for test, result in outcomes().items():
        if "_expanded" not in test:
            names = {node.op_type for node in cases()[test].model.graph.node if node.domain == domain}
            tried.update(names)
            passed.update(names if result.kind == "passed" else ())
    return passed, tried


def written_table() -> Iterator[str]:
    """What the primitives are written as: the operators of the first of their examples, of f32 if it takes that."""
    written = {primitive.name: _written(primitive) for primitive in BUILTIN}
    refused = [_linked(name) for name, text in written.items() if not text]
    yield from ("| primitive | operators |", "|---|---|")
    yield from (f"| {_linked(name)} | {text} |" for name, text in written.items() if text)
    yield from ("", f"Not written, as no operators of ONNX compute them: {', '.join(refused)}.")


def _linked(name: str) -> str:
    return f"[`{name}`](primitives.md#{name})"


def _written(primitive: Primitive) -> str:
    """The operators that a primitive is written as, nothing if it is not."""
    if primitive.name == "constant":
        return "an initializer"
    if primitive.evaluation.definition is not None and primitive.name not in LOWERINGS:
        return "what it is defined by (`tidu ops`)"
    examples = [case for _, case in example_cases(BUILTIN, primitive)]
    for case in sorted(examples, key=lambda case: "f32" not in _dtypes(case)):
        body = Body(OPSET, "t")
        try:
            Lowering(body, case, LOWERINGS, BUILTIN).written([f"i{k}" for k in range(len(case.operands))])
        except NoMeaningError:
            continue
        graphs = getattr(case.attrs, "graphs", ())  # whose own nodes are of the example
        nodes = [node for node in body.nodes if not graphs or any(a.HasField("g") for a in node.attribute)]
        return ", ".join(dict.fromkeys(f"`{node.op_type}`" for node in nodes)) or "its operand"
    return ""


def _dtypes(case: Case) -> set[str]:
    return {getattr(type_, "dtype", "") for type_ in (*case.operands, *case.results)}


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
