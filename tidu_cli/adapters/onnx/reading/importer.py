"""A model as a document, by tracing: nodes in order, each a function of NumPy on the arrays of its operands.

Values that depend on no input are NumPy's arrays, and are computed at once: so the arithmetic of shapes folds away. All others are
traced arrays, which record what is done with them. Functions of the model, and operators that the specification defines by a
function, are run likewise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tidu_cli.adapters.numpy.arrays.array import Array, dtype_of, name_of
from tidu_cli.adapters.numpy.recorder import Recorder, running
from tidu_cli.adapters.onnx.contents import MOST_LEVELS, Choices, as_key, constants, nodes_within, stopped_places
from tidu_cli.adapters.onnx.loading import DTYPES, array_of, dense, held
from tidu_cli.adapters.onnx.reading import calling
from tidu_cli.adapters.onnx.reading import inputs as ports
from tidu_cli.adapters.onnx.reading.inputs import Statistics, folded, left_in_nodes
from tidu_cli.adapters.onnx.reading.node import (
    LARGEST_KNOWN,
    Node,
    RefusedError,
    Sizes,
    UnreadError,
    Value,
    attribute,
    foldable,
    inputs_of,
)
from tidu_cli.adapters.onnx.reading.values import MOVING, Standing, as_nodes, operands_for, with_sizes
from tidu_cli.errors import LimitError, Remedy, UnknownNameError, did_you_mean
from tidu_cli.frozen import replace
from tidu_cli.graph.graph import Document
from tidu_cli.graph.types import FLOATS, TensorType
from tidu_cli.limits import require, written_out
from tidu_cli.port_data import Imported


def import_model(model: Any, choices: Choices, cut_types: Mapping[str, TensorType] | None = None) -> Imported:
    """The document of a model. Raises DocumentError, one line that names graph, node and operator.

    Where types are chosen for all values at which it is cut, what is before them is not read. `cut_types` are these.
    """
    given = {name: choices.types[name] for name in choices.cuts if name in choices.types}
    if given and len(given) == len(set(choices.cuts)):
        ports.leave_out_before(model, set(given))
        types = {name: type_ for name, type_ in choices.types.items() if name not in given}
        return import_model(model, replace(choices, types=types, cuts=()), given)
    try:
        importer, imported = ports.with_bounds(partial(_read, model, choices, cut_types or {}))
    except UnreadError as error:
        raise UnreadError(f"{error}{calling.also_unread(model, str(error))}") from error
    if not choices.cuts:
        return imported
    missing = next((name for name in choices.cuts if name not in importer.cut_types), None)
    if missing is not None:
        if any(i.name == missing for i in (*model.graph.input, *model.graph.initializer)):
            problem = f"'{missing}' is an input or initializer, not an inner value to cut at"
            raise UnknownNameError(f"{problem} (", Remedy("weights", True), " makes inputs of these)")
        raise UnknownNameError(f"no node computes a value '{missing}' to cut at{did_you_mean(missing, importer.computed)}")
    return ports.with_bounds(partial(_read, model, choices, importer.cut_types))[1]


def _read(model: Any, choices: Choices, cut_types: Mapping[str, TensorType], bounded: ports.Bounded) -> tuple[Importer, Imported]:
    importer = Importer(model, choices, cut_types, bounded)
    importer.notes.update(dict.fromkeys(ports.bounds_in_words(bounded)))
    return importer, importer.imported()


class Importer:
    """A reading in progress. `cut_types` are the types of values that are inputs, or, where none are, of those that may be."""

    def __init__(self, model: Any, choices: Choices, cut_types: Mapping[str, TensorType], bounded: ports.Bounded) -> None:
        self.model = model
        self.graph = model.graph
        self.choices = choices
        self.cast = choices.cast
        self.straight_through = choices.straight_through
        self._bounded = bounded
        self.is_sized = bool(choices.sizes or choices.types)
        self._standing = Standing()
        self.stands_for, self.standing = self._standing.of, self._standing.mark
        self.cut_types = dict(cut_types)
        self.is_cut = bool(cut_types)
        self.recorder = Recorder()
        self.notes: dict[str, None] = {}
        self.computed: list[str] = []
        self.weights: dict[str, Any] = {}
        self.statistics = Statistics(self.recorder)
        self._numbers: dict[tuple[Any, int], Any] = {}  # of a recording and a value in it
        self._functions = {(calling.domain_name(f.domain), f.name, f.overload): f for f in model.functions}
        self._expansion = calling.Expansion()
        self._level = 0
        self._stops: Collection[str] = ()
        self._loops: list[dict[str, object]] = []  # of the node that is run, and of those within it

    def imported(self) -> Imported:
        """The document, its weights and notes."""
        self._require_written_out()
        scope = calling.Scope(calling.Definition.of(self.model.opset_import, {}))
        place = f"graph '{self.graph.name}'"
        with np.errstate(all="ignore"), running(self.recorder):
            with calling.placed(place):
                self._stops = stopped_places(self.graph, self.choices.stops, self.cut_types)
                self._declare(scope)
            self._run_nodes(self.graph.node, scope, place)
            with calling.placed(place):
                results = {o.name: self._given(o.name, calling.required(scope, o.name)) for o in self.graph.output}
        results, note = self.statistics.outputs(self.weights, results, self.choices.statistics)
        self.notes.update({note: None} if note else {})
        outputs = [(as_key(name), x.value, x.type) for name, x in results.items()]
        needed = self.recorder.needed(outputs)
        declared = [str(i.key) for i in self.recorder.inputs]
        kept = [k for k, name in enumerate(declared) if needed[k] or not (self.is_cut or name in self.weights)]
        inputs = [self.recorder.inputs[k] for k in kept]
        inputs = [replace(i, meta={"parameter": True}) if str(i.key) in self.weights else i for i in inputs]
        graph = self.recorder.graph(self.graph.name or "model", inputs, kept, outputs, self._meta())
        left = {name: n for name, n in constants(self.graph).items() if name not in self.cut_types}
        if self.choices.weights and (left or not self.weights):
            self.note(left_in_nodes(left, bool(self.weights)))
        weights = {declared[k]: self.weights[declared[k]] for k in kept if declared[k] in self.weights}
        if weights:
            self.notes.update(dict.fromkeys(folded(weights)))
        return Imported(Document((graph,), graph.cases), weights, tuple(self.notes))

    def _require_written_out(self) -> None:
        """Raises LimitError if the functions of the model, written out where they are called, have too many nodes."""
        bodies = {name: [*nodes_within(f.node)] for name, f in self._functions.items()}
        main = ("", "", "")
        bodies[main] = [*nodes_within(self.graph.node)] if self._functions else []
        calls = {name: [calling.function_called(node) for node in body] for name, body in bodies.items()}
        n = written_out(main, {name: len(body) for name, body in bodies.items()}, calls) - len(bodies[main])
        require("expansion", n, f"graph '{self.graph.name}': its functions, written out where they are called")

    def _given(self, name: str, x: Value) -> Array:
        if isinstance(x, list):
            raise RefusedError(f"output '{name}' is a sequence, but graphs give arrays; concatenate its arrays, or take them")
        return self.lifted(x if self.stands_for(x) not in DTYPES.values() else self._plain(name, x))

    def _meta(self) -> dict[str, object] | None:
        text = {"doc": self.graph.doc_string or self.model.doc_string, "producer": self.model.producer_name}
        meta: dict[str, object] = {name: value for name, value in text.items() if value}
        if not self.choices.weights and (names := [t.name for t in self.graph.initializer if DTYPES.get(t.data_type) in FLOATS]):
            meta["weights"] = names
        if names := [name for name in constants(self.graph) if name not in self.cut_types]:
            meta["constants"] = names
        return {"onnx": meta} if meta else None

    # What is declared.

    def _declare(self, scope: calling.Scope) -> None:
        initializers = {t.name: t for t in self.graph.initializer}
        declared = [i for i in self.graph.input if i.name not in initializers]
        self.dimensions = ports.dimensions_of(declared, self.choices, self._bounded)
        types = ports.typed_inputs(declared, self.choices, self.dimensions)
        kinds = {i.name: held(i.type.tensor_type.elem_type)[1] for i in self.graph.input if i.name in types}
        for name, type_ in types.items():
            if name in self.choices.values:
                scope.values[name] = ports.fixed(name, self.choices.values[name], type_)
            else:
                self._declare_input(scope, name, type_)
            scope.values[name] = self.standing(scope.values[name], kinds[name] or type_.dtype)
        for name, tensor in initializers.items():
            with calling.placed(f"initializer '{name}'"):
                self._initialize(scope, name, self._tensor(tensor))
        for sparse in self.graph.sparse_initializer:
            with calling.placed(f"initializer '{sparse.values.name}'"):
                scope.values[sparse.values.name] = dense(sparse, self.cast)
        for name, type_ in self.cut_types.items():
            self._declare_input(scope, name, type_)
        for name, x in scope.values.items():  # after the inputs, which come first in a recording
            scope.values[name] = self._stopped(scope, name, self._settled(x))

    def _declare_input(self, scope: calling.Scope, name: str, type_: TensorType) -> Array:
        x = self.recorder.input(as_key(name), type_)
        assert isinstance(x, Array)
        x.share = None  # operators change no array in place
        scope.values[name] = x
        return x

    def _initialize(self, scope: calling.Scope, name: str, value: Any) -> None:
        dtype = name_of(value.dtype)
        if not self.choices.weights or dtype not in FLOATS or self.stands_for(value):
            scope.values[name] = value
            return
        x = self._declare_input(scope, name, TensorType(dtype, value.shape))
        self.weights[str(as_key(name))] = self._numbers[self.recorder, x.value] = value

    # What operators ask for.

    def known(self, x: Value) -> Any:
        """The numbers of a value, None if they are not known."""
        known = self._numbers.get((x.recorder, x.value)) if isinstance(x, Array) else x
        return None if isinstance(known, Sizes) else known

    def sizes(self, x: Value) -> Sizes | None:
        """The sizes that a value is, None if it is not known to be sizes."""
        known = self._numbers.get((x.recorder, x.value)) if isinstance(x, Array) else x
        return known if isinstance(known, Sizes) else None

    def sources(self, x: Value) -> list[str]:
        """The inputs of the model that a value depends on, weights excepted."""
        return [name for name in inputs_of(x, self.recorder) if name not in self.weights]

    def lifted(self, x: Value) -> Array:
        """A value as a traced array of the recording that goes on."""
        if isinstance(x, Array):
            return x
        if isinstance(x, Sizes):
            numbers = as_nodes(self.recorder, x)
            self._numbers[numbers.recorder, numbers.value] = x
            return numbers
        array = np.asarray(x)
        constant: Array = self.recorder.constant(array)
        self._numbers[constant.recorder, constant.value] = array
        return self._standing.handed_on(x, constant)  # type: ignore[no-any-return]

    def _tensor(self, tensor: Any) -> Any:
        array = array_of(tensor, self.cast)
        return self.standing(array, held(tensor.data_type, self.cast)[1] or name_of(array.dtype))

    def _stopped(self, scope: calling.Scope, name: str, x: Value) -> Value:
        """A value, through which no derivative goes if that was chosen."""
        if not self._stops or scope.path is None or f"{scope.path}{name}" not in self._stops or not isinstance(x, Array | list):
            return x
        if isinstance(x, list):
            return [self._stopped(scope, name, part) for part in x]
        stopped = x.emit("stop_gradient")
        if (numbers := self.known(x)) is not None:
            self._numbers[stopped.recorder, stopped.value] = numbers
        return stopped

    def ends_by(self, loop: str, inputs: Sequence[str], number: str | None) -> None:
        """Have the meta of the node tell of a loop whose count depends on inputs."""
        self._loops.append({"name": loop, "inputs": list(inputs), **({"number": number} if number else {})})

    def note(self, text: str) -> None:
        """Something that the user should know, which is told once."""
        self.notes[text] = None

    def run(
        self, graph: Any, scope: calling.Scope, inputs: Sequence[Value], path: str = "", is_written: bool = True
    ) -> list[Value]:
        """The outputs of a graph within a node; its nodes count as written out, but for what leaves none behind."""
        initializers = {t.name: t for t in graph.initializer}
        names = [i.name for i in graph.input if i.name not in initializers]
        if len(inputs) != len(names):
            raise RefusedError(f"its graph '{graph.name}' takes {len(names)} inputs, and is given {len(inputs)}")
        within = calling.Scope(scope.definition, scope, None if scope.path is None else f"{scope.path}{path}")
        within.values.update((name, self._stopped(within, name, x)) for name, x in zip(names, inputs, strict=True))
        within.values.update((name, self._settled(self._tensor(t))) for name, t in initializers.items())
        within.values.update((t.values.name, self._settled(dense(t, self.cast))) for t in graph.sparse_initializer)
        self._expansion.add(len(graph.node) if is_written else 0)
        with self._deeper():
            self._run_nodes(graph.node, within, f"graph '{graph.name}'")
        results = [calling.required(within, o.name) for o in graph.output]
        return [x if isinstance(x, list) else self._plain(o.name, x) for o, x in zip(graph.output, results, strict=True)]

    def _plain(self, name: str, x: Value) -> Value:
        """An output of a graph, as an array of the dtype that it stands for."""
        kind = self.stands_for(x)
        if kind and kind not in DTYPES.values():
            raise RefusedError(f"gives '{name}', an array of {kind}, out of a graph within a node; cast it there")
        return self.standing(x, "").astype(dtype_of(kind)) if kind else x

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        if self._level >= MOST_LEVELS:
            raise RefusedError(f"functions and graphs within nodes nest deeper than {MOST_LEVELS} levels")
        self._level += 1
        try:
            yield
        finally:
            self._level -= 1

    # Nodes.

    def _run_nodes(self, nodes: Sequence[Any], scope: calling.Scope, place: str) -> None:
        """Compute the values of nodes. Raises DocumentError with the place of the one that is refused."""
        for number, proto in enumerate(nodes):
            try:
                self._run_node(proto, scope)
            except LimitError:
                raise
            except calling.WRONG as error:
                name = f" '{proto.name}'" if proto.name else ""
                message = f"{place}, node {number}{name} ({proto.op_type}): {calling.in_words(error, self, proto, scope)}"
                raise calling.raised(error, message) from error

    def _run_node(self, proto: Any, scope: calling.Scope) -> None:
        self._loops = self._loops if self._level else []
        domain = calling.domain_name(proto.domain)
        operands = calling.operands_of(proto, scope)
        attributes = self._attributes(proto, scope.definition)
        function = self._functions.get(calling.function_called(proto))
        if function is not None:
            attributes = {**{a.name: attribute(a, self.cast) for a in function.attribute_proto}, **attributes}
            results = self._call(function, attributes, operands, scope)
        else:
            version = scope.definition.versions.get(domain)
            if version is None:
                raise RefusedError(f"is of the domain '{domain}', which the model does not import")
            node = Node(self, proto.op_type, domain, version, proto.name, attributes, len(proto.output), scope, proto.output)
            run = calling.operator_of(node, operands)
            if run is None:
                function, defaults = self._expansion.function(node, proto, operands)
                results = self._call(function, {**defaults, **attributes}, operands, scope)
            else:
                given = operands_for(node, foldable(self, proto.op_type, operands))
                computed = with_sizes(node, run, given)
                results = list(computed) if isinstance(computed, list | tuple) else [computed]
                if proto.op_type in MOVING and given and self.stands_for(given[0]):
                    results = [x if x is None else self._standing.handed_on(given[0], x) for x in results]
        if len(results) < len(proto.output):
            raise RefusedError(f"has {len(proto.output)} outputs, and {len(results)} are known")
        for name, x in zip(proto.output, results, strict=False):
            if name:
                self._bind(name, self._settled(x), proto, scope)

    def _attributes(self, proto: Any, definition: calling.Definition) -> dict[str, Any]:
        own = {a.name: attribute(a, self.cast) for a in proto.attribute if not a.ref_attr_name}
        given = definition.attributes
        return own | {a.name: given[a.ref_attr_name] for a in proto.attribute if a.ref_attr_name in given}

    def _call(self, function: Any, attributes: Mapping[str, Any], operands: Sequence[Value], scope: calling.Scope) -> list[Value]:
        """The outputs of a function of the model, or of an operator's."""
        imported = calling.Definition.of(function.opset_import, attributes)
        inner = calling.Scope(calling.Definition({**scope.definition.versions, **imported.versions}, attributes), path=None)
        padded = [*operands, *[None] * (len(function.input) - len(operands))]
        inner.values.update((name, x) for name, x in zip(function.input, padded, strict=False) if x is not None)
        self._expansion.add(len(function.node))
        with self._deeper():
            self._run_nodes(function.node, inner, f"function '{function.name}'")
        return [inner.get(name) for name in function.output]

    def _settled(self, x: Value) -> Value:
        """A value that is small enough to stay known, or else a constant of the graph."""
        if x is None or isinstance(x, Array | Sizes):
            return x
        if isinstance(x, list):  # which may be the one that stands for nothing
            return [self._settled(part) for part in x] if x else x
        array = np.asarray(x)
        return self.lifted(array) if array.size > LARGEST_KNOWN else self._standing.handed_on(x, array)

    def _bind(self, name: str, x: Value, proto: Any, scope: calling.Scope) -> None:
        if name in scope.values and not (self.is_cut and name in self.cut_types):
            raise RefusedError(f"computes '{name}', as an earlier node does or an input is; a name has one value")
        if scope.around is None and self._level == 0:
            if self.is_cut and name in self.cut_types:
                scope.values[name] = self._standing.handed_on(x, scope.values[name])
                return
            self.computed.append(name)
            if name in self.choices.cuts and x is not None and not isinstance(x, list):
                self.cut_types[name] = self.lifted(x).type
        scope.values[name] = self._stopped(scope, name, x)
        if isinstance(x, Array) and x.recorder is self.recorder and self._level == 0:
            told = {"value": name, "node": proto.name, "op": proto.op_type, "doc": proto.doc_string, "loops": self._loops}
            self.recorder.meta.setdefault(x.value, {"onnx": {k: v for k, v in told.items() if v}})
