"""What optimizers minimize: an output of a document, or residuals, as functions of a vector of unknowns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tidu_cli.api.derivatives import pipeline
from tidu_cli.api.unknowns import Unknowns, flat
from tidu_cli.arguments import BOUNDED, LEAST_SQUARES
from tidu_cli.errors import EvaluationError, Remedy, TransformError
from tidu_cli.graph.graph import Document, Graph
from tidu_cli.graph.keys import Key
from tidu_cli.graph.literals import spelled
from tidu_cli.graph.select import listed, select_outputs
from tidu_cli.graph.types import FLOATS, TensorType, leaves
from tidu_cli.lax.arrays.dtypes import numpy_dtype
from tidu_cli.notes import detail, note
from tidu_cli.runtime.choosing import MANY, chosen, default_engine
from tidu_cli.runtime.evaluate import outward, require_given
from tidu_cli.runtime.inputs import value_of_input
from tidu_cli.runtime.memory import check_memory
from tidu_cli.transforms.materialize import materialize
from tidu_cli.watching import listening, watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRODUCTS, MATRICES = ("Newton-CG", "trust-ncg", "trust-krylov", "trust-constr"), ("trust-exact", "dogleg")
"""Methods that take Hessian-vector products, and those that take the Hessian."""

_MOST = 1000
"""As many unknowns have a covariance matrix."""


class _Function:
    """The outputs of a graph as a function of unknowns, and of tangents of these."""

    def __init__(self, head: Graph, unknowns: Unknowns, given: Mapping[Key, Any], engine: tuple[str | None, str | None]) -> None:
        from tidu_cli.runtime.plans.program import prepared

        name, device = engine
        choice = chosen(head, name or default_engine(), device=device, runs=MANY)
        detail(f"engine {choice.name}, {choice.reason}")
        self._program, _ = prepared(head, choice)
        check_memory(self._program, None)
        self._unknowns = unknowns
        self._tangents = dict(zip([i.key for i in head.inputs if i.key not in unknowns.declared], unknowns.types, strict=False))
        variable = {*unknowns.types, *self._tangents}
        fixed = [i for i in self._program.inputs if i.key not in variable]
        require_given(fixed, given)
        self._fixed = {i.key: value_of_input(i.key, i.type, given[i.key]) for i in fixed}

    def __call__(self, x: NDArray[Any], v: NDArray[Any] | None = None) -> list[Any]:
        """The values of the outputs."""
        values = self._fixed | self._unknowns.values(x)
        if v is not None:
            along = self._unknowns.values(v)
            values |= {tangent: along[key] for tangent, key in self._tangents.items()}
        with listening(None):  # progress is reported for iterations, not for each evaluation
            return self._program.run_in_order([values[i.key] for i in self._program.inputs])


class _Point(NamedTuple):
    x: NDArray[Any]
    cost: float
    gradient: NDArray[Any]


class Search:
    """A function that an optimizer minimizes: what it has evaluated, and the best of it."""

    def __init__(
        self,
        document: Document,
        unknowns: Unknowns,
        given: Mapping[Key, Any],
        outputs: Sequence[Key],
        engine: tuple[str | None, str | None],
        strong_zeros: bool,
        bounds: tuple[NDArray[Any], NDArray[Any]],
    ) -> None:
        import numpy as np

        self.document, self.unknowns, self.given, self.outputs = document, unknowns, given, outputs
        self.engine, self.strong_zeros, self.bounds = engine, strong_zeros, bounds
        self.trace: list[tuple[float, float]] = []
        """The cost and the norm of the gradient after each iteration, from the start on."""
        self.evaluations = 0
        self.best = _Point(np.zeros(unknowns.size), np.inf, np.zeros(unknowns.size))
        self._prepare()

    def _prepare(self) -> None:
        raise NotImplementedError

    def require_finite(self, start: NDArray[Any]) -> None:
        """Raises EvaluationError that names what is not finite at the start."""
        raise NotImplementedError

    def _search(self, method: str, start: NDArray[Any], options: dict[str, Any], most: int | None) -> Any:
        raise NotImplementedError

    def at(self, x: NDArray[Any]) -> _Point:
        """Cost and gradient at a point."""
        raise NotImplementedError

    def more(self, point: _Point) -> dict[str, Any]:
        """What there is to say of the result besides."""
        return {}

    def whole(self, point: _Point) -> _Point:
        """A point that was evaluated, with its gradient."""
        return point

    def eps(self) -> float:
        """The precision of the unknowns and outputs."""
        import ml_dtypes
        import numpy as np

        precision: Any = ml_dtypes.finfo
        chosen_outputs = [output.type for _, output in select_outputs(self.document, self.outputs)]
        dtypes = {leaf.dtype for type_ in (*self.unknowns.types.values(), *chosen_outputs) for _, leaf in leaves(type_)}
        return max(float(precision(numpy_dtype(np, dtype)).eps) for dtype in dtypes)

    def run(self, method: str, start: NDArray[Any], tolerance: float | None, most: int | None) -> dict[str, Any]:
        """Minimize, and report. Raises EvaluationError where SciPy does; KeyboardInterrupt with the report of the best point."""
        import numpy as np

        watch("minimizing")
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")  # of SciPy, on what the result says, too
                result = self._search(method, start, {} if tolerance is None else {"tol": tolerance}, most)
                point = self.at(np.asarray(result.x, np.float64))
        except KeyboardInterrupt:
            report = self._report(method, self.whole(self.best), len(self.trace) - 1, "interrupted", success=False)
            raise KeyboardInterrupt(report) from None
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            raise EvaluationError(f"{method}: {' '.join(str(error).split())}") from None
        iterations = getattr(result, "nit", len(self.trace) - 1)
        message = " ".join(str(result.message).split())
        finite = bool(np.isfinite(point.cost) and np.isfinite(point.gradient).all())
        point = point if finite else self.whole(self.best)
        return self._report(method, point, int(iterations), message, success=finite and bool(result.success))

    def _report(self, method: str, point: _Point, iterations: int, message: str, *, success: bool) -> dict[str, Any]:
        return {
            "method": method,
            "success": success,
            "message": message,
            "cost": point.cost,
            "gradient_norm": self.norm(point),
            "iterations": iterations,
            "evaluations": self.evaluations,
            "values": self.named(point.x),
            **self.more(point),
        }

    def named(self, x: NDArray[Any]) -> dict[str, Any]:
        """The values of the unknowns at a point, by the text of their keys, as users have them."""
        values = self.unknowns.values(x)
        return {str(key): outward(type_, values[key]) for key, type_ in self.unknowns.types.items()}

    def norm(self, point: _Point) -> float:
        """The norm of the gradient, or where a step along it would leave the bounds of what is left until there."""
        import numpy as np

        lower, upper = self.bounds
        return float(np.linalg.norm(np.clip(-point.gradient, lower - point.x, upper - point.x)))

    def iterated(self, point: _Point) -> None:
        """Note where an iteration has come."""
        self.trace.append((point.cost, self.norm(point)))
        told = f"iteration {len(self.trace) - 1}, cost {point.cost:.6g}, gradient norm {self.trace[-1][1]:.2g}"
        detail(told)
        watch(told)  # on a terminal, as long as the next one takes

    def evaluated(self, point: _Point) -> _Point:
        """Count an evaluation, and keep the best."""
        self.evaluations += 1
        if point.cost < self.best.cost:
            self.best = point
        return point


class Loss(Search):
    """An output that is a real number."""

    def _prepare(self) -> None:
        self._require_one_number()
        how = {"value": True, "strong_zeros": self.strong_zeros}
        self.head = pipeline("grad", self.document, list(self.unknowns.types), self.outputs, **how).document.head
        if still := [str(key) for key, o in zip(self.unknowns.types, self.head.outputs[1:], strict=True) if o.value is None]:
            note(f"output '{self.head.outputs[0].key}' does not depend on {listed(still)}")
        self._value_and_grad = _Function(self.head, self.unknowns, self.given, self.engine)
        self._product: _Function | None = None
        self._last: _Point | None = None
        self._iterate: _Point | None = None

    def _require_one_number(self) -> None:
        """Raises TransformError for an array, with the way to fit it; of other outputs what `grad` says."""
        several = [output for _, output in select_outputs(self.document, self.outputs)]
        if len(several) == 1 and isinstance(type_ := several[0].type, TensorType) and type_.size != 1:
            raise TransformError(
                f"output '{several[0].key}' is {type_}, and what is minimized is a number; for residuals choose ",
                Remedy("method", LEAST_SQUARES),
                ", or compose a loss with it",
            )

    def require_finite(self, start: NDArray[Any]) -> None:
        """Raises EvaluationError that names what is not finite at the start."""
        import numpy as np

        key, (_, loss, gradient) = self.head.outputs[0].key, self.at(start)
        if not np.isfinite(loss):
            raise EvaluationError(f"output '{key}' is {spelled(loss)} at the start; start where it is finite")
        if (wrong := np.flatnonzero(~np.isfinite(gradient))).size:
            name, way = self.unknowns.names()[int(wrong[0])], Remedy("strong_zeros", True)
            what = (
                f"the gradient of '{key}' by {name} is {spelled(float(gradient[wrong[0]]))} at the start, where '{key}' is {loss:g}"
            )
            raise EvaluationError(f"{what}; start elsewhere, or where a branch not taken makes it so, add ", way)

    def at(self, x: NDArray[Any]) -> _Point:
        """Cost and gradient at a point."""
        import numpy as np

        for known in (self._last, self._iterate):
            if known is not None and np.array_equal(known.x, x):
                return known
        loss, *gradients = self._value_and_grad(x)
        self._last = self.evaluated(_Point(np.array(x), float(flat(loss)[0]), flat(tuple(gradients))))
        return self._last

    def product(self, x: NDArray[Any], v: NDArray[Any]) -> NDArray[Any]:
        """The Hessian at a point times a vector."""
        if self._product is None:
            how = {"strong_zeros": self.strong_zeros}
            head = pipeline("hvp", self.document, list(self.unknowns.types), self.outputs, **how).document.head
            self._product = _Function(head, self.unknowns, self.given, self.engine)
        return flat(tuple(self._product(x, v)))

    def _search(self, method: str, start: NDArray[Any], options: dict[str, Any], most: int | None) -> Any:
        import numpy as np
        from scipy import optimize  # type: ignore[import-untyped]  # slow to import

        def iterated(x: NDArray[Any], *rest: object) -> None:
            self._iterate = self.at(x)
            self.iterated(self._iterate)

        iterated(start)
        if method in _PRODUCTS:
            options["hessp"] = self.product
        elif method in MATRICES:
            options["hess"] = lambda x: np.array([self.product(x, e) for e in np.eye(self.unknowns.size)])
        if method in BOUNDED and any(np.isfinite(side).any() for side in self.bounds):
            options["bounds"] = optimize.Bounds(*self.bounds)
        if most is not None:
            options["options"] = {"maxfun": most} if method == "TNC" else {"maxiter": most}
        return optimize.minimize(lambda x: self.at(x)[1:], start, jac=True, method=method, callback=iterated, **options)


class Residuals(Search):
    """Outputs of which half the sum of squares is minimized."""

    def _prepare(self) -> None:
        chosen_outputs = [output for _, output in select_outputs(self.document, self.outputs)]
        if len(chosen_outputs) > 1 and not self.outputs:
            names = [str(o.key) for o in chosen_outputs]
            way = Remedy("output", names[0])
            raise TransformError(f"there are {len(names)} outputs ({listed(names)}); choose those that are residuals with ", way)
        for kind, types in (("output", {o.key: o.type for o in chosen_outputs}), ("input", self.unknowns.types)):
            for key, type_ in types.items():
                if any(leaf.dtype not in FLOATS for _, leaf in leaves(type_)):
                    raise TransformError(
                        f"{kind} '{key}' is {type_}, and least_squares takes real numbers; make it one or two of floats"
                    )
        self.rows = [leaf.size for o in chosen_outputs for _, leaf in leaves(o.type)]
        self.columns = [leaf.size for type_ in self.unknowns.types.values() for _, leaf in leaves(type_)]
        if not sum(self.rows):
            raise TransformError(f"output '{chosen_outputs[0].key}' has no elements: there are no residuals")
        self.keys = [str(o.key) for o in chosen_outputs]
        values = materialize(self.document, outputs=self.outputs).head
        self._values = _Function(values, self.unknowns, self.given, self.engine)
        jacobian = pipeline("jacobian", self.document, list(self.unknowns.types), self.outputs).document.head
        self._blocks = _Function(jacobian, self.unknowns, self.given, self.engine)
        self._last: tuple[NDArray[Any], NDArray[Any]] | None = None
        self._slope: tuple[NDArray[Any], NDArray[Any]] | None = None

    def residuals(self, x: NDArray[Any]) -> NDArray[Any]:
        """The residuals at a point."""
        import numpy as np

        if self._last is None or not np.array_equal(self._last[0], x):
            self._last = np.array(x), flat(tuple(self._values(x)))
            r = self._last[1]
            self.evaluated(_Point(self._last[0], float(r @ r) / 2, np.full(x.size, np.nan)))
        return self._last[1]

    def jacobian(self, x: NDArray[Any]) -> NDArray[Any]:
        """Their Jacobian."""
        import numpy as np

        if self._slope is None or not np.array_equal(self._slope[0], x):
            blocks = iter(self._blocks(x))
            rows = [np.hstack([flat(next(blocks)).reshape(m, n) for n in self.columns]) for m in self.rows]
            self._slope = np.array(x), np.vstack(rows)
        return self._slope[1]

    def at(self, x: NDArray[Any]) -> _Point:
        """Cost and gradient at a point."""
        r = self.residuals(x)
        return _Point(x, float(r @ r) / 2, self.jacobian(x).T @ r)

    def whole(self, point: _Point) -> _Point:
        """A point that was evaluated, with its gradient."""
        return self.at(point.x)

    def require_finite(self, start: NDArray[Any]) -> None:
        """Raises EvaluationError that names what is not finite at the start."""
        import numpy as np

        outputs = listed(list(map(repr, self.keys)))
        if n := int((~np.isfinite(r := self.residuals(start))).sum()):
            raise EvaluationError(f"of the residuals {outputs} {n} of {r.size} are not finite at the start; start elsewhere")
        if not np.isfinite(self.jacobian(start)).all():
            raise EvaluationError(f"the Jacobian of {outputs} is not finite at the start; start elsewhere")

    def _search(self, method: str, start: NDArray[Any], options: dict[str, Any], most: int | None) -> Any:
        from scipy import optimize

        if options:
            options = dict.fromkeys(("ftol", "xtol", "gtol"), options["tol"])

        def slope(x: NDArray[Any]) -> NDArray[Any]:  # asked for where an iteration has come, and only there
            self.iterated(self.at(x))
            return self.jacobian(x)

        return optimize.least_squares(self.residuals, start, jac=slope, bounds=self.bounds, max_nfev=most, **options)

    def more(self, point: _Point) -> dict[str, Any]:
        """Standard errors and covariance, by the Jacobian at the result: s² (JᵀJ)⁻¹, with s² = Σ r² / (m - n)."""
        import numpy as np

        m, n = sum(self.rows), self.unknowns.size
        report: dict[str, Any] = {
            "standard_errors": None,
            "covariance": None,
            "unknowns": self.unknowns.names() if n <= _MOST else None,
        }
        if n > _MOST or m <= n or not np.isfinite(j := self.jacobian(point.x)).all():
            return report
        _, s, v = np.linalg.svd(j, full_matrices=False)
        if s[-1] > np.finfo(float).eps * m * s[0]:
            report["covariance"] = (v.T / s**2) @ v * (2 * point.cost / (m - n))
            report["standard_errors"] = self.named(np.sqrt(np.diag(report["covariance"])))
        return report
