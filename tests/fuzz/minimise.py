"""Smaller choices that fail alike: pieces are left out, then bytes lowered, as long as the kind of failure stays."""

from __future__ import annotations

from collections.abc import Iterator

from tests.fuzz.guard import guarded
from tests.fuzz.target import Finding, Target

TRIES = 1500


def minimised(target: Target, choices: bytes, finding: Finding) -> Finding:
    """The finding of the same kind whose case is the shortest that was met."""
    best, tries, smaller = finding, 0, True
    while smaller:
        smaller = False
        for candidate in _candidates(choices):
            tries += 1
            if tries > TRIES:
                return best
            verdict = guarded(target, candidate)
            if isinstance(verdict, Finding) and verdict.kind == finding.kind:
                choices, smaller = candidate, True
                if len(verdict.case) < len(best.case):
                    best = verdict
                break
    return best


def _candidates(choices: bytes) -> Iterator[bytes]:
    length = len(choices)
    while length:
        for at in range(0, len(choices), length):
            yield choices[:at] + choices[at + length :]
        length //= 2
    for at, byte in enumerate(choices):
        for lower in sorted({0, byte // 2, byte - 1} - {byte, -1}):
            yield choices[:at] + bytes([lower]) + choices[at + 1 :]
