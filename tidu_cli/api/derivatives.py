"""Derivatives by name, each a pipeline of the transforms: of documents and functions; and where they can be other than 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tidu_cli.api.documents import wrt_inputs
from tidu_cli.arguments import KeyText, KeyTexts, anything, flag, one_key, or_none, parsed, positions_or_names, whole
from tidu_cli.errors import ArgumentError, TransformError, did_you_mean
from tidu_cli.graph.graph import CaseTable, Document, Input, Output
from tidu_cli.graph.keys import Key
from tidu_cli.graph.types import RecordType
from tidu_cli.options import OPTIONS, checked

if TYPE_CHECKING:
    from tidu_cli.sparse.patterns import Sparsity
    from tidu_cli.transforms.shorthands import Pipeline

_WRT = or_none(OPTIONS["wrt"].check)

F = TypeVar("F", bound=Callable[..., Any])


def pipeline(
    name: str, document: Document, wrt: KeyTexts | None, output: KeyTexts = (), sum: bool = False, **options: Any
) -> Pipeline:
    """What the shorthand of this name does, stage by stage, with `sum` of the sum of the output. Raises as `linearize`."""
    from tidu_cli.transforms import shorthands

    outputs = parsed(output)
    inputs = wrt_inputs(document, wrt, outputs)
    before = _summed(document, outputs) if sum else shorthands.Pipeline(document)
    if options.pop("sparse", False):
        from tidu_cli.sparse import derivatives

        derived = getattr(derivatives, name)(before.document, inputs, () if sum else outputs, **options)
        return shorthands.Pipeline(derived).after(before, inputs)
    run: Pipeline = getattr(shorthands, name)(before.document, inputs, () if sum else outputs, **options)
    return run.after(before, inputs)


def _summed(document: Document, outputs: Sequence[Key]) -> Pipeline:
    """The sum of one output, which keeps its name where that is one in formulas. Raises TransformError, UnknownNameError."""
    from tidu_cli.graph.link import GraphBuilder
    from tidu_cli.lax.vocabulary import BUILTIN
    from tidu_cli.transforms import shorthands

    output = shorthands.one_output(document, outputs, "a sum")
    type_ = output.type
    if isinstance(type_, RecordType) or not type_.inexact:
        raise TransformError(f"a sum is of floats or complex numbers, and output '{output.key}' is {type_}")
    run = shorthands.Pipeline(document)
    if len(document.head.outputs) > 1 or outputs:
        run.then(shorthands.materialize, outputs=[output.key])
    name = str(output.key) if str(output.key).isidentifier() else "y"
    summand = "v" if name != "v" else "u"  # formulas assign no names that they read
    cases = CaseTable()
    case = BUILTIN.case("reduce_sum", BUILTIN.parse_attrs("reduce_sum", {"axes": list(range(type_.rank))}), None, (type_,))
    builder = GraphBuilder(cases, [Input(Key(summand), type_)])
    value = builder.append(cases.intern(case), [0]) if type_.rank else 0
    graph = builder.build("f", [Output(Key(name), value, case.results[0])])
    return run.then(
        shorthands.compose, formula=f"{name} = sum({summand})", input=f"{summand}:{type_}", built=Document((graph,), cases)
    )


def _or_function(*options: str, wrt: bool = True) -> Callable[[F], F]:
    """A function of documents that takes functions of Python, too, with these options; `wrt` are numbers or names of arguments."""

    def decorate(of_documents: F) -> F:
        name = of_documents.__name__

        @wraps(of_documents)
        def apply(*args: Any, **more: Any) -> Any:
            function = args[0] if args else more.get("document")
            if not _is_function(function):
                return of_documents(*args, **more)
            chosen: dict[str, Any] = dict(zip(("document", "wrt"), args, strict=False)) | more
            known = ["wrt", *options] if wrt else list(options)
            if len(args) > 2:
                raise ArgumentError(f"{name} of a function takes {', '.join(known)} by name")
            del chosen["document"]
            for option in chosen:
                if option not in known:
                    told = f"{did_you_mean(option, known)} (it takes {', '.join(known) or 'nothing else'})"
                    raise ArgumentError(f"{name} of a function has no argument '{option}'{told}")
            places = positions_or_names("wrt", chosen.pop("wrt", 0)) if wrt else None
            how = {option: flag(option, value) for option, value in chosen.items()}
            return _derived(name, cast("Callable[..., Any]", function), places, how)

        return apply  # type: ignore[return-value]

    return decorate


def _is_function(value: object) -> bool:
    """Whether it is a function of Python, and no document, nor what is compiled of one."""
    if isinstance(value, Document | type) or not callable(value):
        return False
    from tidu_cli.api.compiling import Compiled

    return not isinstance(value, Compiled)


def _derived(name: str, function: Callable[..., Any], wrt: Any, how: Mapping[str, Any]) -> Any:
    from tidu_cli.api.compiling import compile
    from tidu_cli.installed import derived

    if "forward" in how or "reverse" in how:
        how = {**how, "reverse": _by_rows(how.get("forward"), how.get("reverse"), how.get("strong_zeros", False))}
        how.pop("forward", None)
    return derived(name, function, wrt, compile, how)


@_or_function(wrt=False)
@checked(wrt=_WRT)
def jvp(document: Document, wrt: KeyTexts | None = None, output: KeyTexts = (), value: bool = False) -> Document:
    """Jacobian-vector products, from x@1 to y@1; with `value` y, too. Raises as `linearize`.

    jvp(f) of a function of NumPy arrays takes a tuple of its arguments, and one of tangents, and gives its result and the tangent:

    >>> tidu.jvp(lambda x, y: x * y)((2.0, 3.0), (1.0, 0.0))
    (np.float64(6.0), np.float64(3.0))
    """
    return pipeline("jvp", document, wrt, output, value=value).document


@_or_function("strong_zeros", wrt=False)
@checked(wrt=_WRT)
def vjp(
    document: Document, wrt: KeyTexts | None = None, output: KeyTexts = (), value: bool = False, strong_zeros: bool = False
) -> Document:
    """Vector-Jacobian products, from y@-1 to x@-1; with `value` y, too. Raises as `linearize`.

    vjp(f) of a function of NumPy arrays takes its arguments, and gives its result and a function from the cotangent of that to
    a tuple of cotangents of the arguments:

    >>> y, pullback = tidu.vjp(lambda x, y: x * y)(2.0, 3.0)
    >>> pullback(1.0)
    (np.float64(3.0), np.float64(2.0))
    """
    return pipeline("vjp", document, wrt, output, value=value, strong_zeros=strong_zeros).document


@_or_function("strong_zeros")
@checked(wrt=_WRT, sum=flag)
def grad(
    document: Document,
    wrt: KeyTexts | None = None,
    output: KeyTexts = (),
    value: bool = False,
    strong_zeros: bool = False,
    sum: bool = False,
) -> Document:
    """The gradient x@-1 of one output, a real number; with `value` the output, too. Raises as `linearize`.

    Without `wrt` it is by all inputs that have a derivative. With `sum` the output may be an array, and is summed.

    grad(f) of a function of NumPy arrays is a function of the same arguments, as jax.grad gives it; `wrt` are the numbers or names
    of those to differentiate by, by default the first one. It is traced at the first call for their structures, shapes and dtypes;
    what f reads besides them, and integers, are constants.

    >>> tidu.grad(lambda x, n: np.sum(x**n))(np.array([1.0, 2.0]), 3)
    array([ 3., 12.])
    >>> tidu.grad(tidu.grad(np.sin))(0.5)
    np.float64(-0.479425538604203)
    """
    return pipeline("grad", document, wrt, output, sum, value=value, strong_zeros=strong_zeros).document


@_or_function("strong_zeros")
@checked(wrt=_WRT, sum=flag)
def value_and_grad(
    document: Document, wrt: KeyTexts | None = None, output: KeyTexts = (), strong_zeros: bool = False, sum: bool = False
) -> Document:
    """One output, a real number, and its gradient: `grad` with `value`. Raises as `linearize`.

    value_and_grad(f) of a function of NumPy arrays gives a pair:

    >>> tidu.value_and_grad(lambda a, t: np.sum(np.exp(a * t)))(0.0, np.arange(3.0))
    (np.float64(3.0), np.float64(3.0))
    """
    return pipeline("grad", document, wrt, output, sum, value=True, strong_zeros=strong_zeros).document


@_or_function("strong_zeros", wrt=False)
@checked(wrt=_WRT, sum=flag)
def hvp(
    document: Document, wrt: KeyTexts | None = None, output: KeyTexts = (), strong_zeros: bool = False, sum: bool = False
) -> Document:
    """Hessian-vector products of one output, a real number, from x@2 to x@-1@2. Raises as `linearize`.

    hvp(f) of a function of NumPy arrays takes a tuple of its arguments, and one of tangents, and gives one of products:

    >>> tidu.hvp(lambda x, y: x**2 * y)((2.0, 3.0), (1.0, 0.0))
    (np.float64(6.0), np.float64(4.0))
    """
    return pipeline("hvp", document, wrt, output, sum, strong_zeros=strong_zeros).document


@_or_function("reverse", "holomorphic", "forward", "strong_zeros")
@checked(wrt=_WRT)
def jacobian(
    document: Document,
    wrt: KeyTexts | None = None,
    output: KeyTexts = (),
    reverse: bool | None = None,
    holomorphic: bool = False,
    forward: bool | None = None,
    strong_zeros: bool = False,
    sparse: bool = False,
    both: bool = False,
) -> Document:
    """The Jacobian's blocks y/x; by rows if `reverse`, by columns if `forward`, by default as is cheaper. Raises as `linearize`.

    If `sparse`, its entries that may be other than 0, data[k] at row[k] and col[k] of an array of this shape. Rows go through the
    outputs in order, element by element, and columns through the inputs; by default by the fewest directions, some rows by rows and
    the rest by columns where that is best, which `both` says, too.

    jacobian(f) of a function of NumPy arrays is a function of the same arguments; `wrt` is as in `grad`.

    >>> tidu.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if both and (not sparse or strong_zeros or forward is not None or reverse is not None):
        raise ArgumentError("argument 'both' is of 'sparse', and excludes 'forward', 'reverse' and 'strong_zeros'")
    how: dict[str, Any] = {
        "reverse": _by_rows(forward, reverse, strong_zeros),
        "holomorphic": holomorphic,
        "strong_zeros": strong_zeros,
        "sparse": sparse,
    }
    return pipeline("jacobian", document, wrt, output, **how).document


