"""tidu in Python: what the commands do, on documents in memory. Names and order of arguments are the commands'.

Keys are text, such as "x" or "y@-1", or `Key`s. In `wrt` and `output` a pattern, "params.*", or the first parts of dotted names,
"params", stand for all inputs (but for integers) or outputs of such names. `docs/build.md` shows an example.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast

from tidu_cli.arguments import a_function, a_key, by_key, checked, mapping, named, one_key, several_functions, size, text, whole
from tidu_cli.build.arguments.given import Static
from tidu_cli.custom.packages import known_with
from tidu_cli.errors import ArgumentError, EvaluationError
from tidu_cli.formats.files import reading
from tidu_cli.formats.onnx.choices import Choices, Imported
from tidu_cli.formats.read import parse_document, parse_imported
from tidu_cli.formats.write import write_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import matching_inputs, require_inputs
from tidu_cli.graph.text.types import parse_value_type
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.lax.builtin import vocabulary
from tidu_cli.render.dot import to_dot as _to_dot
from tidu_cli.transforms import linearize as _linearize
from tidu_cli.transforms import materialize as _materialize
from tidu_cli.transforms import matrix as _matrix
from tidu_cli.transforms import shorthands as _shorthands
from tidu_cli.transforms import transpose as _transpose
from tidu_cli.transforms.linking import compose as _compose
from tidu_cli.transforms.linking import detach as _detach
from tidu_cli.transforms.linking import inline as _inline
from tidu_cli.transforms.linking import passes as _passes
from tidu_cli.transforms.linking import resolve as _resolve
from tidu_cli.transforms.linking.bind_constants import bind_constants

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from tidu_cli.runtime.plans.groups import GroupedProgram
    from tidu_cli.runtime.plans.interpreter import Program

KeyText = str | Key
"""A key, or its text form."""

KeyTexts = KeyText | Sequence[KeyText]
"""One key, or several."""

to_dot = checked()(_to_dot)


@checked()
def load(file: str | PurePath, plugins: str | Sequence[str] = ()) -> Document:
    """Read and check a document, JSON or msgpack, or a model of ONNX (`load_onnx` has more of it). Raises DocumentError.

    `plugins` names the packages that may be imported for ops of the document; so does the environment variable TIDU_PLUGINS.
    Raises UnknownNameError for one that is not installed.
    """
    with reading(str(file)) as source:
        return parse_document(source, str(file), known_with(plugins))[0]


@checked(set=named)
def load_onnx(
    file: str | PurePath,
    dims: Mapping[str, int] | None = None,
    input_types: Mapping[str, str | TensorType] | None = None,
    set: Mapping[str, Any] | None = None,
    cast: str | None = None,
    cut: str | Sequence[str] = (),
    weights: bool = False,
) -> Imported:
    """Read a model of ONNX, as `tidu convert` does: what is found has the `document`, the values of `weights`, and `notes`.

    `dims` are sizes of open dimensions by name, `input_types` types of inputs, such as "f32[1,3]", and `set` values of inputs that
    are constants. `cast` is a dtype for all floats. Values of the names in `cut`, and with `weights` parameters, become inputs.
    Raises DocumentError.
    """
    choices = Choices.of(dims, input_types, set, weights, cast, cut)
    with reading(str(file)) as source:
        return parse_imported(source, str(file), choices=choices)[0]


@checked()
def save(document: Document, file: str | PurePath) -> None:
    """Write a document as its suffix says, .json, .msgpack, .onnx, .mlir or .mlirbc, without one as JSON.

    Raises DocumentError, ArgumentError.
    """
    suffix = PurePath(file).suffix
    if suffix.lower() not in ("", ".json", ".msgpack", ".onnx", ".mlir", ".mlirbc"):
        ends = ".json, .msgpack, .onnx, .mlir or .mlirbc"
        raise ArgumentError(f"'{file}' ends in '{suffix}', which is no format of a document; end it in {ends}")
    write_document(document, str(file), suffix.lower().removeprefix(".") or "json")


@checked()
def resolve(
    *documents: Document, bind: Mapping[str, str] | Sequence[tuple[KeyText, KeyText]] = (), one_pass: Sequence[int] = ()
) -> Document:
    """Link documents into one; `bind` maps inputs to the outputs, or digests of values, that they are. Raises TransformError.

    A pass that is one call of linearize in one document and another in the next is refused, unless `one_pass` has its number.
    """
    return _resolve.resolve(documents, bind=cast("list[tuple[Key, Key]]", bind), one_pass=one_pass)


@checked()
def renumber(document: Document, passes: Mapping[int, int]) -> Document:
    """Give passes other numbers, as `tidu convert --pass` does: {1: 2}. Raises UnknownNameError, TransformError."""
    return _passes.renumber(document, passes)


@checked()
def compose(*documents: Document, by: str | None = None, share: KeyTexts = (), one_pass: Sequence[int] = ()) -> Document:
    """The pipeline of documents: the outputs of each feed inputs of the next, by "name" or by "position".

    By default by name where a key is on both sides, and else by position. An input that an earlier document has, too, is renamed
    x.2, unless it is in `share`. Raises TransformError, UnknownNameError.
    """
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
    With `detach`, only the new graphs, which refer to the others by digest; `resolve` links them.
    """
    types: dict[Key, Type] = {}
    for key, type_ in (tangent or {}).items():
        records = vocabulary(document.cases).records
        types[key] = parse_value_type(type_, records, open_shapes=True) if isinstance(type_, str) else type_
    result = _linearize.linearize(
        document, _inputs(document, wrt), outputs=_keys(output), pass_number=pass_number, tangent_types=types
    )
    return _detach.detach(result, len(document.graphs)) if detach else result


