"""From a graph to a function of C.

Steps that work element by element go into loops: each joins the last loop of its shape that comes after all it reads, where what
was computed in the same pass is at hand in a variable. What only moves elements is another view. All other steps are kernels.
Values that are read elsewhere have places in the workspace from the loop that makes them to the last that reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from tidu_cli.adapters.c.kernel import Kernel
from tidu_cli.adapters.c.kernels import WHOLE
from tidu_cli.adapters.c.moves import zeros
from tidu_cli.adapters.c.text import MOST_STATEMENTS, Function, Item, of_node
from tidu_cli.adapters.c.views import CTYPES, View, row_major
from tidu_cli.adapters.source_code import UnwrittenError
from tidu_cli.errors import TypeRuleError
from tidu_cli.graph.graph import Case, Graph
from tidu_cli.graph.sizes.open import larger
from tidu_cli.graph.types import TensorType, Type
from tidu_cli.runtime.plans.steps import Steps, needed_steps


class Unit(Function):
    """A function in the making: its items are built step by step of the graph."""

    def __init__(self, module: Any, graph: Graph, name: str, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        super().__init__(module, graph, name, inputs, outputs)
        self._latest: dict[tuple[int, ...], int] = {}
        self._build()
        self.lay_out()

    # Roots, and items that make them.

    def root(self, dtype: str, shape: tuple[int, ...], maker: int) -> View:
        """A new root, made by this item; -1 for what is there before."""
        root = len(self.dtypes)
        view = View(dtype, root, 0, shape, row_major(shape) if shape else ())
        self.dtypes.append(dtype)
        self.sizes[root] = prod(shape)
        self.makers.append(maker)
        self.readers.append(-1)
        self.local.append(False)
        return view

    def _read(self, root: int, item: int) -> None:
        if self.readers[root] < item:
            self.readers[root] = item
        if self.makers[root] == item:
            self.local[root] = True

    def element(self, template: str, reads: list[View], shape: tuple[int, ...], dtype: str) -> View:
        """What a template makes for each element of operands of one shape."""
        if 0 in shape:
            return zeros(dtype, shape)
        key = tuple([n for n in shape if n != 1])
        if not key:
            number = self._number(template, [self._value(v._replace(shape=(), strides=())) for v in reads], dtype)
            return View(dtype, number, 0, shape, row_major(shape))
        earliest = 0
        for view in reads:
            if view.root >= 0 and (maker := self.makers[view.root]) >= earliest:
                item = self.items[maker] if maker >= 0 else None
                alike = item is not None and item.shape == key and item.kernel is None and view.offset == 0
                earliest = maker if alike and view.is_dense else maker + 1
        at = self._latest.get(key, -1)
        if at < earliest or len(self.items[at].statements) >= MOST_STATEMENTS:
            at = self._latest[key] = len(self.items)
            self.items.append(Item(key))
        view = self.root(dtype, shape, at)
        for read in reads:
            if read.root >= 0:
                self._read(read.root, at)
        self.items[at].statements.append((view.root, template, reads))
        return view

    def _number(self, template: str, reads: Sequence[int], dtype: str) -> int:
        """What `element` gives of operands without axes, from values to a value: written for speed, as a file may hold millions."""
        makers, readers, views, number = self.makers, self.readers, self.views, len(self.makers)
        at = self._latest.get((), -1)
        for read in reads:
            if read < 0 and (root := views[~read].root) >= 0 and makers[root] >= at:
                at = -1
        if at < 0 or len(self.items[at].statements) >= MOST_STATEMENTS:
            at = self._latest[()] = len(self.items)
            self.items.append(Item())
        for read in reads:
            root = read if read >= 0 else views[~read].root
            if root >= 0:
                if readers[root] < at:
                    readers[root] = at
                if makers[root] == at:
                    self.local[root] = True
        self.items[at].statements.append((number, template, reads))
        self.dtypes.append(dtype)
        makers.append(at)
        readers.append(-1)
        self.local.append(False)
        return number

    def _value(self, view: View) -> int:
        """A view as a value: a root that is a number made by `_number`, or -1 - k for `views[k]`."""
        root = view.root
        if root >= 0 and not view.shape and (maker := self.makers[root]) >= 0 and self.items[maker].is_of_numbers:
            return root
        self.views.append(view)
        return -len(self.views)

    def view(self, value: int) -> View:
        """The view of a value."""
        return View(self.dtypes[value], value, 0, (), ()) if value >= 0 else self.views[~value]

    def _keep_together(self) -> None:
        """Make the next two statements of numbers ones of one item, as compilers look at one function at a time."""
        at = self._latest.get((), -1)
        if at >= 0 and len(self.items[at].statements) == MOST_STATEMENTS - 1:
            del self._latest[()]

    def dense(self, view: View) -> View:
        """The elements in a row, copied if they are not."""
        return view if view.is_dense or 0 in view.shape else self.element("{0}", [view], view.shape, view.dtype)

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
                pools[dtype] = larger(pools.get(dtype, 0), pool.size)
        own = {dtype: self.root(dtype, (n,), at) for dtype, n in pools.items()}
        self.has_while |= case.op == "while" or any(child.has_while for child in children)
        item = Item(kernel=Kernel(self, case, reads, results, scratch, children, own))
        self.items.append(item)
        for view in (*results, *scratch, *own.values()):
            self.kept.add(view.root)
        for view in reads:
            if view.root >= 0:
                self._read(view.root, at)
        return results

    # The steps of the graph.

    def _build(self) -> None:
        graph, module = self.graph, self.module
        steps = needed_steps(graph, graph.outputs)
        given = [self.root(module.dtype(i.type), i.type.shape, -1) for i in graph.inputs]  # type: ignore[union-attr]
        for view, name in zip(given, self.inputs, strict=True):
            self.places[view.root] = name, 0
        values = [given[k].root if not given[k].shape else self._value(given[k]) for k in steps.inputs]
        code, start, args = steps.code.tolist(), steps.start.tolist(), steps.args.tolist()
        known: dict[int, Any] = {}
        partners = _sines_and_cosines(graph, code, start, args)
        early: dict[int, int] = {}
        for step, number in enumerate(code):
            if step in early:
                values.append(early.pop(step))
                continue
            how = known.get(number) or self._how(known, steps, step)
            reads = [values[v] for v in args[start[step] : start[step + 1]]]
            if not isinstance(how, tuple):
                self.node = steps.node[step]
                try:
                    values += [self._value(v) for v in how(self, graph.cases[number], [self.view(v) for v in reads])]
                except TypeRuleError as error:
                    raise of_node(self.node, graph.cases[number], error) from None
                continue
            if step in partners and not how[1]:
                self._keep_together()
            values.append(self._computed(how, reads))
            if step in partners:
                other = partners[step]
                early[other] = self._computed(known.get(code[other]) or self._how(known, steps, other), reads)
        self._end([None if v is None else self.view(values[v]) for v in steps.outputs])

    def _how(self, known: dict[int, Any], steps: Steps, step: int) -> Any:
        """How a step is written, as of then on known of its case."""
        number = int(steps.code[step])
        case = self.graph.cases[number]
        try:
            return known.setdefault(number, self.module.how(case))
        except (UnwrittenError, TypeRuleError) as error:
            raise of_node(steps.node[step], case, error) from None

    def _computed(self, how: tuple[str, tuple[int, ...], str, list[int]], reads: list[int]) -> int:
        """What a template makes of operands that are broadcast."""
        template, shape, dtype, ignored = how
        if not shape and not ignored:
            return self._number(template, reads, dtype)
        views = [self.view(v) for v in reads]
        for n in ignored:
            views[n] = zeros(views[n].dtype, views[n].shape)
        views = [v if v.shape == shape else v.broadcast(shape, ()) for v in views] if len(views) > 1 else views
        return self._value(self.element(template, views, shape, dtype))

    def _end(self, results: list[View | None]) -> None:
        """Have outputs where callers want them: made there, or copied."""
        taken: set[int] = set()
        for name, output, view in zip(self.outputs, self.graph.outputs, results, strict=True):
            type_: Any = output.type
            dtype = self.module.dtype(type_)
            if view is None:
                view = zeros(dtype, type_.shape)
            if 0 in view.shape:
                continue
            root = view.root
            own = root >= 0 and self.makers[root] >= 0 and root not in taken
            if not (own and view.is_dense and view.offset == 0 and view.size == self.sizes.get(root, 1)):
                root = self.element("{0}", [view], type_.shape, dtype).root
            taken.add(root)
            self.kept.add(root)
            self.places[root] = name, 0


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


def require_plain(types: Sequence[Type | None]) -> None:
    """Raises UnwrittenError for what has no place in C: records and times."""
    for type_ in types:
        if not isinstance(type_, TensorType):
            raise UnwrittenError(f"{type_ or 'a detached operand'}: C is written of arrays alone; write their fields apart")
        if type_.dtype not in CTYPES:
            raise UnwrittenError(f"{type_}: C is written of bools and numbers; convert it first")
