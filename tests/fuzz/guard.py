"""Cases run in worker processes that have a limit of memory and of time for each case, and may die without loss."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.fuzz.choices import Choices
from tests.fuzz.target import Finding, Hang, Target, judged
from tests.waiting import LIMIT

SECONDS = 10
"""What a case may take of a processor; three times as much where it hears no signal."""

SILENCE = LIMIT
"""Seconds of the clock that a case may take which waits for something."""

MEMORY = 2 * 2**30
"""Bytes that a case may take beside what the worker has before."""

LIMITS = {"TIDU_MAX_MEMORY": "1G", "TIDU_MAX_NODES": "200k", "TIDU_MAX_EXPANSION": "20k"}
"""What commands are told to keep to, with room below MEMORY for what is no value."""

LENGTHS = (8, 24, 64, 160, 400)
"""Of the strings of bytes from which cases are made."""

PROCESSES = multiprocessing.get_context("fork")


@dataclass
class Outcome:
    """What a run found: how many cases were judged how, and a finding of each kind."""

    verdicts: Counter[str] = field(default_factory=Counter)
    findings: dict[str, tuple[bytes, Finding]] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, choices: bytes, verdict: Finding | str) -> None:
        """Count a case. Of findings of one kind the one of the fewest choices is kept."""
        if isinstance(verdict, str):
            self.verdicts[verdict] += 1
            return
        self.verdicts["failed"] += 1
        self.keep(choices, verdict)

    def keep(self, choices: bytes, finding: Finding) -> None:
        """Keep a finding if none of its kind has fewer choices."""
        if finding.kind not in self.findings or len(choices) < len(self.findings[finding.kind][0]):
            self.findings[finding.kind] = choices, finding

    @property
    def told(self) -> str:
        """The figures in a line."""
        verdicts = ", ".join(f"{n:,} {verdict}" for verdict, n in self.verdicts.most_common())
        return f"{self.verdicts.total():,} cases in {self.seconds:.0f} s: {verdicts}"


def choices_of(target: Target, seed: int, number: int) -> bytes:
    """The choices of case `number` of a run: the same on every machine."""
    random = Random(f"{target.name} {seed} {number}")
    return random.randbytes(random.choice(LENGTHS))


def run(target: Target, numbers: range, seed: int) -> Outcome:
    """Try these cases in a worker; where it dies or hangs, that is a finding, and another goes on after that case."""
    outcome, began = Outcome(), time.monotonic()
    while numbers:
        here, there = PROCESSES.Pipe(duplex=False)
        worker = PROCESSES.Process(target=_work, args=(target, numbers, seed, there), daemon=True)
        worker.start()
        there.close()
        done = 0
        for verdict in _received(here, worker.pid):
            outcome.add(choices_of(target, seed, numbers[done]), verdict)
            done += 1
        worker.kill()
        worker.join()
        if done < len(numbers):
            choices = choices_of(target, seed, numbers[done])
            case = target.make(Choices(choices))
            kind = f"worker ended with {worker.exitcode}"
            outcome.add(choices, Finding(case, kind, f"{kind}: a crash, or no sign of life"))
            done += 1
        numbers = numbers[done:]
    outcome.seconds = time.monotonic() - began
    return outcome


def _received(connection: Connection, pid: int) -> Iterator[Finding | str]:
    while _answers(connection, pid):
        try:
            verdict = connection.recv()
        except EOFError:
            return
        if verdict is None:
            return
        yield verdict


def _answers(connection: Connection, pid: int) -> bool:
    """Whether a worker has something to say before its time is over: what holds on to the interpreter hears no signal."""
    until, most = time.monotonic() + SILENCE, _cpu_seconds(pid) + 3 * SECONDS
    while not connection.poll(min(1, SILENCE)):
        if time.monotonic() > until or _cpu_seconds(pid) > most:
            return False
    return True


def _cpu_seconds(pid: int) -> float:
    """What a process has taken of processors so far."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _work(target: Target, numbers: range, seed: int, connection: Connection) -> None:
    limit_memory()
    for number in numbers:
        connection.send(guarded(target, choices_of(target, seed, number)))
    connection.send(None)


def guarded(target: Target, choices: bytes) -> Finding | str:
    """Make a case and judge it, with a limit of time."""
    return guarded_case(target, target.make(Choices(choices)))


def guarded_case(target: Target, case: bytes) -> Finding | str:
    """Judge a case, with a limit of time, after which Hang is raised wherever it is."""

    def give_up(*_: object) -> None:
        raise Hang(f"over {SECONDS} s")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with patch.dict(os.environ, LIMITS):
            return judged(target, case)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory() -> None:
    """From now on this process may take MEMORY more, and then meets MemoryError."""
    with open("/proc/self/status") as status:
        (data,) = (int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (data + MEMORY, resource.RLIM_INFINITY))
