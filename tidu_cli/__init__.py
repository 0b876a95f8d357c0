"""tidu: automatic differentiation for computation graphs that live in files."""

__version__ = "0.2.0"

TYPE_CHECKING = False  # That of typing, which takes longer to import than all that a program does before it minds its signals.

if TYPE_CHECKING:
    from tidu_cli.adapters.jax.port import *  # noqa: F403
    from tidu_cli.adapters.numpy.api import *  # noqa: F403
    from tidu_cli.adapters.onnx.port import *  # noqa: F403
    from tidu_cli.api.checks import *  # noqa: F403
    from tidu_cli.api.checks import check
    from tidu_cli.api.compiling import *  # noqa: F403
    from tidu_cli.api.derivatives import *  # noqa: F403
    from tidu_cli.api.documents import *  # noqa: F403
    from tidu_cli.api.evaluation import *  # noqa: F403
    from tidu_cli.api.files import *  # noqa: F403
    from tidu_cli.api.fitting import *  # noqa: F403
    from tidu_cli.api.pictures import *  # noqa: F403
    from tidu_cli.api.training import *  # noqa: F403
    from tidu_cli.errors import TiduError
    from tidu_cli.graph.graph import Document
    from tidu_cli.graph.keys import Key

__all__ = [
    "Compiled",
    "Document",
    "Key",
    "TiduError",
    "bound_loops",
    "check",
    "compile",
    "compose",
    "cond",
    "derivative",
    "diff",
    "draw",
    "evaluate",
    "fixed_point",
    "fori_loop",
    "formula",
    "from_jax",
    "grad",
    "hessian",
    "hvp",
    "info",
    "initial_state",
    "jacobian",
    "jvp",
    "kinks",
    "linear_solve",
    "linearize",
    "load",
    "load_onnx",
    "load_values",
    "materialize",
    "matrix",
    "minimize",
    "ops",
    "rename",
    "renumber",
    "resolve",
    "root",
    "save",
    "save_values",
    "save_weights",
    "scan",
    "schema",
    "show",
    "sparse_array",
    "sparsity",
    "specialize",
    "static",
    "step",
    "stop_gradient",
    "switch",
    "to_dot",
    "to_jax",
    "trace",
    "transpose",
    "value_and_grad",
    "view",
    "vjp",
    "while_loop",
]


if not TYPE_CHECKING:  # which takes it for a promise that there is every name

    def __getattr__(name):
        # The functions of tidu_cli.api, imported when first asked for: `tidu --version` imports nothing but click.
        if name in __all__:
            import importlib

            from tidu_cli import adapters, api

            return getattr(importlib.import_module((adapters.FUNCTIONS | api.FUNCTIONS)[name]), name)
        raise AttributeError(f"module 'tidu_cli' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
