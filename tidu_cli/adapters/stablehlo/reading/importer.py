"""A module as a document: each operation emits nodes, functions are inlined where they are called.

Calls, branches and loops are read here, too: loops go on as long as a condition holds, and those that count are scans
(`lax/recipes/counting.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tidu_cli.adapters.stablehlo.module import Block, Function, Module, Operation, claims_document, require_written_out
from tidu_cli.adapters.stablehlo.reading.equivalents import bounded, bounds_of, cancelling_kinks, chosen
from tidu_cli.adapters.stablehlo.reading.guards import guarded
from tidu_cli.adapters.stablehlo.reading.site import MOST_CALLS, Reader, RefusedError, Site, array_type, placed_error, reader_of
from tidu_cli.adapters.stablehlo.reading.special import ENDS, is_special, recognised
from tidu_cli.custom.packages import KNOWN
from tidu_cli.errors import DocumentError, LimitError, TiduError
from tidu_cli.graph.closed import ClosedGraph
from tidu_cli.graph.graph import Document, Input, Meta
from tidu_cli.graph.keys import Key, parse_key
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.names import ops_of
from tidu_cli.lax.recipes.counting import loop
from tidu_cli.limits import require
from tidu_cli.rules.recording.known import Recording, inlined
from tidu_cli.rules.terms import Term


def _call(site: Site, *operands: Term) -> Sequence[Term]:
    return site.called(site.attribute("callee"), operands)


def _composite(site: Site, *operands: Term) -> Sequence[Term]:
    """What it is decomposed into; or the function of chlo that it is called by, where the two have the same values."""
    results = site.called(site.attribute("decomposition"), operands)
    op = ops_of("chlo").get(str(site.attribute("name")).removeprefix("chlo."), "")
    named = len(operands) == len(results) == 1 and is_special(site.recording, op, *operands, *results)
    return [site.emit(op, *operands)] if named else results


def _if(site: Site, which: Term) -> Sequence[Term]:
    """The first region where the predicate holds, which is number 1 of a cond."""
    return _branches(site, which, [1, 0])


def _case(site: Site, index: Term) -> Sequence[Term]:
    """The region of that number, and the last one for a number that none has, also for negative ones."""
    n = len(site.operation.regions)
    last = site.recording.full(n - 1, TensorType("i32"))
    negative = site.emit("lt", index, 0)
    return _branches(site, site.emit("select_n", negative, index, last), list(range(n)))


def _branches(site: Site, index: Term, regions: Sequence[int]) -> Sequence[Term]:
    branches = [site.region(k) for k in regions]
    outside: dict[int, Term] = {t.slot: t for _, terms in branches for t in terms}
    numbers = {slot: k for k, slot in enumerate(outside)}
    types = [t.type for t in outside.values()]
    graphs = [_widened(site, graph, [numbers[t.slot] for t in terms], types) for graph, terms in branches]
    if not graphs[0].output_types:
        return ()
    return site.emit_all("cond", index, *outside.values(), branches=tuple(graphs))


def _widened(site: Site, graph: ClosedGraph, places: Sequence[int], types: Sequence[TensorType]) -> ClosedGraph:
    """A graph that takes more operands than it needs, of which its own are at these places."""
    recording = Recording(site.recording.primitives, types)
    return recording.closed(inlined(recording, graph, [recording.sources[k] for k in places]))


def _while(site: Site, *operands: Term) -> Sequence[Term]:
    types = [t.type for t in operands]
    condition, of_condition = site.region(0, types)
    body, of_body = site.region(1, types)
    return loop(site.recording, condition, of_condition, body, of_body, operands)


OPERATIONS: dict[str, Reader] = {
    "stablehlo.case": _case,
    "stablehlo.if": _if,
    "stablehlo.while": _while,
    "func.call": _call,
    "stablehlo.composite": _composite,
}


def import_module(module: Module) -> Document:
    """The document of a module's public function. Raises DocumentError with the place, LimitError."""
    function = _main(module)
    require_written_out(module, function)
    if any("?" in text for text in function.body.arguments):
        return _of_open_sizes(module, function)
    return _imported(module, function)


