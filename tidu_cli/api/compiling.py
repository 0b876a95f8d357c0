"""Documents as functions, planned once for many calls.

Functions are called with inputs by position and by name, as documents are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from tidu_cli import arguments
from tidu_cli.api.evaluation import nested
from tidu_cli.errors import ArgumentError, UnknownNameError, counted, did_you_mean
from tidu_cli.formats.files import format_of, is_chunked, noting
from tidu_cli.graph.graph import Document, Graph, signature
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed
from tidu_cli.graph.sizes.open import are_there_open_sizes
from tidu_cli.graph.types import DATETIMES, TensorType
from tidu_cli.installed import scheduler as installed_scheduler
from tidu_cli.options import checked
from tidu_cli.runtime.choosing import AUTO, MANY, PLAIN, Choice, chosen, default_engine
from tidu_cli.runtime.plans.interpreter import Runnable
from tidu_cli.transforms.materialize import materialize

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


def values_given(whose: str, names: Collection[str], positions: tuple[Any, ...], more: Mapping[str, object]) -> dict[Any, object]:
    """Values of the inputs of these names, as a call gives them: in one dict by key, or by position, and by name.

    Of inputs such as params.w a position has all of params. A dict is one by key, unless the first position is for such, and no key
    is an input. Raises ArgumentError.
    """
    parameters = list(dict.fromkeys(name.partition(".")[0] for name in names))
    first = positions[0] if positions else None
    if len(positions) == 1 and isinstance(first, Mapping):
        known = {*names, *parameters}
        if not parameters or parameters[0] in names or any(str(key) in known for key in first):
            return {**first, **more}
    if len(positions) == 1 < len(parameters) and isinstance(first, list | tuple) and not more:
        arguments.mapping("inputs", first)
    if len(positions) > len(parameters):
        raise ArgumentError(f"{whose} takes {counted(len(parameters), 'input')} ({listed(parameters)}), not {len(positions)}")
    given = dict(zip(parameters, positions, strict=False))
    if twice := next((name for name in more if name in given), None):
        raise ArgumentError(f"input '{twice}' is given by position and by name")
    return {**given, **more}


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
        self._known: dict[arguments.KeyText, Key] = {text: i.key for i in program.graph.inputs for text in (i.key, str(i.key))}
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
            inputs, more = values_given("Compiled", self.inputs, (inputs, *others), more), {}
        return self._called(inputs, out, max_memory, more)

    def _named(self, values: list[Any]) -> dict[str, Any]:
        if self._gives_arrays:
            return dict(zip(self._names, values, strict=True))
        from tidu_cli.runtime.evaluate import outward

        return {k: outward(o.type, y) for k, o, y in zip(self._names, self._program.outputs, values, strict=True)}

    @checked(
        inputs=arguments.values_by_key,
        batch=arguments.axes_by_key,
        chunk=arguments.at_least_one,
        reduce=arguments.one_of("sum", "mean"),
        out=arguments.result_file,
        resume=arguments.flag,
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

        `scheduler` is that of a cluster of Dask's: an address such as "tcp://head:8786", "local" or "local:4" for four processes of
        this machine, or a distributed.Client; without one this process does one chunk after the other. A chunk is of `chunk` items,
        by default as many as make a second of work. Results follow from the chunks alone, bit for bit, and not from who computes
        them.

        An input may be a Path: that of a file .npy or .npz, or a directory of zarr or of numbered such files; each chunk's part of
        it is read by the process that needs it. With `out`, a .zarr directory or a .npz or .npy file, results are written there,
        chunk by chunk, and none are returned but what `reduce` gives. Chunks that are done are kept in OUT.partial until all are,
        and with `resume` one goes on from them.

        Where an input is an array of Dask's, the results are such arrays, too: its blocks are the chunks, and whoever computes the
        results computes them where the blocks lie. Raises EvaluationError, which names a chunk that fails.
        """
        from tidu_cli.api.streaming import values_by_chunks

        if self._head is None:
            raise ArgumentError("map needs the graph; write compile(document).map(...)")
        if resume and out is None:
            raise ArgumentError("resume=True goes on from what is beside out; give the 'out' of the run that broke off")
        if out is not None and (not is_chunked(str(out)) or (reduce and format_of(str(out)) == "zarr")):
            places = "a .npz or .npy file" if reduce else "a .zarr directory, or a .npz or .npy file"
            raise ArgumentError(f"'{out}': results are written to {places}")
        given = nested({arguments.a_key(key): value for key, value in inputs.items()}, self._keys)
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
            inputs, out, max_memory = (
                arguments.mapping("inputs", inputs),
                arguments.by_key("out", out),
                arguments.size("max_memory", max_memory),
            )
        known = self._known
        given = {known.get(k) or arguments.a_key(k): v for k, v in {**(inputs or {}), **more}.items()}
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
def compile(document: Document, output: arguments.KeyTexts = (), engine: str | None = None, device: str | None = None) -> Compiled:
    """The head's outputs (or `output`) as a function of their inputs, to be called many times.

    `engine` and `device` are as in `evaluate`; "auto" tries others on some of the calls (docs/howto/engines.md), and results change
    by roundings where one takes over. Raises UnknownNameError, TransformError, and EvaluationError for what is refused.
    """
    from tidu_cli.runtime.trial import prepared_often

    head = materialize(document, outputs=arguments.parsed(output)).head
    if are_there_open_sizes():
        from tidu_cli.graph.open_sizes import names_in

        if names_in(head):
            return _OpenCompiled(head, engine or default_engine(), device)
    program, choice = prepared_often(head, chosen(head, engine or default_engine(), device=device))
    return Compiled(program, head, choice)


