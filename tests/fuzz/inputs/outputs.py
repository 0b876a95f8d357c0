"""-o: what a command writes is whole, and replaces nothing that it read or that is of another kind, but by --force."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import chdir
from pathlib import Path

from click.testing import CliRunner

from tests.fuzz.choices import Choices
from tests.fuzz.target import Target
from tidu_cli.cli.main import cli

DOCUMENT = b"""{"tidu": 1, "graphs": [{"name": "f", "inputs": [{"key": "x", "type": "f64[]"}],
 "nodes": [{"op": "mul", "inputs": [0, 0]}], "outputs": [{"key": "y", "value": 1}]}]}"""
FILES = {
    "f.json": DOCUMENT,
    "g.json": DOCUMENT.replace(b"mul", b"add"),
    "lib.json": b'{"tidu": 1, "ops": {}}',
    "v.json": b'{"x": 2.0}',
    "n.json": b"3",
    "model.py": b"def f(x):\n    return x\n",
    "notes": b"to do: everything\n",
    "notes.txt": b"to do: the rest\n",
    "numbers.json": b"1 2 3\n",
}
MADE = ("f.json.gz", "f.msgpack", "v.npz", "new.json", "folder", "folder/", "nowhere/f.json")
"""Names of a -o that the folder has no file of, or none of that form."""

SAME = ({"f.json", "link.json"}, {"g.json", "hard.json"})
"""Files of two names, by a symbolic link and a hard one."""

DOCUMENTS = (
    "convert",
    "linearize --wrt x",
    "materialize",
    "resolve",
    "compose",
    "grad --wrt x",
    "derivative --wrt x",
    "rename --key x=t",
)
VALUES = ("eval", "grad --wrt x", "jacobian --wrt x", "hessian --wrt x", "derivative --wrt x")
GIVEN = ("--set x=2", "--inputs v.json", "--set x=@n.json")
OTHERS = (
    "schema",
    "dot F",
    "view F",
    "build x**n -i x:f64[] -i n=@n.json",
    "build model.py:f -i x:f64[]",
    "build x*2 --inputs v.json",
)


def make(choices: Choices) -> bytes:
    """A command line as JSON: words, and the name behind -o; "F" are files that are read."""
    kind = choices.below(3)
    line = choices.pick((OTHERS, DOCUMENTS, VALUES)[kind])
    if kind:
        line += f" F {choices.pick(GIVEN) * (kind == 2)}"
    if choices.one_in(4):
        line += " --ops lib.json"
    words = [choices.pick(("f.json", "./f.json", "g.json", "link.json", "hard.json")) if w == "F" else w for w in line.split()]
    if choices.one_in(6):
        words.append("--force")
    form = choices.pick(("{}", "./{}", "../{here}/{}"))
    return json.dumps([words, form, choices.pick((*FILES, "link.json", "hard.json", *MADE))]).encode()


def judge(case: bytes) -> str:
    """Run the command within this process, in a folder of its own."""
    words, form, out = json.loads(case)
    with tempfile.TemporaryDirectory() as name, chdir(name):
        for file, data in FILES.items():
            Path(file).write_bytes(data)
        Path("folder").mkdir()
        os.symlink("f.json", "link.json")
        os.link("g.json", "hard.json")
        before = _contents()
        result = CliRunner().invoke(cli, [*words, "-o", form.format(out, here=Path(name).name)], prog_name="tidu")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        after = _contents()
        changed = sorted(file for file in after.keys() | before.keys() if after.get(file) != before.get(file))
        if result.exit_code == 0 and Path(out).suffix == ".json" and changed:
            _require_whole(Path(out).read_bytes(), words)
    assert "internal error" not in result.stderr and "Traceback" not in result.stderr, result.stderr
    assert before.keys() <= after.keys(), f"files are gone: {before.keys() - after.keys()}"
    if result.exit_code:
        assert not changed, f"files changed though the command failed: {changed}"
        return f"status {result.exit_code}"
    assert set(changed) <= next((same for same in SAME if out in same), {out}), f"files changed that nobody named: {changed}"
    if "--force" not in words:
        read = {file for file in before if any(file in word for word in words)}
        kept = {"notes", "notes.txt", "numbers.json", "model.py", *read, *(name for same in SAME if same & read for name in same)}
        if _gives_document(words):
            kept -= {name for same in SAME for name in same}
        assert not kept.intersection(changed), f"replaced by something of another kind: {changed}"
    return "written" if changed else "unchanged"


def _contents() -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path().iterdir() if file.is_file()}


def _gives_document(words: list[str]) -> bool:
    """Whether the result of a command is a document, and not values, a picture or a schema."""
    has_values = "--set" in words or "--inputs" in words
    return words[0] == "build" or (words[0] not in ("eval", "schema", "dot", "view") and not has_values)


def _require_whole(data: bytes, words: list[str]) -> None:
    plain = json.loads(data)
    assert isinstance(plain, dict) and plain and (not _gives_document(words) or "graphs" in plain), f"not whole: {data[:80]!r}"


OUTPUTS = Target("outputs", ".output", make, judge)
