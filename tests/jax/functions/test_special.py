"""Every function of jax.scipy.special, as its jaxpr, and SciPy's function of that name, traced: value, JVP, VJP and HVP are JAX's.

Those whose jaxprs have primitives that tidu has not got are listed, with the primitive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

from tests.jax.functions.agreement import document_of
from tests.jax.lowering.compiled import compiled
from tests.tiers import few
from tidu_cli.adapters.numpy.errors import BuildError
from tidu_cli.adapters.numpy.tracing import trace
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.transpose import transpose

pytestmark = [pytest.mark.jax, pytest.mark.usefixtures("jax")]

RNG = np.random.default_rng(9)


def within(*intervals: tuple[float, float]) -> tuple[Any, ...]:
    return tuple(RNG.uniform(low, high, 5) for low, high in intervals)


UNIT, POSITIVE = (0.2, 0.8), (0.6, 2.5)

OPERANDS: dict[str, tuple[Any, ...]] = {
    "beta": within(POSITIVE, POSITIVE), "betainc": within(POSITIVE, POSITIVE, UNIT),
    "betaln": within(POSITIVE, POSITIVE), "comb": within((3.2, 5), POSITIVE),
    "digamma": within(POSITIVE), "entr": within(POSITIVE), "erf": within(UNIT),
    "erfc": within(UNIT), "erfcx": within(UNIT), "erfinv": within(UNIT), "exp1": within(POSITIVE), "expi": within(POSITIVE),
    "expit": within(POSITIVE), "factorial": within(POSITIVE), "fresnel": within(POSITIVE),
    "gamma": within(POSITIVE), "gammainc": within(POSITIVE, POSITIVE), "gammaincc": within(POSITIVE, POSITIVE),
    "gammaln": within(POSITIVE), "gammasgn": within(POSITIVE), "i0": within(POSITIVE), "i0e": within(POSITIVE),
    "i1": within(POSITIVE), "i1e": within(POSITIVE), "kl_div": within(POSITIVE, POSITIVE), "log_ndtr": within((-6, 3)),
    "log_softmax": within(POSITIVE), "logit": within(UNIT), "logsumexp": within(POSITIVE), "ndtr": within((-3, 3)),
    "ndtri": within(UNIT), "poch": within(POSITIVE, POSITIVE), "rel_entr": within(POSITIVE, POSITIVE), "softmax": within(POSITIVE),
    "spence": within((0.3, 1.8)), "xlog1py": within(POSITIVE, POSITIVE), "xlogy": within(POSITIVE, POSITIVE),
    "zeta": within((2, 4), POSITIVE), "boxcox": within(POSITIVE, POSITIVE), "boxcox1p": within(POSITIVE, POSITIVE),
    "owens_t": within(POSITIVE, POSITIVE),
    "sici": within(POSITIVE),
    "dawsn": within(POSITIVE), "loggamma": within(POSITIVE),
}  # fmt: skip
"""What the functions are compared at."""

MISSING = {"bitcast_convert_type": "it reads the bits of floats"}
"""Primitives of jaxprs that tidu has not got, and why."""

LAST_ONLY = ("betainc", "gammainc", "gammaincc")
"""Functions that JAX does not differentiate twice, or not at all, by their parameters: those are fixed."""

LONG = ("beta", "zeta")
"""Which take XLA eight seconds each."""

VALUE_AND_JVP = {"exp1": "JAX fails to transpose it", "expn": "likewise", "spence": "JAX's gradient is NaN at some points"}
"""Functions of which JAX gives no more than that."""


def results(
    document: Document, operands: tuple[Any, ...], directions: list[Any], weight: Any, kinds: tuple[str, ...]
) -> dict[str, Any]:
    """The first output's value, JVP, VJP and Hessian-vector product, of the weighted sum of its elements."""
    output = document.head.outputs[0].key
    keys = [i.key for i in document.head.inputs]
    at = dict(zip(keys, operands, strict=True))
    jvp = linearize(document, keys, outputs=[output])
    along = {k.tangent(1): v for k, v in zip(keys, directions, strict=True)}
    twice = {k.tangent(2): v for k, v in zip(keys, directions, strict=True)}
    ct = {output.cotangent(1): weight}

    def values(doc: Document, given: dict[Key, Any]) -> list[Any]:
        doc = materialize(doc)
        with np.errstate(all="ignore"):
            return list(evaluate(doc.head, {k: v for k, v in given.items() if k in {i.key for i in doc.head.inputs}}).values())

    steps = {
        "value": lambda: values(document, at)[:1],
        "jvp": lambda: values(jvp, at | along),
        "vjp": lambda: values(transpose(jvp), at | ct),
        "hvp": lambda: values(linearize(transpose(jvp), keys), at | ct | twice),
    }
    return {kind: steps[kind]() for kind in kinds}


