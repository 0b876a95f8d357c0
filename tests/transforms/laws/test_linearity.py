"""What transforms write is linear, as readers see it; and readers refuse what is not, by columns as node by node."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.custom.making import own_documents
from tests.graphs.interpret import free_inputs
from tests.graphs.sketch import key
from tests.graphs.strategies import ANY, documents
from tests.tiers import examples, few
from tests.transforms.large.test_bulk import large_from
from tests.transforms.large.test_recompute import policies
from tests.transforms.laws.test_laws import law, wrt_of
from tidu_cli.checking.numeric.trials import draw, example_cases, of_operand, one_node_document
from tidu_cli.errors import DocumentError, MissingRuleError, TransformError, TypeRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Case, Document
from tidu_cli.graph.literals import filled
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.recording.linearity import zeros_due
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.rename import bind_constants
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.recompute import recompute
from tidu_cli.transforms.transpose import transpose


def derived(document: Document, policy: object) -> Iterator[Document]:
    """Documents of the first and second order, forward and reverse, and what other transforms make of them."""
    wrt = wrt_of(document, 0)
    first = linearize(document, wrt)
    backward = transpose(first)
    yield from (first, backward)
    detached = [detach(d, len(document.graphs)) for d in (first, backward)]
    yield from detached
    yield resolve([document, detached[0]])
    yield transpose(backward)
    for one in (first, backward):
        second = linearize(one, wrt)
        yield from (second, transpose(second), materialize(second), recompute(materialize(transpose(second)), policy))
        for seed in one.head.inputs[:1]:
            yield materialize(bind_constants(second, {seed.key: filled(seed.type, 1.0)}))
        try:
            yield matrix(one)
        except TransformError:  # the blocks would be too large, or no real numbers
            continue


@settings(law, max_examples=examples(80, check=12))
@given(documents(makers=ANY, max_nodes=5), policies, st.sampled_from([0, 1e9]))
def test_what_transforms_write_is_read(document, policy, n_nodes) -> None:
    with large_from(n_nodes, block=7):
        for made in derived(document, policy):
            for format in ("json", "msgpack"):
                data = format_document(made, format)
                assert format_document(parse_document(data, "made")[0], format) == data


@settings(law, max_examples=examples(80, check=35))
@given(own_documents(), st.sampled_from([0, 1e9]))
def test_what_own_ops_become_is_read(document, n_nodes) -> None:
    assume(any(t.inexact for t in free_inputs(document).values()))  # integers alone carry no tangents
    with large_from(n_nodes, block=7):
        try:
            first = linearize(document, wrt_of(document, 0))
        except MissingRuleError:  # some have no derivative
            return
        for made in (first, transpose(first)):
            assert parse_document(format_document(made, "json"), "made")


WIDTH = re.compile(r"\bb?([fc])\d+")


@pytest.mark.parametrize("op", [p.name for p in BUILTIN])
def test_derivatives_of_every_primitive_are_read(op) -> None:
    primitive = BUILTIN[op]
    # Roles and zeros do not depend on how wide a float is.
    cases = {WIDTH.sub(r"\1", str(case)): case for _, case in example_cases(BUILTIN, primitive)}
    for n, case in enumerate(few(cases.values(), 2)):
        document = one_node_document(case)
        moving = [i.key for k, i in enumerate(document.head.inputs) if i.type.inexact and k not in primitive.rules.inert]
        for wrt in [moving, *([k] for k in few(moving, 2) if n < 3)]:  # one by one takes most of the time
            if wrt:
                first = linearize(document, wrt)
                turned = linearize(first, wrt) if BUILTIN.is_irreversible([case]) else transpose(first)
                for made in (first, turned, linearize(turned, wrt)):
                    assert parse_document(format_document(made, "json"), op)


def is_right(primitive, example, case: Case, due: tuple[int, ...], seed: int = 1) -> bool:
    """Whether a case is linear in its active operands where those `due` are zero: at zero, and at 2a - b for drawn a and b."""
    rng = np.random.default_rng(seed)
    compute = primitive.evaluation.kernel(np, case.attrs, case.operands, case.results)
    a, b = ([draw(rng, t, of_operand(example.within, k)) for k, t in enumerate(case.operands)] for _ in range(2))
    a = [x * 0 if k in due else x for k, x in enumerate(a)]
    b = [y if active else x for x, y, active in zip(a, b, case.mask, strict=True)]

    def at(combine) -> list[np.ndarray]:
        results = compute(*[combine(x, y) if m else x for x, y, m in zip(a, b, case.mask, strict=True)])
        return list(results) if len(case.results) > 1 else [results]

    with np.errstate(all="ignore"):
        zero, both, of_a, of_b = at(lambda x, y: x * 0), at(lambda x, y: 2 * x - y), at(lambda x, y: x), at(lambda x, y: y)
    return not any(map(np.any, zero)) and all(
        np.allclose(z, 2 * x - y, rtol=0, atol=1e-11 * max(1, np.max(np.abs(x), initial=0), np.max(np.abs(y), initial=0)))
        for z, x, y in zip(both, of_a, of_b, strict=True)
    )


@pytest.mark.parametrize("op", [p.name for p in BUILTIN if not p.domain.records])
def test_what_a_primitive_says_of_its_masks_is_true(op) -> None:
    """Of each mask that is accepted, evaluation is linear with zeros where they are due; and needs every one of them."""
    primitive = BUILTIN[op]
    for example, primal in example_cases(BUILTIN, primitive):
        if not {t.dtype for t in (*primal.operands, *primal.results) if t.inexact} <= {"f64", "c128"} or not primal.operands:
            continue
        for number in range(1, 2 ** len(primal.operands)):
            mask = tuple(bool(number >> k & 1) for k in range(len(primal.operands)))
            case = Case(primal.op, primal.attrs, mask, primal.operands, primal.results)
            try:
                due = zeros_due(BUILTIN, case)
            except TypeRuleError:
                continue
            assert is_right(primitive, example, case, due), mask
            for k in due:
                if primal.operands[k].size:
                    rest = tuple(j for j in due if j != k)
                    assert not all(is_right(primitive, example, case, rest, seed) for seed in range(10)), (mask, k)


@pytest.mark.parametrize(
    ("op", "mask", "words"),
    [
        ("add", (True, False), "structural zero"),
        ("add", (False, True), "it depends on the tangents"),
        ("add", None, "role"),
        ("mul", (True, True), "is not linear in its active inputs 0, 1"),
    ],
)
@pytest.mark.parametrize("format", ["json", "msgpack"])
@pytest.mark.parametrize("n_nodes", [0, 1e9])
def test_the_node_that_is_not_linear_is_named(op, mask, words, format, n_nodes) -> None:
    """Among many that are, in plain and in bulk, listed and packed."""
    document = json.loads(_sums(50))
    document["graphs"][1]["nodes"][33] = {"op": op, "inputs": [33, [0, 1]] if mask == (True, False) else [33, 33]}
    if mask:
        document["graphs"][1]["nodes"][33]["role"] = {"linearized": {"active_mask": mask}}
    sound, _ = parse_document(_sums(50), "sums")
    assert format_document(parse_document(format_document(sound, format), "sums")[0], format) == format_document(sound, format)
    with large_from(n_nodes, block=7), pytest.raises(DocumentError, match=rf"graph 'f@1'.*node 33 \({op}\): .*{words}"):
        parse_document(_packed(document) if format == "msgpack" else json.dumps(document).encode(), "sums")


def _sums(n: int) -> bytes:
    """x@1 + 0 + 0 …, as listed nodes."""
    zero = {"op": "constant", "inputs": [], "attrs": {"value": {"type": "f64[]", "data": [0.0]}}}
    tangent = {"tangent": {"of": "x", "pass": 1}}
    role = {"linearized": {"active_mask": [True, False]}}
    return json.dumps({
        "tidu": 1,
        "graphs": [
            {"name": "f", "inputs": [{"key": "x", "type": "f64[]"}], "nodes": [{"op": "sin", "inputs": [0]}, zero], "outputs": []},
            {
                "name": "f@1",
                "linear": {"pass": 1},
                "inputs": [{"key": tangent, "type": "f64[]"}],
                "nodes": [{"op": "add", "inputs": [k, [0, 2]], "role": role} for k in range(n)],
                "outputs": [{"key": {"tangent": {"of": "y", "pass": 1}}, "value": n}],
            },
        ],
    }).encode()  # fmt: skip


def _packed(document: dict) -> bytes:
    """With the nodes of the linear graph as columns."""
    table, code, args, external = [], [], [], []
    for node in document["graphs"][1]["nodes"]:
        row = {k: v for k, v in node.items() if k != "inputs"} | {"inputs": len(node["inputs"]), "outputs": 1}
        table += [row] if row not in table else []
        code.append(table.index(row))
        for reference in node["inputs"]:
            external += [reference] if isinstance(reference, list) and reference not in external else []
            args.append(reference if isinstance(reference, int) else -1 - external.index(reference))
    document["graphs"][1]["nodes"] = {"table": table, "code": code, "args": args, "external": external}
    return json.dumps(document).encode()


@pytest.mark.parametrize(("depth", "zero"), [(20_000, True), (20_000, False)])
def test_zeros_are_seen_at_any_depth(depth, zero) -> None:
    document = json.loads(_sums(1))
    document["graphs"][0]["nodes"] += [{"op": "neg", "inputs": [2 + k]} for k in range(depth)]
    if not zero:
        document["graphs"][0]["nodes"][1]["attrs"]["value"]["data"] = [1e-300]
    document["graphs"][1]["nodes"][0]["inputs"][1] = [0, 2 + depth]
    refused = nullcontext() if zero else pytest.raises(DocumentError, match=re.escape("node 0 (add): input 1"))
    with refused:
        parse_document(json.dumps(document).encode(), "deep")


def test_many_zeros_in_one_node_take_linear_work() -> None:
    """A concatenation of so many reshaped zeros: each is looked at once."""
    n = 20_000
    document = json.loads(_sums(1))
    nodes = document["graphs"][0]["nodes"]
    nodes += [{"op": "reshape", "inputs": [2], "attrs": {"new_sizes": [1]}} for _ in range(n)]
    nodes.append({"op": "concatenate", "inputs": [3 + k for k in range(n)], "attrs": {"dimension": 0}})
    nodes.append({"op": "reduce_sum", "inputs": [3 + n], "attrs": {"axes": [0]}})
    document["graphs"][1]["nodes"][0]["inputs"][1] = [0, 4 + n]
    assert parse_document(json.dumps(document).encode(), "wide")[0].head.outputs[0].key == key("y").tangent(1)
