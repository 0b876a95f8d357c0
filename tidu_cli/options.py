"""Options, each declared once: a flag and its help on the command line, and what Python takes under its name.

`checked` holds the arguments of functions against this table, and `cli/options.py` makes flags of it.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping
from functools import wraps
from itertools import chain, repeat
from os import PathLike
from typing import Any, TypeVar

from tidu_cli import arguments
from tidu_cli.errors import ArgumentError, KeyTextError, did_you_mean
from tidu_cli.graph.keys import Key, checked_pass, parse_key
from tidu_cli.installed import OWN_FORMATS
from tidu_cli.limits import EDGES_DRAWN, MOST_DRAWN
from tidu_cli.port_data import Option

Function = TypeVar("Function", bound=Callable[..., Any])


def pass_number(text: str) -> int:
    """A pass number. Raises KeyTextError for what is none."""
    if not re.fullmatch("[0-9]{1,16}", text):
        raise KeyTextError(f"'{text}' is not a pass number, an integer from 1 to 2**53 - 1")
    return checked_pass(int(text))


def _two(text: str, form: str, such: str) -> tuple[str, str]:
    """The texts before and after the first =."""
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise KeyTextError(f"'{text}' is not {form}, such as {such}")
    return old, new


def _two_names(text: str) -> tuple[str, str]:
    return _two(text, "OLD=NEW", "x=t")


def _size(text: str) -> tuple[str, str]:
    return _two(text, "NAME=SIZE", "N=32")


def _two_passes(text: str) -> tuple[int, int]:
    old, new = _two(text, "OLD=NEW", "1=2")
    return pass_number(old), pass_number(new)


def _key_and_type(setting: str) -> tuple[Key, str]:
    # Types hold no =, so what stands before the last one is the key.
    key, equals, type_ = setting.rpartition("=")
    if not equals:
        raise KeyTextError(f"'{setting}' is not KEY=TYPE, such as n=f32[]")
    return parse_key(key), type_


def _option(
    name: str, help: str, check: arguments.Check, metavar: str = "", parse: Callable[[str], Any] = str, spelt: str = "", **more: Any
) -> Option:
    return Option(spelt or f"--{name.replace('_', '-')}", name, help, metavar, parse, check, **more)


def _flag(name: str, help: str) -> Option:
    return _option(name, help, arguments.flag, is_flag=True)


def _keys(name: str, help: str) -> Option:
    expected = "a key, text such as 'x' or 'y@-1', or a list of keys"
    check = arguments.list_of(lambda name, key: arguments.a_key(key, name), expected, (str, Key))
    return _option(name, help, check, "KEY", parse_key, repeats=True)


def _choice(name: str, help: str, *choices: str, metavar: str = "") -> Option:
    return _option(name, help, arguments.one_of(*choices), metavar, choices=choices)


def number(text: str) -> float:
    """A finite number from 0 on. Raises KeyTextError."""
    try:
        x = float(text)
    except ValueError:
        x = math.nan
    if not 0 <= x < math.inf:
        raise KeyTextError(f"'{text}' is not a finite number from 0 on, such as 1e-3")
    return x


def _number(name: str, help: str) -> Option:
    return _option(name, help, arguments.number_from_zero, "N", number)


OPTIONS: Mapping[str, Option] = {
    option.name: option
    for option in (
        _keys(
            "wrt",
            "An input to differentiate by, or a pattern in quotes for all inputs that match it, such as 'conv1.*', or params for "
            "all of params.w, params.b, ...; repeats. [default of grad and its like: all that have a derivative]",
        ),
        _keys(
            "output",
            "An output, by its key, or all that match a pattern in quotes, such as 'h*'; repeats. Looked up in the head, then in "
            "the latest graph that has it. Any other value by its digest, as `tidu info --digests` lists it. [default: all of the "
            "head's]",
        ),
        _option("pass_number", "The pass number. [default: the next free one]", arguments.count, "N", pass_number, "--pass"),
        _flag("detach", "Write only the new graphs, which refer to the others by digest; `tidu resolve` links them."),
        _option(
            "tangent",
            "The type of an input's tangent, one that its own type admits: f32 for x of f64[], duration[h], {at: duration[h]}; "
            "repeats. [default: the natural one]",
            arguments.tangent_types,
            "KEY=TYPE",
            _key_and_type,
            pairs=True,
        ),
        _flag("strong_zeros", "Keep cotangents that are 0 at 0 where a slope is infinite or NaN: a branch not taken."),
        _flag("sum", "Of an output that is an array, its sum."),
        _flag("holomorphic", "Inputs and outputs are complex, and the function is holomorphic."),
        _option(
            "recompute",
            "Hold less at once: recompute values where cotangents need them. sqrt: all but some √n checkpoints; N: "
            "loops in segments of N steps; cheap, cheap=N: those of at most N operations for each byte, by default 1; value=KEY, "
            "graph=NAME: an output, a graph; these two repeat.",
            arguments.policies,
            "POLICY",
            repeats=True,
        ),
        _flag("inline", "Put the graphs of the document's own ops in place of their nodes."),
        _flag("needed_inputs", "Declare only the inputs that an output depends on. [default: all]"),
        _flag("simplify", "Replace nodes by simpler ones that give the same bits, and compute constants."),
        _option(
            "bind",
            "Make an input equal to an output of another graph, or to the value of a digest; repeats.",
            arguments.pairs_of_keys,
            "INPUT=KEY",
            repeats=True,
        ),
        _option(
            "one_pass",
            "Take a pass for one, though the files are of several calls of linearize: along one direction; repeats.",
            arguments.list_of(arguments.whole, "a list of pass numbers"),
            "N",
            pass_number,
            repeats=True,
        ),
        _choice(
            "by",
            "How outputs find the inputs that they feed. [default: by name where a key is on both sides, else by position]",
            "name",
            "position",
            metavar="name|position",
        ),
        _keys(
            "share",
            "An input that several documents have, and that is to be one; repeats. By default it is renamed in the later ones.",
        ),
        _option("keys", "Rename an input or output; repeats.", arguments.names_by_name, "OLD=NEW", _two_names, "--key", pairs=True),
        _option("graphs", "Rename a graph; repeats.", arguments.names_by_name, "OLD=NEW", _two_names, "--graph", pairs=True),
        _option(
            "passes",
            "Give a pass another number, in keys, linear graphs and names of graphs; repeats, and all change at once.",
            arguments.renumbering,
            "OLD=NEW",
            _two_passes,
            "--pass",
            pairs=True,
        ),
        _option(
            "bound_loops",
            "Make each while a loop of this number of steps, which has a reverse mode; where they are too few, results are NaN.",
            arguments.at_least_one,
            "N",
        ),
        _option("size", "Another size for an open one; repeats.", arguments.sizes_of_names, "NAME=SIZE", _size, pairs=True),
        _option("order", "The order, from 1 on. [default: 1]", arguments.count, "N"),
        _flag("sparse", "Only the entries that may be other than 0, as outputs data, row, col and shape: SciPy's COO."),
        _flag("second", "The pattern of second derivatives, of one output that is a real number: of its Hessian."),
        _flag("value", "Give the values of the outputs, too, before the derivative."),
        _option(
            "optimizer",
            "sgd, momentum, adam or adamw, as PyTorch has them; or one of your own: a document, FILE.py:FUNCTION or a formula of "
            "what is done to one number of a weight. [default: sgd]",
            arguments.an_optimizer,
            "NAME|FILE",
        ),
        _number("lr", "The learning rate. [default: an input, lr]"),
        _number("clip_norm", "Make gradients shorter where the norm of all together is larger than this."),
        _number(
            "weight_decay",
            "Add this part of a weight to its gradient; of adamw, take this part of a weight off. [default: 0; of adamw 0.01]",
        ),
        _option(
            "accumulate",
            "Take a step after this number of batches, along the mean of their gradients. [default: 1]",
            arguments.at_least_one,
            "N",
        ),
        _option(
            "method",
            f"SciPy's method: {', '.join(arguments.METHODS)}; least_squares is for residuals. [default: {arguments.METHODS[0]}]",
            arguments.a_method,
            "NAME",
            arguments.method_named,
        ),
        _option(
            "bounds",
            "Keep an input, or all that match a pattern, within two numbers, or lists of its shape: x=0:1, 'params.*=0:'; repeats.",
            arguments.bounds_by_key,
            "KEY=LOWER:UPPER",
            arguments.bounds_of,
            pairs=True,
        ),
        _option("max_iterations", "Stop after this number of iterations. [default: SciPy's]", arguments.at_least_one, "N"),
        _number("tolerance", "Stop at this tolerance, SciPy's tol. [default: SciPy's; larger for f32]"),
        _option(
            "trace",
            "Write cost and norm of the gradient after each iteration to this file, a .csv.",
            arguments.a_csv,
            "FILE",
            arguments.csv_name,
        ),
        _flag("types", "Write the types of values on the edges."),
        _keys("highlight", "Fade all but the paths from inputs to outputs that go through this input or output; repeats."),
        _flag("collapse", "Draw each graph but the head as one node, and in the head each run of nodes that only hand a value on."),
        _option(
            "limit",
            f"Draw every node, but refuse more things than this, or {EDGES_DRAWN} times as many edges. [default with --expand: "
            f"{MOST_DRAWN}; none for DOT text]",
            arguments.at_least_one,
            "N",
        ),
        _flag("expand", "Draw every node, and no groups, however large the graph is."),
        _option(
            "opened",
            "Draw what is in the groups of this name or line; repeats.",
            arguments.texts("the name of a group, or a list of names"),
            "GROUP",
            spelt="--open",
            repeats=True,
        ),
        _option("depth", "Open groups to this depth. [default: as a screen has room for]", arguments.at_least(0), "N"),
        _option("at", "The group, by its name or line, that the page shows first.", arguments.text, "GROUP"),
        _choice("stream", "Answer each line of standard input, or map. [default: json]", "json", "msgpack", metavar="json|msgpack"),
        _flag("kinks", "List on stderr the nodes that are at a kink here, and by which convention they have a derivative."),
        _flag("exact", "Also compare the graphs one by one: names, order, nodes, roles, and meta."),
        _flag("digests", "Also the digest of each value, which --output, --bind and other files know it by."),
        _flag("backends", "Also by what each engine and format computes them, or why not; this imports JAX and onnx."),
        _flag("all", "All nodes, also of graphs of more than 60."),
        _flag(
            "formula",
            "The head, a graph of numbers without axes, as a formula, which tidu build reads; derivatives' keys become names.",
        ),
        _choice(
            "nodes", "How nodes are written. [default: packed in msgpack, list in JSON]", "list", "packed", metavar="list|packed"
        ),
        _option("name", "The graph's name. [default: the function's, or f]", arguments.text, "NAME"),
        _flag(
            "plain",
            "Read models of ONNX and modules of StableHLO by what they run, and not as the documents that they claim to be.",
        ),
        _option(
            "ops",
            "A document whose own ops may be used, too; repeats. Those used become the result's.",
            arguments.list_of(arguments.file_name, "the name of a file, or a list of names", (str, PathLike)),
            "FILE",
            repeats=True,
        ),
        _option(
            "plugins",
            "A package that may be imported for the ops it brings; repeats. [default: those that TIDU_PLUGINS lists, else none]",
            arguments.texts("the name of a package, or a list of names"),
            "NAME",
            repeats=True,
        ),
        _option(
            "engine",
            "What evaluates: numpy, native for graphs of single numbers, xla for any; auto takes the quickest.",
            arguments.among_engines,
        ),
        _option("device", "Where the engine xla runs: cpu, gpu, gpu:1, ...", arguments.text, "NAME"),
        _option(
            "scheduler",
            "Spread the work over a cluster of Dask's: the scheduler's address, tcp://head:8786, or local[:N], N processes here.",
            arguments.anything,
            "ADDRESS",
        ),
        _option("chunk", "As many items go together. [default: as many as make a second of work]", arguments.at_least_one, "N"),
        _choice("reduce", "Give this of the outputs of all items of a --batch, in place of each.", "sum", "mean"),
        _flag("resume", "Go on from what a run has done that broke off, in OUT.partial beside OUT."),
        _option(
            "against",
            "Compare the values of a model with those of this runtime, which is a package of its own.",
            arguments.among_runtimes,
        ),
        _option("seed", "Of the random inputs.", arguments.count, "N"),
    )
}
"""The options that a command and a function of the API share, by their names in Python."""

CHECKS: Mapping[str, arguments.Check] = {
    **{name: option.check for name, option in OPTIONS.items()},
    **dict.fromkeys(("document", "documents", "a", "b"), arguments.document),
    **dict.fromkeys(("inputs", "moves", "batch", "out", "set"), arguments.by_key),
    **dict.fromkeys(("weights", "rules", "forward", "reverse", "both"), arguments.flag),
    **dict.fromkeys(("length", "opset"), arguments.count),
    **dict.fromkeys(("cast", "target_version"), arguments.text),
    **dict.fromkeys(("cut", "stop"), arguments.several_names),
    "dims": arguments.sizes_by_name,
    "input_types": arguments.types_by_name,
    "max_memory": arguments.size,
    "max_steps": arguments.at_least_one,
    "file": arguments.file_name,
    "function": arguments.a_function,
    "format": arguments.one_of("json", "msgpack", *OWN_FORMATS),
    "names": arguments.texts("a list of names, text, one for each argument", ()),
}
"""What parameters of these names take, and what becomes of it: those of options, and those that only Python has."""


def checked(**own: arguments.Check) -> Callable[[Function], Function]:
    """The function with its arguments checked by `own` or `CHECKS`, and keys parsed. It raises ArgumentError and KeyTextError."""

    def checking(function: Function) -> Function:
        code = function.__code__
        named = code.co_argcount + code.co_kwonlyargcount
        checks = {name: own.get(name) or CHECKS.get(name, arguments.anything) for name in code.co_varnames[:named]}
        places = [(name, checks[name]) for name in code.co_varnames[: code.co_argcount]]
        several = code.co_varnames[named] if code.co_flags & inspect.CO_VARARGS else ""
        others = several, own.get(several) or CHECKS.get(several, arguments.anything)

        @wraps(function)
        def apply(*args: Any, **options: Any) -> Any:
            given = [check(name, value) for (name, check), value in zip(chain(places, repeat(others)), args, strict=False)]
            chosen = {k: checks.get(k, arguments.anything)(k, value) for k, value in options.items()}
            try:
                return function(*given, **chosen)
            except TypeError as error:
                _require_bound(function, args, options, error)
                raise

        return apply  # type: ignore[return-value]

    return checking


def _require_bound(function: Callable[..., Any], args: Any, options: Mapping[str, object], error: TypeError) -> None:
    """Raises ArgumentError if the arguments are too many, too few or of names that the function has not, as `error` says."""
    form, name = inspect.signature(function), function.__name__
    try:
        form.bind(*args, **options)
    except TypeError:
        parameters = list(form.parameters)
        hint = next(filter(None, (did_you_mean(k, parameters) for k in options if k not in parameters)), "")
        reason = str(error).removeprefix(f"{name}() ")
        raise ArgumentError(f"{name} {reason}{hint} (it takes {', '.join(parameters)})") from None