def _of_open_sizes(module: Module, function: Function) -> Document:
    """Likewise, of a module with shapes that are known at run time."""
    from tidu_cli.adapters.stablehlo.symbols import with_sizes  # which modules of fixed shapes do without
    from tidu_cli.graph.sizes.reading import declaring

    try:
        module, names = with_sizes(module, function)
    except DocumentError:
        raise
    except RefusedError as error:
        raise DocumentError(str(error)) from None
    with declaring(names):
        return _imported(module, module.functions[function.name])


def _imported(module: Module, function: Function) -> Document:
    importer = _Importer(module)
    types = [_port_type(t, f"argument {k} of @{function.name}") for k, t in enumerate(function.body.arguments)]
    recording = Recording(KNOWN, types)
    results = importer.function(function, recording, recording.sources)
    keys = _input_keys(module, function)
    inputs = [Input(key, t, label) for key, t, label in zip(keys, types, _labels(module, function, keys), strict=True)]
    graph = recording.graph(_graph_name(module.name), inputs, list(zip(_output_keys(function), results, strict=True)))
    if not claims_document(module):  # what tidu wrote has rules of its own behind it
        graph = guarded(graph, KNOWN)
    return Document((graph,), graph.cases)


class _Importer:
    """Reads blocks into recordings; `around` are the names of the functions that are being inlined."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.around: list[str] = []
        self.n_nodes = 0

    def function(self, function: Function, recording: Recording, operands: Sequence[Term]) -> list[Term]:
        """The results of a function for these operands."""
        if function.name in self.around:
            raise RefusedError(f"function @{function.name} calls itself, which has no end here")
        if len(self.around) > MOST_CALLS:
            raise RefusedError(f"functions call one another deeper than {MOST_CALLS} levels")
        self.around.append(function.name)
        results = self.block(function.body, recording, dict(enumerate(operands, function.body.first)))
        self.around.pop()
        return results

    def called(self, name: str, recording: Recording, operands: Sequence[Term]) -> list[Term]:
        """Likewise, by name. Raises RefusedError if the module has no such function."""
        function = self.module.functions.get(name)
        if function is None:
            raise RefusedError(f"the module has no function @{name}")
        bounds = bounds_of(function)
        if bounds:
            return [bounded(recording, operands[0], bounds)]
        return self.function(function, recording, operands)

    def block(self, block: Block, recording: Recording, values: dict[int, Term]) -> list[Term]:
        """The results of a block, of whose values those that it takes are there."""
        kinks = cancelling_kinks(block)
        for operation in block.operations:
            if order := kinks.get(operation.first):
                operands = [values[v] for v in operation.operands]
                results: Sequence[Term] = [chosen(recording, operation, operands, *[values[v] for v in order])]
            else:
                results = self.operation(operation, recording, values)
            values.update(enumerate(results, operation.first))
        return [values[v] for v in block.results]

    def operation(self, operation: Operation, recording: Recording, values: dict[int, Term]) -> Sequence[Term]:
        """The results of an operation. Raises DocumentError with its place."""
        operands = [values[v] for v in operation.operands]

        def called(name: str, given: Sequence[Term]) -> list[Term]:
            return self.called(name, recording, given)

        site = Site(operation, recording, operands, values, self.region, called)
        before = len(recording.nodes)
        try:
            terms = reader_of(operation.name)(site, *operands)
            results = [terms] if isinstance(terms, Term) else list(terms)
            if operation.name in ENDS:
                results = [recognised(recording, *results)]
            _check(site, results)
        except (DocumentError, LimitError):
            raise
        except TiduError as error:
            raise placed_error(operation, error) from None
        self.n_nodes += len(recording.nodes) - before if operation.name != "func.call" else 0
        require("nodes", self.n_nodes, "the module, its functions written out where they are called")
        return results

    def region(self, site: Site, block: Block, types: Sequence[TensorType]) -> tuple[ClosedGraph, list[Term]]:
        """The graph of a region, and the values from around that it takes before its arguments.

        What is known becomes constant, and open sizes are sizes within.
        """
        numbers = sorted(_free(block))
        known = {n: site.known(site.values[n]) for n in numbers}
        sizes = {n: site.recording.size(site.values[n]) for n in numbers if known[n] is None}
        sizes = {n: size for n, size in sizes.items() if size is not None}
        read = [n for n in numbers if known[n] is None and n not in sizes]
        recording = Recording(site.recording.primitives, [*[site.values[n].type for n in read], *types])
        values = dict(zip(read, recording.sources, strict=False))
        values |= {n: recording.constant(known[n], site.values[n].type) for n in numbers if known[n] is not None}
        values |= {n: recording.full(size, site.values[n].type) for n, size in sizes.items()}
        values |= dict(enumerate(recording.sources[len(read) :], block.first))
        return recording.closed(self.block(block, recording, values)), [site.values[n] for n in read]


def _free(block: Block) -> set[int]:
    """The values from around that a block reads, also within regions: those of lower numbers than its own."""
    free, todo = {v for v in block.results if v < block.first}, list(block.operations)
    while todo:
        operation = todo.pop()
        free.update(v for v in operation.operands if v < block.first)
        for inner in operation.regions:
            free.update(v for v in inner.results if v < block.first)
            todo += inner.operations
    return free


def _check(site: Site, results: Sequence[Term]) -> None:
    """What was emitted has the types that the module says."""
    due = site.operation.results
    given = [str(t.value_type) for t in results]
    if given != list(due):
        raise RefusedError(f"is read as {', '.join(given) or 'nothing'}, where the module says {', '.join(due) or 'nothing'}")


def _main(module: Module) -> Function:
    main = module.functions.get("main") or next((f for f in module.functions.values() if f.public), None)
    if main is None:
        raise DocumentError("the module has no public function")
    return main


def _port_type(text: str, what: str) -> TensorType:
    try:
        return array_type(text)
    except RefusedError as error:
        raise DocumentError(f"{what} {error}") from None


def _input_keys(module: Module, function: Function) -> list[Key]:
    """Keys that the module has for arguments; else the names of an exported function's, and else 0, 1, 2, ...."""
    attributes = function.argument_attributes
    names = module.names if len(module.names) == len(attributes) else [str(k) for k in range(len(attributes))]
    return _keys([_key(a) or Key(name) for a, name in zip(attributes, names, strict=True)], "argument")


