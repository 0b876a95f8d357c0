"""docs/primitives.md: the catalogue of primitives, from the same entries as `tidu ops`."""

from __future__ import annotations

from tidu_cli.checking.catalogue import Entry, entry
from tidu_cli.graph.types import dtype_class
from tidu_cli.lax.vocabulary import FAMILIES
from tidu_cli.lax.vocabulary import family as module_of


def to_markdown() -> str:
    """The page: a section per family, an entry per primitive."""
    lines = [
        "# Primitives",
        "",
        "The vocabulary and semantics are those of JAX `lax`, which are StableHLO's; op and attr names are as a jaxpr prints them.",
        "Operands of elementwise primitives have one type: nothing broadcasts by itself. J is a JVP rule, T a transpose rule;",
        "what follows an arrow is what the rule may emit. `tidu ops --json` gives this list to programs, and `tidu check --ops`",
        "tries every rule. This page is generated: `make generated` writes it.",
        "",
        "`tidu info` counts operations on real numbers: one for each element of the result, be it arithmetic, a comparison or a",
        "function such as exp. Of complex numbers a sum is 2, a product 6, a quotient 11, a function 2. `dot_general` takes a",
        "product and a sum for each element of the result and each place contracted, a reduction of n elements to one n - 1,",
        "sorting n elements n ⌈log₂ n⌉, a fixed integer power what repeated squaring takes. What moves, repeats or converts",
        "elements is free. XLA's cost analysis counts functions apart, and one for a conversion and any complex operation.",
    ]
    for family in map(module_of, FAMILIES):
        title = (family.__doc__ or "").partition("\n")[0].partition(":")[0].rstrip(".")
        lines += ["", f"## {title}", ""]
        for primitive in family.PRIMITIVES:
            lines += _markdown_entry(entry(primitive))
    return "\n".join(lines).rstrip() + "\n"


def _markdown_entry(item: Entry) -> list[str]:
    primitive = item.primitive
    n, formula, summary = primitive.domain.arity, primitive.catalogue.formula, primitive.catalogue.summary
    arity = "any number of inputs" if n is None else f"{n} input{'' if n == 1 else 's'}"
    lines = [f"### `{primitive.name}`", "", f"{summary[:1].upper()}{summary[1:]}: {formula}", ""]
    lines.append(f"- {arity}; {dtype_class(primitive.domain.dtypes)}")
    if item.attrs:
        listed = "; ".join(f"`{name}` ({type_})" for name, type_ in item.attrs.items())
        lines.append(f"- attrs: {listed}. {item.attrs_text}")
    for rule, emitted in (("jvp", item.emits.jvp), ("transpose", item.emits.transpose)):
        if rule in item.rules:
            ops = ", ".join(f"`{op}`" for op in emitted)
            lines.append(f"- {'J' if rule == 'jvp' else 'T'} → {ops or 'nothing'}")
    if primitive.without_derivative:
        lines.append(f"- {primitive.without_derivative}")
    return [*lines, ""]


if __name__ == "__main__":
    print(to_markdown(), end="")
