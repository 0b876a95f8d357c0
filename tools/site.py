"""The hook of MkDocs that makes links of docs/ work on the site which leave docs/.

Pages link to `../samples/f.json` or `../README.md` as a forge, an editor and a reader of the checkout want it. The site is rooted
at docs/, so what such links lead to is laid beside the pages under its path in the repository, and the links lose the step out:
from docs/tutorial.md, `../samples/f.json` becomes `samples/f.json`. Folders stand for their README.md, and the README.md of the
repository is the home page. A link that leads nowhere ends a strict build.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HOME = "index.md"
FENCE = re.compile(r"^(```.*?^```)", flags=re.M | re.S)
LINK = re.compile(r"(?<=\]\()([^()\s#:]+)(?=[)#])")


def on_files(files: Any, config: Any) -> Any:
    """Add the files outside of docs/ that pages link to, and those that these link to in turn (MkDocs calls this)."""
    from mkdocs.structure.files import File

    docs, root = Path(config.docs_dir), Path(config.config_file_path).parent
    waiting = [f"{docs.name}/{file.src_uri}" for file in files.documentation_pages()]
    known = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in _targets(page, (root / page).read_text(), root):
            if target in known or target.startswith(f"{docs.name}/") or not (root / target).is_file():
                continue
            known.add(target)
            files.append(File.generated(config, target, abs_src_path=str(root / target)))
            if target.endswith(".md"):
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """The page with links as they are on the site (MkDocs calls this)."""
    docs, root = Path(config.docs_dir).name, Path(config.config_file_path).parent
    source = page.file.src_uri
    in_repository = f"{docs}/{source}" if page.file.generated_by is None else source

    def on_site(match: re.Match[str]) -> str:
        target = _target(in_repository, match[1], root, docs)
        return posixpath.relpath(target.removeprefix(f"{docs}/"), posixpath.dirname(source) or ".")

    # Fenced blocks are at the odd places of the split.
    parts = FENCE.split(markdown)
    return "".join(part if k % 2 else LINK.sub(on_site, part) for k, part in enumerate(parts))


def _targets(page: str, text: str, root: Path) -> Iterator[str]:
    for match in LINK.finditer(FENCE.sub("", text)):
        yield _target(page, match[1], root, "docs")


def _target(page: str, link: str, root: Path, docs: str) -> str:
    """The file of the repository that a link of a page leads to."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(page), link))
    if (root / target).is_dir():
        target = posixpath.join(target, "README.md")
    return f"{docs}/{HOME}" if target == "README.md" else target
