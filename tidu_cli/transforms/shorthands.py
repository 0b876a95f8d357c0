"""Shorthands: the derivatives that people ask for by name, each a pipeline of the transforms and no more.

A pipeline runs, and can be told: `tidu_cli.cli` writes its stages as commands, so that what a shorthand prints is what it does.

Names and meanings are JAX's. All take a document, differentiate outputs of its head (or the chosen ones) by inputs `wrt`, and give
the pipeline that did so, whose document is one self-contained graph. All raise UnknownNameError for keys that do not exist,
TransformError for what cannot be differentiated so, and MissingRuleError naming the node. `strong_zeros` is transpose's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidu_cli.errors import Remedy, TransformError
from tidu_cli.frozen import Frozen
from tidu_cli.graph.graph import Document, Graph, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import Literal, filled
from tidu_cli.graph.select import listed, require_inputs, select_outputs
from tidu_cli.graph.sizes.open import surely
from tidu_cli.graph.types import RecordType, TensorType, leaves
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.linking.compose import compose as _compose
from tidu_cli.transforms.linking.rename import bind_constants
from tidu_cli.transforms.materialize import materialize as _materialize
from tidu_cli.transforms.matrix import matrix
from tidu_cli.transforms.transpose import transpose

Keys = Sequence[Key]


def materialize(document: Document, outputs: Keys = (), fixed: Mapping[Key, Literal] | None = None) -> Document:
    """One graph, with inputs made constants: `tidu materialize --output KEY... --set KEY=VALUE...`."""
    return _materialize(bind_constants(document, fixed or {}), outputs=outputs)


class Stage(Frozen, slots=False):
    """One command of a pipeline: the transform of its name, and the options that are not its defaults."""

    transform: Callable[..., Document]
    options: Mapping[str, Any]


class Pipeline:
    """A document, and the stages that it has gone through."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.wrt: Keys = ()
        """The inputs that it differentiates by."""
        self.stages: list[Stage] = []
        self.linear: Document | None = None
        """The document whose head `matrix` was taken of."""

    def then(self, transform: Callable[..., Document], **options: Any) -> Pipeline:
        """Go through one more stage. Gives the pipeline itself. Raises what the transform raises."""
        if transform is matrix:
            self.linear = self.document
        self.document = transform(self.document, **options)
        self.stages.append(Stage(transform, options))
        return self

    def after(self, before: Pipeline, wrt: Keys) -> Pipeline:
        """The pipeline itself, which goes on from another one."""
        self.stages[:0] = before.stages
        self.wrt = wrt
        return self


def compose(document: Document, formula: str, input: str, built: Document) -> Document:
    """The document before that of a formula of one input: `tidu compose - FORMULA -i INPUT`."""
    return _compose([document, built]).document


def _reverse(document: Document, wrt: Keys, outputs: Keys, strong_zeros: bool) -> Pipeline:
    return Pipeline(document).then(linearize, wrt=wrt, outputs=outputs).then(transpose, strong_zeros=strong_zeros)


def jvp(document: Document, wrt: Keys, outputs: Keys = (), *, value: bool = False) -> Pipeline:
    """Jacobian-vector products: from tangents x@1 to tangents y@1; with `value` the outputs y, too, before them."""
    run = Pipeline(document).then(linearize, wrt=wrt, outputs=outputs)
    return run.then(materialize, outputs=_with_values(document, outputs, run.document) if value else ())


def vjp(document: Document, wrt: Keys, outputs: Keys = (), *, value: bool = False, strong_zeros: bool = False) -> Pipeline:
    """Vector-Jacobian products: from cotangents y@-1 to cotangents x@-1; with `value` the outputs y, too, before them."""
    run = _reverse(document, wrt, outputs, strong_zeros)
    return run.then(materialize, outputs=_with_values(document, outputs, run.document) if value else ())


def grad(document: Document, wrt: Keys, outputs: Keys = (), *, value: bool = False, strong_zeros: bool = False) -> Pipeline:
    """The gradient x@-1 of one output, a real number; with `value` that output, too, before it."""
    loss = one_real_number(document, outputs, "a gradient")
    run = _reverse(document, wrt, outputs, strong_zeros)
    chosen = _with_values(document, outputs, run.document) if value else ()
    return run.then(materialize, outputs=chosen, fixed=seed(document, loss))


def hvp(document: Document, wrt: Keys, outputs: Keys = (), *, strong_zeros: bool = False) -> Pipeline:
    """Hessian-vector products of one output, a real number, forward over reverse: from tangents x@2 to tangents x@-1@2."""
    loss = one_real_number(document, outputs, "a Hessian")
    return _reverse(document, wrt, outputs, strong_zeros).then(linearize, wrt=wrt).then(materialize, fixed=seed(document, loss))


