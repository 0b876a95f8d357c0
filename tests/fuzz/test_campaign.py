"""The long run, a million cases by default (TIDU_FUZZ_CASES): `make campaign`."""

from __future__ import annotations

import os

import pytest

from tests.fuzz.__main__ import campaign
from tests.fuzz.minimise import minimised
from tests.fuzz.targets import TARGETS

SHARES = {
    "documents": 0.448,
    "values": 0.29,
    "formulas": 0.215,
    "commands": 0.014,
    "outputs": 0.005,
    "programs": 0.01,
    "engines": 0.005,
    "loops": 0.002,
    "models": 0.005,
    "special": 0.005,
    "work": 0.001,
}
"""Of the cases of a campaign: a program takes forty times as long as a formula."""


@pytest.mark.campaign
@pytest.mark.parametrize("name", TARGETS)
def test_campaign(name):
    cases = int(int(os.environ.get("TIDU_FUZZ_CASES", "1000000")) * SHARES[name])
    outcome = campaign(TARGETS[name], cases, seed=int(os.environ.get("TIDU_FUZZ_SEED", "1")))
    print(f"{name}: {outcome.told}")
    smallest = [minimised(TARGETS[name], choices, finding) for choices, finding in outcome.findings.values()]
    assert not smallest, "\n\n".join(f"{f.story}\n{f.case!r}" for f in smallest)


def test_the_shares_are_of_all_targets():
    assert sorted(SHARES) == sorted(TARGETS)
    assert sum(SHARES.values()) == pytest.approx(1)
