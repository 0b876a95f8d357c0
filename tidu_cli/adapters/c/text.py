"""The text of a function of C: its items, places for their values, and loops, kernels and straight lines in the order of the items.

An item is a loop or a kernel. What is between items has places in the workspace, a pool of them for each dtype.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tidu_cli.adapters.c.kernel import Kernel
from tidu_cli.adapters.c.kernels import written
from tidu_cli.adapters.c.views import CONSTANT, COUNT, CTYPES, HALVES, STORED, View, indices, loops, merged, place, row_major
from tidu_cli.adapters.source_code import UnwrittenError
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.sizes.open import OpenSize


class Pool:
    """The workspace for one dtype: places that are free, by their sizes, and how far it reaches."""

    def __init__(self) -> None:
        self.size = 0
        self._free: dict[int, list[int]] = {}

    def take(self, n: int) -> int:
        """The first of `n` places: those that were given back, if they are as many, or are the least more of numbers of them."""
        free = self._free.get(n)
        if not free:
            numbers = () if isinstance(n, OpenSize) or n <= 1 else self._free.items()
            larger = min((size for size, places in numbers if type(size) is int and size > n and places), default=0)
            if not larger:
                self.size += n
                return self.size - n
            begin = self._free[larger].pop()
            self.give(begin + n, larger - n)
            return begin
        return free.pop()

    def give(self, begin: int, n: int) -> None:
        """Give places back."""
        self._free.setdefault(n, []).append(begin)


class Item:
    """A loop, of statements for each element; or a kernel. A statement is a root, a template and operands."""

    def __init__(self, shape: tuple[int, ...] = (), kernel: Kernel | None = None) -> None:
        self.shape, self.kernel = shape, kernel
        self.statements: list[tuple[int, str, Any]] = []
        """Their operands are views; where the loop is of numbers, roots of such, or -1 - k for the function's `views[k]`."""
        self.is_of_numbers = not shape and kernel is None
        self.placed: list[int] = []
        """Those that get places in the workspace."""
        self.last: list[int] = []
        """The roots in the workspace that nothing reads after it."""
        self.used: dict[str, None] = {}
        """The parameters that it names."""

    @property
    def n_statements(self) -> int:
        """How long it is."""
        return len(self.statements) or 20


MOST_STATEMENTS = 250
"""A function has no more of them, or loops, so that compilers take time in proportion to their number."""

STEPS = "w_steps"


