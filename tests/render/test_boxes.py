"""Pages of large graphs in a headless Chromium: they are legible at opening, boxes open, search finds, and values are told."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tests.cli.running import ROOT, document, graph, invoke, succeed
from tests.programs import needs
from tests.render.chromium import Browser
from tests.render.large import SIZES, attention_gradient, kinetics_gradient
from tests.tiers import campaign
from tidu_cli import save

pytestmark = [needs("dot"), needs("chromium")]

STEPS = 164 if campaign() else 34

SCREEN = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}

FAULTS = """(() => {
  const box = (e) => e.getBoundingClientRect(), frame = box(view), faults = [];
  const drawn = [...svg.querySelectorAll('.node')].map((e) => [e.dataset.item ?? e.textContent.trim(), box(e)]);
  for (const [name, a] of drawn) {
    const apart = (b) => b.right < a.left + 1 || a.right < b.left + 1 || b.bottom < a.top + 1 || a.bottom < b.top + 1;
    if (a.left < frame.left - 1 || a.right > frame.right + 1) faults.push(`${name} is outside`);
    if (!byId('panel').hidden && a.right > box(byId('panel')).left + 1) faults.push(`${name} is under the panel`);
    if (!byId('path').hidden && a.top < box(byId('path')).bottom - 1) faults.push(`${name} is under the path`);
    if (a.top < frame.top - 1 || a.bottom > frame.bottom + 1) faults.push(`${name} is outside`);
    for (const [other, b] of drawn) if (name < other && !apart(b)) faults.push(`${name} and ${other} overlap`);
  }
  for (const group of svg.querySelectorAll('.node')) for (const text of group.querySelectorAll('text')) {
    const a = box(text), b = box(group);
    if (a.left < b.left - 2 || a.right > b.right + 2) faults.push(`${text.textContent} is wider than its box`);
  }
  const whole = document.documentElement;
  if (whole.scrollWidth > innerWidth || whole.scrollHeight > innerHeight) faults.push('the page scrolls');
  return faults;
})()"""
"""What is wrong with the picture that is shown."""

SMALLEST = """Math.min(...[...svg.querySelectorAll('.node text')].map(
    (text) => parseFloat(text.getAttribute('font-size')) * svg.getScreenCTM().a))"""
HERE = "[...byId('path').children].map((b) => b.textContent).join(' > ')"
PANEL = "byId('panel').hidden ? '' : byId('panel').innerText"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        running.call("Emulation.setDeviceMetricsOverride", **SCREEN)
        yield running


@pytest.fixture(scope="module")
def attention(tmp_path_factory):
    """The page of the gradient of a transformer's layer, with numbers."""
    folder = tmp_path_factory.mktemp("attention")
    save(attention_gradient(), folder / "gradient.json")
    rng = np.random.default_rng(1)
    values = {name: rng.normal(size=[int(n) for n in type_[4:-1].split(",")]) for name, type_ in SIZES.items()}
    np.savez(folder / "data.npz", **values, **{"y@-1": np.ones((4, 8))})
    succeed("view", folder / "gradient.json", "--inputs", folder / "data.npz", "-o", folder / "page.html")
    return folder


@pytest.fixture
def page(browser, attention):
    browser.open(attention / "page.html")
    assert browser.messages == [] and len(browser.requests) == 1
    return browser


@pytest.mark.check
def test_attention_is_legible_at_opening(page, tmp_path):
    assert page.evaluate(FAULTS) == []
    assert page.evaluate(SMALLEST) >= 9
    shown = page.evaluate("svg.textContent")
    assert all(name in shown for name in ("values", "cotangents", "attention"))
    page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000


@pytest.mark.check
def test_every_group_of_it_is_sound(page):
    """No boxes overlap and nothing is outside, in any group; and text can be read."""
    groups = page.evaluate("Object.keys(data.boxes)")
    assert len(groups) > 30
    for group in groups:
        page.evaluate(f"enter('{group}')")
        assert page.evaluate(FAULTS) == [], group
        assert page.evaluate(SMALLEST) >= 8, group
        assert page.evaluate("svg.querySelectorAll('.node').length") >= 2


def test_boxes_open_by_click_and_by_key_and_close(page):
    attention = "[...svg.querySelectorAll('.node.opens')].find((g) => g.textContent.trim().startsWith('attention '))"
    middle = "(({x, y, width, height}) => ({x: x + width / 2, y: y + height / 2}))"
    at = page.evaluate(f"{middle}({attention}.getBoundingClientRect())")
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, at["x"], at["y"], button="left", clickCount=1)
    assert page.evaluate(HERE).split(" > ")[-1] == "attention"
    assert "nodes" in page.evaluate("byId('words').textContent")
    page.press("Escape")
    assert page.evaluate("svg.textContent").count("cotangents") == 1
    page.evaluate("enter('')")
    page.evaluate(f"{attention}.focus()")
    page.press("Enter")
    assert page.evaluate(HERE).split(" > ")[-1] == "attention"
    page.evaluate("byId('path').firstChild.click()")
    assert page.evaluate("here") == "" and page.evaluate("byId('path').hidden") is True


