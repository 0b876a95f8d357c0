"""Chunks: every item in one of them, of sizes that follow from the work alone; and as many under way as memory allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tidu_cli as tidu
from tests.cluster.clusters import elementwise, values
from tests.tiers import examples
from tidu_cli.cluster.items import CHUNK_BYTES, CHUNK_NUMBERS, Plan, common_size, planned
from tidu_cli.cluster.run import AHEAD, batch_of
from tidu_cli.cluster.work import FAN_IN, GROUP, add_up, chunk_tasks, run_chunk, sum_tasks
from tidu_cli.errors import EvaluationError
from tidu_cli.formats.chunks.sources import source_of
from tidu_cli.graph.keys import Key
from tidu_cli.limits import Limits, limited

plans = st.builds(Plan, st.integers(0, 10**4), st.integers(1, 10**3))


@given(plans)
def test_each_item_is_in_one_chunk(plan):
    ranges = [plan.range(k) for k in range(len(plan))]
    assert [i for start, stop in ranges for i in range(start, stop)] == list(range(plan.size))
    assert all(stop - start == plan.chunk for start, stop in ranges[:-1])
    assert all(stop > start for start, stop in ranges)


def batch(n=100, **how):
    return batch_of(elementwise().head, {Key(k): x for k, x in values(n).items()}, {Key("x"): 0, Key("y"): 0}, **how)


def test_a_chunk_is_as_much_as_is_worth_a_task():
    small = tidu.trace(lambda x: x + 1, x="f64[]").head
    keys = (Key("x"),)
    assert planned(small, keys, 10**9, None).chunk == CHUNK_BYTES // 16
    assert planned(small, keys, 10**9, "sum").chunk == CHUNK_BYTES // 8  # no results to be sent
    assert planned(small, keys, 10, None).chunk == 10
    assert planned(small, keys, 10, None, chunk=3).chunk == 3
    assert planned(small, keys, 0, None).chunk == 1
    large = tidu.trace(lambda x: np.sum(np.sin(x + np.zeros(10**6))), x="f64[]").head
    assert 1 <= planned(large, keys, 10**9, "sum").chunk <= CHUNK_NUMBERS // 10**6


def test_names():
    assert Plan(10, 3).name(1) == "chunk 1 (items 3 to 5)"
    assert Plan(10, 3).name(3) == "chunk 3 (item 9)"


def test_batches_have_one_size():
    items = {Key(k): batch(n).items[Key("x")] for k, n in (("x", 3), ("y", 4))}
    with pytest.raises(EvaluationError, match="batches differ in size: x has 3, y has 4"):
        common_size(items)
    with pytest.raises(EvaluationError, match="no batch to spread; say with batch="):
        common_size({})


@settings(max_examples=examples(2000, check=60))
@given(st.integers(1, 64), st.integers(1, 10**6), st.sampled_from([None, "sum"]), st.integers(10**4, 10**9))
def test_what_is_under_way_fits_in_memory(threads, chunk, reduction, memory):
    with limited(Limits(memory=memory)):
        work = batch(chunk=10, reduction=reduction)
        plan = Plan(10**9, chunk)
        width = type(work)(work.graph, work.parcel, work.job, plan, work.items).width(threads)
    per_item = 4 * 8 if reduction else (4 + 6) * 8
    assert 1 <= width <= AHEAD * threads
    assert width == 1 or width * chunk * per_item <= memory // 2
    assert width == AHEAD * threads or (width + 1) * chunk * per_item > memory // 2


def test_items_that_workers_read_take_no_memory_here(tmp_path):
    np.save(tmp_path / "x.npy", values(100)["x"])
    at = {Key("x"): source_of(str(tmp_path / "x.npy")), Key("y"): values(100)["y"]}
    with limited(Limits(memory=2 * 8 * 10 * 5)):
        work = batch_of(elementwise().head, at, {Key("x"): 0, Key("y"): 0}, chunk=10, reduction="sum")
        assert work.width(10) == 5


@given(plans, st.data())
def test_tasks_of_chunks(plan, data):
    todo = sorted(data.draw(st.sets(st.integers(0, max(len(plan) - 1, 0)), max_size=10))) if len(plan) else []
    tasks = list(chunk_tasks("job", plan, lambda start, stop: {}, todo))
    assert [t.chunk for t in tasks] == [t.wanted for t in tasks] == todo
    assert [t.args[2:4] for t in tasks] == [plan.range(k) for k in todo]


@given(st.integers(0, 300), st.sampled_from([FAN_IN, 2]))
def test_sums_are_a_tree(n, fan):
    """Each result is in one sum of at most `fan`, and fewer wait in each level of the tree; the sums of groups come home."""
    plan = Plan(n, 1)
    groups = max(-(-n // GROUP), 1)
    tasks = sum_tasks("job", plan, lambda start, stop: {}, range(groups), fan)
    done = {}
    made, wanted, number = [], [], 0
    try:
        task = next(tasks)
        while True:
            if task.function is run_chunk:
                done[number] = {task.chunk}
                made.append(task.chunk)
            else:
                assert task.function is add_up and (n < 2 or n % GROUP == 1 or len(task.args) > 1) and len(task.args) <= fan
                parts = [done.pop(part) for part in task.args]  # which no other sum takes
                done[number] = set().union(*parts)
                if task.wanted is not None:
                    wanted.append((task.wanted, done.pop(number)))
            assert len(done) <= (fan - 1) * math.log(GROUP, fan) + 1
            number += 1
            task = tasks.send(number - 1)
    except StopIteration:
        pass
    assert not done
    assert made == list(range(max(n, 1)))
    assert wanted == [(g, set(made[g * GROUP : (g + 1) * GROUP])) for g in range(groups)]