class Function:
    """A function of a graph whose inputs and outputs are arrays that callers have: roots, and the items that make them."""

    def __init__(self, module: Any, graph: Graph, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.module, self.graph, self.name = module, graph, name
        self.inputs, self.outputs = inputs, outputs
        self.items: list[Item] = []
        self.dtypes: list[str] = []  # of roots, as all that follows
        self.sizes: dict[int, int] = {}  # of arrays
        self.makers: list[int] = []  # the item that makes each, -1 of inputs and constants
        self.readers: list[int] = []  # the last item that reads it
        self.kept: set[int] = set()  # those in memory that no later item reads
        self.local: list[bool] = []  # whether the item that makes it reads it
        self.views: list[View] = []
        self.places: dict[int, tuple[str, int]] = {}
        self.pools: dict[str, Pool] = {}
        self.node = 0
        """The node that is lowered."""
        self.names: list[str] = []
        """Those of open sizes that callers give, before all else."""
        self.has_while = False
        """Whether it has a loop that may run for ever, and so counts its steps."""

    @property
    def n_statements(self) -> int:
        """How long it is."""
        return sum(item.n_statements for item in self.items)

    def _is_kept(self, root: int) -> bool:
        """Whether it is in memory."""
        return self.readers[root] > self.makers[root] or root in self.kept

    # Places in the workspace.

    def lay_out(self) -> None:
        """Give each root that is read elsewhere a place, from the item that makes it to the last that reads it."""
        dtypes, sizes, places, pools = self.dtypes, self.sizes, self.places, self.pools
        for root, (maker, reader) in enumerate(zip(self.makers, self.readers, strict=True)):
            if (reader > maker or root in self.kept) and maker >= 0 and root not in places:
                self.items[maker].placed.append(root)
                self.items[reader if reader > maker else maker].last.append(root)
        names = {dtype: f"w_{dtype}" for dtype in set(dtypes)}
        for item in self.items:
            for root in item.placed:
                dtype = dtypes[root]
                if dtype not in pools:
                    pools[dtype] = Pool()
                places[root] = names[dtype], pools[dtype].take(_room(sizes[root]) if root in sizes else 1)
            for root in item.last:
                pools[dtypes[root]].give(places[root][1], _room(sizes[root]) if root in sizes else 1)

    # Text.

    def parameters(self) -> dict[str, str]:
        """The declarations of inputs, outputs and workspaces, by name."""
        types = [f"const {STORED[self.module.dtype(i.type)]} *restrict " for i in self.graph.inputs]
        types += [f"{STORED[self.module.dtype(o.type)]} *restrict " for o in self.graph.outputs]
        own = {name: t + name for name, t in zip((*self.inputs, *self.outputs), types, strict=True)}
        own |= {f"w_{dtype}": f"{STORED[dtype]} *restrict w_{dtype}" for dtype in sorted(self.pools)}
        return own | ({STEPS: f"int64_t *{STEPS}"} if self.has_while else {})

    def body(self, more: Callable[[str, list[str], Sequence[str]], None]) -> list[str]:
        """The statements. Where they are many they are calls of functions, that `more` is given: a name, parameters and a body.

        Raises UnwrittenError for a kernel that needs a number where a size is open.
        """
        sizes = self.module.sizes
        if sizes is None:
            return self._body(more)
        with sizes.spelling():
            lines = self._body(more)
        self.names = sizes.names_in(lines)
        return lines

    def _body(self, more: Callable[[str, list[str], Sequence[str]], None]) -> list[str]:
        if self.n_statements <= MOST_STATEMENTS:
            return [line for item in self.items for line in self._text(item)]
        declared, calls = self.parameters(), []
        if self.module.sizes:
            declared |= self.module.sizes.parameters()
        for number, (lines, used) in enumerate(self._chunks()):
            name = f"{self.name}_{number}"
            more(name, [declared[p] for p in used] or ["void"], lines)
            calls.append(f"{name}({', '.join(used)});")
        return calls

    def _chunks(self) -> Iterator[tuple[list[str], list[str]]]:
        lines: list[str] = []
        used: dict[str, None] = {}
        count = 0
        for item in self.items:
            n = item.n_statements
            if count and count + n > MOST_STATEMENTS:
                yield lines, list(used)
                lines, used, count = [], {}, 0
            text = self._text(item)
            if item.kernel or item.shape:  # these may ask for more than they name
                lines += unused([name for name in item.used if name not in used], text)
            lines += text
            if self.module.sizes:
                item.used |= dict.fromkeys(self.module.sizes.names_in(text))
            used |= item.used
            count += n
        yield lines, list(used)

    def _text(self, item: Item) -> list[str]:
        self._item = item
        if item.is_of_numbers:  # as most are where statements are many
            return ["{", *self._numbers(item), "}"]
        try:
            lines = written(item.kernel) if item.kernel else self._loop(item)
        except TypeRuleError as error:
            if not item.kernel:
                raise UnwrittenError(str(error)) from None
            raise of_node(item.kernel.node, item.kernel.case, error) from None
        return ["{", *(f"    {line}" for line in lines), "}"]

    def base(self, root: int) -> tuple[str, int]:
        """The name of the memory of a root, and where in it the root begins."""
        name, offset = self.places[root]
        if not name.startswith("c_"):
            self._item.used[name] = None
        return name, offset

    def steps(self) -> str:
        """The name of the address of how many steps loops have left."""
        self._item.used[STEPS] = None
        return STEPS

    def at(self, view: View, ix: Sequence[str]) -> str:
        """The element of a view at some indices."""
        if view.root == CONSTANT:
            return view.text
        if view.root == COUNT:
            count = f"({place(view.offset, view.strides, ix)})"
            convert = self.module.convert("i64", view.dtype)
            return convert.format(count) if convert != "{0}" else f"(({CTYPES[view.dtype]}){count})"
        name, offset = self.base(view.root)
        element = f"{name}[{place(offset + view.offset, view.strides, ix)}]"
        return self.module.loaded(view.dtype, element) if view.dtype in HALVES else element

    def put(self, view: View, ix: Sequence[str], value: str) -> str:
        """The statement that sets the element of a view at some indices."""
        name, offset = self.base(view.root)
        value = self.module.saved(view.dtype, value) if view.dtype in HALVES else value
        return f"{name}[{place(offset + view.offset, view.strides, ix)}] = {value};"

    def pointer(self, view: View) -> str:
        """The address of a view's first element."""
        name, offset = self.base(view.root)
        begin = offset + view.offset
        return f"({name} + {begin})" if begin != 0 else name

    def _loop(self, item: Item) -> list[str]:
        own = {root for root, _, _ in item.statements}
        dense = row_major(item.shape)
        seen = {v: v.steps for _, _, reads in item.statements for v in reads if v.root not in own and v.root != CONSTANT}
        sizes, (_, *strides) = merged(item.shape, [dense, *seen.values()])
        ix = indices("i", sizes)
        refs = {v: v._replace(strides=tuple(s)) for v, s in zip(seen, strides, strict=True)}
        return loops(zip(ix, sizes, strict=True), list(self._statements(item, own, ix, refs, row_major(sizes))))

    def _statements(
        self, item: Item, own: set[int], ix: Sequence[str], refs: dict[View, View], dense: tuple[int, ...]
    ) -> Iterator[str]:
        for root, template, reads in item.statements:
            operands = [f"v{v.root}" if v.root in own else v.text if v.root == CONSTANT else self.at(refs[v], ix) for v in reads]
            ctype = CTYPES[self.dtypes[root]]
            value = template.format(*operands)
            if self.local[root] or not self._is_kept(root):
                yield f"const {ctype} v{root} = {value};"
                value = f"v{root}"
                if not self.local[root]:
                    yield f"(void)v{root};"
            if self._is_kept(root):
                name, offset = self.base(root)
                yield f"{name}[{place(offset, dense, ix)}] = {self._saved(root, value)};"

    def _saved(self, root: int, value: str) -> str:
        return self.module.saved(self.dtypes[root], value) if self.dtypes[root] in HALVES else value

    def _numbers(self, item: Item) -> list[str]:
        """The statements of a loop without axes, indented."""
        lines: list[str] = []
        makers, readers, local, places, dtypes, used = self.makers, self.readers, self.local, self.places, self.dtypes, item.used
        at = makers[item.statements[0][0]]
        for root, template, reads in item.statements:
            operands = []
            for read in reads:
                if read < 0:
                    view = self.views[~read]
                    operands.append(self.at(view, ["0"] * len(view.shape)))
                elif makers[read] == at:
                    operands.append(f"v{read}")
                else:
                    name, offset = places[read]
                    used[name] = None
                    element = f"{name}[{offset}]"
                    operands.append(self.module.loaded(dtypes[read], element) if dtypes[read] in HALVES else element)
            value = template.format(*operands)
            kept = readers[root] > at or root in self.kept
            if local[root] or not kept:
                lines.append(f"    const {CTYPES[dtypes[root]]} v{root} = {value};")
                value = f"v{root}"
                if not local[root]:
                    lines.append(f"    (void)v{root};")
            if kept:
                name, offset = places[root]
                used[name] = None
                lines.append(f"    {name}[{offset}] = {self._saved(root, value) if dtypes[root] in HALVES else value};")
        return lines


def _room(n: int) -> int:
    """The number of places that these elements take."""
    return n if isinstance(n, OpenSize) else n or 1


def of_node(node: int, case: Case, error: object) -> UnwrittenError:
    """What is said of a node that C is not written of."""
    return UnwrittenError(f"node {node} ({case.op}): {error}")


def block(opening: str, lines: Sequence[str]) -> str:
    """A function of these lines."""
    return "\n".join([opening, "{", *(f"    {line}" for line in lines), "}"])


def unused(names: Iterable[str], lines: Sequence[str]) -> list[str]:
    """Statements that say that parameters are not used."""
    words = set(re.findall(r"\w+", "\n".join(lines)))
    return [f"(void){name};" for name in names if name not in words]