def _by_rows(forward: bool | None, reverse: bool | None, strong_zeros: bool) -> bool | None:
    if forward is not None and reverse is forward:
        raise ArgumentError("arguments 'reverse' and 'forward' exclude each other: the Jacobian is derived by rows, or by columns")
    reverse = reverse if forward is None else not forward
    if strong_zeros and reverse is False:
        raise ArgumentError("argument 'strong_zeros' is of reverse mode; leave out 'forward', or 'reverse=False'")
    return reverse


@_or_function("strong_zeros")
@checked(wrt=_WRT, sum=flag)
def hessian(
    document: Document,
    wrt: KeyTexts | None = None,
    output: KeyTexts = (),
    strong_zeros: bool = False,
    sum: bool = False,
    sparse: bool = False,
) -> Document:
    """The Hessian's blocks y/x/z of one output, a real number; if `sparse`, its entries as `jacobian`'s. Raises as `linearize`.

    hessian(f) of a function of NumPy arrays is a function of the same arguments; `wrt` is as in `grad`.

    >>> tidu.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    return pipeline("hessian", document, wrt, output, sum, strong_zeros=strong_zeros, sparse=sparse).document


@checked(wrt=one_key, order=whole)
def derivative(document: Document, wrt: KeyText, output: KeyTexts = (), order: int = 1) -> Document:
    """The derivative y@1@2... of some order by one number. Raises as `linearize`."""
    return pipeline("derivative", document, [cast(Key, wrt)], output, order=order).document


@checked(wrt=_WRT)
def sparsity(document: Document, wrt: KeyTexts | None = None, output: KeyTexts = (), second: bool = False) -> Sparsity:
    """The pattern of the Jacobian of the outputs by the inputs `wrt`, or of the Hessian of one output for `second`.

    It holds where entries may be other than 0 whatever the inputs are, `row` and `col` in an array of `shape`; rows go through the
    outputs in order, element by element, and columns through the inputs. `matrix` is it as SciPy's csr_array. It is exact where
    nothing cancels; `dense` names the ops of which only the axes are known along which all depends on all. Raises as `linearize`,
    and LimitError for more entries than memory is allowed for.
    """
    from tidu_cli.sparse import derivatives

    outputs = parsed(output)
    of = derivatives.of_hessian if second else derivatives.of_jacobian
    return of(document, wrt_inputs(document, wrt, outputs), outputs)


@checked(values=anything)
def sparse_array(values: Mapping[str, Any]) -> Any:
    """SciPy's coo_array of the values of a sparse Jacobian or Hessian: of what `evaluate` gives, a `Compiled`, or `load_values`.

    Raises ArgumentError where these are not `data`, `row`, `col` and `shape`.
    """
    from scipy.sparse import coo_array  # type: ignore[import-untyped]

    parts = {str(key): value for key, value in values.items()} if isinstance(values, Mapping) else {}
    if missing := {"data", "row", "col", "shape"} - parts.keys():
        lacking = ", ".join(sorted(missing))
        raise ArgumentError(f"argument 'values' has no {lacking}: give what a document of jacobian(..., sparse=True) evaluates to")
    try:
        return coo_array((parts["data"], (parts["row"], parts["col"])), shape=tuple(int(n) for n in parts["shape"]))
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"argument 'values' is not a sparse matrix: {' '.join(str(error).split())}") from None
