"""Sizes compute as ints do, whatever their names stand for; equal ones have one form, and a text that reads back."""

from __future__ import annotations

import math
import operator
import pickle
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import tiers
from tidu_cli.errors import EvaluationError, TypeRuleError, TypeTextError, UndecidedSizeError
from tidu_cli.graph.sizes import polynomials
from tidu_cli.graph.sizes.algebra import Name, names_of, of_part, size_named
from tidu_cli.graph.sizes.names import numbers_of, substituted
from tidu_cli.graph.sizes.open import larger
from tidu_cli.graph.sizes.polynomials import bounds
from tidu_cli.graph.sizes.reading import declaring, names_from_file, parse_size, parse_sizes
from tidu_cli.graph.types import TensorType, parse_type, require_possible
from tidu_cli.rules.recording.trace import emit_size

NAMES = {"M": Name("M"), "N": Name("N", least=2), "K": Name("K", multiple=8, least=8), "B": Name("B", least=0, most=5)}
NUMBERS = {
    "M": st.integers(1, 3) | st.integers(1, 70),
    "N": st.integers(2, 4) | st.integers(2, 70),
    "K": st.integers(1, 9).map(lambda k: 8 * k),
    "B": st.integers(0, 5),
}
leaves = st.one_of(
    st.sampled_from(sorted(NAMES)).map(lambda name: (size_named(NAMES[name]), lambda numbers: numbers[name])),
    st.integers(0, 9).map(lambda number: (number, lambda numbers: number)),
)
MANY = settings(max_examples=tiers.examples(2000, check=400))


@st.composite
def pairs(draw: st.DrawFn, depth: int = 3) -> tuple[Any, Any]:
    """A size, and what computes it from numbers."""
    if depth == 0 or draw(st.booleans()):
        return draw(leaves)
    (a, f), (b, g) = draw(pairs(depth - 1)), draw(pairs(depth - 1))
    op = draw(st.sampled_from(["+", "-", "*", "//", "%", "max", "min"]))
    functions = {
        "+": lambda x, y: x + y,
        "-": lambda x, y: x - y,
        "*": lambda x, y: x * y,
        "//": lambda x, y: x // y,
        "%": lambda x, y: x % y,
        "max": max,
        "min": min,
    }
    if op in ("//", "%"):
        assume(bounds(b)[0] > 0)
    on_sizes = {**functions, "max": larger, "min": lambda x, y: of_part("min", x, y)}[op]
    try:
        return on_sizes(a, b), lambda numbers: functions[op](f(numbers), g(numbers))
    except TypeRuleError:  # beyond the limits
        assume(False)
        raise


@MANY
@given(pairs(), st.fixed_dictionaries(NUMBERS))
def test_sizes_compute_as_numbers_do(pair: Any, numbers: dict[str, int]) -> None:
    size, function = pair
    number = function(numbers)
    low, high = bounds(size)
    assert substituted(size, numbers) == number
    assert low <= number <= high
    for relation in ("__lt__", "__le__", "__gt__", "__ge__"):
        try:
            decided = getattr(size, relation)(7)
        except UndecidedSizeError:
            continue
        assert decided == getattr(number, relation)(7)


@given(pairs(), pairs(), st.fixed_dictionaries(NUMBERS))
def test_sizes_that_are_equal_are_so_for_all_numbers(first: Any, second: Any, numbers: dict[str, int]) -> None:
    (a, f), (b, g) = first, second
    if a == b:
        assert f(numbers) == g(numbers)
        assert (str(a), hash(a)) == (str(b), hash(b))


@MANY
@given(pairs())
def test_a_size_is_what_its_text_says(pair: Any) -> None:
    size, _ = pair
    with declaring(NAMES):
        try:
            if not isinstance(size, int):
                size.require_text()
        except TypeRuleError:  # of more parts, or characters, than the size of an axis may have
            with pytest.raises(TypeTextError):
                parse_size(str(size))
            return
        assert parse_size(str(size)) == size
    assert pickle.loads(pickle.dumps(size)) == size
    assert {name.text for name in names_of(size)} <= set(NAMES)


@given(pairs(), pairs(), pairs())
def test_sums_and_products_have_one_form(first: Any, second: Any, third: Any) -> None:
    a, b, c = first[0], second[0], third[0]
    try:
        assert (a + b) + c == c + (b + a)
        assert (a + b) * c == a * c + b * c
        assert (a * b) * c == a * (b * c)
        assert a - (a - b) == b
    except TypeRuleError:  # beyond the limits
        assume(False)


AXES = st.lists(st.sampled_from(["N//2", "N//3", "M//2", "max(M,N)", "(M//5)%3", "N%7", "K//16", "B", "3"]), min_size=1, max_size=2)


