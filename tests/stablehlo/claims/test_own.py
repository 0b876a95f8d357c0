"""When a module is believed to be the document that it says, and what is read of it otherwise."""

from __future__ import annotations

import gc
import hashlib
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tidu_cli as api
from tests.stablehlo.claims.written import document_of, in_this_process
from tidu_cli.adapters.stablehlo.files import stablehlo_artifact
from tidu_cli.adapters.stablehlo.module import CHECKSUM, DOCUMENT, checksum, claimed
from tidu_cli.adapters.stablehlo.parsing import _Walk, as_plain
from tidu_cli.adapters.stablehlo.text import UnwrittenError, quoted
from tidu_cli.api import load, save
from tidu_cli.checking.numeric.trials import example_cases
from tidu_cli.errors import ArgumentError, DocumentError, MissingRuleError
from tidu_cli.formats.read import parse_document, parse_imported
from tidu_cli.formats.write import format_document
from tidu_cli.graph.graph import Document
from tidu_cli.graph.keys import Key
from tidu_cli.graph.large import no_collection
from tidu_cli.graph.types import TensorType
from tidu_cli.lax.vocabulary import BUILTIN
from tidu_cli.rules.contract import NoAttrs
from tidu_cli.runtime.evaluate import evaluate
from tidu_cli.transforms.linearize import linearize
from tidu_cli.transforms.transpose import transpose

SAMPLES = Path(__file__).parents[3] / "samples"

WORKED_EXAMPLE = """\
  func.func public @main(%arg0: tensor<f64> {tidu.key = "x"}, %arg1: tensor<f64> {tidu.key = "y@-1"}) \
-> (tensor<f64> {tidu.key = "y"}, tensor<f64> {tidu.key = "x@-1"}) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<f64>
    %1 = stablehlo.multiply %0, %arg0 : tensor<f64>
    %2 = stablehlo.multiply %arg0, %arg1 : tensor<f64>
    %3 = stablehlo.multiply %0, %arg1 : tensor<f64>
    %4 = stablehlo.add %3, %2 : tensor<f64>
    %5 = stablehlo.add %4, %2 : tensor<f64>
    return %1, %5 : tensor<f64>, tensor<f64>
  }
"""


def sample(name: str) -> Document:
    return load(SAMPLES / name)


def text_of(document: Document) -> str:
    return format_document(document, "mlir").decode()


def test_the_worked_example_operation_for_operation() -> None:
    text = text_of(transpose(linearize(sample("f.json"), [Key("x")])))
    assert text.startswith('module @"f@-1" attributes {tidu.checksum = "sha256:')
    assert WORKED_EXAMPLE in text


@pytest.mark.parametrize("format_", ["mlir", "mlirbc"])
def test_a_process_of_its_own_reads_what_was_written(format_: str, tmp_path: Path) -> None:
    file = tmp_path / f"f.{format_}"
    save(sample("mlp.json"), file)
    assert format_document(load(file), "json") == format_document(sample("mlp.json"), "json")


def _renamed(text: str) -> str:
    return re.sub(r"%(arg)?(\d)", r"%x\1\2", text)


def _spread_out(text: str) -> str:
    return text.replace(" : tensor<f64>\n", "\n        :   tensor<f64>   // here\n")


def _generic(text: str) -> str:
    """As other programs may print it, with places."""
    from jax.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context():
        printed: str = ir.Module.parse(text).operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    return printed


def _bytecode(text: str) -> bytes:
    from jax.interpreters.mlir import make_ir_context, module_to_bytecode
    from jaxlib.mlir import ir

    with make_ir_context():
        data: bytes = module_to_bytecode(ir.Module.parse(text))
    return data


@pytest.mark.parametrize("change", [_renamed, _spread_out, _generic, _bytecode])
def test_a_module_in_another_form_is_still_the_document(change: Callable[[str], str | bytes]) -> None:
    document = transpose(linearize(sample("f.json"), [Key("x")]))
    changed = change(text_of(document))
    assert changed != text_of(document)
    parsed, _ = parse_document(changed if isinstance(changed, bytes) else changed.encode(), "f.mlir")
    assert format_document(parsed, "json") == format_document(document, "json")


def test_nothing_of_a_module_stays_when_it_has_been_walked_over() -> None:
    from jax.interpreters.mlir import make_ir_context
    from jaxlib.mlir import ir

    with make_ir_context(), no_collection():
        as_plain(ir.Module.parse(text_of(sample("f.json"))))
        assert not [x for x in gc.get_objects() if type(x) is _Walk]


def _other_operation(text: str) -> str:
    return text.replace("stablehlo.add %3, %2", "stablehlo.subtract %3, %2")


def _other_operand(text: str) -> str:
    return text.replace("stablehlo.add %4, %2", "stablehlo.add %4, %4")


def _other_key(text: str) -> str:
    return text.replace('{tidu.key = "x"}', '{tidu.key = "z"}')


def _other_document(text: str) -> str:
    return text.replace("\\22name\\22:\\22f\\22", "\\22name\\22:\\22g\\22")


def _other_name(text: str) -> str:
    return text.replace('module @"f@-1"', "module @g")


def _more(text: str) -> str:
    return text.replace("    return", "    %6 = stablehlo.negate %5 : tensor<f64>\n    return")


