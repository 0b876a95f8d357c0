"""Files of other systems that are recognized, not read: what to do there instead. What they hold is code: nobody looks into it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NoReturn

from tidu_cli.adapters.onnx.port import ONNX
from tidu_cli.errors import DocumentError
from tidu_cli.port_data import FromPlain
from tidu_cli.ports import Readable

_BEGINNING = re.compile(
    rb"PK\x03\x04.{26}[^\0/]+/[^\0]{1,150}?FB.\0"  # zip archives, whose entries PyTorch pads with an extra field "FB"
    rb"|PK\x03\x04.{26}serialized_exported_program"  # those of torch.export before 2.7
    rb"|\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19",  # pickles of torch.save before 1.6
    re.DOTALL,
)


class _PyTorch:
    """What torch.save, torch.jit.save and torch.export.save write."""

    name, title = "pytorch", "a file of PyTorch"
    reading, runtimes = ONNX.reading, ONNX.runtimes  # of what its model is exported as

    def sniff(self, source: Readable) -> bool:
        """Whether these are the first bytes of one, which may have any name."""
        return bool(_BEGINNING.match(source.head(256)))

    def read(self, source: Readable, where: str, options: Mapping[str, Any], from_plain: FromPlain | None) -> NoReturn:
        """Raises DocumentError, which says how its model becomes one that is read."""
        way_out = "torch.onnx.export(model, inputs, 'model.onnx', dynamo=True) (docs/howto/pytorch.md)"
        raise DocumentError(f"{where}: {self.title}, which only PyTorch reads; export the model there: {way_out}")

    def refuse_values(self, where: str) -> NoReturn:
        """Raises DocumentError, which says how the tensors of such a file become values that are read."""
        file = repr("state.pt" if where == "stdin" else where)
        loaded = f"torch.export.load({file}).state_dict" if where.endswith(".pt2") else f"torch.load({file})"
        way_out = f"numpy.savez('values.npz', **{{name: x.detach().numpy() for name, x in {loaded}.items()}})"
        raise DocumentError(f"{where}: {self.title}, which only PyTorch reads; write its tensors there as .npz: {way_out}")

    def outline(self, data: bytes) -> dict[str, Any]:
        """Nothing, as completion has no place to say it."""
        return {}


PYTORCH = _PyTorch()
