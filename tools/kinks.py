"""docs/kinks.md: by which convention operations have derivatives at kinks, from what they say of themselves."""

from __future__ import annotations

from itertools import groupby

from tidu_cli import kinks, load
from tidu_cli.checking.kinks import table
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules import kinks as words

_BEGIN = """# Kinks

max(x, 0) has no derivative at 0, and a program must say something. Programs differ in what. `tidu eval --kinks` lists on stderr the
nodes that are at a kink at the point of an evaluation, and what the derivative is taken to be there. In Python it is `tidu.kinks`.

```console
$ tidu eval samples/kinks.json --set 'x=[-2,-1,0,1,2]' --kinks 2>&1 >/dev/null
{listed}
```

In a loop, which is run step by step for that, it says in which step a kink is met first, and how often. Of `root`,
`fixed_point` and `linear_solve` it looks into the equation, at the solution. Integers have no kinks, nor has what no output depends
on, and `==`, by which functions such as `cdist` step around a kink, is not listed. With `--json` stdout has one object of the
values and the list, `{"values": ..., "kinks": [...]}`.

## Conventions

JAX's and PyTorch's are those of their functions of that name. ONNX has no derivatives; its column has those of the training graphs
of ONNX Runtime, where it makes some. The tests hold tidu's to its derivatives, and the first two to what JAX 0.10.2 and
PyTorch 2.13 compute. This table is generated: `make generated` writes it.

| op | where | tidu | JAX | PyTorch | ONNX |
|---|---|---|---|---|---|
"""


def to_markdown() -> str:
    """The page."""
    rows = [
        (f"`{primitive.name}`", kink.at, *(text or "-" for text in kink.conventions.values()))
        for primitive in BUILTIN.primitives.values()
        for kink in (primitive.rules.kinks(words) if primitive.rules.kinks else ())
        if kink.at
    ]
    lines = [
        f"| {', '.join(row[0] for row in same)} | {' | '.join(told)} |"
        for told, same in ((told, list(same)) for told, same in groupby(rows, key=lambda row: row[1:]))
    ]
    here = kinks(load("samples/kinks.json"), {"x": [-2, -1, 0, 1, 2]})
    return _BEGIN.replace("{listed}", "\n".join(table(here))) + "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(to_markdown(), end="")
