"""tidu compose: the outputs of each document are the inputs of the next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from tidu_cli.cli.building.declarations import build_option
from tidu_cli.cli.main import Command
from tidu_cli.cli.messages import note
from tidu_cli.cli.options import KEY, document_output_options, emit, example, load_all, one_pass_option, ops_option, plain_option
from tidu_cli.graph.keys import Key
from tidu_cli.graph.select import listed

if TYPE_CHECKING:
    from tidu_cli.transforms.linking.compose import Joint


@click.command(
    cls=Command, epilog=example("tidu compose --quiet samples/compose_f.json samples/compose_g.json | tidu grad --wrt x --set x=2")
)
@click.argument("files", nargs=-1, metavar="[FILES]...")
@click.option(
    "--by",
    type=click.Choice(["name", "position"]),
    metavar="name|position",
    help="How outputs find the inputs that they feed. [default: by name where a key is on both sides, else by position]",
)
@click.option(
    "--share",
    type=KEY,
    multiple=True,
    metavar="KEY",
    help="An input that several documents have, and that is to be one; repeats. By default it is renamed in the later ones.",
)
@one_pass_option
@build_option
@ops_option
@plain_option
@document_output_options
def command(
    files: tuple[str, ...], by: str | None, share: tuple[Key, ...], one_pass: tuple[int, ...], out: str | None, format_: str | None
) -> None:
    """Feed the outputs of each document to the inputs of the next.

    FILES are in the order of evaluation: f.json g.json is g(f(x)). By position, outputs go in order to the inputs of their kind
    (plain, tangents or cotangents), or else to plain ones. Inputs that nothing feeds stay inputs of the result, whose head is the
    last document's.

    Derivatives of several calls of linearize are no one pass, unless --one-pass says so: as in the chain rule, where the product of
    derivatives is that of the composition.

    What was bound and renamed is told on standard error: u=v says that the input u is the output v.
    """
    from tidu_cli.transforms.linking.compose import compose

    documents, names, came_in = load_all(files or ("-",))
    composition = compose(documents, by=by, share=share, one_pass=one_pass, names=names)
    for name, joint in zip(names[1:], composition.joints, strict=True):
        _tell(name, joint)
    emit(composition.document, out, format_, came_in)


def _tell(file: str, joint: Joint) -> None:
    bound = {key for key, _ in joint.bound}
    free = [f"{old} to {new}" for old, new in joint.inputs.items() if new not in bound]
    renamed = {
        "input": [f"{old} to {new}" for old, new in joint.inputs.items() if new in bound] + free,
        "output": _arrows(joint.outputs),
        "graph": _arrows(joint.graphs),
    }
    if told := "; ".join(f"{kind} {listed(names)}" for kind, names in renamed.items() if names):
        note(f"{file}: renamed {told}{'; --share keeps inputs one' if free else ''}")
    note(f"{file}: bound by {joint.by} {listed([f'{key}={output}' for key, output in joint.bound])}")
    if joint.idle:
        note(f"{file}: no input takes {listed(list(map(str, joint.idle)))}")


def _arrows(names: Mapping[Key, Key] | Mapping[str, str]) -> list[str]:
    return [f"{old} to {new}" for old, new in names.items()]
