"""Values: documents evaluated, once or many times."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from tidu_cli.arguments import (
    KeyText,
    KeyTexts,
    a_key,
    at_least_one,
    axes_by_key,
    by_key,
    flag,
    mapping,
    one_of,
    parsed,
    result_file,
    size,
    values_by_key,
)
from tidu_cli.errors import ArgumentError, EvaluationError, UnknownNameError, did_you_mean
from tidu_cli.formats.files import format_of, is_chunked
from tidu_cli.graph.graph import Document, Graph, signature
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import require_inputs
from tidu_cli.graph.types import DATETIMES, TensorType, Type
from tidu_cli.limits import limited_steps
from tidu_cli.options import checked
from tidu_cli.runtime.choosing import AUTO, MANY, PLAIN, Choice, chosen, default_engine
from tidu_cli.runtime.plans.runnable import Runnable
from tidu_cli.transforms.materialize import materialize

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


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
    head = materialize(document, outputs=parsed(output)).head
    choice = chosen(head, engine or default_engine(), device=device)
    with limited_steps(max_steps):
        results, _ = values_of(head, given, choice, moves=moved, batch=batch, max_memory=cast("int | None", max_memory))
    return {str(key): value for key, value in results.items()}


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
        from tidu_cli.transforms.batch import vectorized

        return evaluate_batch(head, given, batch, vectorized, max_memory=max_memory, engine=engine, tell=tell)
    from tidu_cli.runtime.evaluate import evaluate as run

    results = run(head, given, moves=moves or {}, max_memory=max_memory, engine=engine)
    return results, {o.key: o.type for o in head.outputs}


class Compiled:
    """A function of inputs: the evaluation of a document's outputs, planned once for many calls. `compile` makes it.

    >>> f = tidu.compile(tidu.formula("a * sum(x)", a="f64[]", x="f64[2]"))
    >>> f(2.0, [1.0, 2.0]), f(2.0, x=[1.0, 2.0]), f({"a": 2.0, "x": [1.0, 2.0]})
    ({'y': array(6.)}, {'y': array(6.)}, {'y': array(6.)})
    >>> f
    <Compiled f(a: f64[], x: f64[2]) -> y: f64[], by numpy>
    """

    def __init__(self, program: Runnable, head: Graph | None = None, engine: Choice = PLAIN) -> None:
        if not isinstance(program, Runnable):
            raise ArgumentError(f"Compiled takes a program, not a value of type {type(program).__name__}; write compile(document)")
        from tidu_cli.runtime.inputs import plain_arrays

        self._program = program
        self._head = head  # what `map` sends to others
        self._engine = engine
        self._fits: set[int | str | None] = set()  # limits of memory that it keeps to
        # Parsing and writing keys takes as long as small programs run.
        self._known: dict[KeyText, Key] = {text: i.key for i in program.graph.inputs for text in (i.key, str(i.key))}
        self._keys = {i.key for i in program.graph.inputs}
        self._names = [str(o.key) for o in program.outputs]
        self._plain = plain_arrays(program.inputs)
        self._gives_arrays = all(isinstance(o.type, TensorType) and o.type.dtype not in DATETIMES for o in program.outputs)

    def __repr__(self) -> str:
        told = signature(self._program.graph.name, self._program.graph.inputs, self._program.outputs)
        return f"<Compiled {told}, by {self.engine}>"

    @property
    def engine(self) -> str:
        """The engine that runs calls now. With "auto" others are tried on some of the first, and one that is quicker takes over."""
        return self._choice().name

    @property
    def why(self) -> str:
        """Why it is this engine, and what became of others that were tried."""
        return self._choice().reason

    def _choice(self) -> Choice:
        from tidu_cli.runtime.trial import Trial

        return self._program.choice if isinstance(self._program, Trial) else self._engine

    @property
    def inputs(self) -> dict[str, str]:
        """The types of the inputs, by the text of their keys, also of those that no output depends on, which may be left out."""
        return {str(i.key): str(i.type) for i in self._program.graph.inputs}

    @property
    def outputs(self) -> dict[str, str]:
        """The types of the outputs, by the text of their keys."""
        return {str(o.key): str(o.type) for o in self._program.outputs}

    def __call__(
        self,
        inputs: Any = None,
        *others: Any,
        out: Mapping[Any, NDArray[Any]] | None = None,
        max_memory: int | str | None = None,
        **more: object,
    ) -> dict[str, Any]:
        """The values of the outputs, by the text of their keys. Inputs are as in `evaluate`, or by position.

        `out` has arrays by key, each of its output's dtype and shape: those outputs are written into them, once all is computed,
        so that they may be inputs, too. Raises EvaluationError.
        """
        given, plain = (more if inputs is None else inputs), not others and out is None and max_memory is None
        if type(given) is dict and (given is more or not more) and plain and None in self._fits:
            values = self._plain(given)
            if values is not None:
                return self._named(self._program.run_in_order(values))
        if others or not (inputs is None or (isinstance(inputs, Mapping) and not self._known.keys().isdisjoint(inputs))):
            from tidu_cli.api.calling import values_given

            inputs, more = values_given("Compiled", self.inputs, (inputs, *others), more), {}
        return self._called(inputs, out, max_memory, more)

    def _named(self, values: list[Any]) -> dict[str, Any]:
        if self._gives_arrays:
            return dict(zip(self._names, values, strict=True))
        from tidu_cli.runtime.evaluate import outward

        return {k: outward(o.type, y) for k, o, y in zip(self._names, self._program.outputs, values, strict=True)}

    @checked(
        inputs=values_by_key, batch=axes_by_key, chunk=at_least_one, reduce=one_of("sum", "mean"), out=result_file, resume=flag
    )
    def map(
        self,
        inputs: Mapping[Any, Any],
        batch: Mapping[Any, int],
        scheduler: Any = None,
        reduce: str | None = None,
        chunk: int | None = None,
        max_memory: int | str | None = None,
        out: str | Path | None = None,
        resume: bool = False,
    ) -> dict[str, Any]:
        """The values of the outputs for each item of a batch, by the text of their keys, evaluated in chunks of items.

        `batch` says which inputs have one more axis than declared, along which there are many values of them: {"x": 0}. Every
        output then has the batch as its first axis; with `reduce`, "sum" or "mean", it is that over all items, added in pairs.

        `scheduler` is that of a cluster of Dask's: an address such as "tcp://head:8786", "local" or "local:4" for so many processes
        of this machine, or a distributed.Client; without one this process does one chunk after the other. A chunk is of `chunk`
        items, by default as many as make a second of work. Results follow from the chunks alone, bit for bit, and not from who
        computes them.

        An input may be a Path: that of a file .npy or .npz, or a directory of zarr or of numbered such files; each chunk's part of
        it is read by the process that needs it. With `out`, a .zarr directory or a .npz or .npy file, results are written there,
        chunk by chunk, and none are returned but what `reduce` gives. Chunks that are done are kept in OUT.partial until all are,
        and with `resume` one goes on from them.

        Where an input is an array of Dask's, the results are such arrays, too: its blocks are the chunks, and whoever computes the
        results computes them where the blocks lie. Raises EvaluationError, which names a chunk that fails.
        """
        from tidu_cli.api.chunks import values_by_chunks
        from tidu_cli.formats.files import noting
        from tidu_cli.installed import scheduler as installed_scheduler

        if self._head is None:
            raise ArgumentError("map needs the graph; write compile(document).map(...)")
        if resume and out is None:
            raise ArgumentError("resume=True goes on from what is beside out; give the 'out' of the run that broke off")
        if out is not None and (not is_chunked(str(out)) or (reduce and format_of(str(out)) == "zarr")):
            places = "a .npz or .npy file" if reduce else "a .zarr directory, or a .npz or .npy file"
            raise ArgumentError(f"'{out}': results are written to {places}")
        given = nested({a_key(key): value for key, value in inputs.items()}, self._keys)
        for key in batch.keys() - self._keys:
            raise UnknownNameError(f"no input '{key}'{did_you_mean(str(key), [str(k) for k in self._keys])}")
        # Results are to follow from the chunks alone, so nothing is tried there.
        engine = chosen(self._head, AUTO, device=self._engine.device, runs=MANY) if self._engine.automatic else self._engine
        how: dict[str, Any] = {"reduction": reduce, "engine": engine, "max_memory": max_memory}
        if any(installed_scheduler().is_lazy(value) for key, value in given.items() if key in self._keys):
            for name, value in (("scheduler", scheduler), ("chunk", chunk), ("out", out), ("resume", resume or None)):
                if value is not None:
                    raise ArgumentError(f"arrays of Dask's have chunks, and whoever wants them computes them; leave out '{name}'")
            results = installed_scheduler().lazily(self._head, given, batch, **how)
        else:
            to = {"scheduler": scheduler, "out": None if out is None else str(out), "resume": resume}
            with noting():
                results, _ = values_by_chunks(self._head, given, batch, to, chunk=chunk, **how)
        return {str(key): value for key, value in results.items()}

    def _called(
        self,
        inputs: Mapping[Any, object] | None,
        out: Mapping[Any, NDArray[Any]] | None,
        max_memory: int | str | None,
        more: Mapping[str, object],
    ) -> dict[str, Any]:
        from tidu_cli.runtime.evaluate import call

        if type(inputs) is not dict or out is not None or max_memory is not None:
            inputs, out, max_memory = mapping("inputs", inputs), by_key("out", out), size("max_memory", max_memory)
        known = self._known
        given = {known.get(k) or a_key(k): v for k, v in {**(inputs or {}), **more}.items()}
        if not self._keys.issuperset(given):
            given = nested(given, self._keys)
        if out:
            from tidu_cli.runtime.evaluate import require_room, write_into

            require_room(self._program.outputs, out)
        if max_memory not in self._fits:
            from tidu_cli.runtime.memory import check_memory

            check_memory(self._program, cast("int | None", max_memory))
            self._fits.add(max_memory)
        values = call(self._program, given)
        if out:
            values = write_into(out, values)
        return dict(zip(self._names, values.values(), strict=True))


@checked()
def compile(document: Document, output: KeyTexts = (), engine: str | None = None, device: str | None = None) -> Compiled:
    """The head's outputs (or `output`) as a function of their inputs, to be called many times.

    `engine` and `device` are as in `evaluate`; "auto" tries others on some of the calls (docs/howto/engines.md), and results change
    by roundings where one takes over. Raises UnknownNameError, TransformError, and EvaluationError for what is refused.
    """
    from tidu_cli.runtime.trial import prepared_often

    head = materialize(document, outputs=parsed(output)).head
    program, choice = prepared_often(head, chosen(head, engine or default_engine(), device=device))
    return Compiled(program, head, choice)


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
