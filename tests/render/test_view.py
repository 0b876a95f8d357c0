"""The page of `tidu view`, in a headless Chromium: it loads, asks for nothing, steps, zooms, and lets no name in as markup."""

from __future__ import annotations

import base64
import json
import re

import pytest

from tests.cli.running import ROOT, F, document, graph, invoke, succeed
from tests.programs import needs
from tests.render.chromium import Browser
from tidu_cli.errors import printable

pytestmark = needs("dot")
needs_chromium = needs("chromium")


def data_of(page: bytes) -> dict:
    """The data within a page."""
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.decode(), flags=re.S)
    assert match is not None
    return json.loads(match[1])


@pytest.fixture(scope="module")
def reverse() -> bytes:
    return succeed("transpose", input=succeed("linearize", F, "--wrt", "x"))


def test_the_page_refers_to_nothing_outside(reverse):
    page = succeed("view", input=reverse).decode()
    outside = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?([^"'\s>)]+)""", page)
    assert outside == []
    assert set(re.findall(r"https?://[^\"' ]+", page)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "{{" not in page and page.count("<script") == 2


def test_steps_with_numbers(reverse):
    steps = data_of(succeed("view", "--set", "x=3", "--set", "y@-1=1", input=reverse))["steps"]
    assert [step["items"] for step in steps] == [["g1v0"], ["g1n0"], ["g1n1"], ["g1n2"], ["g1n3"], ["g1o0"]]
    assert steps[3] == {
        "items": ["g1n2"],
        "caption": "c3 = c2 + c1: the cotangent of x gets its second contribution",
        "numbers": "c3 = 6 + 3 = 9",
    }
    assert steps[-1]["numbers"] == "x@-1 = 12"
    assert not any(step["numbers"] for step in data_of(succeed("view", input=reverse))["steps"])


def test_values_are_given_as_to_eval(reverse, tmp_path):
    values = tmp_path / "values.json"
    values.write_text('{"x": 3, "y@-1": 1, "more": 2}')
    page = succeed("view", "--inputs", values, input=reverse)
    assert data_of(page) == data_of(succeed("view", "--set", "x=3", "--set", "y@-1=1", input=reverse))
    result = invoke("view", "--set", "x=3", input=reverse)
    assert result.exit_code == 1 and "missing inputs: y@-1: f64[]" in result.stderr
    assert invoke("view", "--set", "z=3", input=reverse).exit_code == 1
    assert invoke("view", "--set", "z", input=reverse).exit_code == 2


def test_what_is_not_given_and_not_needed_has_no_number():
    data = document(graph(inputs=[("a", "f64[]"), ("b", "f64[]")], nodes=[("neg", 1)], outputs=[("y", 0)]))
    items = data_of(succeed("view", "--set", "a=2", input=data))["items"]
    assert "= 2" in items["g0v0"]["lines"] and not any(line.startswith("=") for line in items["g0n0"]["lines"])


def test_bound_and_zero_and_array_values():
    sample = ROOT / "samples" / "mlp.json"
    values = {"x": [1, 2], "W1": [[1, 0], [0, 1], [1, 1]], "b1": [1, 2, 3], "W2": [[1, 2, 3]], "b2": [1], "target": [1]}
    settings = [part for key, value in values.items() for part in ("--set", f"{key}={json.dumps(value)}")]
    steps = data_of(succeed("view", sample, *settings))["steps"]
    assert steps[0]["numbers"].startswith("x = [1, 2], W1 = [[1, 0], [0, 1], [1, 1]]")


def test_opening_needs_a_file_and_asks_the_browser(reverse, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    assert invoke("view", "--open", input=reverse).exit_code == 2
    succeed("view", "--open", "-o", tmp_path / "page.html", input=reverse)
    assert opened == [(tmp_path / "page.html").as_uri()]


# --- in the browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture
def page(browser, reverse, tmp_path):
    """The worked example with numbers, open in the browser."""
    return opened(browser, tmp_path, succeed("view", "--set", "x=3", "--set", "y@-1=1", input=reverse))


def opened(browser, folder, data: bytes) -> Browser:
    path = folder / "page.html"
    path.write_bytes(data)
    browser.open(path)
    assert browser.messages == []
    assert browser.requests == [path.as_uri()]
    return browser


NOW = "[...document.querySelectorAll('.now')].map((group) => group.dataset.item).join()"
WORDS = "document.getElementById('words').textContent"
LATER = "document.querySelectorAll('.node.later').length"
SCALE = "svg.getBoundingClientRect().width"


@needs_chromium
def test_the_slider_steps_through_the_sweep(page):
    assert page.evaluate(NOW) == "" and page.evaluate(LATER) == 0
    page.evaluate("slider.focus()")
    seen = []
    for _ in range(6):
        page.press("ArrowRight")
        seen.append((page.evaluate(NOW), page.evaluate(LATER), page.evaluate(WORDS).partition(":")[0]))
    assert seen == [
        ("g1v0", 5, "It starts from the seed c0 = y@-1."),
        ("g1n0", 4, "c1 = x · c0"),
        ("g1n1", 3, "c2 = v1 · c0"),
        ("g1n2", 2, "c3 = c2 + c1"),
        ("g1n3", 1, "c4 = c3 + c1"),
        ("g1o0", 0, "x@-1 = c4"),
    ]
    assert page.evaluate("document.getElementById('next').disabled") is True
    page.evaluate("document.getElementById('prev').click()")
    assert page.evaluate(NOW) == "g1n3"
    page.press("p")
    assert page.evaluate(NOW) == "g1n2" and page.evaluate("document.getElementById('numbers').textContent") == "c3 = 6 + 3 = 9"
    assert page.messages == [] and len(page.requests) == 1


@needs_chromium
def test_numbers_stand_on_the_edges(page, reverse, tmp_path):
    texts = "[...document.querySelectorAll('.edge text')].map((text) => text.textContent.trim()).sort().join()"
    assert page.evaluate(texts) == "1,1,12,18,3,3,3,3,3,3,6,6,6,9"
    assert opened(page, tmp_path, succeed("view", input=reverse)).evaluate(texts) == ""


@needs_chromium
def test_hover_and_focus_tell_what_a_node_is(page):
    told = "tip.hidden ? '' : tip.innerText"
    assert page.evaluate(told) == ""
    page.evaluate("nodes.get('g1n2').focus()")
    assert page.evaluate(told).split("\n")[:4] == [
        "c3 = c2 + c1",
        "add: x + y (sum)",
        "type f64[]",
        "role linear, active in input 0 and 1",
    ]
    page.evaluate("document.activeElement.blur()")
    assert page.evaluate(told) == ""
    box = page.evaluate(
        "(({x, y, width, height}) => ({x: x + width / 2, y: y + height / 2}))(nodes.get('g0v0').getBoundingClientRect())"
    )
    page.mouse("mouseMoved", box["x"], box["y"])
    assert page.evaluate(told).split("\n")[:2] == ["x", "input of f, type f64[]"]


@needs_chromium
def test_zoom_pan_and_fit(page):
    fitted, left = page.evaluate(SCALE), page.evaluate("svg.getBoundingClientRect().left")
    page.mouse("mouseWheel", 400, 300, deltaX=0, deltaY=-200)
    assert page.evaluate(SCALE) > fitted * 1.3
    page.press("0")
    assert page.evaluate(SCALE) == pytest.approx(fitted)
    page.evaluate("document.getElementById('out').click()")
    assert page.evaluate(SCALE) < fitted
    page.evaluate("document.getElementById('fit').click()")
    page.mouse("mousePressed", 100, 300, button="left", clickCount=1)
    page.mouse("mouseMoved", 150, 320, button="left")
    page.mouse("mouseReleased", 150, 320, button="left", clickCount=1)
    assert page.evaluate("svg.getBoundingClientRect().left") == pytest.approx(left + 50)
    page.press("ArrowRight")
    assert page.evaluate("svg.getBoundingClientRect().left") == pytest.approx(left - 10)


@needs_chromium
def test_every_control_and_node_has_a_name(page):
    unnamed = """[...document.querySelectorAll('button, input, [tabindex]')].filter(
        (e) => !(e.getAttribute('aria-label') || e.textContent.trim())).length"""
    assert page.evaluate(unnamed) == 0
    assert page.evaluate("nodes.get('g1n2').getAttribute('aria-label')").startswith("c3 = c2 + c1, add")


@needs_chromium
def test_print_has_the_picture_and_the_words_and_no_controls(page, tmp_path):
    page.evaluate("show(4)")
    page.call("Emulation.setEmulatedMedia", media="print")
    shown = "(e) => { const box = e.getBoundingClientRect(); return box.width * box.height > 0; }"
    assert page.evaluate(f"[svg, byId('caption')].every({shown}) && !({shown})(slider)") is True
    page.call("Emulation.setEmulatedMedia", media="")
    pdf = base64.b64decode(page.call("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF") and len(re.findall(rb"/Type */Page\b", pdf)) == 1


@needs_chromium
def test_tab_reaches_the_picture_its_parts_and_the_controls_in_order(page):
    order = "[...document.querySelectorAll('[tabindex], button:not(:disabled), input')].map((e) => e.id || e.dataset.item)"
    controls = page.evaluate(order)
    assert controls[:2] == ["search", "view"] and controls[-5:] == ["in", "out", "fit", "next", "slider"]
    assert page.evaluate("document.querySelectorAll('[tabindex]:not([tabindex=\"0\"])').length") == 0
    page.evaluate("show(4)")
    assert page.evaluate("slider.getAttribute('aria-valuetext')").startswith("c3 = c2 + c1")
    assert page.evaluate("document.querySelectorAll('[aria-current=step]').length") == 1
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    assert page.evaluate("getComputedStyle(nodes.get('g1n0')).transitionDuration") == "0s"
    page.call("Emulation.setEmulatedMedia", features=[])


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(page, scheme):
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    ratio = """(() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const parts = style.getPropertyValue(name).trim().match(/[0-9a-f]{2}/gi).map((h) => parseInt(h, 16) / 255);
        const [r, g, b] = parts.map((c) => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
        return .2126 * r + .7152 * g + .0722 * b;
      };
      const pairs = [['--ink', '--page'], ['--quiet', '--panel'], ['--quiet', '--card'], ['--primal', '--card'],
                     ['--tangent', '--card'], ['--cotangent', '--card'], ['--ink', '--cotangent-fill'], ['--ink', '--primal-fill']];
      return Math.min(...pairs.map(([a, b]) => {
        const [dark, bright] = [light(a), light(b)].sort((p, q) => p - q);
        return (bright + .05) / (dark + .05);
      }));
    })()"""
    assert page.evaluate(ratio) >= 4.5
    page.call("Emulation.setEmulatedMedia", features=[])


@needs_chromium
@pytest.mark.parametrize(
    "name",
    [
        "</script><script>window.hit = 1</script>",
        "<img src=x onerror='window.hit = 1'>",
        "]]><svg onload='window.hit=1'>",
        "{{data}}",
        "\u202egnp.exe\u2066",
        'a"b\\\n',
        "long" * 500,
    ],
)
def test_names_do_not_inject(browser, tmp_path, name):
    data = document(graph([("neg", 0)], inputs=[(name, "f64[]")], outputs=[(name + "!", 1)], name=name))
    page = opened(browser, tmp_path, succeed("view", input=data))
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.querySelectorAll('script, img, svg').length") == 3
    assert page.evaluate("document.querySelector('h1').textContent") == printable(name)
    page.evaluate("nodes.get('g0v0').focus()")
    assert page.evaluate("tip.firstChild.textContent") == name
