"""tidu: automatic differentiation for computation graphs that live in files.

All that is public of `tidu_cli`, under the name that one installs: `import tidu`.
"""

import tidu_cli
from tidu_cli import __version__ as __version__

TYPE_CHECKING = False  # That of typing takes long to import, and what is public is imported when it is first asked for.

if TYPE_CHECKING:
    from tidu_cli import *  # noqa: F403

__all__: list[str] = []
__all__ += tidu_cli.__all__


if not TYPE_CHECKING:  # which takes it for a promise that there is every name

    def __getattr__(name):
        if name in __all__:
            return getattr(tidu_cli, name)
        raise AttributeError(f"module 'tidu' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
