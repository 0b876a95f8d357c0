"""What the gradient of a function costs that reads each of n entries of an array once, one by one.

    python benchmarks/sparse.py --markdown

The function is the sum of sin x[k]. It reads at fixed places (a slice for each k, all of them different cases) or at computed ones
(a dynamic_slice at an index that counts up, one case). Each row is measured in a fresh process; `dense` makes the cotangent of each
read an array of n elements, as a transform would that knows no other form.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from pipeline import Stopwatch, rendered

STAGES = ("linearize", "transpose", "materialize", "compile", "eval")
COLUMNS = ("reads", "cotangents", "n", "nodes", "flops", *(f"{stage}: s" for stage in STAGES), "eval: MB")


def reads_of(n: int, *, computed: bool) -> object:
    """The document of the sum of sin x[k] for k below n."""
    from tidu_cli.graph.graph import CaseTable, Document, Input, Output
    from tidu_cli.graph.keys import Key
    from tidu_cli.graph.link import GraphBuilder
    from tidu_cli.graph.types import TensorType
    from tidu_cli.lax.vocabulary import BUILTIN

    array, entry, index = TensorType("f64", (n,)), TensorType("f64", (1,)), TensorType("i64")
    inputs = [Input(Key("x"), array), *([Input(Key("i"), index)] if computed else [])]
    builder = GraphBuilder(CaseTable(), inputs)

    def append(op: str, args: list[int], types: list[TensorType], **attrs: object) -> int:
        case = BUILTIN.case(op, BUILTIN.parse_attrs(op, attrs), None, types)
        return builder.append(builder.cases.intern(case), args)

    one = append("constant", [], [], value={"type": "i64[]", "data": [1]}) if computed else 0
    total, place = None, 1
    for k in range(n):
        if computed:
            read = append("dynamic_slice", [0, place], [array, index], slice_sizes=[1])
            place = append("add", [place, one], [index, index])
        else:
            read = append("slice", [0], [array], start_indices=[k], limit_indices=[k + 1])
        term = append("sin", [read], [entry])
        total = term if total is None else append("add", [total, term], [entry, entry])
    y = append("reshape", [total], [entry], new_sizes=[])
    return Document((builder.build("f", [Output(Key("y"), y, TensorType("f64"))]),), builder.cases)


def measure(n: int, *, computed: bool, dense: bool) -> list[str]:
    """A row of the table, measured in this process. Raises ArithmeticError if the gradient is wrong."""
    import numpy as np

    from tidu_cli.graph.keys import parse_key
    from tidu_cli.rules.recording import functions
    from tidu_cli.runtime.memory import evaluation
    from tidu_cli.runtime.plans.program import compile_graph
    from tidu_cli.transforms.linearize import linearize
    from tidu_cli.transforms.materialize import materialize
    from tidu_cli.transforms.transpose import transpose

    if dense:
        functions.FEW = sys.maxsize
    clock = Stopwatch()
    document = reads_of(n, computed=computed)
    document = clock("linearize", lambda: linearize(document, [parse_key("x")]))
    document = clock("transpose", lambda: transpose(document))
    gradient = clock("materialize", lambda: materialize(document))
    program = clock("compile", lambda: compile_graph(gradient.head))
    cost = evaluation(gradient)
    x = np.linspace(0, 1, n)
    at = {parse_key("x"): x, parse_key("i"): np.array(0), parse_key("y@-1"): np.array(1.0)}
    (slopes,) = clock("eval", lambda: program.run(at))
    if not np.array_equal(slopes, np.cos(x)):
        raise ArithmeticError("the gradient is wrong")
    form = ["computed" if computed else "fixed", "dense" if dense else "sparse"]
    seconds = [f"{stage.seconds:.2f}" for stage in clock.stages]
    return [
        *form,
        f"{n:,}",
        f"{gradient.head.n_nodes:,}",
        f"{cost.flops.known:.1e}",
        *seconds,
        f"{clock.stages[-1].peak / 1e6:.0f}",
    ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description="Measure gradients of functions that read an array entry by entry.")
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of entries, separated by commas")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        size, places, form = chosen.child
        print(json.dumps(measure(int(size), computed=places == "computed", dense=form == "dense")))
        return
    rows = [list(COLUMNS)]
    for places in ("fixed", "computed"):
        for form in ("dense", "sparse"):
            for size in chosen.sizes.split(","):
                print(f"{places}, {form}, {size}", file=sys.stderr)
                child = [sys.executable, __file__, "--child", size, places, form]
                done = subprocess.run(child, check=True, stdout=subprocess.PIPE)
                rows.append(json.loads(done.stdout))
    print("\n".join(rendered(rows, markdown=chosen.markdown)))


if __name__ == "__main__":
    main()
