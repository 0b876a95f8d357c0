"""A campaign: a copy of the tree with all faults in it, notes of what tests reach, and for each fault the tests that reach it."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.sites import Mutant, rewritten

ROOT = Path(__file__).parents[2]
PROBE = Path(__file__).parent / "probe.py"
WORKERS = 2

_JAX = ("-m", "jax and not campaign")
RUNS = {"test": (), "jax": ("-m", "jax"), "check": ("--tier", "check"), "check-jax": ("--tier", "check", *_JAX)}
"""The runs of pytest whose tests are tried, in this order, and their options: two of `make test`, then two of `make check`."""
IN_TEST = ("test", "jax")

_PATHS = {
    "jax": (
        "tests/jax/test_sample.py",
        "tests/jax/lowering/test_to_jax.py",
        "tests/stablehlo/test_sample.py",
        "tests/stablehlo/test_operations.py",
        "tests/stablehlo/test_linear_algebra.py",
        "tests/runtime/engines/test_law.py",
    ),
    "check-jax": ("tests/jax", "tests/stablehlo", "tests/runtime/engines", "tests/docs"),
}
"""Where the Makefile looks for tests that import JAX."""

_BUDGET = {"test": 150.0, "jax": 150.0, "check": 300.0, "check-jax": 200.0}
"""How many seconds of tests are run against a fault at most, by what they took without one; the quickest are."""

_FIRST_FILES = 6
"""How many files of tests are imported before the others: most faults need no more."""


class Campaign:
    """Mutants in a folder of their own: a copy of the tree, an environment that has it installed, and what runs have noted."""

    def __init__(self, folder: Path, mutants: Sequence[Mutant]) -> None:
        self.folder, self.mutants, self.tree = folder, dict(enumerate(mutants)), folder / "tree"
        if not self.tree.exists():
            copy(folder / "copy", self.mutants)
            environment(folder / "venv", self.tree)
            os.replace(folder / "copy", self.tree)

    def pytest(self, *args: str, seconds: float | None = None, **variables: object) -> int | None:
        """Run pytest in the tree: its status, or None if it takes longer than that."""
        python = self.folder / "venv" / "bin" / "python"
        with tempfile.TemporaryDirectory(dir=self.folder) as scratch:
            added = {"TIDU_CACHE_DIR": f"{scratch}/cache", "XDG_CACHE_HOME": f"{scratch}/caches", "TMPDIR": scratch}
            environ = os.environ | added | {f"TIDU_{name}": str(value) for name, value in variables.items()}
            environ["PATH"] = f"{python.parent}{os.pathsep}{environ['PATH']}"
            command = [python, "-m", "pytest", "-p", "tests.mutants.plugin", "-p", "no:cacheprovider", *args]
            with open(self.folder / "pytest.log", "ab") as log:
                process = subprocess.Popen(
                    command, cwd=self.tree, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
                )
                try:
                    return process.wait(seconds)
                except subprocess.TimeoutExpired:
                    return None
                finally:  # of the tests' own processes, too
                    if process.poll() is None:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
                    restore_devices()

    def record(self, run: str) -> None:
        """Note which tests of a run reach which mutant, and how long each takes; once a folder."""
        notes, times = self.folder / f"notes-{run}", self.folder / f"times-{run}"
        if not times.exists():
            notes.mkdir(exist_ok=True)
            status = self.pytest("-n", str(WORKERS), *RUNS[run], *_PATHS.get(run, ()), MUTANT_NOTES=notes, MUTANT_TIMES=times)
            if status not in (0, 1):
                raise SystemExit(f"pytest ended with status {status}: see {self.folder}/pytest.log")

    def reaching(self, run: str) -> dict[int, dict[str, float]]:
        """The tests of a run that reach each mutant, and their seconds.

        What is reached while modules are imported is noted without a test: the quickest test of each file stands for those.
        """
        seconds = {name: float(s) for s, name in _table(self.folder / f"times-{run}")}
        reached: dict[int, dict[str, float]] = {k: {} for k in self.mutants}
        by_file = {_file(name): name for name in sorted(seconds, key=lambda name: -seconds[name])}
        for path in (self.folder / f"notes-{run}").iterdir():
            for number, name in _table(path):
                names = [name] if name else by_file.values()
                reached[int(number)] |= {one: seconds[one] for one in names if one in seconds}
        return reached

    def judge(self, run: str) -> None:
        """Run the tests of a run with each mutant that has survived so far. The folder keeps what is known."""
        self.record(run)
        reaching = self.reaching(run)
        known = _table(self.folder / f"verdicts-{run}")
        waiting = self.mutants.keys() - {int(number) for number, *_ in known} - self.killed().keys()

        def judged(number: int) -> None:
            failure = self._killer(number, run, reaching[number])
            with open(self.folder / f"verdicts-{run}", "a") as file:
                file.write(f"{number}\t{len(reaching[number])}\t{failure}\n")

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(judged, sorted(waiting)))

    def killed(self) -> dict[int, tuple[str, str]]:
        """The run and the test that killed each mutant, of those that are dead."""
        rows = [(run, *row) for run in RUNS for row in _table(self.folder / f"verdicts-{run}")]
        return {int(number): (run, failure) for run, number, _, failure in rows if failure}

    def reached(self, number: int) -> int:
        """How many tests reach a mutant, in all runs so far."""
        return sum(int(row[1]) for run in RUNS for row in _table(self.folder / f"verdicts-{run}") if int(row[0]) == number)

    def _killer(self, number: int, run: str, seconds: dict[str, float]) -> str:
        """The first of these tests that fails with a mutant; empty if all pass."""
        tests = within(seconds, _BUDGET[run])
        first = list(dict.fromkeys(map(_file, tests)))[:_FIRST_FILES]
        parts = [[t for t in tests if _file(t) in first], [t for t in tests if _file(t) not in first]]
        return next((failure for part in parts if part and (failure := self._failure(number, run, part, seconds))), "")

    def _failure(self, number: int, run: str, tests: Sequence[str], seconds: dict[str, float]) -> str:
        chosen, failed = self.folder / f"tests-{number}", self.folder / f"failed-{number}"
        chosen.write_text("".join(f"{name}\n" for name in tests))
        failed.unlink(missing_ok=True)
        files = dict.fromkeys(map(_file, tests))
        variables = {"MUTANT": number, "MUTANT_TESTS": chosen, "MUTANT_FAILED": failed}
        limit = 120 + 10 * sum(map(seconds.__getitem__, tests))
        status = self.pytest("-n", "0", "-x", *RUNS[run], *files, seconds=limit, **variables)
        if status in (4, 5):
            raise SystemExit(f"pytest ran none of {chosen}: see {self.folder}/pytest.log")
        names = failed.read_text().splitlines() if failed.exists() else []
        return "" if status == 0 else next(iter(names), "no end" if status is None else f"status {status}")


DEVICES = {"/dev/null": 3, "/dev/full": 7}
"""Those that tests write to, and their minor numbers."""


def restore_devices(devices: Mapping[str, int] = DEVICES) -> None:
    """Put devices back that a mutant, run as root, has put files in the place of: tests after it would be judged by these."""
    for path, minor in devices.items():
        if os.geteuid() == 0 and not (os.path.exists(path) and stat.S_ISCHR(os.stat(path).st_mode)):
            Path(path).unlink(missing_ok=True)
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
            os.chmod(path, 0o666)


def within(seconds: dict[str, float], budget: float) -> list[str]:
    """The quickest tests that take no longer than a budget together."""
    names = []
    for name in sorted(seconds, key=lambda name: (seconds[name], name)):
        if (budget := budget - seconds[name]) < 0 and names:
            break
        names.append(name)
    return names


def copy(to: Path, mutants: dict[int, Mutant]) -> None:
    """The files of the tree that git does not ignore, with the mutants and their switch in it."""
    shutil.rmtree(to, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in names.decode().split("\0"):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    for path in {m.path for m in mutants.values()}:
        file = to / path
        file.write_text(rewritten(file.read_text(), {k: m for k, m in mutants.items() if m.path == path}))
    with open(to / "tidu_cli" / "__init__.py", "a") as file:
        file.write(PROBE.read_text())


def environment(folder: Path, tree: Path) -> None:
    """A virtual environment with the packages of this one, and the tidu of a tree: no process can take another's by mistake."""
    venv.create(folder, clear=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    paths = [str(tree), *(path for path in sys.path if path.endswith("-packages"))]
    (packages / "tree.pth").write_text("".join(f"{path}\n" for path in paths))
    tidu = folder / "bin" / "tidu"
    tidu.write_text(f"#!{folder}/bin/python\nimport sys\nfrom tidu_cli.__main__ import main\nsys.exit(main())\n")
    tidu.chmod(0o755)


def _file(test: str) -> str:
    return test.partition("::")[0]


def _table(path: Path) -> list[list[str]]:
    """The rows of a file that is written here; none of one that is not there yet."""
    return [line.split("\t") for line in path.read_text().split("\n")[:-1]] if path.exists() else []
