"""Ensembles of decision trees: each step of a scan goes from the nodes where samples are to their children, in tables of nodes.

What they give is constant between the thresholds of nodes, and so its derivatives are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidu_cli.adapters.onnx.reading.node import Node, Operator, RefusedError, Value, at, computed, number
from tidu_cli.adapters.onnx.reading.operators.networks import machine_learning
from tidu_cli.adapters.onnx.reading.operators.networks.recurrent import scan
from tidu_cli.limits import require

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
"""The tests of nodes, by the codes of TreeEnsemble."""

COMPARISONS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@dataclass
class Trees:
    """Tables of nodes: leaves are their own children. `weights` are of nodes by targets, NaN where a leaf has none."""

    roots: Any
    features: Any
    splits: Any
    modes: Any
    children: tuple[Any, Any]
    missing: Any
    weights: Any
    members: Any = None
    """For each node the row of `sets` that it tests for."""
    sets: Any = None


def _depth(trees: Trees) -> int:
    """The greatest number of steps from a root to a leaf. Raises RefusedError if nodes go in circles."""
    places, n = np.unique(trees.roots), len(trees.features)
    steps = 0
    while True:
        inner = places[(trees.children[0][places] != places) | (trees.children[1][places] != places)]
        if not inner.size:
            return steps
        steps += 1
        if steps > n:
            raise RefusedError("its nodes go in circles")
        places = np.unique(np.concatenate([side[inner] for side in trees.children]))


def _leaves(node: Node, x: Value, trees: Trees) -> Value:
    """For each sample and tree the leaf where the sample ends."""
    n = len(trees.features)
    if any(((table < 0) | (table >= n)).any() for table in (trees.roots, *trees.children)):
        raise RefusedError("has branches to nodes that there are not")
    if (trees.features < 0).any() or trees.features.max(initial=0) >= x.shape[1]:
        raise RefusedError(f"tests feature {trees.features.max(initial=0)} of samples of {x.shape[1]} features")
    inner = np.flatnonzero(trees.children[0] != np.arange(n))
    used = sorted(set(trees.modes[inner].tolist()))
    rows = np.arange(x.shape[0]).reshape(-1, 1)

    def step(place: Value) -> tuple[list[Value], list[Value]]:
        value, split = x[rows, at(node, trees.features, place)], at(node, trees.splits, place)
        goes = np.zeros(place.shape, bool)
        for mode in used:
            if MODES[mode] == "BRANCH_MEMBER":
                holds = np.any(np.expand_dims(value, -1) == at(node, trees.sets, at(node, trees.members, place)), -1)
            else:
                holds = COMPARISONS[mode](value, split)
            goes = holds if len(used) == 1 else np.where(at(node, trees.modes, place) == mode, holds, goes)
        if trees.missing.any():
            goes = np.logical_or(goes, np.logical_and(np.isnan(value), at(node, trees.missing, place)))
        return [np.where(goes, at(node, trees.children[0], place), at(node, trees.children[1], place))], []

    first = np.broadcast_to(trees.roots, (x.shape[0], len(trees.roots)))
    node.note("decision trees are constant between their thresholds: the derivatives are 0")
    depth = _depth(trees)
    return scan(node, step, [("node", first)], [], depth)[0][0] if depth else first


def _aggregated(node: Node, x: Value, trees: Trees, leaves: Value, how: str) -> Value:
    """The weights of leaves, over all trees: of samples by targets."""
    require("memory", x.shape[0] * len(trees.roots) * trees.weights.shape[1] * 4, "the weights of leaves")
    if how not in AGGREGATES:
        raise RefusedError(f"its aggregate_function is '{how}', and none of {', '.join(AGGREGATES)}")
    empty = np.isnan(trees.weights)
    if how in ("SUM", "AVERAGE"):
        total = np.sum(at(node, np.where(empty, 0, trees.weights).astype(x.dtype), leaves), 1)
        return total / number(x, len(trees.roots)) if how == "AVERAGE" else total
    outside = np.inf if how == "MIN" else -np.inf
    taken = at(node, np.where(empty, outside, trees.weights).astype(x.dtype), leaves)
    extremes = (np.min if how == "MIN" else np.max)(taken, 1)
    return np.where(extremes == number(x, outside), number(x, 0), extremes)


def _listed(node: Node, name: str, dtype: Any) -> Any:
    """An attribute as an array; it may stand as a tensor."""
    value = node[f"{name}_as_tensor"] if node.has(f"{name}_as_tensor") else node[name]
    return np.asarray(value if value is not None else [], dtype)


def _trees(node: Node, kind: str, n_targets: int) -> Trees:
    """The tables of TreeEnsembleClassifier or Regressor, whose nodes have numbers within their trees."""
    ids = list(zip(node["nodes_treeids"] or (), node["nodes_nodeids"] or (), strict=True))
    places = {id_: k for k, id_ in enumerate(ids)}
    n, dtype = len(ids), node.dtype(1)
    texts = node["nodes_modes"] or ()
    unknown = next((mode for mode in texts if mode not in (*MODES[:6], "LEAF")), None)
    if unknown is not None or len(texts) != n or not n:
        raise RefusedError(f"has a node of mode '{unknown}'" if unknown else f"has {len(texts)} modes for {n} nodes")
    is_leaf = np.array([mode == "LEAF" for mode in texts])
    children = []
    for side in ("nodes_truenodeids", "nodes_falsenodeids"):
        to = [places.get((tree, child), -1) for (tree, _), child in zip(ids, node[side] or (), strict=True)]
        children.append(np.where(is_leaf, np.arange(n), np.array(to, np.int64)))
    weights = _table(n, n_targets)
    given = (node[f"{kind}_treeids"], node[f"{kind}_nodeids"], node[f"{kind}_ids"], _listed(node, f"{kind}_weights", np.float64))
    for tree, leaf, target, weight in zip(*(part if part is not None else () for part in given), strict=True):
        if (tree, leaf) not in places or not 0 <= target < n_targets:
            raise RefusedError(f"has a weight of node {leaf} in tree {tree} for target {target}, which does not exist")
        k = places[tree, leaf]
        weights[k, target] = np.nan_to_num(weights[k, target]) + weight
    tracks = _listed(node, "nodes_missing_value_tracks_true", bool)
    firsts = [k for k, (tree, _) in enumerate(ids) if not k or tree != ids[k - 1][0]]
    return Trees(
        roots=np.array(firsts, np.int64),
        features=np.where(is_leaf, 0, np.asarray(node["nodes_featureids"], np.int64)),
        splits=_listed(node, "nodes_values", dtype),
        modes=np.array([0 if mode == "LEAF" else MODES.index(mode) for mode in texts]),
        children=(children[0], children[1]),
        missing=tracks & ~is_leaf if tracks.size else np.zeros(n, bool),
        weights=weights,
    )


def _table(n: int, n_targets: int) -> Any:
    require("memory", n * n_targets * 8, f"weights of {n} nodes for {n_targets} targets")
    return np.full((n, n_targets), np.nan)


def _regressor(node: Node, x: Value) -> Value:
    x, n = machine_learning.matrix(machine_learning.floats(node, x)), node["n_targets"] or 1
    trees = _trees(node, "target", n)
    aggregated = _aggregated(node, x, trees, _leaves(node, x, trees), node["aggregate_function"])
    base = _listed(node, "base_values", x.dtype)
    return machine_learning.transformed(node, aggregated + base if base.size else aggregated, node["post_transform"])


def _classifier(node: Node, x: Value) -> list[Value]:
    x, labels = machine_learning.matrix(machine_learning.floats(node, x)), machine_learning.labels_of(node, "classlabels_int64s")
    kind = node["post_transform"]
    n, base = len(labels), _listed(node, "base_values", x.dtype)
    trees = _trees(node, "class", n)
    leaves = _leaves(node, x, trees)
    scores = _aggregated(node, x, trees, leaves, "SUM")
    classes = sorted(set(node["class_ids"] or ()))
    if n == 2 and len(classes) == 1:  # one score of two classes
        score = scores[:, classes[0] : classes[0] + 1]
        if base.size:
            score = score + base[-1]
        if (_listed(node, "class_weights", np.float64) >= 0).all():
            chosen, both = score > number(x, 0.5), [number(x, 1) - score, score]
        else:
            chosen, both = score > number(x, 0), [-score, score]
        if kind == "LOGISTIC":
            both = [computed(node, "logistic", s) for s in (-score, score)]
        if classes == [1]:  # as onnxruntime has it, the other class has the score 0
            both = [machine_learning.transformed(node, scores, kind)]
        return [at(node, labels, chosen[:, 0].astype(np.int64)), np.concatenate(both, 1)]
    if base.size:
        scores = scores + base
    competing = scores
    if np.nanmin(trees.weights, initial=0) < 0:  # classes that no leaf has a weight for do not compete
        has_any = np.any(at(node, ~np.isnan(trees.weights), leaves), 1)
        competing = np.where(has_any, scores, number(scores, -np.inf))
    return [at(node, labels, machine_learning.best(node, competing)), machine_learning.transformed(node, scores, kind)]


def _ensemble(node: Node, x: Value) -> Value:
    """TreeEnsemble: leaves stand behind the inner nodes in one table."""
    splits = np.asarray(node["nodes_splits"], x.dtype)
    leaf_targets, leaf_weights = node["leaf_targetids"] or [], np.asarray(node["leaf_weights"], np.float64)
    n, n_leaves = len(splits), len(leaf_targets)

    def padded(values: Any, dtype: Any = np.int64) -> Any:
        return np.concatenate([np.asarray(values, dtype), np.zeros(n_leaves, dtype)])

    own = np.arange(n, n + n_leaves)
    children = [
        np.concatenate([np.asarray(node[f"nodes_{side}nodeids"], np.int64) + n * np.asarray(node[f"nodes_{side}leafs"]), own])
        for side in ("true", "false")
    ]
    weights = _table(n + n_leaves, node["n_targets"] or 1)
    weights[own, np.asarray(leaf_targets, np.int64)] = leaf_weights
    modes = padded(np.asarray(node["nodes_modes"], np.int64))
    members, sets = _sets(node, modes, x.dtype)
    tracks = node["nodes_missing_value_tracks_true"]
    trees = Trees(
        roots=np.asarray(node["tree_roots"], np.int64),
        features=padded(node["nodes_featureids"]),
        splits=padded(splits, x.dtype),
        modes=modes,
        children=(children[0], children[1]),
        missing=padded(tracks, bool) if tracks else np.zeros(n + n_leaves, bool),
        weights=weights,
        members=members,
        sets=sets,
    )
    aggregated = _aggregated(
        node, x, trees, _leaves(node, machine_learning.matrix(x), trees), _coded(AGGREGATES, node["aggregate_function"])
    )
    return machine_learning.transformed(node, aggregated, _coded(machine_learning.POST_TRANSFORMS, node["post_transform"]))


def _coded(names: Sequence[str], code: int) -> str:
    return names[code] if 0 <= code < len(names) else str(code)


def _sets(node: Node, modes: Any, dtype: Any) -> tuple[Any, Any]:
    """The sets that nodes test for membership, one after the other between NaNs: rows of a table filled up with NaN."""
    testing = np.flatnonzero(modes == MODES.index("BRANCH_MEMBER"))
    if not testing.size:
        return None, None
    values = np.asarray(node["membership_values"], dtype)
    ends = np.flatnonzero(np.isnan(values))
    parts = np.split(values, ends + 1)
    parts = [part[~np.isnan(part)] for part in (parts[:-1] if len(parts) > len(testing) else parts)]
    if len(parts) != len(testing):
        raise RefusedError(f"has {len(parts)} sets of membership_values for {len(testing)} nodes")
    width = max(len(part) for part in parts)
    require("memory", width * len(parts) * 8, "the sets of membership_values")
    table = np.stack([np.concatenate([part, np.full(width - len(part), np.nan, dtype)]) for part in parts])
    rows = np.zeros(len(modes), np.int64)
    rows[testing] = np.arange(len(testing))
    return rows, table


OPERATORS: Mapping[str, Operator] = {
    "TreeEnsemble": _ensemble,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
}
