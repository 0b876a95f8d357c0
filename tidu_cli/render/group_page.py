"""The pictures of groups for the page of `tidu view`: each group by itself, as its parts.

Groups that look the same but for what stands in their boxes, as the steps of a loop do, have one drawing, a template: it has room
for the longest texts, and the page writes those of the group into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidu_cli.frozen import Frozen
from tidu_cli.render.dot import item_label
from tidu_cli.render.groups import Group
from tidu_cli.render.picture import Item
from tidu_cli.render.scene import Box, Forest, Scene
from tidu_cli.render.scene_dot import box_label, group_label, laid_out, opened, part_name, scene_dot, svgs

TEMPLATES = 300
"""As many drawings of groups a page has, those of outer groups first. What is within others is told in words."""

_FEW = 500
"""Of so many items, what is said of each stands with it."""


class Boxes(Frozen, slots=False):
    """What a page has of one picture with groups: the overview, the templates, and what is written of each group."""

    overview: str
    templates: Sequence[str]
    pictures: Mapping[str, object]
    about: Mapping[str, object]


@dataclass
class _Template:
    """Scenes that look the same: the first of them, and of each box the longest text in any."""

    scene: Scene
    labels: list[str]
    names: list[str] = field(default_factory=list)

    def widen(self, labels: Sequence[str]) -> None:
        """Make room for these texts, line by line."""
        for k, (old, new) in enumerate(zip(self.labels, labels, strict=True)):
            if len(new) > len(old) or "\n" in new:
                pairs = zip(old.split("\n"), new.split("\n"), strict=True)
                self.labels[k] = "\n".join(max(pair, key=len) for pair in pairs)


def boxes(forest: Forest, label: Callable[[Item], str | None], *, root: str = "", types: bool = False) -> Boxes:
    """The pictures of a forest's groups. `root` is what the page calls the whole."""
    templates: dict[str, _Template] = {}
    number: dict[str, int] = {}
    pictures: dict[str, object] = {}
    for id_, scene in forest.insides().items():
        labels = [_label(forest, box, label) for box in scene.boxes]
        names = [f"b{k}" for k in range(len(labels))]
        blank = ["\n".join("." for _ in text.split("\n")) for text in labels]
        look = scene_dot(forest, scene, names, blank, types=types)
        if look in templates:
            templates[look].widen(labels)
        elif len(templates) < TEMPLATES:
            number[look] = len(templates)
            templates[look] = _Template(scene, labels.copy(), names)
        else:
            continue
        own = sum(box.part is not None for box in scene.boxes)
        stand_for = [_named(box) for box in scene.boxes]
        pictures[id_] = {"template": number[look], "n": own, "boxes": stand_for, "labels": labels}
    all_ = templates.values()
    drawn = laid_out(lambda wide: [scene_dot(forest, t.scene, t.names, t.labels, types=types, wide=wide) for t in all_])

    def overview(chosen: set[str], wide: bool) -> str:
        scene = forest.overview(chosen)
        names = [_named(box) for box in scene.boxes]
        return scene_dot(forest, scene, names, [_label(forest, box, label) for box in scene.boxes], types=types, wide=wide)

    (svg,) = svgs([overview(*opened(forest, overview))])
    about = {group.id: _about(forest, group, root) for group in forest.groups.values()}
    return Boxes(svg, [svg for svg, _ in drawn], pictures, about)


def interned(data: Any) -> Any:
    """The data of a page, in which a line of an item that others have, too, is the number of a text in `texts`."""
    if len(data["items"]) <= _FEW:
        return {**data, "texts": []}
    counts = Counter(line for about in data["items"].values() for line in about["lines"])
    number = {line: k for k, line in enumerate(line for line, n in counts.items() if n > 1)}
    items = {id_: {**about, "lines": [number.get(line, line) for line in about["lines"]]} for id_, about in data["items"].items()}
    return {**data, "items": items, "texts": list(number)}


def _label(forest: Forest, box: Box, label: Callable[[Item], str | None]) -> str:
    if isinstance(box.part, Item):
        return label(box.part) or item_label(forest.shown, box.part)
    return box_label(forest, box) or ""


def _named(box: Box) -> str:
    """What a box stands for; one at the margin that stands for several, for none."""
    part = box.part or (box.others[0] if len(box.others) == 1 else None)
    return "" if part is None else part.id


def _about(forest: Forest, group: Group, root: str) -> Mapping[str, object]:
    parent = forest.parents[group.id]
    if [parent] == [*forest.graphs]:  # the only graph is open in the whole picture
        parent = None
    title, *lines = group_label(forest, group).split("\n")
    return {
        "name": part_name(forest.shown, group),
        "parent": root if parent is None else parent.id,
        "title": title,
        "lines": lines,
        "overview": f"{title}: {'; '.join(lines)}",
    }
