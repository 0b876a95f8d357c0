"""The documentation site: it builds strictly, asks for nothing from elsewhere, and works in a browser (make docs)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests import waiting
from tests.docs.blocks import PAGES, ROOT, blocks
from tests.render.chromium import PROGRAM, Browser

pytestmark = pytest.mark.site


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-W", "ignore", "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served: its search reads the index over HTTP."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None, "needs Chromium (apt-get install chromium)"
    with Browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def until(browser: Browser, expression: str) -> None:
    """Wait until an expression is true in the page."""
    waiting.until(lambda: browser.evaluate(expression), expression)


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    """Links may lead anywhere; scripts, styles, fonts and images are the site's own."""
    pages = list(site.rglob("*.html"))
    assert len(pages) >= len(PAGES)
    loads = r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//|<link\b[^>]*\bhref=["']?(?:https?:)?//"""
    assert {page.name: tags for page in pages if (tags := re.findall(loads, page.read_text()))} == {}
    styles = "".join(page.read_text() for page in site.rglob("*.css"))
    assert re.findall(r"""url\(["']?(?:https?:)?//[^)]*|@import[^;]*//[^;]*""", styles) == []


def test_links_out_of_the_docs_lead_to_the_files(site: Path) -> None:
    assert (site / "samples" / "nth_derivative.sh").read_bytes() == (ROOT / "samples" / "nth_derivative.sh").read_bytes()
    assert 'href="../samples/' in (site / "tutorial" / "index.html").read_text()


def test_the_copy_button_takes_commands_only(site: Path) -> None:
    page = (site / "tutorial" / "index.html").read_text()
    assert 'data-copy="tidu eval samples/f.json --set x=3"' in page
    shown = sum(block.language == "console" for block in blocks((ROOT / "docs" / "tutorial.md").read_text()))
    assert page.count("data-copy=") == shown


def test_the_home_page_works_in_a_browser(address: str, browser: Browser) -> None:
    browser.open(address)
    assert browser.evaluate("document.querySelector('h1').innerText.startsWith('Derivatives')")
    until(browser, "[...document.images].every((i) => i.complete && i.naturalWidth)")
    assert browser.messages == [] and browser.failures == []
    assert [url for url in browser.requests if not url.startswith((address, "data:", "blob:"))] == []


@pytest.mark.parametrize(
    ("text", "page"), [("dot_general", "primitives/"), ("transpose", "commands/"), ("perturbation", "concepts/")]
)
def test_search_finds(text: str, page: str, address: str, browser: Browser) -> None:
    browser.open(address)
    browser.evaluate("document.querySelector('[data-md-toggle=search]').click()")
    browser.evaluate(
        "{const q = document.querySelector('.md-search__input'); q.focus();"
        f"q.value = {json.dumps(text)}; q.dispatchEvent(new Event('keyup')); q.dispatchEvent(new Event('input'))}}"
    )
    until(browser, f"[...document.querySelectorAll('.md-search-result__link')].some((a) => a.href.includes('{page}'))")
    assert browser.messages == [] and browser.failures == []


@pytest.mark.parametrize("width", [360, 1200])
def test_no_page_is_wider_than_the_screen(width: int, address: str, browser: Browser) -> None:
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
    wide = []
    for page in ("", "concepts/", "commands/", "howto/languages/", "samples/"):
        browser.open(address + page)
        if browser.evaluate("document.documentElement.scrollWidth > window.innerWidth"):
            wide.append(page)
    browser.call("Emulation.clearDeviceMetricsOverride")
    assert wide == []
