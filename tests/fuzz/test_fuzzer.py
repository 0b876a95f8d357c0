"""The fuzzer itself: it sees what fails, hangs, eats memory and dies, tells kinds of failure apart, and makes cases smaller."""

from __future__ import annotations

import os
import time

import pytest

from tests.fuzz import guard
from tests.fuzz.choices import Choices
from tests.fuzz.guard import run
from tests.fuzz.minimise import minimised
from tests.fuzz.target import Finding, Target
from tests.fuzz.targets import TARGETS

NUMBERS = range(24)


def target_of(judge):
    return Target("planted", ".bytes", lambda choices: choices.data, judge)


def busy(case):
    while True:
        pass


def outcome_of(judge):
    return run(target_of(judge), NUMBERS, seed=0)


def test_a_sound_target_has_no_findings():
    outcome = outcome_of(lambda case: "well")
    assert outcome.verdicts == {"well": len(NUMBERS)} and not outcome.findings


def test_failures_are_counted_and_told_apart():
    def judge(case):
        assert case[0] % 3, "one third"
        if case[0] % 3 == 1:
            raise KeyError("another third")
        return "well"

    outcome = outcome_of(judge)
    assert sorted(kind.split()[0] for kind in outcome.findings) == ["AssertionError", "KeyError"]
    assert outcome.verdicts["failed"] + outcome.verdicts["well"] == len(NUMBERS)


def test_what_takes_too_long(monkeypatch):
    monkeypatch.setattr(guard, "SECONDS", 0.2)
    outcome = run(target_of(busy), range(2), seed=0)
    assert [kind.split()[0] for kind in outcome.findings] == ["Hang"]
    assert outcome.verdicts == {"failed": 2}


def test_what_waits_without_end(monkeypatch):
    monkeypatch.setattr(guard, "SILENCE", 0.2)
    outcome = run(target_of(lambda case: time.sleep(6000) or "late"), range(1), seed=0)
    assert [kind.split()[0] for kind in outcome.findings] == ["worker"]


def test_what_takes_too_much_memory():
    outcome = run(target_of(lambda case: str(len(bytearray(guard.MEMORY + 2**28)))), range(2), seed=0)
    assert [kind.split()[0] for kind in outcome.findings] == ["MemoryError"]


def test_what_kills_the_process():
    outcome = outcome_of(lambda case: os._exit(9) if case[0] < 100 else "well")
    assert list(outcome.findings) == ["worker ended with 9"]
    assert outcome.verdicts["failed"] + outcome.verdicts["well"] == len(NUMBERS)


def test_cases_are_made_smaller():
    def judge(case):
        assert not (b"a" in case and b"c" in case.partition(b"a")[2]), "a before c"
        return "well"

    choices = b"xxxxaxxxxxxxxxxxbxxxxxxxxxxxcxxxx"
    target = target_of(judge)
    finding = guard.guarded(target, choices)
    assert isinstance(finding, Finding)
    assert minimised(target, choices, finding).case == b"ac"


@pytest.mark.check
@pytest.mark.parametrize("name", TARGETS)
def test_cases_come_from_the_seed_alone(name):
    target = TARGETS[name]
    made = [target.make(Choices(guard.choices_of(target, 3, number))) for number in range(5)]
    assert made == [target.make(Choices(guard.choices_of(target, 3, number))) for number in range(5)]
    assert len(set(made)) > 1
