"""From a graph to a function of C.

Steps that work element by element go into loops: each joins the last loop of its shape that comes after all it reads, where what
was computed in the same pass is at hand in a variable. What only moves elements is another view. All other steps are kernels.
Values that are read elsewhere have places in the workspace from the loop that makes them to the last that reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import Any

from tidu_cli.adapters.c.kernel import Kernel
from tidu_cli.adapters.c.kernels import WHOLE, written
from tidu_cli.adapters.c.moves import zeros
from tidu_cli.adapters.c.places import Item, Pool
from tidu_cli.adapters.c.views import CONSTANT, COUNT, CTYPES, View, indices, loops, merged, place, row_major
from tidu_cli.errors import DocumentError
from tidu_cli.graph.closed import named_graphs
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.runtime.plans.steps import needed_steps

MOST_STATEMENTS = 250
"""A function has no more of them, or loops, so that compilers take time in proportion to their number."""


class UnwrittenError(DocumentError):
    """What C cannot be written of, with why."""


class Unit:
    """A function in the making, of a graph whose inputs and outputs are arrays that callers have."""

    def __init__(self, module: Any, graph: Graph, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.module, self.graph, self.name = module, graph, name
        self.inputs, self.outputs = inputs, outputs
        self.items: list[Item] = []
        self.dtypes: list[str] = []  # of roots, as all that follows
        self.sizes: list[int] = []
        self.makers: list[int] = []  # the item that makes each, -1 of inputs and constants
        self.readers: list[int] = []  # the last item that reads it
        self.kept: list[bool] = []  # whether it is in memory
        self.places: dict[int, tuple[str, int]] = {}
        self.pools: dict[str, Pool] = {}
        self.n_statements = 0
        self._latest: dict[tuple[int, ...], int] = {}
        self._build()
        self._lay_out()

    # Roots, and items that make them.

    def root(self, dtype: str, shape: tuple[int, ...], maker: int) -> View:
        """A new root, made by this item; -1 for what is there before."""
        root = len(self.dtypes)
        view = View(dtype, root, 0, shape, row_major(shape) if shape else ())
        self.dtypes.append(dtype)
        self.sizes.append(prod(shape))
        self.makers.append(maker)
        self.readers.append(-1)
        self.kept.append(maker < 0)
        return view

    def _read(self, root: int, item: int) -> None:
        if self.readers[root] < item:
            self.readers[root] = item
        if self.makers[root] != item:
            self.kept[root] = True

    def element(self, template: str, reads: list[View], shape: tuple[int, ...], dtype: str) -> View:
        """What a template makes for each element of operands of one shape."""
        if not shape:
            return self._number(template, reads, dtype)
        if 0 in shape:
            return zeros(dtype, shape)
        key = tuple([n for n in shape if n != 1])
        earliest = 0
        for view in reads:
            if view.root >= 0 and (maker := self.makers[view.root]) >= earliest:
                item = self.items[maker] if maker >= 0 else None
                alike = item is not None and item.shape == key and item.kernel is None and not view.offset
                earliest = maker if alike and (not key or view.is_dense) else maker + 1
        at = self._latest.get(key, -1)
        if at < earliest or len(self.items[at].statements) >= MOST_STATEMENTS:
            at = self._latest[key] = len(self.items)
            self.items.append(Item(key))
        view = self.root(dtype, shape, at)
        for read in reads:
            if read.root >= 0:
                self._read(read.root, at)
        item = self.items[at]
        item.statements.append((view.root, template, reads))
        item.made.append(view.root)
        self.n_statements += 1
        return view

    def _number(self, template: str, reads: list[View], dtype: str) -> View:
        """What `element` gives of operands without axes, written for speed, as a file may hold millions of them."""
        makers, readers, root = self.makers, self.readers, len(self.makers)
        earliest = 0
        for view in reads:
            if view[1] >= 0 and (maker := makers[view[1]]) >= earliest:
                item = self.items[maker]
                earliest = maker + (item.kernel is not None or item.shape != () or view[2] != 0)
        at = self._latest.get((), -1)
        if at < earliest or len(self.items[at].statements) >= MOST_STATEMENTS:
            at = self._latest[()] = len(self.items)
            self.items.append(Item())
        for view in reads:
            if (read := view[1]) >= 0:
                if readers[read] < at:
                    readers[read] = at
                if makers[read] != at:
                    self.kept[read] = True
        item = self.items[at]
        item.statements.append((root, template, reads))
        item.made.append(root)
        self.dtypes.append(dtype)
        self.sizes.append(1)
        makers.append(at)
        readers.append(-1)
        self.kept.append(False)
        self.n_statements += 1
        return tuple.__new__(View, (dtype, root, 0, (), (), ""))

    def _keep_together(self) -> None:
        """Make the next two statements of numbers ones of one item, as compilers look at one function at a time."""
        at = self._latest.get((), -1)
        if at >= 0 and len(self.items[at].statements) == MOST_STATEMENTS - 1:
            del self._latest[()]

    def dense(self, view: View) -> View:
        """The elements in a row, copied if they are not."""
        return view if view.is_dense or not view.size else self.element("{0}", [view], view.shape, view.dtype)

    def kernel(self, case: Case, reads: list[View]) -> list[View]:
        """The results of a kernel."""
        children = self.module.children(case)
        if case.op in WHOLE or children:
            reads = [self.dense(v) for v in reads]
        at = len(self.items)
        results = [self.root(self.module.dtype(t), t.shape, at) for t in case.results]  # type: ignore[union-attr]
        scratches = self.module.library.scratch
        wanted = scratches[case.op](case) if case.op in scratches else []
        scratch = [self.root(self.module.dtype(TensorType(d)), (n,), at) for d, n in wanted]
        pools: dict[str, int] = {}
        for child in children:
            for dtype, pool in child.pools.items():
                pools[dtype] = max(pools.get(dtype, 0), pool.size)
        own = {dtype: self.root(dtype, (n,), at) for dtype, n in pools.items()}
        item = Item(kernel=Kernel(self, case, reads, results, scratch, children, own))
        self.items.append(item)
        for view in (*results, *scratch, *own.values()):
            self.kept[view.root] = True
            item.made.append(view.root)
        for view in reads:
            if view.root >= 0:
                self._read(view.root, at)
        self.n_statements += 20
        return results

    # The steps of the graph.

    def _build(self) -> None:
        graph, module = self.graph, self.module
        steps = needed_steps(graph, graph.outputs)
        given = [self.root(module.dtype(i.type), i.type.shape, -1) for i in graph.inputs]  # type: ignore[union-attr]
        for view, name in zip(given, self.inputs, strict=True):
            self.places[view.root] = name, 0
        values: list[View] = [given[k] for k in steps.inputs]
        code, start, args = steps.code.tolist(), steps.start.tolist(), steps.args.tolist()
        known: dict[int, Any] = {}
        partners = _sines_and_cosines(graph, code, start, args)
        early: dict[int, View] = {}
        for step, number in enumerate(code):
            if step in early:
                values.append(early.pop(step))
                continue
            how = known.get(number)
            if how is None:
                case = graph.cases[number]
                try:
                    how = known[number] = module.how(case)
                except UnwrittenError as error:
                    node = steps.node[step]
                    raise UnwrittenError(f"node {node} ({case.op}): {error}") from None
            reads = [values[v] for v in args[start[step] : start[step + 1]]]
            if isinstance(how, tuple):
                template, shape, dtype, ignored = how
                for n in ignored:
                    reads[n] = zeros(reads[n].dtype, reads[n].shape)
                if len(reads) > 1:
                    reads = [v if v[3] == shape else v.broadcast(shape, ()) for v in reads]
                if step in partners and not shape:
                    self._keep_together()
                values.append(self.element(template, reads, shape, dtype))
                if step in partners:
                    other = module.how(graph.cases[code[partners[step]]])[0]
                    early[partners[step]] = self.element(other, reads, shape, dtype)
            else:
                values += how(self, graph.cases[number], reads)
        self._end([None if v is None else values[v] for v in steps.outputs])

    def _end(self, results: list[View | None]) -> None:
        """Have outputs where callers want them: made there, or copied."""
        taken: set[int] = set()
        for name, output, view in zip(self.outputs, self.graph.outputs, results, strict=True):
            type_: Any = output.type
            dtype = self.module.dtype(type_)
            if view is None:
                view = zeros(dtype, type_.shape)
            if not view.size:
                continue
            root = view.root
            own = root >= 0 and self.makers[root] >= 0 and root not in taken
            if not (own and view.is_dense and not view.offset and view.size == self.sizes[root]):
                root = self.element("{0}", [view], type_.shape, dtype).root
            taken.add(root)
            self.kept[root] = True
            self.places[root] = name, 0

    # Places in the workspace.

    def _lay_out(self) -> None:
        for root, (maker, reader, kept) in enumerate(zip(self.makers, self.readers, self.kept, strict=True)):
            if kept and maker >= 0 and root not in self.places:
                item = self.items[maker]
                item.placed.append(root)
                self.items[reader if reader > maker else maker].last.append(root)
        for item in self.items:
            for root in item.placed:
                dtype = self.dtypes[root]
                begin = self.pools.setdefault(dtype, Pool()).take(self.sizes[root] or 1)
                self.places[root] = f"w_{dtype}", begin
            for root in item.last:
                self.pools[self.dtypes[root]].give(self.places[root][1], self.sizes[root] or 1)

    # Text.

    def parameters(self) -> dict[str, str]:
        """The declarations of inputs, outputs and workspaces, by name."""
        types = [f"const {CTYPES[self.module.dtype(i.type)]} *restrict " for i in self.graph.inputs]
        types += [f"{CTYPES[self.module.dtype(o.type)]} *restrict " for o in self.graph.outputs]
        own = {name: t + name for name, t in zip((*self.inputs, *self.outputs), types, strict=True)}
        return own | {f"w_{dtype}": f"{CTYPES[dtype]} *restrict w_{dtype}" for dtype in sorted(self.pools)}

    def body(self, more: Callable[[str, list[str], Sequence[str]], None]) -> list[str]:
        """The statements. Where they are many they are calls of functions, that `more` is given: a name, parameters and a body."""
        if self.n_statements <= MOST_STATEMENTS:
            return [line for item in self.items for line in self._text(item)]
        declared, calls = self.parameters(), []
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
            n = len(item.statements) or 20
            if count and count + n > MOST_STATEMENTS:
                yield lines, list(used)
                lines, used, count = [], {}, 0
            text = self._text(item)
            if item.kernel or item.shape:  # these may ask for more than they name
                lines += unused([name for name in item.used if name not in used], text)
            lines += text
            used |= item.used
            count += n
        yield lines, list(used)

    def _text(self, item: Item) -> list[str]:
        self._item = item
        return ["{", *(f"    {line}" for line in (written(item.kernel) if item.kernel else self._loop(item))), "}"]

    def base(self, root: int) -> tuple[str, int]:
        """The name of the memory of a root, and where in it the root begins."""
        name, offset = self.places[root]
        if not name.startswith("c_"):
            self._item.used[name] = None
        return name, offset

    def at(self, view: View, ix: Sequence[str]) -> str:
        """The element of a view at some indices."""
        if view.root == CONSTANT:
            return view.text
        if view.root == COUNT:
            return f"(({CTYPES[view.dtype]})({place(view.offset, view.strides, ix)}))"
        name, offset = self.base(view.root)
        return f"{name}[{place(offset + view.offset, view.strides, ix)}]"

    def pointer(self, view: View) -> str:
        """The address of a view's first element."""
        name, offset = self.base(view.root)
        begin = offset + view.offset
        return f"({name} + {begin})" if begin else name

    def _loop(self, item: Item) -> list[str]:
        own = set(item.made)
        if not item.shape:  # numbers, as most are where statements are many
            return self._numbers(item, own)
        dense = row_major(item.shape)
        seen = {v: v.steps for _, _, reads in item.statements for v in reads if v.root not in own and v.root != CONSTANT}
        sizes, (_, *strides) = merged(item.shape, [dense, *seen.values()])
        ix = indices("i", sizes)
        refs = {v: v._replace(strides=tuple(s)) for v, s in zip(seen, strides, strict=True)}
        return loops(zip(ix, sizes, strict=True), list(self._statements(item, own, ix, refs, row_major(sizes))))

    def _statements(
        self, item: Item, own: set[int], ix: Sequence[str], refs: dict[View, View], dense: tuple[int, ...]
    ) -> Iterator[str]:
        inner = {v.root for _, _, reads in item.statements for v in reads}
        for root, template, reads in item.statements:
            operands = [f"v{v.root}" if v.root in own else v.text if v.root == CONSTANT else self.at(refs[v], ix) for v in reads]
            ctype = CTYPES[self.dtypes[root]]
            value = template.format(*operands)
            if self.readers[root] == self.makers[root] or not self.kept[root]:
                yield f"const {ctype} v{root} = {value};"
                value = f"v{root}"
                if self.readers[root] < 0 and not self.kept[root]:
                    yield f"(void)v{root};"
            elif root in inner:
                yield f"const {ctype} v{root} = {value};"
                value = f"v{root}"
            if self.kept[root]:
                name, offset = self.base(root)
                yield f"{name}[{place(offset, dense, ix)}] = {value};"

    def _numbers(self, item: Item, own: set[int]) -> list[str]:
        """The statements of a loop without axes."""
        lines: list[str] = []
        inner = {v[1] for _, _, reads in item.statements for v in reads}
        kept, places, dtypes, used = self.kept, self.places, self.dtypes, item.used
        for root, template, reads in item.statements:
            operands = []
            for view in reads:
                if (read := view[1]) in own:
                    operands.append(f"v{read}")
                elif read >= 0:
                    name, offset = places[read]
                    if name[:2] != "c_":
                        used[name] = None
                    operands.append(f"{name}[{offset + view[2]}]")
                else:
                    operands.append(self.at(view, ["0"] * len(view[3])))
            value = template.format(*operands)
            if root in inner or not kept[root]:
                lines.append(f"const {CTYPES[dtypes[root]]} v{root} = {value};")
                value = f"v{root}"
                if root not in inner:
                    lines.append(f"(void)v{root};")
            if kept[root]:
                name, offset = places[root]
                used[name] = None
                lines.append(f"{name}[{offset}] = {value};")
        return lines


