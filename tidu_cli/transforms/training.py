"""step: a training step as a document. Its outputs have the names of the inputs that they are fed back into.

Inputs are those of the document that is trained, weights among them, and what an optimizer keeps beside each weight. Outputs are
the loss, other outputs of the document, the new weights, and what is kept next. An optimizer is a graph of numbers: what it does to
one number of each weight, whatever its shape. Conventions are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add

from tidu_cli.errors import Remedy, TransformError, did_you_mean
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Binding, Document, Graph, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed, require_inputs, select_outputs
from tidu_cli.graph.types import FLOATS, RecordType, TensorType, Type
from tidu_cli.lax.recipes.arrays import Array, mapped, minimum, sqrt, squares, where
from tidu_cli.lax.vocabulary import vocabulary
from tidu_cli.rules.recording.trace import Trace, recorded
from tidu_cli.rules.terms import Term, field, fieldwise
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.materialize import materialize
from tidu_cli.transforms.shorthands import Keys, Pipeline, seed
from tidu_cli.transforms.shorthands import materialize as bound_materialize
from tidu_cli.transforms.transpose import transpose

NUMBER = TensorType("f64", ())
COUNT = TensorType("i32", ())

GRADIENT, WEIGHT, RATE, STEP, DECAY = (Key(name) for name in ("gradient", "weight", "lr", "step", "weight_decay"))
"""What an optimizer takes: of the first two a number, and numbers that all weights share. `step` counts from 1."""

NEW = "new_"
"""Before the name of the weight, and of what is kept beside it, in the outputs of an optimizer."""

BATCH = Key("batch")
"""The input that counts the batches whose gradients have been added up."""

TINY = 1e-6
"""What torch.nn.utils.clip_grad_norm_ adds to a norm, so that no gradient is divided by zero."""


class Optimizer(Frozen, slots=False):
    """A graph of numbers, and the names of what it keeps beside each weight."""

    graph: Graph
    kept: tuple[str, ...]

    def takes(self, key: Key) -> bool:
        """Whether it has this input."""
        return any(i.key == key for i in self.graph.inputs)


class Options(Frozen, slots=False):
    """What else a step does: a rate of None is an input, and `accumulate` how many batches there are to a step."""

    lr: float | None = None
    clip_norm: float | None = None
    weight_decay: float = 0.0
    accumulate: int = 1
    strong_zeros: bool = False


def optimizer_of(document: Document) -> Optimizer:
    """The optimizer that a document is. Raises TransformError for inputs and outputs that an optimizer has not."""
    graph = materialize(document).head
    outputs = {str(o.key): o for o in graph.outputs}
    shared = (GRADIENT, WEIGHT, RATE, STEP, DECAY)
    kept = tuple([str(i.key) for i in graph.inputs if i.key not in shared])
    place = f"optimizer '{graph.name}'"
    for name in ("weight", *kept):
        if f"{NEW}{name}" not in outputs:
            hint = did_you_mean(f"{NEW}{name}", list(outputs)) or (
                did_you_mean(name, list(map(str, shared))) if name in kept else ""
            )
            raise TransformError(
                f"{place}: has no output '{NEW}{name}'{hint}; it takes {', '.join(map(str, shared))} and any x that it keeps "
                f"beside a weight, and gives {NEW}weight and {NEW}x"
            )
    chosen = [outputs[f"{NEW}{name}"] for name in ("weight", *kept)]
    for key, type_ in [*((i.key, i.type) for i in graph.inputs), *((o.key, o.type) for o in chosen)]:
        if type_ != NUMBER:
            raise TransformError(f"{place}: '{key}' is {type_}; an optimizer is of numbers, f64[], and goes by elements")
    return Optimizer(replace(graph, outputs=tuple(chosen)), kept)


def state_inputs(document: Document, wrt: Keys, optimizer: Optimizer, accumulate: int = 1) -> list[Input]:
    """What a step keeps besides the weights: counts, sums of gradients, and what the optimizer keeps beside each weight.

    All of it is zero at first. Raises UnknownNameError, and TransformError for what cannot be trained.
    """
    weights = _weights(document, wrt)
    counts = [Input(STEP, COUNT)] * optimizer.takes(STEP) + [Input(BATCH, COUNT)] * (accumulate > 1)
    kept = (*[GRADIENT.name] * (accumulate > 1), *optimizer.kept)
    return counts + [Input(_beside(name, i.key), kept_type(i.type)) for name in kept for i in weights]


def kept_type(type_: Type) -> Type:
    """The type in which a step computes with a weight, and of what it keeps beside it: sums take more than 16 bits."""
    if isinstance(type_, RecordType):
        fields = tuple((name, kept_type(field)) for name, field in type_.fields)
        return type_ if fields == type_.fields else RecordType("", fields)
    return type_.with_dtype("f32") if type_.dtype in ("f16", "bf16") else type_


Part = tuple[Key, tuple[str, ...]]
"""An array of an input or output: the key of that, and the fields that lead to it where that is a record."""


def arrays_in(key: Key, type_: Type, path: tuple[str, ...] = ()) -> list[tuple[Part, TensorType]]:
    """The arrays of a value of this type."""
    if isinstance(type_, RecordType):
        return [part for name, field in type_.fields for part in arrays_in(key, field, (*path, name))]
    return [((key, path), type_)]


def step(document: Document, wrt: Keys, outputs: Keys, optimizer: Optimizer, options: Options) -> Document:
    """One step that lowers an output, a real number: the first of `outputs`, or the only such one of the head's.

    Raises as `grad` does, and TransformError for weights that hold anything but real floats, and for names that are taken.
    """
    weights, state = _weights(document, wrt), state_inputs(document, wrt, optimizer, options.accumulate)
    loss, others = _loss_of(document, wrt, outputs)
    number = TensorType("f64" if any(t.dtype == "f64" for i in weights for _, t in arrays_in(i.key, i.type)) else "f32", ())
    rate = [Input(RATE, number)] * (options.lr is None and optimizer.takes(RATE))
    _require_free(document, others, weights, [*state, *rate])
    run = Pipeline(document).then(linearize, wrt=wrt, outputs=(loss.key,)).then(transpose, strong_zeros=options.strong_zeros)
    slopes = [o.key for o in run.document.head.outputs]
    kept = (loss.key, *(o.key for o in others))
    single = bound_materialize(run.document, (*kept, *slopes), seed(document, loss))
    gradients = single.head.outputs[len(kept) :]
    update = _Update(document.head.name, single, weights, gradients, state, rate, number)
    bindings = tuple(Binding(o.key, 0, o.value) for o in gradients if o.value is not None)
    whole = replace(single, graphs=(single.head, update.graph(optimizer, options)), bindings=bindings)
    return materialize(whole, outputs=(*kept, *update.fed))


def _weights(document: Document, wrt: Keys) -> list[Input]:
    require_inputs(document, wrt)
    weights = [document.inputs[key] for key in wrt]
    for i in weights:
        if i.key in document.bound:
            raise TransformError(
                f"input '{i.key}' is bound to a value, which nothing is fed back into; leave it out of ", Remedy("wrt")
            )
        parts = arrays_in(i.key, i.type)
        for (_, path), type_ in parts:
            if type_.dtype not in FLOATS:
                way = "make an input of its own of it" if path else "leave it out of "
                told = f"'{'.'.join((str(i.key), *path))}' is {type_}, and a step trains real floats; {way}"
                raise TransformError(f"input {told}", *([] if path else [Remedy("wrt")]))
        if not parts or not all(t.fields for t in _records_in(i.type)):
            raise TransformError(f"input '{i.key}' is {i.type}, of which a part is empty; leave it out of ", Remedy("wrt"))
    return weights


def _records_in(type_: Type) -> list[RecordType]:
    return [type_, *(r for _, field in type_.fields for r in _records_in(field))] if isinstance(type_, RecordType) else []


def _beside(name: str, weight: Key) -> Key:
    return replace(weight, name=f"{name}.{weight.name}")


def fed_back(document: Document, wrt: Keys) -> list[Key]:
    """The outputs, of any graph, that have names of inputs, as statistics have that a model updates; but for those of weights."""
    inputs = {i.key for i in document.free_inputs} - set(wrt)
    return list(dict.fromkeys(o.key for graph in document.graphs for o in graph.outputs if o.key in inputs))


def _loss_of(document: Document, wrt: Keys, outputs: Keys) -> tuple[Output, list[Output]]:
    """The output that a step lowers, and the others, with what is fed back."""
    chosen = [o for _, o in select_outputs(document, outputs)]
    numbers = [o for o in chosen if isinstance(o.type, TensorType) and not o.type.rank and o.type.dtype in FLOATS]
    if not numbers or (outputs and numbers[0] is not chosen[0]):
        told = listed([f"{o.key}: {o.type}" for o in chosen])
        raise TransformError(
            f"a step lowers one real number, and has {told}; put a loss behind it with ", Remedy(function="compose")
        )
    if not outputs and len(numbers) > 1:
        told, way = listed([f"'{o.key}'" for o in numbers]), Remedy("output", str(numbers[0].key))
        raise TransformError(
            f"a step lowers one real number, and {told} are such; name that one, and then others to keep, with ", way
        )
    others = [o for o in chosen if o is not numbers[0]]
    known = {o.key for o in chosen}
    fed = [key for key in fed_back(document, wrt) if key not in known]
    return numbers[0], [*others, *(o for _, o in (select_outputs(document, fed) if fed else ()))]


def _require_free(document: Document, others: Sequence[Output], weights: Sequence[Input], new: Sequence[Input]) -> None:
    """Raises TransformError where two inputs, or two outputs, of a step would have one name."""
    fed = {i.key for i in (*weights, *new)}
    clash = [*(i.key for i in new if i.key in document.inputs), *(o.key for o in others if o.key in fed)]
    if clash:
        way = Remedy("keys", f"{clash[0]}=NAME", "rename", flag="--key", python=f"rename(document, {{{str(clash[0])!r}: ...}})")
        raise TransformError(
            f"a step has a '{clash[0]}' of its own, beside that of graph '{document.head.name}'; rename this: ", way
        )


class _Update:
    """The graph of what follows the gradients, in the making: from what there is `before` a step to what is fed back into it."""

    def __init__(
        self,
        name: str,
        single: Document,
        weights: Sequence[Input],
        slopes: Sequence[Output],
        state: Sequence[Input],
        rate: Sequence[Input],
        number: TensorType,
    ) -> None:
        self.trace = Trace(vocabulary(single.cases), single.cases)
        self.name, self.number = name, number
        self.weights = [part for i in weights for part in arrays_in(i.key, kept_type(i.type))]
        self.outputs = [*weights, *state]
        self.fed = [i.key for i in self.outputs]
        self.inputs = [*weights, *(Input(o.key, o.type) for o in slopes if o.value is not None), *state, *rate]
        self.before: dict[Part, Array] = {}
        for i, source in [(i, self.trace.source(i.type, linear=False)) for i in self.inputs]:
            self.before |= {part: Array(reduce(field, part[1], source)) for part, _ in arrays_in(i.key, i.type)}
        slope_of = {i.key: o for i, o in zip(weights, slopes, strict=True)}
        self.gradients = [
            self.full(0, t) if slope_of[key].value is None else self.before[slope_of[key].key, path].astype(t.dtype)
            for (key, path), t in self.weights
        ]

    def full(self, number: float, type_: TensorType) -> Array:
        """An array of one number."""
        return Array(self.trace.full(number, type_))

    def graph(self, optimizer: Optimizer, options: Options) -> Graph:
        """The finished graph."""
        gradients, n = self.gradients, options.accumulate
        if n > 1:
            sums = [(_beside(str(GRADIENT), key), path) for (key, path), _ in self.weights]
            gradients = [self.before[key] + gradient / n for key, gradient in zip(sums, gradients, strict=True)]
        after = self._stepped(gradients, optimizer, options)
        if n > 1:
            count = self.before[BATCH, ()] + 1
            due = count == n
            after = {key: where(due, x, self.before[key]) for key, x in after.items()}
            after |= {key: where(due, 0, x) for key, x in [((BATCH, ()), count), *zip(sums, gradients, strict=True)]}
        terms = [(i.key, self._whole(i.type, after, i.key)) for i in self.outputs]
        outputs = [Output(key, term.slot, term.value_type) for key, term in terms]
        return recorded(self.trace, self.name, self.inputs, outputs)

    def _whole(self, type_: Type, after: Mapping[Part, Array], key: Key, path: tuple[str, ...] = ()) -> Term:
        """A value of its arrays."""
        if isinstance(type_, RecordType):
            return fieldwise(type_, lambda name, inner: self._whole(inner, after, key, (*path, name)))
        return after[key, path].term

    def _stepped(self, gradients: Sequence[Array], optimizer: Optimizer, options: Options) -> dict[Part, Array]:
        """The weights, and what the optimizer keeps, after a step along these gradients."""
        before, after = self.before, dict[Part, Array]()
        numbers = {DECAY: self.full(options.weight_decay, self.number)}
        numbers[RATE] = before[RATE, ()] if (RATE, ()) in before else self.full(options.lr or 0.0, self.number)
        if optimizer.takes(STEP):
            after[STEP, ()] = before[STEP, ()] + 1
            numbers[STEP] = after[STEP, ()].astype(self.number.dtype)
        slopes = gradients if options.clip_norm is None else _clipped(gradients, options.clip_norm, self.number.dtype)
        for (own, type_), slope in zip(self.weights, slopes, strict=True):
            weight = before[own].astype(type_.dtype)
            if options.weight_decay and not optimizer.takes(DECAY):
                slope = slope + options.weight_decay * weight
            kept = [(_beside(name, own[0]), own[1]) for name in optimizer.kept]
            arrays = {GRADIENT: slope, WEIGHT: weight}
            arrays |= {Key(name): before[part] for name, part in zip(optimizer.kept, kept, strict=True)}
            new, *others = mapped(self.trace, optimizer.graph, arrays, numbers, type_, self.number.dtype)
            after |= zip((own, *kept), (new.astype(before[own].term.type.dtype), *others), strict=True)
        return after


def _clipped(gradients: Sequence[Array], norm: float, wide: str) -> list[Array]:
    """Gradients whose common norm is at most this, as torch.nn.utils.clip_grad_norm_ does."""
    total = reduce(add, [squares(g).astype(wide) for g in gradients])
    scale = minimum(norm / (sqrt(total) + TINY), 1.0)
    return [g * scale.astype(g.term.type.dtype) for g in gradients]
