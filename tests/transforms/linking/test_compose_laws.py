"""The laws of compose and rename: the VJP of a composition is the composition of VJPs, reversed."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cli.running import succeed
from tests.graphs.interpret import evaluate, free_inputs, random_inputs, random_value
from tests.graphs.sketch import Sketch, Value, document, function, key, structure
from tests.graphs.strategies import ANY, SMOOTH, Pool, documents, seeds
from tests.tiers import examples
from tests.transforms.laws.test_laws import law, nearly, same
from tests.transforms.linking.composing import SAMPLES, X, bound, composed_by_command, cos, exp, inexact, scalar, sin, tanh
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import filled
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import compose
from tidu_cli.transforms.linking.rename import Renaming, bind_constants, rename
from tidu_cli.transforms.linking.resolve import resolve
from tidu_cli.transforms.shorthands import vjp
from tidu_cli.transforms.transpose import transpose


@st.composite
def composable(draw: Callable[[st.SearchStrategy], object], makers: tuple = SMOOTH) -> tuple[Document, Document, int]:
    """f; g with an input for each output of f, and an x of its own; and a seed: random_inputs(f, seed) keep g's values tame.

    The two have all names that they can have in common.
    """
    f, seed = draw(documents(makers=makers, max_nodes=6)), draw(seeds)
    magnitude = {k: 1 + float(np.max(np.abs(v), initial=0)) for k, v in evaluate(f, random_inputs(f, seed)).items()}
    taken = {f"a{k}": (o.type, magnitude[o.key]) for k, o in enumerate(f.head.outputs)}
    if draw(st.booleans()):
        taken["x"] = draw(st.sampled_from(list(free_inputs(f).values()))), 2.2
    sketch = Sketch({name: type_ for name, (type_, _) in taken.items()})
    own = [replace(v, bound=size) for v, (_, size) in zip(sketch.inputs, taken.values(), strict=True)]
    pool = Pool(draw, sketch, list(own))
    for make in draw(st.lists(st.sampled_from(makers), min_size=1, max_size=8)):
        make(pool)
    outputs = draw(st.lists(st.sampled_from(pool.values[-4:] + own), min_size=1, max_size=3))
    g = document(sketch.build(f.head.name, {f"{'uvw'[k]}0": value for k, value in enumerate(outputs)}))
    return f, g, seed


def inputs_of_both(f: Document, g: Document, seed: int) -> tuple[dict[Key, object], dict[Key, object]]:
    """Inputs of f, and those of g at f's values."""
    at = random_inputs(f, seed)
    fed = {key(f"a{k}"): value for k, value in enumerate(evaluate(f, at)[o.key] for o in f.head.outputs)}
    return at, random_inputs(g, seed + 1) | fed


def renamed_x(f: Document, g: Document) -> dict[str, str]:
    """The new name of g's own input, if it has a new one."""
    clash = X in free_inputs(g) and any(i.key == X for graph in f.graphs for i in graph.inputs)
    return {"x": "x.2"} if clash else {}


@law
@given(composable(ANY))
def test_a_composition_has_the_values_of_the_last_at_the_values_of_the_first(pair: tuple[Document, Document, int]) -> None:
    f, g, seed = pair
    at, at_g = inputs_of_both(f, g, seed)
    own = {k: v for k, v in at_g.items() if k == X}
    composed = compose([f, g], by="position").document
    renaming = Renaming(inputs=renamed_x(f, g))
    assert list(free_inputs(composed)) == [*free_inputs(f), *(renaming.input_key(k) for k in own)]
    assert same(evaluate(composed, at | {renaming.input_key(k): v for k, v in own.items()}), evaluate(g, at_g))


