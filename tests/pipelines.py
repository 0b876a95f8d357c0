"""Command lines that call tidu alone, run within this process: a pipeline of three takes 20 ms for half a second."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from tidu_cli.cli.main import cli

OF_A_PROCESS = re.compile(
    r"\.py\b|mlir|\.export\b|--(engine|scheduler|plugins|jax|against|help)\b| -h\b|^tidu( help.*)?$"
    r"|\*|\?|(?<!')\{|`|'[^']*\$[^']*'|\\\n|^\s|<|&|;|\d>|/dev/|[|>]$",
    re.M,
)
"""What needs a shell or a process of its own: patterns, substitutions, long lines, modules, engines, help as wide as COLUMNS; and
what imports JAX, after which other tests could not fork."""


@dataclass(frozen=True)
class Pipeline:
    """The arguments of calls of tidu, each of which reads what the one before it writes; the last one writes to a file, if any."""

    calls: Sequence[Sequence[str]]
    target: str | None = None


def pipelines(text: str, folder: Path) -> list[Pipeline] | None:
    """The lines of a script, with `folder` for $TMP; None if one calls anything but tidu, or needs a shell."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    if any(OF_A_PROCESS.search(line) for line in [*lines, text]):
        return None
    found = [_pipeline(re.sub(r"\$TMP\b|\$\{TMP\}", str(folder), line)) for line in lines]
    return None if None in found else [line for line in found if line]


def _pipeline(line: str) -> Pipeline | None:
    words = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    words.whitespace_split, words.commenters = True, ""
    rest, calls, target = list(words), [], None
    if rest[-2:-1] == [">"]:
        *rest, _, target = rest
    while rest:
        end = rest.index("|") if "|" in rest else len(rest)
        calls.append(rest[:end])
        rest = rest[end + 1 :]
    special = any(set(word) <= set("|&;<>()") for call in calls for word in call if word)
    if special or "$" in line or any(not call or call[0] != "tidu" for call in calls):
        return None
    return Pipeline([call[1:] for call in calls], target)


def run(script: Sequence[Pipeline], environment: Mapping[str, str]) -> tuple[bytes, bytes, int]:
    """Standard output and error, and the status, as of `bash -euo pipefail`: one line after another, until one fails."""
    others = dict.fromkeys(set(os.environ) - set(environment))
    stdout, stderr, had_jax = b"", b"", "jax" in sys.modules
    for pipeline in script:
        piped, failed = b"", 0
        for call in pipeline.calls:
            result = CliRunner().invoke(cli, list(call), input=piped, env={**others, **environment}, prog_name="tidu")
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            assert had_jax or "jax" not in sys.modules, f"tidu {' '.join(call)} imports JAX: it needs a process of its own"
            piped, stderr, failed = result.stdout_bytes, stderr + result.stderr_bytes, result.exit_code or failed
        if pipeline.target:
            Path(pipeline.target).write_bytes(piped)
        else:
            stdout += piped
        if failed:
            return stdout, stderr, failed
    return stdout, stderr, 0