@pytest.mark.parametrize("change", [_other_operation, _other_operand, _other_key, _other_document, _other_name, _more])
def test_what_others_changed_is_read_as_a_module(change: Callable[[str], str]) -> None:
    text = text_of(transpose(linearize(sample("f.json"), [Key("x")])))
    changed = change(text)
    assert changed != text
    assert claimed(in_this_process(text.encode(), "text"))
    assert claimed(in_this_process(changed.encode(), "text")) is None
    parsed, _ = parse_document(changed.encode(), "f.mlir")
    assert len(parsed.graphs) == 1
    x, *_ = parsed.free_inputs
    values = evaluate(parsed.head, {x.key: np.asarray(3.0), Key("y", (-1,)): np.asarray(1.0)})
    expected = {_other_operation: 6.0, _other_operand: 18.0}.get(change, 12.0)
    assert values[Key("x", (-1,))] == expected


@pytest.mark.parametrize("document", ["{", "3", '{"tidu":1,"graphs":[{"tidu.constant":7}]}', '{"tidu":1,"graphs":[]}'])
def test_claims_that_fit_their_checksum_and_are_no_document_are_not_believed(document: str) -> None:
    text = text_of(sample("f.json"))
    told = checksum(in_this_process(text.encode(), "text"), document)
    claims = f"attributes {{{CHECKSUM} = {quoted(told)}, {DOCUMENT} = {quoted(document)}}} {{\n"
    changed = claims.join(re.split(r"attributes \{.*?\} \{\n", text, maxsplit=1))
    parsed, _ = parse_document(changed.encode(), "f.mlir")
    assert parsed.head.n_nodes == 2


def test_a_large_constant_is_there_once() -> None:
    values = np.random.default_rng(0).standard_normal(1000)
    attrs = BUILTIN.parse_attrs("constant", {"value": {"type": "f64[1000]", "data": values.tobytes()}})
    document = document_of([BUILTIN.case("constant", attrs, None, [])])
    for format_, most in (("mlir", 2.2), ("mlirbc", 1.2)):
        data = format_document(document, format_)
        assert 1 < len(data) / values.nbytes < most
        assert format_document(parse_document(data, "f")[0], "json") == format_document(document, "json")


def test_nodes_of_a_case_are_calls_of_one_function() -> None:
    """Which is there once for all cases that JAX computes alike."""
    cases = [case for _, case in example_cases(BUILTIN, BUILTIN["igamma"]) if str(case.operands[0].dtype) == "f64"]
    text = text_of(document_of([cases[0]] * 3))
    assert text.count("call @igamma(") == 3
    assert text.count("func.func private @igamma(") == 1


def test_records_are_several_arguments() -> None:
    text = text_of(sample("segment.json"))
    assert re.findall(r'\{tidu.field = "(\w+(?:\.\w+)*)", tidu.key = "', text)
    document = load(SAMPLES / "segment.json")
    changed, _ = parse_document(text.replace("module @", "module @other_", 1).encode(), "f.mlir")
    assert len(changed.free_inputs) > len(document.free_inputs)
    assert all("." in str(i.key) for i in changed.free_inputs)


def test_what_cannot_be_written_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a primitive that is none of JAX's, which no one is today."""

    def none(*args: Any) -> Any:
        raise MissingRuleError("no function of JAX computes it")

    monkeypatch.setattr("tidu_cli.adapters.stablehlo.lowering._module", none)
    case = BUILTIN.case("sin", NoAttrs(), None, [TensorType("f64", (31,))])
    with pytest.raises(UnwrittenError, match=r"graph 'f', node 0 \(sin\): no function.*write it with format='msgpack'") as caught:
        text_of(document_of([case]))
    assert "\n" not in str(caught.value)


def test_a_detached_value_is_refused_by_name() -> None:
    detached = api.linearize(sample("f.json"), "x", detach=True)
    with pytest.raises(DocumentError, match="detached"):
        text_of(detached)


@pytest.mark.parametrize("version", ["0.8.0", "99.0.0", "1.0", "newest"])
def test_versions_that_are_not_written_are_refused(version: str) -> None:
    with pytest.raises(ArgumentError, match=f"1.0.0, and not '{version}'"):
        stablehlo_artifact(sample("f.json"), version)


def test_an_artifact_is_of_the_version_that_is_asked_for() -> None:
    data = stablehlo_artifact(sample("f.json"), "1.0.0")
    assert b"StableHLO_v1.0.0\0" in data[:32]
    assert format_document(parse_document(data, "f")[0], "json") == format_document(sample("f.json"), "json")


def test_bytes_do_not_depend_on_the_process() -> None:
    code = "import sys; from tidu_cli import load; from tidu_cli.formats.write import format_document as f; "
    code += "import hashlib; [print(hashlib.sha256(f(load(sys.argv[1]), k)).hexdigest()) for k in ('mlir', 'mlirbc')]"
    file = SAMPLES / "activations.json"
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    own = [hashlib.sha256(format_document(load(file), k)).hexdigest() for k in ("mlir", "mlirbc")]
    assert done.stdout.split() == own


def test_without_jax_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(DocumentError, match=r"pip install 'tidu\[jax\]'"):
        text_of(sample("f.json"))


def test_users_are_told_that_a_module_was_changed() -> None:
    text = text_of(sample("f.json"))
    changed = text.replace("stablehlo.multiply", "stablehlo.subtract").encode()
    assert "changed since tidu wrote it" in parse_imported(changed, "f")[0].notes[0]
    assert "which was not compared with what it runs" in parse_imported(text.encode(), "f")[0].notes[0]
