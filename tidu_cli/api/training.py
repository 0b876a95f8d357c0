"""Training steps as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tidu_cli.api.documents import wrt_inputs
from tidu_cli.arguments import KeyTexts, by_key, file_name, parsed, values_by_key
from tidu_cli.errors import ArgumentError, DocumentError, Remedy, TransformError, did_you_mean
from tidu_cli.formats.files import format_of, reading
from tidu_cli.formats.write import write_written
from tidu_cli.graph.graph import Document
from tidu_cli.graph.literals import Literal
from tidu_cli.graph.select import listed
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.installed import blaming, recognized, source_named
from tidu_cli.notes import note
from tidu_cli.options import checked
from tidu_cli.port_data import Written
from tidu_cli.rules.attrs import literal_from_file

if TYPE_CHECKING:
    from tidu_cli.transforms.training import Optimizer

_ADAM = "lr / -expm1(step * log1p(-0.1)) * new_mu / (sqrt(new_nu) / sqrt(-expm1(step * log1p(-0.001))) + 1e-8)"
"""By expm1 and log1p, as 1 - 0.999**step has few digits in f32."""

OPTIMIZERS = {
    "sgd": "new_weight = weight - lr * gradient",
    "momentum": "new_momentum = 0.9 * momentum + gradient; new_weight = weight - lr * new_momentum",
    "adam": (
        f"new_mu = mu + (1 - 0.9) * (gradient - mu); new_nu = 0.999 * nu + (1 - 0.999) * gradient**2; new_weight = weight - {_ADAM}"
    ),
    "adamw": (
        "new_mu = mu + (1 - 0.9) * (gradient - mu); new_nu = 0.999 * nu + (1 - 0.999) * gradient**2; "
        f"new_weight = weight * (1 - lr * weight_decay) - {_ADAM}"
    ),
}
"""The optimizers that have names: what they do to one number of a weight. samples/optimizers has them as documents."""

DECAY = 0.01
"""The weight decay of an optimizer that has its own, where none is given."""


@checked()
def step(
    document: Document,
    wrt: KeyTexts,
    output: KeyTexts = (),
    optimizer: str | Document = "sgd",
    lr: float | None = None,
    clip_norm: float | None = None,
    weight_decay: float | None = None,
    accumulate: int | None = None,
    strong_zeros: bool = False,
) -> Document:
    """One step of training: the loss, the new values of the inputs `wrt`, and what the optimizer keeps, by the names of inputs.

    The loss is the first of `output`, or the only output that is a real number; other outputs stay. Without `lr` the rate is an
    input. `optimizer` is "sgd", "momentum", "adam" or "adamw", or a document of numbers that takes `gradient`, `weight`, any of
    `lr`, `step` and `weight_decay`, and some x that it keeps, and gives `new_weight` and each `new_x`. `initial_state` has the
    values to begin with. Raises as `grad`, and TransformError for documents that are not optimizers and inputs that cannot
    be trained.
    """
    from tidu_cli.transforms.training import DECAY as TAKEN
    from tidu_cli.transforms.training import RATE, Options, step

    chosen = optimizer_named(optimizer)
    if lr is not None and not chosen.takes(RATE):
        raise TransformError("the optimizer takes no learning rate 'lr'; leave out ", Remedy("lr"))
    if weight_decay is None:
        weight_decay = DECAY if chosen.takes(TAKEN) else 0.0
    options = Options(lr, clip_norm, weight_decay, accumulate or 1, strong_zeros)
    outputs = parsed(output)
    return step(document, wrt_inputs(document, wrt, outputs), outputs, chosen, options)


@checked(values=by_key)
def initial_state(
    document: Document,
    wrt: KeyTexts,
    optimizer: str | Document = "sgd",
    accumulate: int | None = None,
    values: Mapping[Any, object] | None = None,
) -> dict[str, Any]:
    """The values with which `step` begins, by key: of the inputs `wrt` those in `values`, and zeros of what is kept beside them.

    Inputs by whose names there are outputs, such as statistics of batch norms, are fed back, too. Those and inputs `wrt` that have
    no value are left out, with a note. Raises as `step`, and EvaluationError for values of other types.
    """
    import numpy as np

    from tidu_cli.lax.arrays.dtypes import numpy_dtype
    from tidu_cli.runtime.inputs import value_of_input
    from tidu_cli.transforms.training import fed_back, state_inputs

    weights, given = wrt_inputs(document, wrt, ()), values or {}
    state = state_inputs(document, weights, optimizer_named(optimizer), accumulate or 1)
    weights = [*weights, *fed_back(document, weights)]
    if missing := [str(key) for key in weights if key not in given]:
        way = Remedy("inputs", "FILE", python="values={...}")
        note(f"no values of {listed(missing)}: give them with {way}, or when you take the first step")
    types = {key: document.inputs[key].type for key in weights if key in given}
    first = {str(key): _by_names(type_, value_of_input(key, type_, given[key])) for key, type_ in types.items()}

    def zeros(type_: Type) -> Any:
        if isinstance(type_, TensorType):
            return np.zeros(type_.shape, numpy_dtype(np, type_.dtype))
        return _by_names(type_, [zeros(inner) for _, inner in type_.fields])

    return first | {str(i.key): zeros(i.type) for i in state}


def _by_names(type_: Type, value: Any) -> Any:
    """A value of this type as `evaluate` gives it: of a record a dict, of a tuple a tuple."""
    if isinstance(type_, TensorType) or isinstance(value, Mapping):
        return value
    parts = [_by_names(inner, part) for (_, inner), part in zip(type_.fields, value, strict=True)]
    return tuple(parts) if type_.is_tuple else dict(zip(type_.names, parts, strict=True))


@checked(model=file_name, values=values_by_key)
def save_weights(model: str | PurePath, values: Mapping[Any, object], file: str | PurePath) -> None:
    """Write a model of another system, a file, with other values of its weights, by name, as `tidu convert --weights-from`.

    A dict of values, as of a record, stands for those of its parts, by dotted names. Values of which the model has no weight are
    left out, with a note, where they are numbers, or stand beside a weight, as mu.w.
    Raises UnknownNameError for others, and for no weight at all; DocumentError for values that do not fit, and for other files.
    """
    where, target, arrays = str(model), str(file), dict(_arrays(values))
    with reading(where, "document") as source:
        format_ = recognized(source)
        if format_ is None or not hasattr(format_, "with_weights"):
            raise DocumentError(f"{where}: is not a model that holds weights by name, such as one of ONNX")
        if format_of(target) not in (None, format_.name):
            raise DocumentError(f"{target}: {where} is {format_.title}, and stays that; end the name in {format_.suffixes[0]}")
        put: Any = format_
        left_out: list[str] = []

        def made(beside: str | None) -> Written:
            with blaming(format_.name):
                written: Written
                written, names = put.with_weights(source, where, arrays, beside)
            left_out.extend(names)
            return written

        write_written(made, target)
    if left_out:
        note(f"left out, as {where} has no such weights: {listed(left_out)}")


def _arrays(values: Mapping[Any, object], before: str = "") -> Iterator[tuple[str, Any]]:
    """Arrays by dotted names, of values that may be nests of objects, or typed data as files have it. Raises TypeTextError."""
    from tidu_cli.lax.arrays.dtypes import literal_array

    for key, value in values.items():
        value = dict(enumerate(value)) if isinstance(value, tuple) else value
        if isinstance(value, Mapping) and "type" not in value:
            yield from _arrays(value, f"{before}{key}.")
            continue
        value = literal_from_file(value) if isinstance(value, Mapping) else value
        if isinstance(value, Literal):
            import numpy as np

            value = literal_array(np, value)
        yield f"{before}{key}", value


def optimizer_named(optimizer: str | Document) -> Optimizer:
    """The optimizer of a name or document. Raises ArgumentError, TransformError."""
    from tidu_cli.transforms.training import optimizer_of

    if isinstance(optimizer, Document):
        return optimizer_of(optimizer)
    if optimizer not in OPTIMIZERS:
        hint = did_you_mean(optimizer, list(OPTIMIZERS))
        raise ArgumentError(
            f"there is no optimizer '{optimizer}'{hint} (there are {', '.join(OPTIMIZERS)}, and documents of your own)"
        )
    source, text = source_named("formula"), OPTIMIZERS[optimizer]
    numbers = dict.fromkeys(source.names(text) or (), TensorType("f64", ()))
    return optimizer_of(source.build(text, numbers, data=None, name=optimizer, outputs=()))