@law
@given(composable())
def test_the_vjp_of_a_composition_is_the_composition_of_vjps_reversed(pair: tuple[Document, Document, int]) -> None:
    """In numbers: z@-1 goes through the VJP of g at f(x), and what comes out through the VJP of f at x."""
    f, g, seed = pair
    at, at_g = inputs_of_both(f, g, seed)
    renaming = Renaming(inputs=renamed_x(f, g))
    composed = compose([f, g], by="position").document
    whole = transpose(linearize(composed, inexact(composed)))

    vjp_g = transpose(linearize(g, inexact(g)))
    rng = np.random.default_rng(seed)
    cotangents = {i.key: random_value(i.type, rng) for i in vjp_g.head.inputs}
    back_g = evaluate(vjp_g, at_g | cotangents)
    vjp_f = transpose(linearize(f, inexact(f)))
    between = {o.key.cotangent(1): back_g[key(f"a{k}@-1")] for k, o in enumerate(f.head.outputs)}
    expected = evaluate(vjp_f, at | between)
    expected |= {renaming.output_key(k): v for k, v in back_g.items() if k == key("x@-1")}

    pulled = evaluate(whole, at | {renaming.input_key(k): v for k, v in at_g.items()} | cotangents)
    assert set(pulled) == set(expected)
    for k, value in pulled.items():
        assert nearly(value, expected[k], 1e-10), k


@law
@given(composable())
def test_the_vjps_of_the_parts_compose_as_documents(pair: tuple[Document, Document, int]) -> None:
    """In documents: f, the VJP of g with f's outputs bound to its inputs, and the VJP of f with g's cotangents bound to its."""
    f, g, seed = pair
    g = rename(g, Renaming(outputs={o.key.name: f"of_g_{o.key}" for o in g.head.outputs}))  # cotangents of f's and g's are two
    at, at_g = inputs_of_both(f, g, seed)
    composed = compose([f, g], by="position").document
    whole = vjp(composed, inexact(f)).document

    fed = [key(f"a{k}") for k in range(len(f.head.outputs))]
    vjp_g, vjp_f = vjp(g, fed).document, vjp(f, inexact(f)).document
    apart = Renaming(inputs=renamed_x(f, g)) if any(i.key == X for i in vjp_g.head.inputs) else Renaming()
    vjp_g = rename(vjp_g, replace(apart, graphs={vjp_g.head.name: "vjp_g"}))
    taken = {i.key: i.type for i in (*vjp_g.head.inputs, *vjp_f.head.inputs)}
    bind = [(a, o.key) for a, o in zip(fed, f.head.outputs, strict=True) if a in taken]
    for a, o in zip(vjp_g.head.outputs, f.head.outputs, strict=True):
        if (back := o.key.cotangent(1)) not in taken:
            continue
        if a.value is None:
            vjp_f = bind_constants(vjp_f, {back: filled(taken[back], 0)})
        else:
            bind.append((back, a.key))
    parts = resolve([f, vjp_g, rename(vjp_f, Renaming(graphs={vjp_f.head.name: "vjp_f"}))], bind=bind, one_pass=[1])

    rng = np.random.default_rng(seed)
    cotangents = {o.key.cotangent(1): random_value(o.type, rng) for o in g.head.outputs}
    given_ = at | {Renaming(inputs=renamed_x(f, g)).input_key(k): v for k, v in at_g.items()} | cotangents
    pulled, expected = evaluate(parts, given_), evaluate(whole, given_)
    assert list(pulled) == list(expected)
    for k, value in pulled.items():
        assert nearly(value, expected[k], 1e-10), k


CURVES: dict[str, Callable[[Value], Value]] = {
    "square": lambda v: v * v,
    "wave": sin,
    "growth": lambda v: exp(tanh(v)),
    "ratio": lambda v: v / (v * v + 2.0),
    "bump": lambda v: tanh(v) * cos(v * v),
}