@checked()
def transpose(document: Document) -> Document:
    """Replace the linear head by its transpose. Raises TransformError."""
    return _transpose.transpose(document)


@checked()
def matrix(document: Document, holomorphic: bool = False) -> Document:
    """Replace the linear head by its matrix: a block y/x for each output and input. Raises TransformError."""
    return _matrix.matrix(document, holomorphic=holomorphic)


@checked()
def materialize(
    document: Document,
    output: KeyTexts = (),
    set: Mapping[Any, object] | None = None,
    inline: bool = False,
    needed_inputs: bool = False,
) -> Document:
    """One self-contained graph with the head's outputs (or `output`), and with all inputs that the document declares.

    Inputs of `set` are made constants; with `inline` the document's own ops are written out; with `needed_inputs` inputs that no
    output depends on go.
    Raises UnknownNameError, TransformError, EvaluationError for a constant of another type than the input.
    """
    if set:
        from tidu_cli.runtime.inputs import input_constant

        require_inputs(document, set)
        constants = {k: input_constant(k, document.inputs[k].type, v) for k, v in set.items()}
        document = bind_constants(document, constants)
    found = _materialize.materialize(document, outputs=_keys(output), needed_inputs=needed_inputs)
    return _materialize.materialize(_inline.inline(found), needed_inputs=needed_inputs) if inline else found


@checked()
def jvp(document: Document, wrt: KeyTexts, output: KeyTexts = (), value: bool = False) -> Document:
    """Jacobian-vector products, from x@1 to y@1; with `value` y, too. Raises as `linearize`."""
    return _shorthands.jvp(document, _inputs(document, wrt), _keys(output), value=value).document


@checked()
def vjp(document: Document, wrt: KeyTexts, output: KeyTexts = (), value: bool = False) -> Document:
    """Vector-Jacobian products, from y@-1 to x@-1; with `value` y, too. Raises as `linearize`."""
    return _shorthands.vjp(document, _inputs(document, wrt), _keys(output), value=value).document


@checked()
def grad(document: Document, wrt: KeyTexts, output: KeyTexts = (), value: bool = False) -> Document:
    """The gradient x@-1 of one output, a real number; with `value` the output, too. Raises as `linearize`."""
    return _shorthands.grad(document, _inputs(document, wrt), _keys(output), value=value).document


@checked()
def hvp(document: Document, wrt: KeyTexts, output: KeyTexts = ()) -> Document:
    """Hessian-vector products of one output, a real number, from x@2 to x@-1@2. Raises as `linearize`."""
    return _shorthands.hvp(document, _inputs(document, wrt), _keys(output)).document


@checked()
def jacobian(
    document: Document, wrt: KeyTexts, output: KeyTexts = (), reverse: bool | None = None, holomorphic: bool = False
) -> Document:
    """The Jacobian's blocks y/x; by rows if `reverse`, by columns if not, by default as is cheaper. Raises as `linearize`."""
    return _shorthands.jacobian(document, _inputs(document, wrt), _keys(output), reverse=reverse, holomorphic=holomorphic).document


@checked()
def hessian(document: Document, wrt: KeyTexts, output: KeyTexts = ()) -> Document:
    """The Hessian's blocks y/x/z of one output, a real number. Raises as `linearize`."""
    return _shorthands.hessian(document, _inputs(document, wrt), _keys(output)).document


@checked(wrt=one_key, order=whole)
def derivative(document: Document, wrt: KeyText, output: KeyTexts = (), order: int = 1) -> Document:
    """The derivative y@1@2... of some order by one number. Raises as `linearize`."""
    return _shorthands.derivative(document, cast(Key, wrt), _keys(output), order=order).document


