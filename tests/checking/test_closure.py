"""closure: the set is closed, and says which link is missing where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.checking.sets import SAMPLES, applied, changed, including, sample, without
from tests.tiers import campaign, few
from tidu_cli.checking.closure import cases_closure, document_closure, emissions, examples_closure
from tidu_cli.checking.numeric.trials import example_cases, one_node_document
from tidu_cli.graph.types import INEXACT
from tidu_cli.lax.vocabulary import BUILTIN, vocabulary
from tidu_cli.rules import families
from tidu_cli.rules.families import linear_jvp, unary
from tidu_cli.rules.terms import op
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose


@pytest.mark.check
def test_the_built_in_set_is_closed() -> None:
    closure = cases_closure((case for p in BUILTIN for _, case in few(example_cases(BUILTIN, p), 4)), BUILTIN)
    assert closure.missing == []
    assert closure.reached > (10 if campaign() else 4) * len(BUILTIN.primitives)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_samples_are_closed(path: Path) -> None:
    assert document_closure(sample(path.stem), vocabulary(sample(path.stem).cases)).missing == []


@pytest.mark.check
def test_a_primitive_that_a_rule_emits_and_the_set_lacks() -> None:
    primitives = without("cos")
    missing = examples_closure([primitives["sin"]], primitives).missing
    assert "unknown op 'cos'; did you mean 'cosh'? (ops() lists them) (sin(f64[]); reached by sin)" in missing
    # Another's rule needs it on the way: sinh does not, sin of sinh does.
    assert not examples_closure([primitives["sinh"]], primitives).missing
    document = applied("sin", "f64[]", primitives=primitives)
    assert document_closure(document, primitives).missing == [missing_of("f64[]", missing)]
    assert set(missing) <= set(examples_closure([primitives["sin"], *few(primitives, 30)], primitives).missing)


def missing_of(type_: str, missing: list[str]) -> str:
    (line,) = [text for text in missing if f"({type_})" in text]
    return line


def test_a_missing_transpose_rule_and_the_chain_that_needs_it() -> None:
    primitives = changed("mul", transpose=None)
    missing = examples_closure([primitives["sin"]], primitives).missing
    assert "missing transpose rule for mul (mul(f64[], f64[]) linear in inputs [1]; reached by sin → mul)" in missing
    assert not examples_closure([primitives["neg"]], primitives).missing


def test_a_missing_jvp_rule_far_down_the_chain() -> None:
    # digamma's derivative is polygamma's, whose derivative needs mul: the chain tells how it is reached.
    primitives = changed("polygamma", jvp=None)
    missing = examples_closure([primitives["lgamma"]], primitives).missing
    assert any("missing JVP rule for polygamma" in text and "reached by lgamma → digamma → polygamma" in text for text in missing)
    assert not examples_closure([primitives["exp"]], primitives).missing


def test_a_linear_jvp_without_a_transpose() -> None:
    # Its JVP is itself, a linear node; that it has no transpose is found although nothing else emits it.
    double = unary("double", INEXACT, tangent=None, kernel=lambda *_: lambda x: x + x, formula="2x", summary="double")
    primitives = including(families.changed(double, jvp=linear_jvp("double")))
    missing = examples_closure([primitives["double"]], primitives).missing
    assert missing and all("missing transpose rule for double" in text for text in missing)


def test_a_missing_batch_rule() -> None:
    # Of the primitive itself, and of one that its derivative needs. Documents are not batched but on demand: theirs is no failure.
    primitives = changed("mul", batch=None)
    alone = "missing batch rule for mul (mul(f64[], f64[]); reached by mul)"
    assert alone in examples_closure([primitives["mul"]], primitives).missing
    chained = "missing batch rule for mul (mul(f64[], f64[]) linear in inputs [1]; reached by sin → mul)"
    assert chained in examples_closure([primitives["sin"]], primitives).missing
    assert not examples_closure([primitives["neg"]], primitives).missing
    assert document_closure(applied("sin", "f64[]", primitives=primitives), primitives).missing == []


def test_a_batch_rule_that_emits_what_the_set_lacks() -> None:
    missing = examples_closure([BUILTIN["max"]], without("broadcast_in_dim")).missing
    assert any("unknown op 'broadcast_in_dim'" in text and "max(f64[2,3], f64[2,3])" in text for text in missing)


def test_a_rule_that_does_not_type() -> None:
    """A rule that multiplies by what has another shape is no crash, but a finding."""
    reduce_sum = op("reduce_sum")
    total = lambda x: reduce_sum(x, axes=tuple(range(x.type.rank)))  # noqa: E731
    bad = unary("bad", INEXACT, tangent=lambda t, x, y: total(x) * t, kernel=lambda *_: lambda x: x, formula="", summary="")
    missing = examples_closure([bad], including(bad)).missing
    assert any("type mismatch: input 0 is f64[], input 1 is f64[2,3]" in text for text in missing)


def test_emissions_are_what_rules_emit() -> None:
    assert emissions(BUILTIN["sin"], BUILTIN).jvp == ("cos", "mul")
    assert emissions(BUILTIN["div"], BUILTIN).transpose == ("conj", "div")
    assert emissions(BUILTIN["floor"], BUILTIN).jvp == ()
    assert emissions(BUILTIN["sin"], without("cos")).jvp == ()


@pytest.mark.parametrize("name", [p.name for p in BUILTIN])
def test_transforms_never_lack_a_rule(name: str) -> None:
    """What closure says, by doing it: examples are linearized and transposed in turn, twice over."""
    primitive = BUILTIN[name]
    for _, case in few(example_cases(BUILTIN, primitive), 2):
        document = one_node_document(case)
        wrt = [i.key for k, i in enumerate(document.head.inputs) if i.type.inexact and k not in primitive.rules.inert]
        if not wrt or not any(o.type.inexact for o in document.head.outputs):
            continue
        forward = linearize(document, wrt)
        if BUILTIN.is_irreversible([case]):
            linearize(linearize(forward, wrt), wrt)
            continue
        reverse = transpose(forward)
        assert [o.key for o in linearize(reverse, wrt).head.outputs] == [k.cotangent(1).tangent(2) for k in wrt]
        transpose(linearize(transpose(linearize(reverse, wrt)), wrt))
