"""Documents from documents, functions and formulas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from tidu_cli.arguments import KeyText, KeyTexts, among, parsed
from tidu_cli.errors import ArgumentError, Remedy, UnknownNameError, counted
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import covered_inputs, is_movable, listed, matching_inputs, movable_inputs, require_inputs
from tidu_cli.graph.text import parse_value_type
from tidu_cli.graph.types import Type
from tidu_cli.limits import format_size
from tidu_cli.notes import note
from tidu_cli.options import checked
from tidu_cli.rules.terms import ASSUMPTIONS

if TYPE_CHECKING:
    from tidu_cli.transforms.linking.compose import Joint

_NAMED = 10
"""How many of the values that no document defines are named."""


@checked()
def resolve(
    *documents: Document,
    bind: Mapping[str, str] | Sequence[tuple[KeyText, KeyText]] = (),
    one_pass: Sequence[int] = (),
    names: Sequence[str] = (),
) -> Document:
    """Link documents into one; `bind` maps inputs to the outputs, or digests of values, that they are. Raises TransformError.

    Of different graphs of one name the later are named f.2, f.3, .... A pass that is one call of linearize in one document and
    another in the next is refused, unless `one_pass` has its number. `names` are what messages call the documents.
    """
    from tidu_cli.transforms.linking.resolve import dangling, renamed, resolve

    _require_some("resolve", documents, names)
    result = resolve(documents, bind=cast("list[tuple[Key, Key]]", bind), one_pass=one_pass, names=names)
    if other := [f"{old} to {new}" for old, new in renamed(result, documents)]:
        note(f"renamed graph {listed(other)}: another one has that name")
    unknown = list(dangling(result))
    for digest, graph in unknown[:_NAMED]:
        note(f"graph '{graph}' reads {digest}, which no document defines")
    if len(unknown) > _NAMED:
        note(f"... {len(unknown)} such values in all")
    return result


@checked()
def compose(
    *documents: Document, by: str | None = None, share: KeyTexts = (), one_pass: Sequence[int] = (), names: Sequence[str] = ()
) -> Document:
    """The pipeline of documents: the outputs of each feed inputs of the next, by "name" or by "position".

    By default by name where a key is on both sides, and else by position. An input that an earlier document has, too, is renamed
    x.2, unless it is in `share`. `names` are what messages call the documents. Raises TransformError, UnknownNameError.
    """
    from tidu_cli.transforms.linking.compose import compose

    _require_some("compose", documents, names)
    composition = compose(documents, by=by, share=parsed(share), one_pass=one_pass, names=names)
    for k, joint in enumerate(composition.joints, 1):
        _tell(names[k] if names else f"document {k + 1}", joint)
    return composition.document


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
    from tidu_cli.transforms.linearize import linearize

    types: dict[Key, Type] = {}
    for key, type_ in (tangent or {}).items():
        from tidu_cli.lax.vocabulary import vocabulary

        records = vocabulary(document.cases).records
        types[key] = parse_value_type(type_, records, open_shapes=True) if isinstance(type_, str) else type_
    outputs = parsed(output)
    inputs = wrt_inputs(document, wrt, outputs)
    result = linearize(document, inputs, outputs=outputs, pass_number=pass_number, tangent_types=types)
    if not detach:
        return result
    from tidu_cli.transforms.linking.compose import detach as detached

    return detached(result, len(document.graphs))


@checked()
def transpose(document: Document, strong_zeros: bool = False) -> Document:
    """Replace the linear head by its transpose. Raises TransformError.

    With `strong_zeros` cotangents that are 0, as those of a branch not taken, stay 0 where a slope is infinite or NaN.
    """
    from tidu_cli.transforms.transpose import transpose

    return transpose(document, strong_zeros=strong_zeros)


@checked()
def matrix(document: Document, holomorphic: bool = False) -> Document:
    """Replace the linear head by its matrix: a block y/x for each output and input. Raises TransformError."""
    from tidu_cli.transforms.matrix import matrix

    return matrix(document, holomorphic=holomorphic)


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
    from tidu_cli.transforms.materialize import materialize

    policy = None
    if recompute:
        from tidu_cli.transforms.recompute import joint_policy

        policy = joint_policy(cast("list[str]", recompute))
    if set:
        from tidu_cli.runtime.inputs import input_constant
        from tidu_cli.runtime.sizing import document_as_given
        from tidu_cli.transforms.linking.rename import bind_constants

        require_inputs(document, set)
        document = document_as_given(document, set)
        constants = {k: input_constant(k, document.inputs[k].type, v) for k, v in set.items()}
        document = bind_constants(document, constants)
    outputs = parsed(output)
    if inline:
        from tidu_cli.transforms.linking.rename import inline as inlined

        document, outputs = inlined(materialize(document, outputs=outputs)), []
    if simplify:
        from tidu_cli.transforms.rewriting import simplify as simplified

        document, outputs = simplified(materialize(document, outputs=outputs), assume), []
    result = materialize(document, outputs=outputs, needed_inputs=needed_inputs)
    if policy is None:
        return result
    from tidu_cli.transforms.recompute import recompute as recomputed

    return _lesser(result, recomputed(document, policy, outputs=outputs, needed_inputs=needed_inputs))


def _lesser(before: Document, after: Document) -> Document:
    """The graph whose evaluation peaks lower; a note tells of both."""
    from tidu_cli.runtime.memory import lesser

    chosen, old, new = lesser(before, after)
    if chosen is before:
        note(f"recomputing would not lower the peak of {format_size(old.peak or 0)}; the graph is as it is without")
    else:
        note(
            f"peak {format_size(new.peak or 0)} instead of {format_size(old.peak or 0)}, "
            f"{new.flops.known:,} operations instead of {old.flops.known:,}"
        )
    return chosen


def _require_some(name: str, documents: Sequence[Document], names: Sequence[str]) -> None:
    if not documents:
        raise ArgumentError(f"{name} takes one document or more, and got none")
    if names and len(names) != len(documents):
        raise ArgumentError(f"{name} takes one name for each document: got {len(names)} for {counted(len(documents), 'document')}")


def wrt_inputs(document: Document, wrt: KeyTexts | None, outputs: Sequence[Key]) -> list[Key]:
    """The inputs to differentiate by, patterns written out; for None all that have a derivative.

    Notes tell of what patterns leave out. Raises UnknownNameError, and TransformError for an integer that is named and is only an
    index.
    """
    if wrt is None:
        return movable_inputs(document)
    keys = parsed(wrt)
    try:
        inputs = matching_inputs(document, keys)
        require_inputs(document, inputs)
    except UnknownNameError as error:
        from tidu_cli.checking.static import weights_hint

        raise UnknownNameError(*error.args, *weights_hint(document, keys)) from None
    if not all(is_movable(document.inputs[key].type) for key in inputs):
        from tidu_cli.checking.static import require_moving

        require_moving(document, inputs, outputs)
    patterns = [key for key in keys if key not in document.inputs]
    left_out = [str(k) for key in patterns for k in covered_inputs(document, key) if k not in inputs]
    if left_out:
        note(f"left out of {Remedy('wrt', python='wrt')}, as they are integers: {listed(left_out)}")
    if patterns and any(i.meta for i in document.inputs.values()):
        from tidu_cli.checking.static import parameters_left

        if told := parameters_left(document, inputs, outputs):
            note(told)
    return inputs


def _tell(name: str, joint: Joint) -> None:
    """Say in notes how a document of this name was put behind those before it."""
    bound = {key for key, _ in joint.bound}
    free = [f"{old} to {new}" for old, new in joint.inputs.items() if new not in bound]
    renamed = {
        "input": [f"{old} to {new}" for old, new in joint.inputs.items() if new in bound] + free,
        "output": _arrows(joint.outputs),
        "graph": _arrows(joint.graphs),
    }
    if told := "; ".join(f"{kind} {listed(names)}" for kind, names in renamed.items() if names):
        way = f"; {Remedy('share', python='share')} keeps inputs one" if free else ""
        note(f"{name}: renamed {told}{way}")
    note(f"{name}: bound by {joint.by} {listed([f'{key}={output}' for key, output in joint.bound])}")
    if joint.idle:
        note(f"{name}: no input takes {listed(list(map(str, joint.idle)))}")


def _arrows(names: Mapping[Any, Any]) -> list[str]:
    return [f"{old} to {new}" for old, new in names.items()]
