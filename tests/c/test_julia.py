"""The program in Julia that docs/howto/c-programs.md shows: its calls have the types of the header that tidu writes."""

from __future__ import annotations

import os
import re
import shutil

import pytest

from tests import forking
from tests.docs.blocks import ROOT, agrees, blocks, run

BLOCKS = list(blocks((ROOT / "docs" / "howto" / "c-programs.md").read_text()))
(AT,) = (k for k, block in enumerate(BLOCKS) if block.language == "julia")
MAKING, PROGRAM, RUNNING = BLOCKS[AT - 1 : AT + 2]
IN_JULIA = {"int": "Cint", "size_t": "Csize_t", "double *": "Ptr{Cdouble}"}


def done(step, folder):
    status, printed = run(step.command, folder, os.environ | {"PATH": forking.path()})
    assert status == 0 and agrees(step.output, printed), printed


def declared(header):
    """The types in a header's prototypes, as Julia has them, by the name of the function: of the result, then of parameters."""
    prototypes = re.findall(r"^(\w+) (\w+)\((.*)\);$", header, re.MULTILINE)
    types = {name: [result, *re.findall(r"(?:const )?(\w+ \*|\w+) ?\w+(?:, |$)", rest)] for result, name, rest in prototypes}
    return {name: [IN_JULIA.get(type_, type_) for type_ in of] for name, of in types.items()}


def called(program):
    """Likewise the types in a program's `@ccall`s, where `Ref` is one of the two ways to pass an address."""
    import tree_sitter
    import tree_sitter_julia

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_julia.language()))
    nodes, calls = [parser.parse(program.encode()).root_node], {}
    for node in nodes:
        assert not node.is_error and not node.is_missing, f"not Julia at line {node.start_point.row + 1}"
        nodes += node.children
    for node in nodes:
        if node.type == "macrocall_expression" and node.named_children[0].text == b"@ccall":
            call, result = node.named_children[1].named_children[0].named_children
            callee, arguments = call.named_children
            types = [result, *(argument.named_children[1] for argument in arguments.named_children)]
            calls[callee.named_children[-1].text.decode()] = [t.text.decode().replace("Ref{", "Ptr{") for t in types]
    return calls


@pytest.mark.check
def test_calls_have_the_types_of_the_header(tmp_path):
    calls = called("\n".join(PROGRAM.lines))
    done(next(MAKING.steps()), tmp_path)
    of_header = declared((tmp_path / "batch.h").read_text())
    assert calls == {name: of_header[name] for name in ("f_1_work", "f_1")}


@pytest.mark.campaign
@pytest.mark.skipif(shutil.which("julia") is None, reason="needs julia: https://julialang.org/downloads")
def test_julia_prints_what_the_page_shows(tmp_path):
    (tmp_path / PROGRAM.title).write_text("\n".join(PROGRAM.lines))
    for step in (*MAKING.steps(), *RUNNING.steps()):
        done(step, tmp_path)