class _OpenCompiled(Compiled):
    """Likewise, of a document with open sizes: a plan for the sizes of each call, of which the last few are kept."""

    def __init__(self, head: Graph, engine: str, device: str | None) -> None:
        from tidu_cli.runtime.sizing import Plans
        from tidu_cli.runtime.trial import prepared_often

        def planned(sized: Graph) -> Compiled:
            program, choice = prepared_often(sized, chosen(sized, engine, device=device))
            return Compiled(program, sized, choice)

        self._open, self._how, self._plans = head, engine, Plans(head, planned)
        self._keys = {i.key for i in head.inputs}

    def __repr__(self) -> str:
        return f"<Compiled {signature(self._open.name, self._open.inputs, self._open.outputs)}, by {self.engine}>"

    @property
    def engine(self) -> str:
        """The engine of the last call, and before the first what was asked for."""
        return self._plans.last.engine if self._plans.last else self._how

    @property
    def why(self) -> str:
        return self._plans.last.why if self._plans.last else "as sizes are open until there are inputs"

    @property
    def inputs(self) -> dict[str, str]:
        return {str(i.key): str(i.type) for i in self._open.inputs}

    @property
    def outputs(self) -> dict[str, str]:
        return {str(o.key): str(o.type) for o in self._open.outputs}

    def __call__(self, inputs: Any = None, *others: Any, **how: Any) -> dict[str, Any]:

        options = {name: how.pop(name) for name in ("out", "max_memory") if name in how}
        positions = (inputs, *others) if inputs is not None or others else ()
        given = nested(
            {arguments.a_key(k): v for k, v in values_given("Compiled", self.inputs, positions, how).items()}, self._keys
        )
        return self._plans.of(given)(given, **options)

    def map(self, inputs: Mapping[Any, Any], batch: Mapping[Any, int], *others: Any, **how: Any) -> dict[str, Any]:
        given = nested({arguments.a_key(key): value for key, value in inputs.items()}, self._keys)
        return self._plans.of(given, arguments.axes_by_key("batch", batch)).map(given, batch, *others, **how)