def jacobian(
    document: Document,
    wrt: Keys,
    outputs: Keys = (),
    *,
    reverse: bool | None = None,
    holomorphic: bool = False,
    strong_zeros: bool = False,
) -> Pipeline:
    """The blocks y/x of the Jacobian, with the axes of y and then those of x; of records a block for each array, y/p.x.

    By rows if `reverse`, by columns if not, and by default by what there is less of, where there is a reverse mode; or by rows for
    `strong_zeros`.
    """
    require_inputs(document, wrt)
    run = Pipeline(document).then(linearize, wrt=wrt, outputs=outputs)
    head = run.document.head
    if reverse is None:
        ours, theirs = [i.type for i in head.inputs], [o.type for o in head.outputs]
        real = holomorphic or not any(t.complex for type_ in (*ours, *theirs) for _, t in leaves(type_))
        fewer = real and sum(t.size for t in theirs) < sum(t.size for t in ours)
        reverse = strong_zeros or (fewer and not is_irreversible(head))
    if reverse:
        run.then(transpose, strong_zeros=strong_zeros)
    return run.then(matrix, holomorphic=holomorphic).then(materialize)


def is_irreversible(head: Graph) -> bool:
    """Whether a linear graph has a node that can have no transpose, such as a `while`."""
    cases = [case for code in set(head.code) if any((case := head.cases[code]).mask or ())]
    return vocabulary(head.cases).is_irreversible(cases)


def hessian(document: Document, wrt: Keys, outputs: Keys = (), *, strong_zeros: bool = False) -> Pipeline:
    """The blocks y/x/z of the Hessian of one output y, a real number, with the axes of x and those of z: forward over reverse."""
    loss = one_real_number(document, outputs, "a Hessian")
    run = _reverse(document, wrt, outputs, strong_zeros).then(linearize, wrt=wrt).then(matrix)
    return run.then(materialize, fixed=seed(document, loss))


def derivative(document: Document, wrt: Keys, outputs: Keys = (), *, order: int = 1) -> Pipeline:
    """The derivative of some order by one number, in the direction 1: y@1@2 for the second order.

    Each pass is materialized: what it repeats of those before is merged then, and not derived again by all that come.
    """
    require_inputs(document, wrt)
    if len(wrt) != 1:
        raise TransformError(f"a derivative is by one number, and not by {listed(list(map(str, wrt)))}")
    type_ = document.inputs[wrt[0]].type
    if isinstance(type_, RecordType) or type_.rank:
        raise TransformError(
            f"input '{wrt[0]}' is {type_}; a derivative is by one number: take the jacobian, or jvp for a direction"
        )
    run = Pipeline(document)
    for k in range(order):
        run.then(linearize, wrt=wrt, outputs=() if k else outputs)
        (tangent,) = run.document.head.inputs
        assert isinstance(tangent.type, TensorType)
        run.then(materialize, fixed={tangent.key: filled(tangent.type, 1)})
    return run


_ROWS = 1000
"""The most elements of an output for which the message of `grad` suggests `jacobian`."""


def _with_values(document: Document, outputs: Keys, derived: Document) -> tuple[Key, ...]:
    return (*(o.key for _, o in select_outputs(document, outputs)), *(o.key for o in derived.head.outputs))


def one_output(document: Document, outputs: Keys, what: str) -> Output:
    """The output, if it is one, which `what` is of. Raises TransformError, UnknownNameError."""
    chosen = [output for _, output in select_outputs(document, outputs)]
    if len(chosen) != 1:
        names = listed([str(o.key) for o in chosen])
        way = Remedy("output", str(chosen[0].key)) if chosen else Remedy("output", "KEY", python="output=KEY")
        raise TransformError(f"{what} is of one output, and there are {len(chosen)} ({names}); choose one with ", way)
    return chosen[0]


def one_real_number(document: Document, outputs: Keys, what: str) -> Output:
    """The one output that is differentiated, a real number, which `what` is of. Raises TransformError, UnknownNameError."""
    output = one_output(document, outputs, what)
    type_ = output.type
    if isinstance(type_, RecordType):
        raise TransformError(
            f"{what} is of one real number, and output '{output.key}' is a record, {type_}; ",
            Remedy(function="jacobian"),
            " takes it",
        )
    refused = f"{what} is of one real number, and output '{output.key}' is {type_}; "
    if type_.complex or not type_.inexact:
        raise TransformError(refused, Remedy(function="vjp"), " takes cotangents of any")
    if type_.size != 1:  # one number may have axes of one element
        formula, argument = (f"sum({output.key})", str(output.key)) if str(output.key).isidentifier() else ("sum(y)", "y")
        loss = Remedy(
            command=f"compose FILE '{formula}' -i '{argument}:{type_}'",
            python=f"compose(document, formula('{formula}', {argument}='{type_}'))",
        )
        ways = [", or add ", Remedy("sum", True), " for that one, or give a cotangent to ", Remedy(function="vjp")]
        ways += [", or take ", Remedy(function="jacobian")] if surely(lambda: type_.size <= _ROWS) else []
        raise TransformError(refused, "compose a loss with it, such as ", loss, *ways)
    return output


def seed(before: Document, loss: Output) -> dict[Key, Literal]:
    """The cotangent 1 of the output in the first pass."""
    assert isinstance(loss.type, TensorType)
    return {loss.key.cotangent(before.next_pass()): filled(loss.type, 1)}
