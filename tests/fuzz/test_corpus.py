"""Every failure that the fuzzer has found stays mended, and a short run of each target finds no other."""

from __future__ import annotations

import pytest

from tests.fuzz.__main__ import CORPUS
from tests.fuzz.guard import guarded_case, run
from tests.fuzz.target import Finding
from tests.fuzz.targets import TARGETS
from tests.tiers import campaign

FOUND = sorted(file for file in CORPUS.rglob("*") if file.is_file())


@pytest.mark.parametrize("file", FOUND, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_was_found(file):
    verdict = guarded_case(TARGETS[file.parent.name], file.read_bytes())
    assert not isinstance(verdict, Finding), verdict.story


@pytest.mark.check
@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("documents", 60 if campaign() else 30),
        ("values", 60),
        ("formulas", 60),
        ("commands", 12),
        ("outputs", 12),
        ("programs", 10),
        # Which import JAX or ONNX, or hold laws of their own elsewhere.
        *(pytest.param(name, n, marks=pytest.mark.campaign) for name, n in (("engines", 8), ("loops", 4), ("models", 8))),
        ("special", 12),
        ("work", 8),
    ],
)
def test_a_short_run(name, cases):
    target = TARGETS[name]
    outcome = run(target, range(cases), seed=0)  # in a process of its own, as engines import JAX
    for _, finding in outcome.findings.values():
        raise AssertionError(f"{finding.story}\n{finding.case!r}")
    assert len(outcome.verdicts) > 1 or name == "loops"  # some are refused and some are not; loops are right by how they are made


def test_every_folder_of_the_corpus_is_that_of_a_target():
    assert {file.parent.name for file in FOUND} <= set(TARGETS)
    assert all(file.suffix == TARGETS[file.parent.name].suffix for file in FOUND)
