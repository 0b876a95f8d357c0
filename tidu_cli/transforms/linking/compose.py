"""compose: documents one after the other, the outputs of each fed to the inputs of the next; detach: the last graphs cut loose.

What `resolve --bind` does once names are apart and pairs are known. Here pairs are found, by key or by position, and what two
documents call by one name without meaning one thing is renamed in the later one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence

from tidu_cli.errors import Remedy, TransformError, UnknownNameError, did_you_mean
from tidu_cli.frozen import Frozen, replace
from tidu_cli.graph.graph import Binding, Detached, Document, Externals, Graph, Input, Output, Place
from tidu_cli.graph.identity import digest_text, digests
from tidu_cli.graph.keys import Key
from tidu_cli.graph.open_sizes import told_apart, ways_to_agree
from tidu_cli.graph.passes import with_used_passes
from tidu_cli.graph.select import another_name, listed
from tidu_cli.transforms.linking.passes import joint_passes
from tidu_cli.transforms.linking.rename import Owner, Renaming, owner, rename
from tidu_cli.transforms.linking.resolve import dangling, resolve

BY = ("name", "position")
"""The ways to find out which output feeds which input."""

Pairs = list[tuple[Input, Output]]


class Joint(Frozen, slots=False):
    """How a document was put behind those before it.

    `by` is how the pairs were found, one of `BY`. `bound` are inputs, by their new keys, and the outputs that they are. `idle` are
    outputs that feed nothing. `inputs` and `outputs` are the new keys of those of its inputs and outputs that have one, `graphs`
    the new names of graphs.
    """

    by: str
    bound: tuple[tuple[Key, Key], ...]
    idle: tuple[Key, ...]
    inputs: Mapping[Key, Key]
    outputs: Mapping[Key, Key]
    graphs: Mapping[str, str]


class Composition(Frozen, slots=False):
    """The document of a pipeline, and the joint before each of its parts but the first."""

    document: Document
    joints: tuple[Joint, ...]


def compose(
    documents: Sequence[Document],
    *,
    by: str | None = None,
    share: Sequence[Key] = (),
    one_pass: Collection[int] = (),
    names: Sequence[str] = (),
) -> Composition:
    """The pipeline of documents: the outputs of each one's head feed inputs of the next, whose head is the result's.

    Those are the free inputs of the document, in order, whether an output depends on them or not. `by` "name" pairs equal keys;
    "position" the outputs in order with the inputs of their kind (plain, tangent or cotangent) or, where these are too few, with
    the plain ones; None is by name where a key is on both sides, and else by position. Inputs that stay free keep their keys. One
    whose key an earlier document declares, too, is renamed x.2, unless `share` has the key; so are bound inputs, and graphs whose
    names are taken. Passes are joined as `resolve` joins them.

    Raises TransformError where outputs and inputs do not pair, differ in type, are zero, or depend on detached values;
    UnknownNameError for a key to share that is no free input of two documents; and what `resolve` raises.
    """
    if not documents:
        raise TransformError("there is nothing to compose; give a document")
    if by is not None and by not in BY:
        raise TransformError(f"documents are composed by {' or '.join(BY)}, not by '{by}'")
    for document in documents:
        _require_attached(document)
    passes = joint_passes(documents, one_pass, names)
    documents = [replace(document, passes={number: passes[number] for number in document.passes}) for document in documents]
    shared = {owner(key, is_input=True): key for key in share}
    meeting: set[Owner] = set()
    whole, joints = documents[0], []
    for document in documents[1:]:
        way, pairs = _paired(whole, document, by)
        renaming, kept = _apart(whole, document, [i.key for i, _ in pairs], shared)
        meeting |= kept
        bindings = tuple(Binding(renaming.input_key(i.key), *_place(whole, i, o)) for i, o in pairs)
        joints.append(_joint(whole, document, way, pairs, renaming))
        before = replace(whole, bindings=(*whole.bindings, *bindings))
        whole = resolve([before, rename(document, renaming)])
    _require_shared(documents, shared, meeting)
    return Composition(whole, tuple(joints))


def _require_attached(document: Document) -> None:
    # The digests of what depends on an input change where the input is bound or renamed, and nobody knows which do.
    for digest, reader in dangling(document):
        raise TransformError(f"graph '{reader}' reads the detached value {digest}; resolve it with the document that defines it")


# Which output feeds which input.


def _paired(whole: Document, document: Document, by: str | None) -> tuple[str, Pairs]:
    outputs, inputs = whole.head.outputs, document.free_inputs
    by_key = {o.key: o for o in outputs}
    named: Pairs = [(i, by_key[i.key]) for i in inputs if i.key in by_key]
    way = by or ("name" if named else "position")
    pairs = named if way == "name" else _in_order(outputs, inputs)
    if not pairs:
        raise TransformError(
            f"cannot compose by {way}: the outputs of graph '{whole.head.name}' are {_listed(outputs)} and the inputs of graph "
            f"'{document.head.name}' {_listed(inputs)}; {_way_out(way)}"
        )
    for i, o in pairs:
        if i.type != o.type:
            output, input_ = told_apart(o.type, i.type)
            raise TransformError(
                f"output '{o.key}' of graph '{whole.head.name}' is {output} and input '{i.key}' of graph '{document.head.name}' is "
                f"{input_} (paired by {way}); types must agree",
                *ways_to_agree(o.type, i.type),
            )
    return way, pairs


def _way_out(way: str) -> str:
    resolve = Remedy(function="resolve")
    if way == "name":
        return f"compose by position, or bind them with {resolve}"
    return f"compose by name, choose outputs with {Remedy(function='materialize')}, or bind them with {resolve}"


def _in_order(outputs: Sequence[Output], inputs: Sequence[Input]) -> Pairs:
    """The outputs with the inputs of their kind or, if these are too few, with the plain ones; none if all are too few.

    A derivative is a value like any other, and may be what a function takes. A tangent is no plain value.
    """
    of_kind = defaultdict[tuple[bool, ...], deque[Input]](deque)
    for i in inputs:
        of_kind[_kind(i.key)].append(i)
    plain = [*of_kind[()]]
    pairs: Pairs = []
    for o in outputs:
        if not (left := of_kind[_kind(o.key)]):
            return list(zip(plain, outputs, strict=False)) if len(outputs) <= len(plain) else []
        pairs.append((left.popleft(), o))
    return pairs


def _kind(key: Key) -> tuple[bool, ...]:
    """Whether a key is plain, a tangent, a cotangent, a tangent of a cotangent, ...: whatever the passes."""
    return tuple(step > 0 for step in key.path)


def _place(whole: Document, i: Input, o: Output) -> Place:
    """The value that an output of the head is."""
    if o.value is None:
        raise TransformError(
            f"output '{o.key}' of graph '{whole.head.name}' is zero all over, and feeds no input; make '{i.key}' a constant with ",
            Remedy("set", f"{i.key}=VALUE", "materialize", python=f"materialize(document, set={{{str(i.key)!r}: ...}})"),
        )
    return whole.head.place(len(whole.graphs) - 1, o.value)


# What is to have another name.


def _apart(whole: Document, document: Document, bound: Collection[Key], shared: Collection[Owner]) -> tuple[Renaming, set[Owner]]:
    """New names for what the document calls as those before it call something else, and whose inputs stay shared.

    Inputs clash by key, and are renamed with all that belongs to their owners. A bound input is the later document's alone, and
    cannot be shared.
    """
    bound_owners = {owner(key, is_input=True) for key in (*bound, *document.bound)}
    clashing = dict.fromkeys(owner(key, is_input=True) for key in document.inputs if key in whole.inputs)
    kept = {o for o in clashing if o in shared and o not in bound_owners}
    taken = {key.name for d in (whole, document) for key in d.every_key()}
    new: dict[bool, dict[str, str]] = {True: {}, False: {}}
    for is_input, name in clashing:
        if (is_input, name) not in kept:
            new[is_input][name] = _newly_taken(name, taken)
    names, its_names = ([graph.name for graph in d.graphs] for d in (whole, document))
    taken = {*names, *its_names}
    graphs = {name: _newly_taken(name, taken) for name in its_names if name in names}
    return Renaming(new[True], new[False], graphs), kept


def _newly_taken(name: str, taken: set[str]) -> str:
    """Another name, which is taken from now on."""
    other = another_name(name, taken)
    taken.add(other)
    return other


def _joint(whole: Document, document: Document, way: str, pairs: Pairs, renaming: Renaming) -> Joint:
    fed = {o.key for _, o in pairs}
    return Joint(
        way,
        tuple((renaming.input_key(i.key), o.key) for i, o in pairs),
        tuple(o.key for o in whole.head.outputs if o.key not in fed),
        {key: new for key in document.inputs if (new := renaming.input_key(key)) != key},
        {o.key: new for o in document.head.outputs if (new := renaming.output_key(o.key)) != o.key},
        renaming.graphs,
    )


def _require_shared(documents: Sequence[Document], shared: Mapping[Owner, Key], meeting: Collection[Owner]) -> None:
    for its_owner, key in shared.items():
        if its_owner not in meeting:
            known = list(dict.fromkeys(str(i.key) for document in documents for i in document.free_inputs))
            hint = "" if str(key) in known else did_you_mean(str(key), known)
            raise UnknownNameError(
                f"there is no input '{key}' that two documents have and no output feeds, so it cannot be shared{hint}"
            )


def _listed(ports: Sequence[Input] | Sequence[Output]) -> str:
    return listed([f"'{port.key}'" for port in ports])


def detach(document: Document, first: int) -> Document:
    """The graphs from number `first` on; what they read of earlier ones becomes detached, by digest.

    Bindings go: the digest of a bound input is that of the value it is bound to.
    """
    digest_of = digests(document)
    detached: dict[str, Detached] = {}
    numbers: dict[str, int] = {}

    def cut(graph: Graph) -> Graph:
        externals = Externals()
        for g, v in graph.external:
            if g >= first:
                externals.graph.append(g - first)
                externals.value.append(v)
                continue
            defined = g != Externals.DETACHED
            entry = Detached(digest_text(digest_of[g][v]), document.graphs[g].type_of(v)) if defined else document.detached[v]
            detached.setdefault(entry.digest, entry)
            externals.graph.append(Externals.DETACHED)
            externals.value.append(numbers.setdefault(entry.digest, len(numbers)))
        return replace(graph, external=externals)

    graphs = tuple(cut(graph) for graph in document.graphs[first:])
    alone = replace(document, graphs=graphs, detached=tuple(detached.values()), bindings=())
    return with_used_passes(alone, document.passes)
