"""tidu in Python: what the commands do, on documents in memory. Names and order of arguments are the commands'.

Keys are text, such as "x" or "y@-1", or `Key`s. `docs/python.md` shows examples. Modules are imported when one of their functions
is first asked for, as a command needs one of them.
"""

from tidu_cli.graph.graph import CALLED, SHOWN, Document

TYPE_CHECKING = False  # as in tidu_cli

if TYPE_CHECKING:
    from tidu_cli.api.checks import *  # noqa: F403
    from tidu_cli.api.checks import check as check
    from tidu_cli.api.compiling import *  # noqa: F403
    from tidu_cli.api.derivatives import *  # noqa: F403
    from tidu_cli.api.documents import *  # noqa: F403
    from tidu_cli.api.evaluation import *  # noqa: F403
    from tidu_cli.api.files import *  # noqa: F403
    from tidu_cli.api.fitting import *  # noqa: F403
    from tidu_cli.api.pictures import *  # noqa: F403
    from tidu_cli.api.training import *  # noqa: F403
    from tidu_cli.errors import TiduError as TiduError
    from tidu_cli.graph.keys import Key as Key

FUNCTIONS = {
    **dict.fromkeys(("compose", "linearize", "materialize", "matrix", "resolve", "transpose"), "tidu_cli.api.documents"),
    **dict.fromkeys(
        (*("derivative", "grad", "hessian", "hvp", "jacobian", "jvp"), *("sparse_array", "sparsity", "value_and_grad", "vjp")),
        "tidu_cli.api.derivatives",
    ),
    **dict.fromkeys(("Compiled", "compile"), "tidu_cli.api.compiling"),
    "evaluate": "tidu_cli.api.evaluation",
    **dict.fromkeys(("load", "load_values", "save", "save_values"), "tidu_cli.api.files"),
    **dict.fromkeys(("bound_loops", "rename", "renumber", "specialize"), "tidu_cli.api.files"),
    "minimize": "tidu_cli.api.fitting",
    **dict.fromkeys(("initial_state", "save_weights", "step"), "tidu_cli.api.training"),
    **dict.fromkeys(("draw", "to_dot", "view"), "tidu_cli.api.pictures"),
    **dict.fromkeys(("diff", "info", "kinks", "ops", "schema", "show"), "tidu_cli.api.checks"),
    "check": "tidu_cli.api.checks",
    "Document": "tidu_cli.graph.graph",
    "Key": "tidu_cli.graph.keys",
    "TiduError": "tidu_cli.errors",
}
"""The names of the API, and the modules that have them."""

__all__ = [*FUNCTIONS]


def _show(document: Document) -> str:
    from tidu_cli.render.listing import listing

    return "\n".join(listing(document))


def _html(document: Document) -> str:
    from tidu_cli.render import listing

    return listing.html_of(document)


def _svg(document: Document) -> str | None:
    from tidu_cli.render import listing

    return listing.svg_of(document)


def _call(document: Document, positions: tuple[object, ...], names: dict[str, object]) -> dict[str, object]:
    from tidu_cli.api.compiling import values_given
    from tidu_cli.api.evaluation import evaluate

    inputs = [str(i.key) for i in document.free_inputs]
    return evaluate(document, values_given("Document", inputs, positions, names) if positions else names)


CALLED.append(_call)
SHOWN.update(text=_show, html=_html, svg=_svg)


if not TYPE_CHECKING:

    def __getattr__(name):
        if name in FUNCTIONS:
            import importlib

            return getattr(importlib.import_module(FUNCTIONS[name]), name)
        raise AttributeError(f"module 'tidu_cli.api' has no attribute '{name}'")
