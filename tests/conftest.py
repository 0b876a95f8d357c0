"""Tiers (`tests/tiers.py`), and skipped tests: they are listed in the end, or fail with TIDU_TEST_ALL=1."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import once, programs, tiers

ALL = "TIDU_TEST_ALL"

_passed: list[str] = []

# Workers have a core each: BLAS' threads would wait for one another, which takes most of the time of small factorizations.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=tuple(tiers.EXAMPLES), default="test", help="what runs: tests/tiers.py (default: test)")

    parser.addoption("--once", metavar="FILE", help="tier test: write what passed into FILE; others: leave it out: tests/once.py")


def pytest_configure(config: pytest.Config) -> None:
    """Selects the tier, before any module of tests is imported."""
    # Shells ignore SIGINT in background jobs, and nohup SIGHUP; some tests send both to processes that inherit this.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # Let child processes keep compiled bytecode: otherwise each command that a test starts compiles tidu again.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    tier = config.getoption("--tier")
    os.environ[tiers.VARIABLE] = tier
    if tiers.full():
        config.addinivalue_line("python_files", "check_*.py")
    # Before landing, what fails is what was changed: examples are the same each time, and new ones are tried in campaigns.
    # No deadline: an example may take longer on a busy machine than hypothesis allows by default.
    settings.register_profile(tier, deadline=None, max_examples=tiers.EXAMPLES[tier], derandomize=tier != "campaign")
    settings.load_profile(tier)


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """In `make test` takes a few cases of tests that have many, before an item is made of each."""
    if not tiers.full() and metafunc.definition.get_closest_marker("every") is None:
        calls = [call for call in metafunc._calls if not any(mark.name == "check" for mark in call.marks)]
        metafunc._calls[:] = tiers.thin(calls or metafunc._calls)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is marked for `make check` in `make test`, and elsewhere samples of what is tried whole."""
    apart = "sample" if tiers.full() else "check"
    file = config.getoption("--once")
    ran = set(Path(file).read_text().splitlines()) if file and tiers.full() else set[str]()
    left = [item for item in items if item.get_closest_marker(apart) or item.nodeid in ran]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In the process that collects the reports."""
    if report.passed and report.when == "call":
        _passed.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    file = session.config.getoption("--once")
    if file and not tiers.full() and not hasattr(session.config, "workerinput"):
        ran = [test for test in _passed if once.is_same_in_all_tiers(test.partition("::")[0])]
        Path(file).write_text("".join(f"{test}\n" for test in ran), encoding="utf-8")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Collects no garbage meanwhile: there is none, and looking for it takes a fifth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Spare the garbage collector and traces: what collection made stays to the end, and concerns no test but its own.

    Of what tests make little is in cycles; collections took a tenth of the suite's processor time. A trace looks through the names
    of all users' modules (`adapters/numpy/patching`): with those of all tests that took two thirds of the time of most traces.
    """
    for name in list(sys.modules):
        if name.startswith("tests.") and name.rpartition(".")[2].startswith(("test_", "check_")):
            del sys.modules[name]
    if trial := sys.modules.get("tidu_cli.runtime.trial"):
        trial.clock = lambda: 0.0  # no time passes, and so no engine is tried that a test did not ask for
    gc.collect()
    gc.freeze()
    gc.set_threshold(1_000_000)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """The module of a test is there while it runs."""
    module = _module(item)
    sys.modules[module.__name__] = module
    result = yield
    sys.modules.pop(module.__name__, None)
    return result


def _module(item: pytest.Item) -> Any:
    module = item.getparent(pytest.Module)
    assert module is not None
    return module.obj


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    return _judged((yield), call)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    return _judged(report, getattr(report, "call", None))


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makemodule() -> Generator[None, Any, Any]:
    module = yield
    importing = module._getobj

    def imported() -> Any:
        try:
            return importing()
        except pytest.Collector.CollectError as error:
            if reason := programs.lacking_import(error):
                pytest.skip(reason, allow_module_level=True)
            raise

    module._getobj = imported
    return module


def _judged(report: Any, call: Any) -> Any:
    """A test that lacks a package of an extra is skipped; where nothing may be skipped, one that is has failed."""
    if report.failed and call is not None and call.excinfo is not None and (reason := programs.lacking_import(call.excinfo.value)):
        report.outcome, report.longrepr = "skipped", ("", 0, f"Skipped: {reason}")
    if os.environ.get(ALL) == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = _reason(report)
        report.outcome, report.longrepr = "failed", f"{ALL}=1, and this was skipped: {reason}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reasons = Counter(map(_reason, terminalreporter.stats.get("skipped", ())))
    if reasons:
        terminalreporter.section("skipped")
        for reason, n in sorted(reasons.items()):
            terminalreporter.write_line(f"{n} test{'s' if n > 1 else ''}: {reason}")


def _reason(report: Any) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")
