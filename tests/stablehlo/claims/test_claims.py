"""What a module claims to be is compared with what it runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.running import F, invoke, succeed
from tests.stablehlo.claims.written import in_this_process
from tidu_cli import trace, while_loop
from tidu_cli.adapters.stablehlo.module import CHECKSUM, DOCUMENT, checksum
from tidu_cli.adapters.stablehlo.text import quoted
from tidu_cli.api import linearize, load, save
from tidu_cli.cli.main import COMMANDS, cli


def deceiving(text: str, before: str, after: str) -> str:
    """A module that runs something else under the claims that it had, with a checksum that fits."""
    changed = text.replace(before, after)
    assert changed != text
    module = in_this_process(changed.encode(), "text")
    told = checksum(module, module.attributes[DOCUMENT])
    return re.sub(rf"{CHECKSUM} = \"[^\"]*\"", lambda _: f"{CHECKSUM} = {quoted(told)}", changed)


@pytest.fixture
def forward(tmp_path: Path) -> Path:
    save(linearize(load(F), "x"), tmp_path / "forward.mlir")
    return tmp_path / "forward.mlir"


@pytest.mark.parametrize("suffix", ["mlir", "mlirbc"])
def test_check_verifies_what_tidu_wrote(tmp_path: Path, suffix: str) -> None:
    save(linearize(load(F), "x"), tmp_path / f"f.{suffix}")
    assert b"claims: verified" in succeed("check", tmp_path / f"f.{suffix}")


def test_a_module_that_runs_something_else_is_an_error(forward: Path) -> None:
    forward.write_text(deceiving(forward.read_text(), "stablehlo.multiply %0, %arg0", "stablehlo.add %0, %arg0"))
    result = invoke("check", forward)
    assert result.exit_code == 1 and "claims: output 'y' of the document has relative error" in result.stderr
    words = ("eval", forward, "--output", "y", "--set", "x=3", "--set", "x@1=1")
    claimed = invoke(*words)
    assert claimed.stdout == '{"y": 18.0}\n' and "was not compared with what it runs" in claimed.stderr
    assert succeed(*words, "--plain") == b'{"y": 9.0}\n'


def test_a_module_of_other_operations_that_computes_the_same_is_not_called_verified(forward: Path) -> None:
    forward.write_text(deceiving(forward.read_text(), "stablehlo.multiply %0, %arg0", "stablehlo.multiply %arg0, %0"))
    assert b"claims: not verified: " in succeed("check", forward)


def test_a_module_whose_loop_has_no_end_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidu_cli.limits.DRAWN_STEPS", 500)
    save(trace(lambda x: while_loop(lambda s: s < 100, lambda s: s * 2, x), x="f64[]"), tmp_path / "loop.mlir")
    (tmp_path / "loop.mlir").write_text(deceiving((tmp_path / "loop.mlir").read_text(), "dense<2.000000e+00>", "dense<0.5>"))
    told = succeed("check", tmp_path / "loop.mlir")
    assert b"claims: not verified: graph 'f', node 0 (while): its loops run on, more than the limit of 500 steps" in told


def test_check_says_that_a_module_was_changed(forward: Path) -> None:
    forward.write_text(forward.read_text().replace("stablehlo.add %3, %4", "stablehlo.subtract %3, %4"))
    assert b"claims: not followed: it has been changed since tidu wrote it" in succeed("check", forward)


@pytest.mark.parametrize("suffix", ["mlir", "onnx"])
def test_plain_reads_what_a_file_runs(tmp_path: Path, suffix: str) -> None:
    save(linearize(load(F), "x"), tmp_path / f"f.{suffix}")
    assert len(load(tmp_path / f"f.{suffix}").graphs) == 2
    plain = load(tmp_path / f"f.{suffix}", plain=True)
    assert len(plain.graphs) == 1 and plain.head.linear is None
    assert b"claims" not in succeed("check", tmp_path / f"f.{suffix}", "--plain")


def test_pipelines_read_plainly_too(forward: Path) -> None:
    told = succeed("grad", forward, "--plain", "--wrt", "x", "--output", "y", "--pipeline")
    assert told.startswith(f"tidu linearize {forward} --plain --wrt x".encode())


def test_commands_that_read_files_take_plain() -> None:
    for name in COMMANDS:
        options = {opt for param in cli.get_command(None, name).params for opt in param.opts}  # type: ignore[arg-type, union-attr]
        assert ("--plain" in options) == ("--plugins" in options and name != "ops"), name