@settings(law, max_examples=examples(80, check=15))
@given(st.lists(st.sampled_from(sorted(CURVES)), min_size=1, max_size=4), st.sampled_from(sorted(CURVES)), seeds)
def test_the_command_composes_vjps_in_reverse(curves: list[str], last: str, seed: int) -> None:
    """tidu compose f.json vjp_g.json vjp_f.json --share x is tidu compose f.json g.json | tidu vjp --wrt x, to the last bit."""
    x, cotangent = np.random.default_rng(seed).uniform(-1.5, 1.5, 2)
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder) / f"{k}.json" for k in range(len(curves))]
        for path, curve in zip(parts, curves, strict=True):
            path.write_bytes(format_document(scalar(curve, CURVES[curve], y="v"), "json"))
        f, g, vjp_f, vjp_g = (Path(folder) / name for name in ("f.json", "g.json", "vjp_f.json", "vjp_g.json"))
        succeed("compose", "--quiet", *parts, "-o", f)
        g.write_bytes(format_document(scalar(last, CURVES[last], x="u"), "json"))
        succeed("vjp", f, "--wrt", "x", "-o", vjp_f)
        succeed("vjp", g, "--wrt", "u", "-o", vjp_g)
        values = ("--set", f"x={float(x)!r}", "--set", f"y@-1={float(cotangent)!r}")
        expected = succeed("eval", "-", *values, input=succeed("vjp", "-", "--wrt", "x", input=composed_by_command(f, g)))
        printed = succeed("eval", "-", *values, input=composed_by_command(f, vjp_g, vjp_f, "--share", "x", "--one-pass", 1))
    assert printed == expected
    assert list(json.loads(printed)) == ["x@-1"]


def test_vjps_of_the_samples_compose_in_reverse() -> None:
    f, g = (parse_document(path.read_bytes(), path.name)[0] for path in SAMPLES)
    whole = vjp(compose([f, g]).document, [X]).document
    parts = compose([f, vjp(g, [key("u")]).document, vjp(f, [X]).document], share=[X], one_pass=[1])
    assert bound(parts) == [["u=v"], ["v@-1=u@-1"]]
    at = {X: 0.7, key("y@-1"): 1.3}
    assert evaluate(parts.document, at) == evaluate(whole, at) == {key("x@-1"): pytest.approx(1.3 * np.cos(0.49) * 1.4, rel=1e-15)}


def test_the_vjp_of_a_function_after_itself_is_its_vjp_twice() -> None:
    f = scalar("f", lambda x: sin(x) * x)
    backward = vjp(f, [X]).document
    parts = compose([f, backward, backward], share=[X])
    assert bound(parts) == [["x.2=y"], ["y.2@-1=x.2@-1"]]
    at = {X: 0.7, key("y@-1"): 1.3}
    assert evaluate(parts.document, at) == evaluate(vjp(compose([f, f]).document, [X]).document, at)


@law
@given(documents(makers=ANY, max_graphs=2), seeds)
def test_renaming_there_and_back_changes_nothing(doc: Document, seed: int) -> None:
    declared = {i.key.name for graph in doc.graphs for i in graph.inputs}
    outputs = {o.key.name for graph in doc.graphs for o in graph.outputs}
    there = Renaming(
        {old: new for old, new in (("x", "p@q"), ("b1", "x.2")) if old in declared},
        {old: new for old, new in (("u0", "x"), ("v0", "u0")) if old in outputs},
        {"f": "the f"},
    )
    back = Renaming(*({new: old for old, new in part.items()} for part in (there.inputs, there.outputs, there.graphs)))
    forward = linearize(doc, inexact(doc))
    for made in (doc, forward, transpose(forward)):
        other = rename(made, there)
        assert structure(rename(other, back)) == structure(made)
        at = random_inputs(made, seed)
        renamed = {there.input_key(k): v for k, v in at.items()}
        assert same(evaluate(other, renamed), {there.output_key(k): v for k, v in evaluate(made, at).items()})


def test_derivatives_of_what_was_renamed_are_renamed_derivatives() -> None:
    doc = function("f", {"x": "f64[]", "w": "f64[]"}, lambda x, w: sin(x * w))
    renaming = Renaming({"x": "x.2"}, {"y": "z"})
    steps: list[Callable[[Document, Key], Document]] = [linearized, transposed, linearized, transposed]
    for step in steps:
        other = step(rename(doc, replace(renaming, outputs={"y": "z"})), key("x.2"))
        doc = step(doc, X)
        assert structure(rename(doc, renaming)) == structure(other)


def linearized(doc: Document, wrt: Key) -> Document:
    return linearize(doc, [wrt])


def transposed(doc: Document, wrt: Key) -> Document:
    return transpose(doc)