def test_a_value_is_told_with_its_numbers_and_neighbours(page):
    page.evaluate("go_to('g0v0')")
    told = page.evaluate(PANEL)
    assert told.split("\n")[1:] and "input of layer" in told and "type f64[4,8]" in told and "min -" in told and "mean" in told
    assert "Read by" in told
    page.evaluate("[...byId('panel').querySelectorAll('li button')][0].click()")
    told = page.evaluate(PANEL)
    assert "at layer samples/attention/attention.py:" in told and "Computed from" in told and "role primal" in told
    assert page.evaluate("document.querySelectorAll('.chosen').length") == 1
    assert page.evaluate(FAULTS) == []  # the panel covers nothing of the picture
    page.press("Escape")
    assert page.evaluate(PANEL) == ""


def test_search_finds_names_ops_types_and_lines(page):
    def hits(words):
        page.evaluate(f"search.value = '{words}'; search.dispatchEvent(new Event('input'))")
        return page.evaluate("[...found.querySelectorAll('button')].map((b) => b.innerText)")

    assert "Wq" not in str(hits("nothing of this name")) and hits("zzz") == []
    assert hits("softmax")[0].startswith("softmax")
    assert any("exp" in hit for hit in hits("exp"))
    line = hits("attention.py:2")
    assert line and hits("q@-1")[0].startswith("q@-1")
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    hits("v@-1")
    page.press("Enter")
    assert "output of layer" in page.evaluate(PANEL)
    assert page.evaluate("nodes.get(chosen).closest('.picture').dataset.of === here") is True


def test_steps_lead_through_the_boxes(page):
    steps = page.evaluate("data.steps.length")
    for step in (1, 40, steps - 1, steps):
        page.evaluate(f"show({step})")
        assert page.evaluate("svg.querySelectorAll('.now').length") >= (1 if 1 < step < steps else 0)
        assert page.evaluate("byId('words').textContent")
    page.evaluate("show(40); enter(''); say()")
    assert page.evaluate("here") == ""


@pytest.fixture(scope="module")
def kinetics(tmp_path_factory):
    """The page of a graph of 6,000 items, of 29,000 in campaigns, and how long it took to make."""
    folder = tmp_path_factory.mktemp("kinetics")
    save(kinetics_gradient(STEPS), folder / "gradient.msgpack")
    start = time.process_time()
    succeed("view", folder / "gradient.msgpack", "-o", folder / "page.html")
    return folder, time.process_time() - start


@pytest.mark.check
def test_a_graph_of_thousands_of_items_is_legible_at_opening(browser, kinetics):
    folder, seconds = kinetics
    assert (folder / "page.html").stat().st_size < 16_000_000 * STEPS // 164
    assert seconds < 30
    browser.open(folder / "page.html")
    assert browser.messages == []
    assert browser.evaluate("Object.keys(data.items).length") > 29_000 * STEPS // 164
    assert browser.evaluate(FAULTS) == [] and browser.evaluate(SMALLEST) >= 9
    for group in browser.evaluate(f"Object.keys(data.boxes).filter((_, k) => k % {16 * STEPS // 7} === 0)"):
        browser.evaluate(f"enter('{group}')")
        assert browser.evaluate(FAULTS) == [], group
    assert browser.evaluate("search.value = 'step 17'; look(); found.querySelector('button').textContent").startswith("step 17")


@pytest.mark.check
def test_pictures_of_it_are_small(kinetics):
    folder, _ = kinetics
    svg = succeed("dot", folder / "gradient.msgpack", "--format", "svg")
    assert 3 < svg.count(b'class="node"') < 20
    opened = succeed("dot", folder / "gradient.msgpack", "--format", "svg", "--open", "step 17")
    assert svg.count(b'class="cluster"') < opened.count(b'class="cluster"')


def test_a_page_opens_at_a_group(browser, attention):
    succeed("view", attention / "gradient.json", "--at", "attention", "-o", attention / "at.html")
    browser.open(attention / "at.html")
    assert browser.evaluate(HERE).endswith("attention")
    result = invoke("view", attention / "gradient.json", "--at", "atention")
    assert result.exit_code == 1 and "did you mean 'attention'?" in result.stderr
    result = invoke("view", ROOT / "samples" / "f.json", "--at", "f")
    assert result.exit_code == 1 and "without groups" in result.stderr


@pytest.mark.check
@pytest.mark.parametrize(
    "name", ["</script><script>window.hit = 1</script>", "<img src=x onerror='window.hit = 1'>", "</template><b>", "a\nb"]
)
def test_names_of_groups_do_not_inject(browser, tmp_path, name):
    made = graph([("neg", k) for k in range(90)], inputs=[(name, "f64[]")], outputs=[(f"{name}!", 90)], name=name)
    made["nodes"] = [
        {"op": "neg", "inputs": [k], "meta": {"source": [f"{name} f.py:{k // 30}", f"{name} {name}.py:{k // 10}"], "name": name}}
        for k in range(90)
    ]
    (tmp_path / "page.html").write_bytes(succeed("view", input=document(made)))
    browser.open(tmp_path / "page.html")
    assert browser.messages == [] and browser.evaluate("window.hit") is None
    for group in browser.evaluate("Object.keys(data.boxes)"):
        browser.evaluate(f"enter('{group}')")
    browser.evaluate("go_to('g0n3')")
    browser.evaluate("search.value = 'neg'; look()")
    assert (
        browser.evaluate("window.hit") is None and browser.evaluate("document.querySelectorAll('img, b:not(#tip b)').length") == 0
    )
