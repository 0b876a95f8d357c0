"""Run the fuzzer: `python -m tests.fuzz documents --cases 100000`. Findings are minimised, told, and with --keep go to the corpus.

With --guided, libFuzzer chooses the cases by the code they reach (`pip install atheris`).
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path

from tests.fuzz.guard import Outcome, limit_memory, run
from tests.fuzz.minimise import minimised
from tests.fuzz.target import Finding, Target
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
SLICE = 500
"""Cases of one worker: what it has learnt and cached goes with it."""


def campaign(target: Target, cases: int, seed: int) -> Outcome:
    """Try so many cases of one target."""
    whole = Outcome()
    for first in range(0, cases, SLICE):
        part = run(target, range(first, min(first + SLICE, cases)), seed)
        whole.verdicts += part.verdicts
        whole.seconds += part.seconds
        for choices, finding in part.findings.values():
            whole.keep(choices, finding)
    return whole


def keep(target: Target, finding: Finding) -> Path:
    """Put a finding's case into the corpus."""
    folder = CORPUS / target.name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{hashlib.sha256(finding.case).hexdigest()[:12]}{target.suffix}"
    file.write_bytes(finding.case)
    return file


def guided(target: Target, seconds: int) -> None:
    """Let libFuzzer choose, until it finds something or the time is over."""
    import atheris

    from tests.fuzz.guard import guarded

    atheris.instrument_all()

    def one(data: bytes) -> None:
        verdict = guarded(target, data)
        if isinstance(verdict, Finding):
            sys.stderr.write(f"{verdict.story}\n{verdict.case!r}\n")
            raise AssertionError(verdict.kind)

    limit_memory()
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-max_len=400"], one)
    atheris.Fuzz()


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"any of {', '.join(TARGETS)} [default: all]")
    parser.add_argument("--cases", type=int, default=2000, help="of each target [default: 2000]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="put the smallest case of each finding into the corpus")
    parser.add_argument("--guided", type=int, metavar="SECONDS", help="of one target: let libFuzzer choose by coverage")
    options = parser.parse_args()
    if unknown := [name for name in options.targets if name not in TARGETS]:
        parser.error(f"no target '{unknown[0]}'; there are {', '.join(TARGETS)}")
    chosen = [TARGETS[name] for name in options.targets or TARGETS]
    if options.guided is not None:
        guided(chosen[0], options.guided)
        return 0
    failed = False
    for target in chosen:
        outcome = campaign(target, options.cases, options.seed)
        print(f"{target.name}: {outcome.told}", flush=True)
        for choices, finding in outcome.findings.values():
            failed = True
            smallest = minimised(target, choices, finding)
            print(f"\n{smallest.kind}\n{smallest.story}\n{smallest.case!r}", flush=True)
            if options.keep:
                print(f"kept as {keep(target, smallest)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
