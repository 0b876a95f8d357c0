"""Training steps as documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidu_cli.api.documents import wrt_inputs
from tidu_cli.arguments import KeyTexts, by_key, parsed
from tidu_cli.errors import ArgumentError, Remedy, TransformError, did_you_mean
from tidu_cli.graph.graph import Document
from tidu_cli.graph.select import listed
from tidu_cli.installed import source_named
from tidu_cli.notes import note
from tidu_cli.options import checked

if TYPE_CHECKING:
    from tidu_cli.transforms.training import Optimizer

__all__ = ["initial_state", "step"]

OPTIMIZERS = {
    "sgd": "new_weight = weight - lr * gradient",
    "momentum": "new_momentum = 0.9 * momentum + gradient; new_weight = weight - lr * new_momentum",
    "adam": (
        "new_mu = mu + (1 - 0.9) * (gradient - mu); new_nu = 0.999 * nu + (1 - 0.999) * gradient**2; "
        "new_weight = weight - lr / (1 - 0.9**step) * new_mu / (sqrt(new_nu) / sqrt(1 - 0.999**step) + 1e-8)"
    ),
    "adamw": (
        "new_mu = mu + (1 - 0.9) * (gradient - mu); new_nu = 0.999 * nu + (1 - 0.999) * gradient**2; "
        "new_weight = weight * (1 - lr * weight_decay)"
        " - lr / (1 - 0.9**step) * new_mu / (sqrt(new_nu) / sqrt(1 - 0.999**step) + 1e-8)"
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
    values to begin with. Raises as `grad`, TransformError for what is no optimizer, or cannot be trained.
    """
    from tidu_cli.transforms.training import DECAY as TAKEN
    from tidu_cli.transforms.training import RATE, Options, step

    chosen = optimizer_named(optimizer)
    if lr is not None and not chosen.takes(RATE):
        raise TransformError("the optimizer takes no learning rate 'lr'; leave out ", Remedy("lr"))
    if weight_decay is None:
        weight_decay = DECAY if chosen.takes(TAKEN) else 0.0
    options = Options(lr, clip_norm, weight_decay, accumulate or 1, strong_zeros)
    return step(document, wrt_inputs(document, wrt), parsed(output), chosen, options)


@checked(values=by_key)
def initial_state(
    document: Document,
    wrt: KeyTexts,
    optimizer: str | Document = "sgd",
    accumulate: int | None = None,
    values: Mapping[Any, object] | None = None,
) -> dict[str, Any]:
    """The values with which `step` begins, by key: of the inputs `wrt` those in `values`, and zeros of what is kept beside them.

    Inputs `wrt` that have no value are left out, with a note. Raises as `step`, and EvaluationError for values of other types.
    """
    import numpy as np

    from tidu_cli.lax.arrays.structural import numpy_dtype
    from tidu_cli.runtime.inputs import value_of_input
    from tidu_cli.transforms.training import array_type, state_inputs

    weights, given = wrt_inputs(document, wrt), values or {}
    state = state_inputs(document, weights, optimizer_named(optimizer), accumulate or 1)
    if missing := [str(key) for key in weights if key not in given]:
        way = Remedy("inputs", "FILE", python="values={...}")
        note(f"no values of {listed(missing)}: give them with {way}, or when you take the first step")
    first = {str(key): value_of_input(key, document.inputs[key].type, given[key]) for key in weights if key in given}
    return first | {str(i.key): np.zeros(array_type(i).shape, numpy_dtype(np, array_type(i).dtype)) for i in state}


def optimizer_named(optimizer: str | Document) -> Optimizer:
    """The optimizer of a name or document. Raises ArgumentError, TransformError."""
    from tidu_cli.graph.types import TensorType
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
