"""SciPy's functions while a function is traced: called with arrays that are traced, they record what they compute.

SciPy's ufuncs ask arrays how they are computed, and `scipy.fft` has backends. Its other functions ask nobody. So for as long as
something is traced, the code of those that graphs have is another, which looks at the arguments: with a traced array among them
it calls the function of `MODULES`, and else SciPy's own code, as before. The function remains the same object, by
whatever name it goes: `from scipy.linalg import expm`, an entry of a dict, an argument of functools.partial. Other threads see
no difference.
"""

from __future__ import annotations

import importlib.abc
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

from tidu_cli.adapters.numpy.arrays.aliasing import shared
from tidu_cli.adapters.numpy.arrays.operands import arrays_in
from tidu_cli.adapters.numpy.arrays.storage import rooted
from tidu_cli.adapters.numpy.buffers.memory import holds_traced, resolved
from tidu_cli.adapters.numpy.numpy.functions import functions_of, holds_arrays
from tidu_cli.adapters.numpy.scipy import distance, fft, filters, integrate, interpolate, linalg, matrices, signal, special, stats

Function = Callable[..., Any]


def call(
    name: str, ours: Function, plain: Function, args: Sequence[Any], options: Mapping[str, Any], *, method: bool = False
) -> Any:
    """What SciPy's function of that name gives: recorded if an argument is traced, else computed, as `plain` does.

    Of a method the first argument is an object, which may hold traced arrays, such as a spline's coefficients.
    """
    given, named = resolved(args), resolved(options)
    if not holds_arrays(given, named) and not (method and arrays_in(_attributes(given[0]))):
        return plain(*args, **options)
    result = shared(name, ours(*given, **named), given, named)
    for x in arrays_in([result]):
        if x.type.rank > 1:  # SciPy has matrices in the order of Fortran, too
            rooted(x).root.contiguous = None
    return result


def _attributes(x: Any) -> list[Any]:
    slots = [getattr(x, name, None) for c in type(x).__mro__ for name in getattr(c, "__slots__", ())]
    return [*getattr(x, "__dict__", {}).values(), *slots]


_TEMPLATE = """
def outer({free}):
    def template(*args, **options):
        {unused}
        called = ...
        return called(*args, **options)
    return template
"""


def _code(function: FunctionType, called: Function) -> CodeType:
    """Code for a function that calls another one instead. The other one is a constant of it, its only place.

    It is compiled with the free variables of the function, whose closure it gets: whoever looks at its frames looks into that.
    """
    scope: dict[str, Any] = {}
    free = function.__code__.co_freevars
    source = _TEMPLATE.format(free=", ".join(free), unused=f"if 0: {', '.join(free)}" if free else "")
    exec(compile(source, __file__, "exec"), scope)
    template: CodeType = scope["outer"](*free).__code__
    constants = tuple(called if x is ... else x for x in template.co_consts)
    return template.replace(co_consts=constants, co_name=function.__code__.co_name)


class _Backend:
    """What `scipy.fft` asks first."""

    __ua_domain__ = "numpy.scipy.fft"

    @staticmethod
    def __ua_function__(method: Any, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        ours = MODULES["scipy.fft"].get(method.__name__)
        if ours is None or not holds_traced((args, options)):
            return NotImplemented
        return call(method.__name__, ours, method, args, options)


class _Replacement(importlib.abc.MetaPathFinder):
    """SciPy's functions with other code, how many traces want it, and the import of what is not there yet.

    The other code is kept beside that which it replaces: it takes longer to make than most functions take to trace.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._traces = 0
        self._before: dict[FunctionType, CodeType] = {}
        self._codes: dict[FunctionType, tuple[CodeType, CodeType]] = {}
        self._backends = threading.local()

    @contextmanager
    def during(self) -> Iterator[None]:
        """Have the functions replaced, also those of modules that are imported only then."""
        with ExitStack() as stack:
            outer, self._backends.stack = getattr(self._backends, "stack", None), stack
            stack.callback(setattr, self._backends, "stack", outer)
            with self._lock:
                self._traces += 1
                if self._traces == 1:
                    sys.meta_path.insert(0, self)
            stack.callback(self._end)
            for name in MODULES:
                if name in sys.modules:
                    self._replace(name)
            yield

    def _end(self) -> None:
        with self._lock:
            self._traces -= 1
            if not self._traces:
                sys.meta_path.remove(self)
                while self._before:
                    function, code = self._before.popitem()
                    function.__code__ = code

    def _replace(self, name: str) -> None:
        module = sys.modules[name]
        if name == "scipy.fft":
            self._backends.stack.enter_context(module.set_backend(_Backend))
        with self._lock:
            for path, ours in MODULES[name].items():
                function = _function_at(module, path)
                if function is not None and function not in self._before:
                    self._before[function] = plain = function.__code__
                    if function not in self._codes or self._codes[function][0] is not plain:
                        self._codes[function] = plain, _code(function, _either(path, ours, function))
                    function.__code__ = self._codes[function][1]

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> Any:
        """As importlib asks of a finder: the spec that others find, with a loader that replaces functions in the end."""
        if name not in MODULES or getattr(self._backends, "stack", None) is None:
            return None
        specs = (finder.find_spec(name, path, target) for finder in list(sys.meta_path) if finder is not self)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def executed(module: ModuleType) -> None:
                execute(module)
                self._replace(name)

            spec.loader.exec_module = executed  # type: ignore[method-assign]
        return spec


def _function_at(module: ModuleType, path: str) -> FunctionType | None:
    """A function of a module or of a class in it, or what initializes a class; None if this SciPy has none, or none in Python."""
    member: Any = module
    for part in path.split("."):
        member = getattr(member, part, None)
    member = getattr(member, "__init__") if isinstance(member, type) else getattr(member, "__func__", member)  # noqa: B009
    return member if isinstance(member, FunctionType) else None


def _either(path: str, ours: Function, function: FunctionType) -> Function:
    plain = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    plain.__kwdefaults__ = function.__kwdefaults__
    method = "." in function.__qualname__.rpartition("<locals>.")[2]

    def called(*args: Any, **options: Any) -> Any:
        return call(path, ours, plain, args, options, method=method)

    return called


_REPLACEMENT = _Replacement()
"""One for the process, as SciPy's functions are."""

scipy_traced = _REPLACEMENT.during
"""While this context lasts, SciPy's functions record what they compute of arrays that are traced."""

MODULES: Mapping[str, Mapping[str, Callable[..., Any]]] = {
    "scipy.fft": functions_of(fft),
    "scipy.integrate": functions_of(integrate),
    "scipy.interpolate": functions_of(interpolate),
    "scipy.linalg": functions_of(linalg) | functions_of(matrices),
    "scipy.ndimage": functions_of(filters),
    "scipy.signal": functions_of(signal),
    "scipy.spatial.distance": functions_of(distance),
    "scipy.special": functions_of(special, without="floats"),
    "scipy.stats": functions_of(stats),
}
"""What can be traced: public functions of the modules here, by SciPy's names; `rv_continuous.pdf` is a method of a class."""
