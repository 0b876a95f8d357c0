"""Gradients of models that PyTorch exports, in onnxruntime, beside the models themselves and PyTorch's forward and backward.

    pip install torch onnx onnxscript onnxruntime
    python benchmarks/torch_models.py
    MALLOC_MMAP_THRESHOLD_=65536 python benchmarks/torch_models.py memory

Weights are random. All take turns on one thread; times are processor time, the least of 7 runs or more. Memory is the peak of what
is resident in a run that is not the first, beyond what was so before, under Linux. onnxruntime runs without its arena, which would
keep its memory, and glibc gives back what is freed.
"""

from __future__ import annotations

import ctypes
import io
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import nn
from torch.nn import functional

import tidu_cli as tidu
from tidu_cli.adapters.onnx.contents import Choices
from tidu_cli.adapters.onnx.read import read_onnx
from tidu_cli.adapters.onnx.writing.model import onnx_bytes


class Made(nn.Module):
    """A module of parts and a function of them and the inputs."""

    def __init__(self, forward: Callable[..., Any], **parts: nn.Module) -> None:
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, *inputs: Any) -> Any:
        """What the function makes of the inputs."""
        return self.function(self, *inputs)


def residual(n: int, m: int, stride: int) -> nn.Module:
    """Two convolutions, beside which the input goes on."""

    def convolved(n: int, size: int, stride: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(n, m, size, stride, size // 2, bias=False), nn.BatchNorm2d(m))

    skip = nn.Identity() if (n, stride) == (m, 1) else convolved(n, 1, stride)
    body = nn.Sequential(convolved(n, 3, stride), nn.ReLU(), convolved(m, 3, 1))
    return Made(lambda s, x: functional.relu(s.body(x) + s.skip(x)), body=body, skip=skip)


def resnet() -> nn.Module:
    """ResNet-18."""

    widths = [(64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2)]
    blocks = [residual(*w) for n, m, stride in widths for w in ((n, m, stride), (m, m, 1))]
    stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    return Made(
        lambda s, x: s.last(s.body(x).mean((2, 3)))[:, 3].sum(), body=nn.Sequential(stem, *blocks), last=nn.Linear(512, 1000)
    )


def block(width: int, heads: int) -> nn.Module:
    """A block of a transformer."""

    def attended(s: Any, x: Any) -> Any:
        b, n, _ = x.shape
        q, k, v = s.qkv(s.before(x)).reshape(b, n, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        weights = ((q @ k.transpose(-1, -2)) / math.sqrt(width // heads)).softmax(-1)
        x = x + s.out((weights @ v).transpose(1, 2).reshape(b, n, width))
        return x + s.mlp(x)

    mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
    return Made(attended, qkv=nn.Linear(width, 3 * width), before=nn.LayerNorm(width), out=nn.Linear(width, width), mlp=mlp)


def transformer(width: int, heads: int, patches: bool) -> nn.Module:
    """A transformer of tokens, or of the patches of an image."""

    def scored(s: Any, x: Any) -> Any:
        x = s.patches(x).flatten(2).transpose(1, 2) if patches else x
        return (s.norm(s.blocks(x))[:, 0] * torch.arange(float(width))).sum()

    blocks = nn.Sequential(*[block(width, heads) for _ in range(4)])
    return Made(scored, blocks=blocks, norm=nn.LayerNorm(width), patches=nn.Conv2d(3, width, 16, 16) if patches else nn.Identity())


def message_passing(nodes: int, width: int) -> nn.Module:
    """An energy of positions of nodes that send messages along edges."""

    def energy(s: Any, x: Any, edges: Any) -> Any:
        there, here = edges[0], edges[1]
        near = torch.exp(-((x[there] - x[here]) ** 2).sum(-1, keepdim=True))
        h = s.embedding(torch.arange(nodes))
        for message, update in zip(s.messages, s.updates, strict=True):
            sent = message(torch.cat([h[there], h[here], near], 1))
            h = h + update(torch.cat([h, torch.zeros(nodes, width).index_add(0, here, sent)], 1))
        return h.pow(2).sum()

    messages = [nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU(), nn.Linear(width, width)) for _ in range(3)]
    updates = [nn.Sequential(nn.Linear(2 * width, width), nn.SiLU()) for _ in range(3)]
    return Made(energy, messages=nn.ModuleList(messages), updates=nn.ModuleList(updates), embedding=nn.Embedding(nodes, width))


def unet() -> nn.Module:
    """A U-Net of three levels."""

    def twice(n: int, m: int) -> nn.Module:
        return nn.Sequential(*[part for k in (n, m) for part in (nn.Conv2d(k, m, 3, 1, 1), nn.BatchNorm2d(m), nn.ReLU())])

    def mapped(s: Any, x: Any) -> Any:
        a = s.down1(x)
        b = s.down2(functional.max_pool2d(a, 2))
        c = s.up2(torch.cat([s.wide2(s.down3(functional.max_pool2d(b, 2))), b], 1))
        return s.last(s.up1(torch.cat([s.wide1(c), a], 1))).pow(2).mean()

    downs = {"down1": twice(3, 16), "down2": twice(16, 32), "down3": twice(32, 64)}
    wide = {"wide2": nn.ConvTranspose2d(64, 32, 2, 2), "wide1": nn.ConvTranspose2d(32, 16, 2, 2)}
    return Made(mapped, **downs, **wide, up2=twice(64, 32), up1=twice(32, 16), last=nn.Conv2d(16, 1, 1))


def models() -> Iterator[tuple[str, nn.Module, tuple[Any, ...]]]:
    """What each is, the module, and its inputs, of which the first is differentiated."""
    lstm = Made(
        lambda s, x: s.last(s.lstm(x)[0][:, -1])[:, 3].sum(), lstm=nn.LSTM(64, 128, 2, batch_first=True), last=nn.Linear(128, 10)
    )
    grid = torch.rand(2, 64, 64, 2) * 2.2 - 1.1
    yield "ResNet-18, 3×96×96", resnet(), (torch.randn(1, 3, 96, 96),)
    yield "transformer, 4 blocks of 256, 2×128 tokens", transformer(256, 4, False), (torch.randn(2, 128, 256),)
    yield "ViT, 4 blocks of 192, 2×64 patches", transformer(192, 3, True), (torch.randn(2, 3, 128, 128),)
    yield "LSTM, 2 layers of 128, 8×50 steps", lstm, (torch.randn(8, 50, 64),)
    yield (
        "message passing, 400 nodes, 2,000 edges",
        message_passing(400, 64),
        (torch.randn(400, 3), torch.randint(0, 400, (2, 2000))),
    )
    yield "U-Net, 3×128×128", unet(), (torch.randn(1, 3, 128, 128),)
    yield (
        "grid_sample, 2×16×64×64",
        Made(lambda s, x, g: functional.grid_sample(x, g, align_corners=False).pow(2).sum()),
        (
            torch.randn(2, 16, 64, 64),
            grid,
        ),
    )


def session(data: bytes, *, arena: bool = True, reuse: bool = True) -> Any:
    """A model in onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.enable_cpu_mem_arena = options.enable_mem_pattern = arena
    options.enable_mem_reuse = reuse
    return onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])


def least(*calls: Callable[[], Any]) -> list[float]:
    """Seconds of the quickest run of each, which take turns for some seconds."""
    best, runs, start = [math.inf] * len(calls), 0, time.perf_counter()
    while runs < 7 or time.perf_counter() - start < 4:
        runs += 1
        for k, call in enumerate(calls):
            before = time.process_time()
            call()
            best[k] = min(best[k], time.process_time() - before)
    return best


def resident(name: str) -> float:
    """A line of what Linux says of the memory of this process, in MB of 2²⁰ bytes."""
    return next(int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name)) / 1024


def peak(call: Callable[[], Any]) -> float:
    """The peak of memory in the second run, beyond what there was before."""
    call()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    call()
    return resident("VmHWM") - before


def main() -> None:
    """Print a table."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    memory = sys.argv[1:] == ["memory"]
    if memory:
        print("| model | forward | gradient | without reuse | PyTorch |\n|---|---:|---:|---:|---:|")
    else:
        print("| model | forward | gradient | ratio | PyTorch | gradient / PyTorch | error |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, module, inputs in models():
        module.eval().requires_grad_(False)
        names, file = ["x", "i"][: len(inputs)], io.BytesIO()
        program = torch.onnx.export(module, inputs, input_names=names, output_names=["y"], dynamo=True, verbose=False)
        program.save(file)
        document = read_onnx(file.getvalue(), name, choices=Choices()).document
        gradient = onnx_bytes(tidu.grad(document, "x", "y"))
        forward, backward = session(file.getvalue(), arena=not memory), session(gradient, arena=not memory)
        given = {k: x.numpy() for k, x in zip(names, inputs, strict=True)}
        x = inputs[0].clone().requires_grad_(True)

        def by_torch(module: Any = module, x: Any = x, rest: Any = inputs[1:]) -> Any:
            x.grad = None
            module(x, *rest).backward()
            return x.grad.numpy()

        def by_tidu(run: Any = backward.run, given: Any = given) -> Any:
            return run(["x@-1"], given)[0]

        if memory:
            once, both, least_held = (
                peak(lambda run=s.run, given=given: run(None, given))
                for s in (forward, backward, session(gradient, arena=False, reuse=False))
            )
            print(f"| {name} | {once:.1f} MB | {both:.1f} MB | {least_held:.1f} MB | {peak(by_torch):.1f} MB |", flush=True)
            continue
        error = np.abs(by_tidu() - by_torch()).max() / np.abs(by_torch()).max()
        once, both, theirs = least(lambda run=forward.run, given=given: run(None, given), by_tidu, by_torch)
        ours = f"{once * 1e3:.2f} ms | {both * 1e3:.2f} ms | {both / once:.1f}"
        print(f"| {name} | {ours} | {theirs * 1e3:.2f} ms | {both / theirs:.2f} | {error:.0e} |", flush=True)


if __name__ == "__main__":
    main()
