"""Values: documents evaluated, once or many times."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast

from tidu_cli.arguments import KeyTexts, a_key, parsed
from tidu_cli.errors import ArgumentError, EvaluationError, did_you_mean
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import require_inputs
from tidu_cli.graph.sizes.open import are_there_open_sizes
from tidu_cli.graph.types import Type
from tidu_cli.limits import limited_steps
from tidu_cli.options import checked
from tidu_cli.runtime.choosing import Choice, chosen, default_engine
from tidu_cli.transforms.batch import vectorized
from tidu_cli.transforms.materialize import materialize


@checked()
def evaluate(
    document: Document,
    inputs: Mapping[Any, object] | None = None,
    output: KeyTexts = (),
    max_memory: int | str | None = None,
    moves: Mapping[Any, object] | None = None,
    batch: Mapping[Any, int] | None = None,
    engine: str | None = None,
    device: str | None = None,
    max_steps: int | None = None,
    **more: object,
) -> dict[str, Any]:
    """The values of the head's outputs (or of `output`), by the text of their keys. Raises EvaluationError.

    Inputs are arrays, numbers or nested lists, by key, and there may be more than are needed; those whose keys are names may be
    given as keyword arguments, too. Of inputs such as params.w there may be a dict, a list or a dataclass, params, of all.
    Records are dicts of their fields, tuples sequences; a field of a tangent that is None is zero.
    Datetimes are NumPy's datetime64 or datetime, text such as "2026-01-31T12:00" or integers, which count their unit since 1970;
    durations are numbers or NumPy's timedelta64.

    `moves` are tangents by the keys of inputs, which are moved along them before: of the type that the data states (an f32 array, a
    timedelta64), else the natural one. Fields of records that are left out or None do not move. A key such as x@-1, as `vjp` gives
    it, moves x. `max_memory` is in bytes or text such as "512M": what would need more is refused.

    `batch` says of which inputs many values are given, and along which axis of each, one more than is declared: {"x": 0}. Every
    output then has the batch as its first axis. There are no `moves` then.

    `engine` is "numpy", "native", "xla" or "auto", which takes the quickest; by default what TIDU_ENGINE says, else auto. xla runs
    on `device`: "cpu", "gpu", "gpu:1". Results agree but for roundings (docs/howto/engines.md). `max_steps` is how many steps all
    loops may run together (docs/limits.md), by default any number; xla keeps to no such limit, and refuses loops then.

    Results are arrays, datetime64 of datetimes and f64 of durations, which count their unit; of records dicts, of tuples tuples.
    """
    _require_no_argument(evaluate, document.inputs, more)
    given = nested({**(inputs or {}), **{a_key(k): v for k, v in more.items()}}, document.inputs)
    if batch and moves:
        raise EvaluationError("batch and moves do not go together: add retract to the graph, or move the batch before")
    from tidu_cli.runtime.retraction import moves_of

    moved = moves_of(document, moves) if moves else {}
    if batch:
        require_inputs(document, batch)
    head = of_given_sizes(materialize(document, outputs=parsed(output)).head, given, batch)
    choice = chosen(head, engine or default_engine(), device=device)
    with limited_steps(max_steps):
        results, _ = values_of(head, given, choice, moves=moved, batch=batch, max_memory=cast("int | None", max_memory))
    return {str(key): value for key, value in results.items()}


def of_given_sizes(head: Graph, given: Mapping[Key, Any], batch: Mapping[Key, int] | None = None) -> Graph:
    """A graph without references of the sizes that these inputs have: itself where none is open. Raises EvaluationError."""
    if not are_there_open_sizes():
        return head
    from tidu_cli.runtime.sizing import as_given

    return as_given(head, given, batch)


def values_of(
    head: Graph,
    given: Mapping[Key, Any],
    engine: Choice,
    *,
    moves: Mapping[Key, Any] | None = None,
    batch: Mapping[Key, int] | None = None,
    max_memory: int | None = None,
    tell: Callable[[str], object] = str,
) -> tuple[dict[Key, Any], dict[Key, Type]]:
    """The values of the outputs of a graph without references and their types, by key, as `evaluate` and `tidu eval` give them.

    `tell` hears of engines that are tried on a batch.
    """
    if batch:
        from tidu_cli.runtime.batches import evaluate_batch

        return evaluate_batch(head, given, batch, vectorized, max_memory=max_memory, engine=engine, tell=tell)
    from tidu_cli.runtime.evaluate import evaluate as run

    results = run(head, given, moves=moves or {}, max_memory=max_memory, engine=engine)
    return results, {o.key: o.type for o in head.outputs}


def _require_no_argument(function: Callable[..., Any], inputs: Mapping[Key, object], more: Mapping[str, object]) -> None:
    """Raises ArgumentError for a keyword that is no input, and nearly an argument."""
    for name in more:
        if Key(name) not in inputs and (hint := did_you_mean(name, [*inspect.signature(function).parameters])):
            raise ArgumentError(f"{function.__name__} has no argument '{name}', and the document no such input{hint}")


def nested(given: dict[Key, Any], declared: Collection[Key]) -> dict[Key, Any]:
    """Values by key, with dicts, lists and dataclasses that hold inputs taken apart."""
    if all(key in declared for key in given):
        return given
    from tidu_cli.runtime.memory import by_inputs

    values = by_inputs({str(key): value for key, value in given.items()}, {str(key) for key in declared})
    return {a_key(text): value for text, value in values.items()}