@checked()
def evaluate(
    document: Document,
    inputs: Mapping[Any, object] | None = None,
    output: KeyTexts = (),
    max_memory: int | str | None = None,
    moves: Mapping[Any, object] | None = None,
    batch: Mapping[Any, int] | None = None,
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

    Results are arrays, datetime64 of datetimes and f64 of durations, which count their unit; of records dicts, of tuples tuples.
    """
    from tidu_cli.runtime.evaluate import evaluate as run

    given = _nested({**(inputs or {}), **{a_key(k): v for k, v in more.items()}}, document.inputs)
    limit = cast("int | None", max_memory)
    head = materialize(document, output).head
    if batch:
        if moves:
            raise EvaluationError("batch and moves do not go together: add retract to the graph, or move the batch before")
        from tidu_cli.runtime.batches import evaluate_batch
        from tidu_cli.transforms.batch import vectorized

        require_inputs(document, batch)
        results, _ = evaluate_batch(head, given, batch, vectorized, max_memory=limit)
    else:
        from tidu_cli.runtime.retraction import moves_of

        results = run(head, given, moves=moves_of(document, moves) if moves else {}, max_memory=limit)
    return {str(key): value for key, value in results.items()}


class Compiled:
    """A function of inputs: the evaluation of a document's outputs, planned once for many calls. `compile` makes it."""

    def __init__(self, program: Program | GroupedProgram) -> None:
        from tidu_cli.runtime.plans.groups import GroupedProgram
        from tidu_cli.runtime.plans.interpreter import Program

        if not isinstance(program, Program | GroupedProgram):
            raise ArgumentError(f"Compiled takes a program, not a value of type {type(program).__name__}; write compile(document)")
        self._program = program
        self._fits: set[int | str | None] = set()  # limits of memory that it keeps to
        # Parsing and writing keys takes as long as small programs run.
        self._known: dict[KeyText, Key] = {text: i.key for i in program.graph.inputs for text in (i.key, str(i.key))}
        self._keys = {i.key for i in program.graph.inputs}
        self._names = [str(o.key) for o in program.outputs]

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
        inputs: Mapping[Any, object] | None = None,
        out: Mapping[Any, NDArray[Any]] | None = None,
        max_memory: int | str | None = None,
        **more: object,
    ) -> dict[str, Any]:
        """The values of the outputs, by the text of their keys. Inputs are as in `evaluate`.

        `out` has arrays by key, each of its output's dtype and shape: those outputs are written into them, once all is computed,
        so that they may be inputs, too. Raises EvaluationError.
        """
        from tidu_cli.runtime.evaluate import call

        if type(inputs) is not dict or out is not None or max_memory is not None:
            inputs, out, max_memory = mapping("inputs", inputs), by_key("out", out), size("max_memory", max_memory)
        known = self._known
        given = {known.get(k) or a_key(k): v for k, v in {**(inputs or {}), **more}.items()}
        if not self._keys.issuperset(given):
            given = _nested(given, self._keys)
        if out:
            from tidu_cli.runtime.evaluate import require_room, write_into

            require_room(self._program.outputs, out)
        if max_memory not in self._fits:
            from tidu_cli.runtime.memory import check_memory

            check_memory(self._program, cast("int | None", max_memory))
            self._fits.add(max_memory)
        found = call(self._program, given)
        if out:
            found = write_into(out, found)
        return dict(zip(self._names, found.values(), strict=True))


@checked()
def compile(document: Document, output: KeyTexts = ()) -> Compiled:
    """The head's outputs (or `output`) as a function of their inputs. Raises UnknownNameError, TransformError."""
    from tidu_cli.runtime.plans.program import compile_graph

    return Compiled(compile_graph(materialize(document, output).head))


@checked(output=text)
def trace(function: Callable[..., Any], *args: Any, name: str | None = None, output: str = "y", **inputs: Any) -> Document:
    """The graph of a NumPy function of inputs of these types: text, types, arrays or numbers, also nested.

    What is no input, but a constant that the function is called with, is `static(value)`; None and functions are so by themselves.
    Raises BuildError.
    """
    from tidu_cli.build.tracing import trace as traced

    return traced(function, *args, name=name, output=output, **inputs)


def static(value: Any) -> Static:
    """A constant of Python among the arguments of `trace` and `from_jax`: the function is called with the value.

    So a number of steps, static(5), an option, static("linear"), or an array, static(table), is no input of the graph.
    """
    return Static(value)


