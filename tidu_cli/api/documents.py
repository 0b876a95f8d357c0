"""Documents from documents, functions and formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from tidu_cli.arguments import (
    among,
    checked,
    names_by_name,
    one_key,
    whole,
)
from tidu_cli.errors import ArgumentError
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import matching_inputs, require_inputs
from tidu_cli.graph.text.types import parse_value_type
from tidu_cli.graph.types import Type
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.render.dot import to_dot as _to_dot
from tidu_cli.rules.identities import ASSUMPTIONS
from tidu_cli.transforms import linearize as _linearize
from tidu_cli.transforms import materialize as _materialize
from tidu_cli.transforms import matrix as _matrix
from tidu_cli.transforms import shorthands as _shorthands
from tidu_cli.transforms import transpose as _transpose
from tidu_cli.transforms.linking import compose as _compose
from tidu_cli.transforms.linking import inline as _inline
from tidu_cli.transforms.linking import passes as _passes
from tidu_cli.transforms.linking import rename as _rename
from tidu_cli.transforms.linking import resolve as _resolve
from tidu_cli.transforms.linking.bind_constants import bind_constants
from tidu_cli.transforms.memory.policies import joint_policy
from tidu_cli.transforms.memory.recompute import recompute as _recompute

KeyText = str | Key
"""A key, or its text form."""

KeyTexts = KeyText | Sequence[KeyText]
"""One key, or several."""

to_dot = checked()(_to_dot)


@checked()
def resolve(
    *documents: Document, bind: Mapping[str, str] | Sequence[tuple[KeyText, KeyText]] = (), one_pass: Sequence[int] = ()
) -> Document:
    """Link documents into one; `bind` maps inputs to the outputs, or digests of values, that they are. Raises TransformError.

    Of different graphs of one name the later are named f.2, f.3, .... A pass that is one call of linearize in one document and
    another in the next is refused, unless `one_pass` has its number.
    """
    _require_some("resolve", documents)
    return _resolve.resolve(documents, bind=cast("list[tuple[Key, Key]]", bind), one_pass=one_pass)


@checked()
def renumber(document: Document, passes: Mapping[int, int]) -> Document:
    """Give passes other numbers, as `tidu convert --pass` does: {1: 2}. Raises UnknownNameError, TransformError."""
    return _passes.renumber(document, passes)


@checked(keys=names_by_name, graphs=names_by_name)
def rename(document: Document, keys: Mapping[str, str] | None = None, graphs: Mapping[str, str] | None = None) -> Document:
    """Give inputs and outputs, by their keys, and graphs other names: {"x": "t"}. What is derived of them follows.

    All change at once. Raises UnknownNameError for a name that the document has not; TransformError where two would be one.
    """
    return _rename.renamed(document, keys or {}, graphs or {})


@checked()
def compose(*documents: Document, by: str | None = None, share: KeyTexts = (), one_pass: Sequence[int] = ()) -> Document:
    """The pipeline of documents: the outputs of each feed inputs of the next, by "name" or by "position".

    By default by name where a key is on both sides, and else by position. An input that an earlier document has, too, is renamed
    x.2, unless it is in `share`. Raises TransformError, UnknownNameError.
    """
    _require_some("compose", documents)
    return _compose.compose(documents, by=by, share=_keys(share), one_pass=one_pass).document


@checked()
def linearize(
    document: Document,
    wrt: KeyTexts,
    output: KeyTexts = (),
    pass_number: int | None = None,
    detach: bool = False,
    tangent: Mapping[Any, str | Type] | None = None,
) -> Document:
    """Append the JVP of the head's outputs (or of `output`) along the inputs `wrt`. Raises UnknownNameError, TransformError.

    `tangent` chooses types of tangents other than the natural ones, such as {"n": "f32"}; they are those that the input admits. In
    text shapes and names of records may be left out: "duration[h]", "{instant: {periods: f64}}", "{at: duration[h]}".
    With `detach`, only the new graphs, which refer to the others by digest; `resolve` links them. A key of `wrt` may be a pattern
    for all inputs that match it, such as "conv1.*".
    """
    types: dict[Key, Type] = {}
    for key, type_ in (tangent or {}).items():
        records = vocabulary(document.cases).records
        types[key] = parse_value_type(type_, records, open_shapes=True) if isinstance(type_, str) else type_
    inputs, outputs = _inputs(document, wrt), _keys(output)
    result = _linearize.linearize(document, inputs, outputs=outputs, pass_number=pass_number, tangent_types=types)
    return _compose.detach(result, len(document.graphs)) if detach else result


@checked()
def transpose(document: Document, strong_zeros: bool = False) -> Document:
    """Replace the linear head by its transpose. Raises TransformError.

    With `strong_zeros` cotangents that are 0, as those of a branch not taken, stay 0 where a slope is infinite or NaN.
    """
    return _transpose.transpose(document, strong_zeros=strong_zeros)


@checked()
def matrix(document: Document, holomorphic: bool = False) -> Document:
    """Replace the linear head by its matrix: a block y/x for each output and input. Raises TransformError."""
    return _matrix.matrix(document, holomorphic=holomorphic)


@checked(assume=among(ASSUMPTIONS))
def materialize(
    document: Document,
    output: KeyTexts = (),
    set: Mapping[Any, object] | None = None,
    recompute: str | int | Sequence[str | int] = (),
    inline: bool = False,
    needed_inputs: bool = False,
    simplify: bool = False,
    assume: str | Sequence[str] = (),
) -> Document:
    """One self-contained graph with the head's outputs (or `output`), and with all inputs that the document declares.

    Inputs of `set` are made constants; with `inline` the document's own ops are written out; with `needed_inputs` inputs that no
    output depends on go. `recompute` says which values to compute anew where cotangents need them, so that less is held at once:
    "sqrt", a number of steps of loops, "cheap", "cheap=0.5", or any of "value=KEY" and "graph=NAME"; where the peak would be no
    lower, the graph is as it is without. With `simplify` nodes are replaced by simpler ones that give the same bits, and constants
    are computed; where `assume` says "no-signed-zeros" or "finite" (that nothing is infinite or NaN), also by what holds then.
    Raises UnknownNameError, TransformError, EvaluationError for a constant of another type than the input.
    """
    if assume and not simplify:
        raise ArgumentError("argument 'assume' says what simplify may take for granted; add simplify=True")
    policy = joint_policy(cast("list[str]", recompute))
    if set:
        from tidu_cli.runtime.inputs import input_constant

        require_inputs(document, set)
        constants = {k: input_constant(k, document.inputs[k].type, v) for k, v in set.items()}
        document = bind_constants(document, constants)
    outputs = _keys(output)
    if inline:
        document, outputs = _inline.inline(_materialize.materialize(document, outputs=outputs)), []
    if simplify:
        from tidu_cli.transforms.rewriting.rewrite import simplify as simplified

        document, outputs = simplified(_materialize.materialize(document, outputs=outputs), assume), []
    found = _materialize.materialize(document, outputs=outputs, needed_inputs=needed_inputs)
    if policy is None:
        return found
    from tidu_cli.runtime.cost import lesser

    return lesser(found, _recompute(document, policy, outputs=outputs, needed_inputs=needed_inputs))[0]


@checked()
def jvp(document: Document, wrt: KeyTexts, output: KeyTexts = (), value: bool = False) -> Document:
    """Jacobian-vector products, from x@1 to y@1; with `value` y, too. Raises as `linearize`."""
    return _shorthands.jvp(document, _inputs(document, wrt), _keys(output), value=value).document


@checked()
def vjp(document: Document, wrt: KeyTexts, output: KeyTexts = (), value: bool = False, strong_zeros: bool = False) -> Document:
    """Vector-Jacobian products, from y@-1 to x@-1; with `value` y, too. Raises as `linearize`."""
    inputs, outputs = _inputs(document, wrt), _keys(output)
    return _shorthands.vjp(document, inputs, outputs, value=value, strong_zeros=strong_zeros).document


@checked()
def grad(document: Document, wrt: KeyTexts, output: KeyTexts = (), value: bool = False, strong_zeros: bool = False) -> Document:
    """The gradient x@-1 of one output, a real number; with `value` the output, too. Raises as `linearize`."""
    inputs, outputs = _inputs(document, wrt), _keys(output)
    return _shorthands.grad(document, inputs, outputs, value=value, strong_zeros=strong_zeros).document


@checked()
def hvp(document: Document, wrt: KeyTexts, output: KeyTexts = (), strong_zeros: bool = False) -> Document:
    """Hessian-vector products of one output, a real number, from x@2 to x@-1@2. Raises as `linearize`."""
    return _shorthands.hvp(document, _inputs(document, wrt), _keys(output), strong_zeros=strong_zeros).document


@checked()
def jacobian(
    document: Document,
    wrt: KeyTexts,
    output: KeyTexts = (),
    reverse: bool | None = None,
    holomorphic: bool = False,
    forward: bool | None = None,
    strong_zeros: bool = False,
) -> Document:
    """The Jacobian's blocks y/x; by rows if `reverse`, by columns if `forward`, by default as is cheaper. Raises as `linearize`."""
    if forward is not None and reverse is forward:
        raise ArgumentError("arguments 'reverse' and 'forward' exclude each other: the Jacobian is derived by rows, or by columns")
    reverse = reverse if forward is None else not forward
    if strong_zeros and reverse is False:
        raise ArgumentError("argument 'strong_zeros' is of reverse mode; leave out 'forward', or 'reverse=False'")
    inputs, outputs = _inputs(document, wrt), _keys(output)
    run = _shorthands.jacobian(document, inputs, outputs, reverse=reverse, holomorphic=holomorphic, strong_zeros=strong_zeros)
    return run.document


@checked()
def hessian(document: Document, wrt: KeyTexts, output: KeyTexts = (), strong_zeros: bool = False) -> Document:
    """The Hessian's blocks y/x/z of one output, a real number. Raises as `linearize`."""
    return _shorthands.hessian(document, _inputs(document, wrt), _keys(output), strong_zeros=strong_zeros).document


@checked(wrt=one_key, order=whole)
def derivative(document: Document, wrt: KeyText, output: KeyTexts = (), order: int = 1) -> Document:
    """The derivative y@1@2... of some order by one number. Raises as `linearize`."""
    return _shorthands.derivative(document, cast(Key, wrt), _keys(output), order=order).document


def _require_some(name: str, documents: Sequence[Document]) -> None:
    if not documents:
        raise ArgumentError(f"{name} takes one document or more, and got none")


def _inputs(document: Document, keys: KeyTexts) -> list[Key]:
    """The inputs of these keys, of which some may be patterns."""
    return matching_inputs(document, _keys(keys))


def _keys(keys: KeyTexts) -> list[Key]:
    """Keys, which `checked` has parsed."""
    return cast("list[Key]", keys)