def _labels(module: Module, function: Function, keys: Sequence[Key]) -> list[Meta]:
    """Meta of arguments that go by numbers: what the program calls them, `params['w']` say."""
    texts = module.labels.get(function.name, [""] * len(keys))
    is_numbered = not any(map(_key, function.argument_attributes))
    return [{"stablehlo": {"argument": text}} if text and is_numbered else None for text in texts]


def _output_keys(function: Function) -> list[Key]:
    """Keys that the module has for results; else names that JAX wrote, and else y, or y0, y1, .... of several."""
    n = len(function.result_attributes)
    names = [_result_name(str(attributes.get("jax.result_info", ""))) for attributes in function.result_attributes]
    if not all(names) or len(set(names)) < n:
        names = ["y"] if n == 1 else [f"y{k}" for k in range(n)]
    return _keys([_key(a) or Key(name) for a, name in zip(function.result_attributes, names, strict=True)], "result")


def _keys(keys: list[Key], what: str) -> list[Key]:
    repeated = {key for key in keys if keys.count(key) > 1} if len(set(keys)) < len(keys) else None
    if repeated:
        raise DocumentError(f"two {what}s have the key '{min(map(str, repeated))}' (tidu.key)")
    return keys


def _key(attributes: Mapping[str, object]) -> Key | None:
    """The key that an argument or result says it has, and of a record which field of it: p.x."""
    text, field = attributes.get("tidu.key"), attributes.get("tidu.field")
    key = parse_key(text) if isinstance(text, str) else None
    return Key(f"{key.name}.{field}", key.path) if key and field else key


def _result_name(info: str) -> str:
    """loss of result['loss'], and y0.loss of result[0]['loss']; empty for what has no names."""
    parts = re.findall(r"\['?([^\]']+)'?\]|\.(\w+)", info)
    words = [a or b for a, b in parts]
    return "" if not words or all(w.isdigit() for w in words) else ".".join(words)


def _graph_name(name: str) -> str:
    return name.removeprefix("jit_").strip("_<>") or "f"