@MANY
@given(st.lists(AXES, min_size=2, max_size=3), st.fixed_dictionaries(NUMBERS))
def test_a_size_too_long_for_a_file_is_computed_from_shorter_ones(axes: list[list[str]], numbers: dict[str, int]) -> None:
    """Such as the number of elements of an array whose axes are sums of quotients."""
    with declaring(NAMES):
        size = math.prod(sum(map(parse_size, axis)) for axis in axes)

    def emit(op: str, *operands: int, dtype: str = "", expression: Any = None) -> Any:
        if op != "size":
            return getattr(operator, op)(*operands)
        with declaring(NAMES):
            assert parse_size(str(expression)) == expression
        return substituted(expression, numbers)

    text = "*".join(f"({'+'.join(axis)})" for axis in axes)
    assert emit_size(emit, size, "i64") == eval(text, {"max": max}, numbers)


QUOTIENTS: dict[str, Any] = {
    "N//2": lambda n, m: n // 2,
    "(N+1)//2": lambda n, m: (n + 1) // 2,
    "((N//2)+1)//3": lambda n, m: (n // 2 + 1) // 3,
    "((N+M)//3)//2": lambda n, m: (n + m) // 3 // 2,
    "N-N%3": lambda n, m: n - n % 3,
    "5*M-4*(M%3)": lambda n, m: 5 * m - 4 * (m % 3),
    "3*(N//3)": lambda n, m: n // 3 * 3,
    "(2*M+N)%4": lambda n, m: (2 * m + n) % 4,
    "max(N-3,0)": lambda n, m: max(n - 3, 0),
    "min(N,M)+2": lambda n, m: min(n, m) + 2,
    "N-min(N,M)": lambda n, m: n - min(n, m),
    "(M-5)//2+7": lambda n, m: (m - 5) // 2 + 7,
    "(N*M)//M": lambda n, m: n,
}


@pytest.mark.parametrize("text", QUOTIENTS)
def test_quotients_and_their_bounds(text: str) -> None:
    """At all small numbers, so that bounds are touched."""
    with declaring({"N": Name("N", 2, 9), "M": Name("M", 1, 9)}):
        size = parse_size(text)
    found = {(n, m): substituted(size, {"N": n, "M": m}) for n in range(2, 10) for m in range(1, 10)}
    assert found == {(n, m): QUOTIENTS[text](n, m) for n, m in found}
    low, high = bounds(size)
    assert low <= min(found.values()) <= low + 2 and max(found.values()) <= high


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("N", "N"),
        ("(N//2)%3", "(N//2)%3"),
        ("M*(N//2)-3*M*(N//6)", "((N//2)%3)*M"),
        ("1+N*2", "2*N+1"),
        ("N+N", "2*N"),
        ("(N+1)*(N-1)", "N*N-1"),
        ("2*(N//2)", "2*(N//2)"),
        ("N-N%2", "2*(N//2)"),
        ("N%2", "N%2"),
        ("M*(N%2)+N%3", "M*(N%2)+(N%3)"),
        ("(2*(M//2))*(2*(N//2))", "4*(M//2)*(N//2)"),
        ("(N+4)//2*2-N", "-(N%2)+4"),
        ("(2*N)//2", "N"),
        ("(2*N+1)//2", "N"),
        ("max(N,1)", "N"),
        ("min(max(M,N),N)", "N"),
        ("N-1-max(N-2,0)", "N-max(N-2,0)-1"),
        ("max(N-1-max(N-2,0),0)", "N-max(N-2,0)-1"),
        ("max(N-(N-1)//2,0)", "-((N+1)//2)+N+1"),
        ("min(N%M,M)", "N%M"),
        ("N*M//M", "N"),
        ("(N+M)//2*3", "3*((M+N)//2)"),
        ("007", "7"),
    ],
)
def test_texts_are_canonical(text: str, canonical: str) -> None:
    assert str(parse_size(text)) == canonical


@pytest.mark.parametrize(
    "text",
    ["", "N+", "N//0", "N%0", "N M", "max(N", "max", "N.5", "N**2", "-", "1e3", "N//(M-1)", "(" * 30 + "N" + ")" * 30, "N" * 201,
     "*".join("N" * 9),
     "+".join(f"N%{k}" for k in range(2, 11)), "*".join(["(A+B+C+D+E)"] * 5), "99999999999999999999", "N\n", "é"],
)  # fmt: skip
def test_other_texts_are_refused_in_a_line(text: str) -> None:
    with pytest.raises(TypeTextError) as caught:
        parse_size(text)
    assert "\n" not in str(caught.value)


