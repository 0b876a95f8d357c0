"""Models of ONNX: how long reading takes, writing the gradient, and the gradient in onnxruntime beside the model itself.

    pip install rapidocr-onnxruntime
    python benchmarks/onnx_models.py

Times are the least of several. The model and its gradient are run in turns, in two threads of onnxruntime.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import tidu_cli as tidu
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.read import read_onnx
from tidu_cli.adapters.onnx.writing.model import onnx_bytes
from tidu_cli.graph.types import TensorType

MODELS = {
    "text recognition, 3×48×320": ("ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320)),
    "text direction, 3×48×320": ("ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 320)),
    "text detection, 3×160×320": ("ch_PP-OCRv4_det_infer.onnx", (1, 3, 160, 320)),
}
"""What models do, their files, and the shapes of their input, which is called x."""


def least(*calls: Callable[[], Any], times: int = 20) -> list[float]:
    """Seconds of the quickest run of each, which take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(times):
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def session(data: bytes) -> Any:
    """A model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 2
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def main() -> None:
    """Print a table."""
    spec = find_spec("rapidocr_onnxruntime")
    assert spec is not None and spec.origin is not None
    print("| model | nodes | reading | gradient file | forward | gradient | ratio |\n|---|---|---|---|---|---|---|")
    for name, (file, shape) in MODELS.items():
        data = (Path(spec.origin).parent / "models" / file).read_bytes()
        choices = Choices(types={"x": TensorType("f32", shape)})
        document = read_onnx(data, file, choices=choices).document
        output = str(document.head.outputs[0].key)
        gradient = onnx_bytes(tidu.vjp(document, "x", output))
        read, written = least(
            lambda data=data, file=file, choices=choices: read_onnx(data, file, choices=choices),
            lambda document=document, output=output: onnx_bytes(tidu.vjp(document, "x", output)),
            times=3,
        )
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, shape).astype(np.float32)
        ct = rng.standard_normal(document.head.outputs[0].type.shape).astype(np.float32)
        forward, backward = session(data), session(gradient)
        once, both = least(
            lambda run=forward.run, x=x: run(None, {"x": x}),
            lambda run=backward.run, x=x, ct=ct, key=f"{output}@-1": run(None, {"x": x, key: ct}),
        )
        figures = f"{read:.2f} s | {written:.2f} s | {once * 1e3:.1f} ms | {both * 1e3:.1f} ms | {both / once:.1f}"
        print(f"| {name} | {document.head.n_nodes:,} | {figures} |")


if __name__ == "__main__":
    main()
