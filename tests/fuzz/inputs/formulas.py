"""Formulas: sentences of the grammar and nonsense make a document, or are refused in a line."""

from __future__ import annotations

from functools import cache

from tests.fuzz.choices import Choices
from tests.fuzz.mutation import mutate_bytes
from tests.fuzz.target import Target, require_message
from tidu_cli.adapters.numpy.formulas.formula import build_formula, function_names
from tidu_cli.errors import TiduError
from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.text import parse_value_type

TYPES = {"x": "f64[2,3]", "y": "f64[3]", "n": "i64[]", "A": "c64[3,3]", "é": "f32[0]", "b": "bool[2,3]", "s": "f64[]"}

ATOMS = (
    *TYPES,
    *(
        "0",
        "1",
        "-1",
        "2",
        "3",
        "0.5",
        "1e300",
        "1e400",
        "9" * 30,
        "3j",
        "1e999j",
        "True",
        "None",
        "pi",
        "[0, 1]",
        "(2, 3)",
        "[]",
        "()",
    ),
    *(
        "f32",
        "i8",
        "'ij,j->i'",
        "'full'",
        "'wrap'",
        "...",
        "10**9",
        "2**63",
        "[x, s]",
        "[[1, 2], [3]]",
        "__import__",
        "y.T",
        "x.shape",
    ),
)
OPERATORS = ("+", "-", "*", "/", "**", "@", "//", "%", "<", "==", "&", "|", "^", ">>", "<<", "!=", "and", "or", "in", "is", ":=")
OPTIONS = (
    *(
        "axis",
        "dtype",
        "keepdims",
        "n",
        "k",
        "shape",
        "ord",
        "mode",
        "method",
        "side",
        "num",
        "axes",
        "reps",
        "initial",
        "decimals",
    ),
    *("where", "out", "ddof", "indexing", "fill_value"),
)
WHOLES = (
    "{}",
    "-{}",
    "not {}",
    "({})",
    "{}.T",
    "{}[0]",
    "{}[::-1]",
    "{}[None, ...]",
    "a = {}; a",
    "a, b = {}; a",
    "lambda: {}",
    "f'{{{}}}'",
)


@cache
def _functions() -> tuple[str, ...]:
    return tuple(function_names())


def make(choices: Choices) -> bytes:
    """A formula, sometimes with a mistake in its text."""
    text = choices.pick(WHOLES).format(_expression(choices, 3)).encode("utf-8", "surrogatepass")
    return mutate_bytes(choices, text) if choices.one_in(4) else text


def _expression(choices: Choices, depth: int) -> str:
    if not depth or choices.one_in(4):
        return choices.pick(ATOMS)
    match choices.below(6):
        case 0:
            return f"{_expression(choices, depth - 1)} {choices.pick(OPERATORS)} {_expression(choices, depth - 1)}"
        case 1:
            return f"{_expression(choices, depth - 1)}[{_index(choices, depth)}]"
        case 2:
            return f"where({', '.join(_expression(choices, depth - 1) for _ in range(3))})"
        case _:
            arguments = [_expression(choices, depth - 1) for _ in range(choices.pick((1, 1, 2, 2, 3, 0)))]
            if choices.one_in(3):
                arguments.append(f"{choices.pick(OPTIONS)}={_expression(choices, 0)}")
            return f"{choices.pick(_functions())}({', '.join(arguments)})"


def _index(choices: Choices, depth: int) -> str:
    parts = (":", "0", "-1", "1:", "::2", "None", "...", "[0, 1]", "b", "n", "5", "x > 0", "2**70", ":n")
    return ", ".join(choices.pick(parts) if depth > 1 else "0" for _ in range(1 + choices.below(3)))


def judge(case: bytes) -> str:
    """Build the formula; what it makes is a valid document."""
    text = case.decode("utf-8", "surrogateescape")
    try:
        document = build_formula(text, {key: parse_value_type(type_, {}) for key, type_ in TYPES.items()})
    except TiduError as error:
        require_message(error)
        return "refused"
    parse_document(format_document(document, "json"), "built")
    return "built"


FORMULAS = Target("formulas", ".formula", make, judge)