def _sines_and_cosines(graph: Graph, code: list[int], start: list[int], args: list[int]) -> dict[int, int]:
    """Steps that are the sine or the cosine of what a later step is the other of. Side by side they are one call, of sincos."""
    either = {number for number in set(code) if graph.cases[number].op in ("sin", "cos")}
    partners: dict[int, int] = {}
    if len(either) < 2:
        return partners
    first: dict[int, int] = {}
    for step, number in enumerate(code):
        if number in either:
            other = first.setdefault(args[start[step]], step)
            if other not in partners and code[other] != number:
                partners[other] = step
    return partners


def unused(names: Iterable[str], lines: Sequence[str]) -> list[str]:
    """Statements that say that parameters are not used."""
    words = set(re.findall(r"\w+", "\n".join(lines)))
    return [f"(void){name};" for name in names if name not in words]


def require_plain(types: Sequence[Type | None]) -> None:
    """Raises UnwrittenError for what has no place in C: records, times, half precision and complex numbers."""
    for type_ in types:
        if not isinstance(type_, TensorType):
            raise UnwrittenError(f"{type_ or 'a detached operand'}: C is written of arrays alone; write their fields apart")
        if type_.dtype not in CTYPES:
            raise UnwrittenError(f"{type_}: C is written of bool, integers, f32 and f64; convert it first")


def graphs_in(case: Case) -> Sequence[tuple[str, Any]]:
    """The graphs in the attrs of a case, and what messages call them."""
    return named_graphs(case.attrs)
