"""What transforms make of loops and branches is linear to readers; and readers refuse loops that only claim to be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import strategies as st

from tests.control_flow.laws import ORDERS, forward, gradient, hold, longer
from tests.control_flow.strategies import CONDITIONED, looping
from tests.graphs.sketch import Sketch, Value, document
from tests.transforms.large.test_recompute import policies
from tidu_cli.errors import DocumentError, MissingRuleError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Document
from tidu_cli.graph.identity import digests
from tidu_cli.graph.keys import Key
from tidu_cli.transforms.linking.compose import detach
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.recompute import recompute

FORMS = [("json", True), ("msgpack", True), ("msgpack", False)]


def read_again(doc: Document) -> None:
    """A document goes through all formats: it is accepted, and nothing is lost."""
    data = format_document(doc, "json")
    for format, listed in FORMS:
        if doc.detached and not listed:
            continue
        again, _ = parse_document(format_document(doc, format, listed=listed), "again")
        assert format_document(again, "json") == data
        assert digests(again) == digests(doc)


@longer
def test_derivatives_are_read_without_complaint(times: int) -> None:
    def law(doc: Document, policy: object) -> None:
        for order in ("values", "jvp", "vjp", "forward over reverse", "reverse over reverse"):
            derived = ORDERS[order](doc)
            read_again(derived)
            read_again(materialize(derived))
            read_again(recompute(materialize(derived), policy))

    hold(12 * times, law, looping(), policies, check=10)


@longer
def test_derivatives_of_whiles_too(times: int) -> None:
    def law(doc: Document) -> None:
        for order in ("values", "jvp", "forward over forward"):
            read_again(ORDERS[order](doc))
            read_again(materialize(ORDERS[order](doc)))

    hold(15 * times, law, looping(nested=CONDITIONED), check=10)


@longer
def test_detached_derivatives_are_read_and_linked(times: int) -> None:
    def law(doc: Document) -> None:
        for order in ("jvp", "vjp", "reverse over reverse"):
            derived = ORDERS[order](doc)
            loose = detach(derived, 1)
            read_again(loose)
            linked = resolve([doc, loose])
            assert not linked.detached
            assert digests(linked) == digests(derived)

    hold(15 * times, law, looping())


def claimed(op: str, operands: list[str], active: list[bool], attrs: dict[str, object], zeros: tuple[int, ...] = ()) -> bytes:
    """A document that claims a node to be linear in its active operands; `zeros` are constants 0."""
    wanted = {k: t for k, t in enumerate(operands) if k not in zeros}
    primal = Sketch({f"x{k}": t for k, t in wanted.items() if not active[k]} or {"unused": "f64[]"})
    cases = primal.builder.cases
    tangents = {Key(f"x{k}", (1,)): t for k, t in wanted.items() if active[k]}
    sketch = Sketch(tangents, cases=cases, number=1)
    values = {
        int(v.name[1:]): i
        for v, i in zip([i.key for i in primal.builder.inputs], primal.inputs, strict=True)
        if v.name[1:].isdigit()
    }
    values |= {k: primal.full(0, Sketch({"z": operands[k]}).inputs[0].type) for k in zeros}
    values |= {int(key.name[1:]): v for key, v in zip(tangents, sketch.inputs, strict=True)}
    results = sketch.apply_all(op, *[values[k] for k in range(len(operands))], mask=tuple(active), **attrs)
    outputs = {Key(f"y{k}", (1,)): v for k, v in enumerate(results)}
    first = primal.build("f", {f"y{k}": primal.full(0, v.type) for k, v in enumerate(results)})
    return format_document(document(first, sketch.build("f@1", outputs, linear=1)), "json")


def body(inputs: dict[str, str], make: object) -> ClosedGraph:
    sketch = Sketch(inputs)
    return ClosedGraph.of(sketch.build("", {f"y{k}": v for k, v in enumerate(make(*sketch.inputs))}))


def sin(x: Value) -> Value:
    return x.sketch.apply("sin", x)


def scan(make: object, n: int = 2, **more: int) -> dict[str, object]:
    names = dict.fromkeys(["k", "t", "u"][:n], "f64[]")
    return {"length": 3, "num_consts": 1, "num_carry": n - 1, **more, "body": body(names, make)}


def test_a_linear_scan_is_read() -> None:
    parse_document(claimed("scan", ["f64[]", "f64[]"], [False, True], scan(lambda k, t: [sin(k) * t])), "d")
    parse_document(claimed("scan", ["f64[]"] * 3, [False, True, False], scan(lambda k, t, u: [t + u, k * u], 3), zeros=(2,)), "d")


@pytest.mark.parametrize(
    ("active", "attrs"),
    [
        ([False, True], scan(lambda k, t: [t * t])),
        ([False, True], scan(lambda k, t: [t + k])),
        ([False, True], scan(lambda k, t: [sin(t)])),
        ([True, True], scan(lambda k, t: [sin(k) * t])),
        ([True, True], scan(lambda k, t: [k * t])),
        ([False, True, False], scan(lambda k, t, u: [t + u, u], 3)),  # what is added is no zero
        ([False, True, True], scan(lambda k, t, u: [u, t * 0 + 1], 3)),  # it is affine from the third step on
        ([False, True, False], scan(lambda k, t, u: [t * u, t], 3)),  # a product of tangents from the second step on
    ],
)
def test_a_scan_that_is_not_linear_is_refused(active: list[bool], attrs: dict[str, object]) -> None:
    with pytest.raises(DocumentError, match=r"graph 'f@1', .*scan.*(is not linear in its active|must be a structural zero)"):
        parse_document(claimed("scan", ["f64[]"] * len(active), active, attrs), "d")


def _while(condition: object, make: object) -> dict[str, object]:
    inputs = {"k": "i32[]", "t": "f64[]"}
    return {"cond_consts": 0, "body_consts": 0, "condition": body(inputs, condition), "body": body(inputs, make)}


def test_a_while_whose_condition_reads_a_tangent_is_refused() -> None:
    half = body({"t": "f64[]"}, lambda t: [t * 0.5])
    of_tangent = body({"t": "f64[]"}, lambda t: [t.sketch.apply("gt", t, 3)])
    attrs = {"cond_consts": 0, "body_consts": 0, "condition": of_tangent, "body": half}
    with pytest.raises(DocumentError, match=r"graph 'f@1', node 0 \(while\)"):
        parse_document(claimed("while", ["f64[]"], [True], attrs), "d")
    both = body({"k": "f64[]", "t": "f64[]"}, lambda k, t: [k.sketch.apply("gt", k, 3)])
    parse_document(claimed("while", ["f64[]"] * 2, [False, True], attrs | {"cond_consts": 1, "condition": both}), "d")


def counting(condition: object) -> dict[str, object]:
    return _while(condition, lambda k, t: [k + 1, t * 2])


def test_a_branch_that_is_not_linear_and_an_index_that_is_a_tangent_are_refused() -> None:
    branches = [lambda t: [t * 2], lambda t: [t * t]]
    for some, fine in ((branches[:1] * 2, True), (branches, False)):
        data = claimed("cond", ["bool[]", "f64[]"], [False, True], {"branches": tuple(body({"t": "f64[]"}, b) for b in some)})
        if fine:
            parse_document(data, "d")
        else:
            with pytest.raises(DocumentError, match=r"graph 'f@1', node 0 \(cond\)"):
                parse_document(data, "d")


def test_reverse_of_a_while_is_refused_in_one_line_that_names_scan() -> None:
    counter = _while(lambda k, t: [k.sketch.apply("lt", k, 3)], lambda k, t: [k + 1, sin(t)])
    sketch = Sketch({"k": "i32[]", "x": "f64[]"})
    doc = document(sketch.build("f", {"y": sketch.apply_all("while", *sketch.inputs, **counter)[1]}))
    forward(doc)
    with pytest.raises(MissingRuleError, match=r"^[^\n]*has no transpose[^\n]*use scan[^\n]*$"):
        gradient(doc)


@longer
def test_own_keys_and_the_order_of_nodes_are_no_part_of_identity(times: int) -> None:
    """Digests are those of the text with other keys, and nodes in another order, within bodies."""

    def law(doc: Document, order: list[int]) -> None:
        data = format_document(doc, "json").decode()
        renamed, _ = parse_document(re.sub(r'"key": "([xy])(\d)"', r'"key": "\1\2\1"', data).encode(), "renamed")
        assert digests(renamed) == digests(doc)

    hold(30 * times, law, looping(nested=CONDITIONED), st.permutations(range(4)))


def test_a_loop_that_is_moved_out_of_a_linear_one_stays_where_it_counts() -> None:
    """What is the same in all steps of a linear loop is moved out of it, but not a loop with a count, which is no tangent."""
    doc, _ = parse_document(Path(__file__).with_name("moved_out.json").read_bytes(), "moved_out")
    for order in ("jvp", "forward over forward"):
        read_again(materialize(ORDERS[order](doc)))
