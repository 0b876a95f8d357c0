"""What `.ci/run` runs once: which tests are the same in all tiers, and that the second run leaves them out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.once import ROOT, is_same_in_all_tiers
from tests.test_programs import run


def test_what_asks_for_the_tier_or_draws_examples_differs():
    here = Path(__file__)
    paths = {str(p.relative_to(ROOT)): p.read_text() for p in (ROOT / "tests").rglob("test_*.py") if p != here}
    same = {path for path in paths if is_same_in_all_tiers(path)}
    assert "tests/cli/test_golden.py" in same
    assert not any("tests.tiers import" in paths[path] or "from hypothesis" in paths[path] for path in same)
    # Some import modules of tests that do.
    assert any("tests.tiers" not in paths[path] and "hypothesis" not in paths[path] for path in paths.keys() - same)


@pytest.mark.check
def test_a_second_run_leaves_them_out(tmp_path):
    ran = tmp_path / "ran.txt"
    assert run(tmp_path, "-n", "2", "--once", ran).returncode == 0
    assert [line.partition("::")[2] for line in ran.read_text().splitlines()] == ["test_passes"]
    done = run(tmp_path, "-n", "2", "--tier", "check", "--once", ran)
    assert done.returncode == 0 and "4 skipped, 1 xfailed" in done.stdout and "passed" not in done.stdout