def of_jax(function: Any, operands: tuple[Any, ...], directions: list[Any], weight: Any, kinds: tuple[str, ...]) -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    def first(*x: Any) -> Any:
        value = function(*x)
        return value[0] if isinstance(value, tuple) else value

    def gradient(*x: Any) -> Any:
        return jax.vjp(first, *x)[1](jnp.asarray(weight))

    steps = {
        "value": lambda x, v: [first(*x)],
        "jvp": lambda x, v: [jax.jvp(first, x, v)[1]],
        "vjp": lambda x, v: list(gradient(*x)),
        "hvp": lambda x, v: list(jax.jvp(gradient, x, v)[1]),
    }
    return compiled(lambda x, v: {kind: steps[kind](x, v) for kind in kinds})(tuple(operands), tuple(directions))


def compare(name: str, document: Document, operands: tuple[Any, ...], function: Any) -> None:
    """Raises AssertionError where the graph and JAX's function of these operands differ."""
    directions = [RNG.uniform(-1, 1, x.shape) for x in operands]
    shape = document.head.outputs[0].type.shape
    weight = RNG.uniform(0.5, 1, shape)
    # A jaxpr may have a while, which has no reverse mode.
    forward_only = name in VALUE_AND_JVP or vocabulary(document.cases).is_irreversible(document.cases.cases)
    kinds = ("value", "jvp") if forward_only else ("value", "jvp", "vjp", "hvp")
    ours = results(document, operands, directions, weight, kinds)
    theirs = of_jax(function, operands, directions, weight, kinds)
    for kind, expected in theirs.items():
        for value, other in zip(ours[kind], expected, strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-9, atol=1e-10, err_msg=f"{name} {kind}")


@pytest.mark.parametrize(
    "name",
    [*few([name for name in OPERANDS if name not in LONG], 4), *(pytest.param(name, marks=pytest.mark.campaign) for name in LONG)],
)
def test_special(name: str, jax: Any) -> None:
    import jax.scipy.special as theirs

    theirs_, operands = getattr(theirs, name, None), OPERANDS[name]
    if theirs_ is None:
        pytest.fail(f"this JAX has no {name}")
    fixed = operands[:-1] if name in LAST_ONLY else ()
    moving = operands[len(fixed) :]

    def function(*x: Any) -> Any:
        return theirs_(*fixed, *x)

    compare(name, trace(lambda *x: getattr(scipy.special, name)(*fixed, *x), *moving), moving, function)
    try:
        document = document_of(function, *moving)
    except BuildError as missing:
        if str(missing) not in MISSING:
            raise
    else:
        compare(name, document, moving, function)


def test_none_is_left_out(jax: Any) -> None:
    """Of JAX's functions the others take parameters, or complex numbers."""
    import jax.scipy.special as theirs

    names = {name for name in dir(theirs) if name[0] != "_" and callable(getattr(theirs, name))}
    others = {"bernoulli", "bessel_jn", "expn", "hyp1f1", "hyp2f1", "multigammaln", "polygamma", "sph_harm_y", "wofz"}
    assert names - set(OPERANDS) <= others


PARAMETRIZED: dict[str, Any] = {
    "expn": lambda f: lambda x: f(3, x),
    "hyp1f1": lambda f: lambda x: f(0.5, 1.5, x),
    "hyp2f1": lambda f: lambda x: f(0.5, 1.5, 2.5, x * 0.25),
    "multigammaln": lambda f: lambda x: f(x + 1, 3),
    "polygamma": lambda f: lambda x: f(2, x),
}
"""Functions with parameters that are fixed."""


@pytest.mark.parametrize("name", few(PARAMETRIZED, 3))
def test_parametrized(name: str, jax: Any) -> None:
    import jax.scipy.special as theirs

    (x,) = within(POSITIVE)
    make = PARAMETRIZED[name]
    compare(name, trace(make(getattr(scipy.special, name)), x), (x,), make(getattr(theirs, name)))
