"""Write the conformance samples: `python samples/conformance/generate.py`. Run it after changing what they are made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import linear
import loops
import open_sizes
import own_ops
import record_types
from defects import INVALID
from documents import OTHER_FORMS, VALID

from tidu_cli.formats.read import parse_document
from tidu_cli.formats.write import format_document
from tidu_cli.graph.identity import digest_text, digests

FORMS = {
    ".json": ("as tidu writes it: JSON, listed nodes", "json", True),
    ".packed.json": ("JSON, packed nodes where nothing forbids it", "json", False),
    ".msgpack": ("as tidu writes it: msgpack, packed nodes where nothing forbids it", "msgpack", False),
    ".list.msgpack": ("msgpack, listed nodes", "msgpack", True),
}


def contents() -> dict[str, bytes]:
    """Every generated file by its path within this directory."""
    files: dict[str, bytes] = {}
    documents: dict[str, Any] = {}
    index: dict[str, Any] = {}
    for name, (purpose, data) in (
        VALID | linear.VALID | own_ops.VALID | record_types.VALID | loops.VALID | open_sizes.VALID
    ).items():
        document, _ = parse_document(json.dumps(data).encode(), name)
        documents[name] = {
            "purpose": purpose,
            "digests": {
                g.name: [digest_text(d) for d in values] for g, values in zip(document.graphs, digests(document), strict=True)
            },
        }
        for suffix, (form, format, listed) in FORMS.items():
            files[f"valid/{name}{suffix}"] = format_document(document, format, listed=listed)
            index[f"valid/{name}{suffix}"] = {"verdict": "valid", "purpose": form, "document": name}
    for name, (of, purpose, data) in (OTHER_FORMS | own_ops.OTHER | record_types.OTHER).items():
        files[f"valid/{name}"] = data
        index[f"valid/{name}"] = {"verdict": "valid", "purpose": purpose, "document": of}
    for name, defect in (
        INVALID | linear.INVALID | own_ops.INVALID | record_types.INVALID | loops.INVALID | open_sizes.INVALID
    ).items():
        files[f"invalid/{name}"] = defect.data
        place = {"graph": defect.graph, "node": defect.node}
        mentions = {k: v for k, v in place.items() if v is not None} | {"words": list(defect.words)}
        index[f"invalid/{name}"] = {"verdict": "invalid", "purpose": defect.purpose, "mentions": mentions}
    text = json.dumps({"documents": documents, "files": index}, indent=1, ensure_ascii=False)
    files["index.json"] = text.encode() + b"\n"
    return files


def main() -> None:
    """Replace the generated files."""
    here = Path(__file__).parent
    for folder in ("valid", "invalid"):
        (here / folder).mkdir(exist_ok=True)
        for stale in (here / folder).iterdir():
            stale.unlink()
    for path, data in contents().items():
        (here / path).write_bytes(data)


if __name__ == "__main__":
    main()