def test_types_have_sizes_that_are_not_negative() -> None:
    assert str(parse_type("f64[1+N,max(M,3)]")) == "f64[N+1,max(M,3)]"
    with pytest.raises(TypeTextError, match="N-2 may be less than 0"):
        parse_type("f64[N-2]")
    with declaring(names_from_file({"N": {"min": 2}})):
        assert str(parse_type("f64[N-2]")) == "f64[N-2]"
    assert parse_sizes("max(M,N),2") == [larger(parse_size("M"), parse_size("N")), 2]


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("N-min(N,2)", 0),
        ("max(N,10)-N", 0),
        ("(M-M%4)*(N//8)", 0),
        ("(2*(M//2))*(2*(N//2))", 0),
        ("(M%4)*(N%8)", 0),
        ("N%2+N%3+N%5", 0),
        ("2*M*(N//8)-2*(M%4)*(N//8)+6*(N//8)", 0),
        ("M*N-M", 0),
        ("2*N-2*(N//2)-2", 0),
        ("N+max((2*N)%3-1,0)-2", 0),
    ],
)
def test_bounds_are_seen_case_by_case_and_by_a_factor_of_all_terms(text: str, least: float) -> None:
    assert bounds(parse_size(text))[0] >= least


def test_numbers_of_elements_may_be_longer_than_axes() -> None:
    """They are products, and are not written."""
    a, b, c = (parse_size(f"({name * 61}+3)//8") for name in "abc")
    elements = TensorType("f64", (512, a, b, c)).size
    assert len(str(elements)) > 200
    with pytest.raises(TypeRuleError, match=r"a size may have (200 characters|8 quotients)"):
        require_possible(TensorType("f64", (elements,)))
    with pytest.raises(TypeTextError, match="200 characters"):
        parse_size(f"({'A' * 50}+{'B' * 50}+1)*({'A' * 40}+1)")


def test_names_in_multiples_divide() -> None:
    with declaring(names_from_file({"N": {"multiple_of": 8}})):
        n = parse_size("N")
        assert (n // 8 * 8, n % 4, str(n // 2), n // 2 * 2 == n) == (n, 0, "4*(N//8)", True)


@pytest.mark.parametrize(
    "sizes",
    [[], {"N": 3}, {"N": {"least": 2}}, {"N": {"min": -1}}, {"N": {"min": 2.0}}, {"N": {"min": True}}, {"2N": {}}, {"max": {}},
     {"N": {"multiple_of": 0}}, {"N": {"max": 0}},
     {"N": {"min": 9, "max": 3}}, {"N": {"min": 1, "max": 3, "multiple_of": 4}}, {f"N{k}": {} for k in range(65)}],
)  # fmt: skip
def test_bounds_that_are_none_are_refused(sizes: Any) -> None:
    with pytest.raises(TypeTextError, match="sizes"):
        names_from_file(sizes)


def test_names_come_from_shapes() -> None:
    n, odd, product = parse_size("N"), parse_size("2*M+1"), parse_size("M*N")
    shapes = [("input a", (product,), (6,)), ("input b", (odd,), (5,)), ("input c", (n,), (3,))]
    assert numbers_of(shapes, {}) == {"M": 2, "N": 3}
    with pytest.raises(EvaluationError, match=r"input d: the size N is 3 \(N=3 by input c\), got 4"):
        numbers_of([*shapes, ("input d", (n,), (4,))], {})
    with pytest.raises(EvaluationError, match=r"input b: got 4 for 2\*M\+1, but the size 2\*M\+1 is never 4"):
        numbers_of([("input b", (odd,), (4,))], {})
    with pytest.raises(EvaluationError, match=r"input c: got 0 for N, but the size N is at least 1"):
        numbers_of([("input c", (n,), (0,))], {})


def test_reading_takes_bounded_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, and not timed: bounds are what takes the most, and are looked for in sums of parts of parts."""
    counted, bounds_of = [], polynomials._bounds.__wrapped__
    monkeypatch.setattr(polynomials, "_bounds", lambda size: counted.append(size) or bounds_of(size))
    for text in (
        "((((max(G,F))%(H))+((max(H,D))-((D)-(E))))//(70))//(((max(min(D,H),(B)-(15)))+(max(14,F)))+(((G)+((F)+(E)))+(H)))",
        "(max((((49)+(E))%(A))+(min(G,(A)-(E))),(A)+(((F)+(E))//(86))))+(((((44)//(H))%(B))+(((H)*(A))+((C)*(B)))))",
    ):
        with suppress(TypeTextError):  # of more parts than a size may have, if not of bounded work
            parse_size(text)
    assert 10 < len(counted) < 3000


def test_bounds_hold_where_parts_undo_one_another():
    cases = {"N//2-N%2": -1, "N-N//2-1": 0, "N-1-max(N-2,0)": 0, "N-min(N,2)": 0, "M-N%M-1": 0, "(N-1)//2-N//2": -1}
    cases |= {"N-N%M": 0, "N+1-(N+1)%M": 0, "5-5%M": 0}
    for text, least in cases.items():
        size = parse_size(text)
        values = [substituted(size, {"N": n, "M": m}) for n in range(1, 12) for m in range(1, 12)]
        assert bounds(size)[0] == least == min(values), text
        assert bounds(size)[1] >= max(values), text
