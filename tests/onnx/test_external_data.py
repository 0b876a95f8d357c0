"""Data of models that lies in other files: beside the model, and nowhere else."""

from __future__ import annotations

import os

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.onnx.models import model
from tests.onnx.test_untrusted import function, node, tensor
from tidu_cli.errors import DocumentError, TiduError
from tidu_cli.formats.files import reading
from tidu_cli.formats.read import parse_document
from tidu_cli.limits import Limits, limited


def external(folder, told_of_data, dims=(4,), name="m.onnx"):
    proto = model([node("Add", ["x", "w"], ["y"])], [("x", [4])], [("y", [4])], initializer=[tensor(dims=list(dims))])
    data = proto.graph.initializer[0]
    data.data_location = TensorProto.EXTERNAL
    for key, value in told_of_data.items():
        data.external_data.add(key=key, value=value)
    (folder / name).write_bytes(proto.SerializeToString())
    return str(folder / name)


def read_file(path):
    with reading(path) as source:
        return parse_document(source, path)[0]


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "../secret"}, "only files in the model's folder"),
        ({"location": "sub/../../secret"}, "only files in the model's folder"),
        ({"location": "/etc/passwd"}, "only files in the model's folder"),
        ({"location": ""}, "only files in the model's folder"),
        ({}, "only files in the model's folder"),
        ({"location": "."}, "only files in the model's folder"),
        ({"location": "link"}, "is a link"),
        ({"location": "folder_link/data"}, "is a link"),
        ({"location": "none"}, "no such file"),
        ({"location": "folder"}, "is not a file"),
        ({"location": "pipe"}, "is not a file"),
        ({"location": "a\0b"}, "only files in the model's folder"),
        ({"location": "data", "offset": "-1"}, "not a number of bytes"),
        ({"location": "data", "offset": "1", "length": "16"}, "which has 16 bytes"),
        ({"location": "data", "offset": "99999"}, "which has 16 bytes"),
        ({"location": "data", "length": "999999999999"}, "which has 16 bytes"),
        ({"location": "data", "length": "x"}, "not a number of bytes"),
        ({"location": "data", "length": "9" * 50}, "not a number of bytes"),
        ({"location": "data", "length": "8"}, "do not form an array of shape"),
    ],
)
def test_data_elsewhere(tmp_path, entries, words):
    folder = tmp_path / "models"
    (folder / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(bytes(16))
    (folder / "data").write_bytes(bytes(16))
    (folder / "folder" / "data").write_bytes(bytes(16))
    (folder / "link").symlink_to("../secret")
    (folder / "folder_link").symlink_to("folder")
    os.mkfifo(folder / "pipe")
    with pytest.raises(DocumentError, match=words):
        read_file(external(folder, entries))


def test_data_beside_the_model(tmp_path):
    (tmp_path / "data").write_bytes(bytes(4) + np.arange(4, dtype=np.float32).tobytes())
    path = external(tmp_path, {"location": "data", "offset": "4", "length": "16"})
    assert read_file(path).head.n_nodes == 2
    with open(path, "rb") as file, pytest.raises(DocumentError, match="cannot be read from stdin"):
        parse_document(file.read(), "stdin")
    with limited(Limits(memory=10)), pytest.raises(TiduError, match="max_memory="):
        read_file(path)


def test_data_elsewhere_is_not_read_for_functions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").write_bytes(bytes(16))
    weight = tensor(dims=[4])
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="../data")
    constant = function("f0", node("Constant", [], ["w"], value=weight), node("Add", ["a", "w"], ["b"]))
    call = node("f0", ["x"], ["y"], domain="here")
    proto = model([call], [("x", [4])], [("y", [4])], functions=[constant], opsets=[helper.make_opsetid("here", 1)])
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(DocumentError, match="only files in the model's folder"):
        read_file("m.onnx")