@checked(function=a_function, name=text)
def from_jax(
    function: Callable[..., Any], *args: Any, names: Sequence[str] = (), name: str | None = None, rules: bool = False
) -> Document:
    """The graph of a function of JAX, which traces it, at arguments of these types: arrays, numbers, text, also nested.

    Or they are `jax.ShapeDtypeStruct`s. What is nested is a pytree, whose leaves that are no arrays (functions, say) stay what they
    are. Inputs are called as the parameters of the function, or as `names` says, one for each argument, and within pytrees by the
    path: "params.w", "layers.0.b". Dtypes are JAX's: those of 64 bits need `jax.enable_x64(True)`. Functions of `jax.custom_jvp`
    and `jax.custom_vjp` are differentiated as they are computed, unless with `rules` they become operations of the document that
    have the derivatives they define. Raises BuildError, with the equation and the line, for what has no place in a graph.
    """
    from tidu_cli.build.jax.function import from_jax as traced

    return traced(function, *args, names=names, name=name, rules=rules)


@checked()
def to_jax(document: Document, output: KeyTexts = ()) -> Callable[..., Any]:
    """The head's outputs (or `output`) as a function of JAX, to be called, or given to jax.jit, jax.grad, jax.vmap and the like.

    It takes the inputs in the order of the document, or by name, or in one dict by key, {"x@-1": ...}; those that no output depends
    on may be left out. It gives the output, or a dict of several by the text of their keys. Arrays have the declared shape, and its
    dtype or one of which it has all values; Python's numbers have any. Records are dicts of their fields, tuples are tuples;
    datetimes are given as in `evaluate`, and are counts of their unit in i64, durations in f64.

    Derivatives are JAX's, by its conventions: cotangents of complex numbers are the conjugates of those that `vjp` gives. Of
    primitives that JAX cannot differentiate they are computed by the rules of tidu. What has 64 bits needs
    jax.config.update("jax_enable_x64", True), or jax.enable_x64(True) around the call. Raises UnknownNameError, TransformError,
    MissingRuleError for what only NumPy computes, ArgumentError where JAX is missing; and what is made EvaluationError for inputs
    that do not fit.
    """
    if find_spec("jax") is None:
        raise ArgumentError("functions of JAX need the package jax: pip install 'tidu[jax]'")
    from tidu_cli.runtime.jax.calling import jax_callable

    return jax_callable(materialize(document, output).head)


@checked(f=a_function)
def scan(f: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False) -> tuple[Any, Any]:
    """The loop `carry, y = f(carry, x)` over the slices x of xs along axis 0: the last carry, and all y, stacked along axis 0.

    With `reverse` it goes from the last slice to the first. Without xs there are `length` steps. The carry, which is `init` first,
    xs and y are arrays, also nested; the carry keeps its types. Where something is traced, in the arguments or in what f closes
    over, f is traced once, and the loop is a node of the graph. Raises BuildError.
    """
    from tidu_cli.build.control_flow.scan import scan as run

    return run(f, init, xs, length, reverse)


@checked(body_fun=a_function)
def fori_loop(lower: Any, upper: Any, body_fun: Callable[..., Any], init_val: Any) -> Any:
    """The loop `val = body_fun(i, val)` for i from lower to upper - 1: the last val, which keeps its types.

    It is a `scan` if the bounds are Python's integers, and if they are traced a `while_loop`. Raises BuildError.
    """
    from tidu_cli.build.control_flow.scan import fori_loop as run

    return run(lower, upper, body_fun, init_val)


@checked(cond_fun=a_function, body_fun=a_function)
def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """The loop `val = body_fun(val)` while `cond_fun(val)`: the last val, which keeps its types.

    It is differentiated in forward mode only, as how often it runs is not known before. Raises BuildError.
    """
    from tidu_cli.build.control_flow.while_loop import while_loop as run

    return run(cond_fun, body_fun, init_val)


@checked(true_fun=a_function, false_fun=a_function)
def cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any) -> Any:
    """true_fun(*operands) if pred, else false_fun(*operands), of which the graph runs one; both give the same types.

    pred is a bool, or a number, which is true unless it is 0. Raises BuildError.
    """
    from tidu_cli.build.control_flow.cond import cond as run

    return run(pred, true_fun, false_fun, *operands)


@checked(branches=several_functions)
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands), of which the graph runs one; index is clamped, and all give the same types. Raises BuildError."""
    from tidu_cli.build.control_flow.cond import switch as run

    return run(index, branches, *operands)


def _nested(given: dict[Key, Any], declared: Collection[Key]) -> dict[Key, Any]:
    """Values by key, with dicts, lists and dataclasses that hold inputs taken apart."""
    if all(key in declared for key in given):
        return given
    from tidu_cli.runtime.nesting import by_inputs

    found = by_inputs({str(key): value for key, value in given.items()}, {str(key) for key in declared})
    return {a_key(text): value for text, value in found.items()}


def _inputs(document: Document, wrt: KeyTexts) -> list[Key]:
    """The inputs of these keys, which may be patterns."""
    return matching_inputs(document, _keys(wrt))


def _keys(keys: KeyTexts) -> list[Key]:
    """Keys, which `checked` has parsed."""
    return cast("list[Key]", keys)
