"""Dask behind the port of schedulers. The package distributed is imported where a cluster is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tidu_cli.cluster.work import Job, Parcel
from tidu_cli.errors import counted
from tidu_cli.graph.graph import Graph
from tidu_cli.graph.keys import Key
from tidu_cli.port_data import Worker


class _Dask:
    """Clusters of Dask's."""

    @contextmanager
    def connected(self, scheduler: Any, *, quiet: bool = False) -> Iterator[Any]:
        """As `scheduler.connected` does, with all that Dask logs silenced where `quiet`."""
        from tidu_cli.adapters.dask.scheduler import connected, require_dask, silence

        require_dask()
        if quiet:
            silence()
        with connected(scheduler) as client:
            yield client

    def described(self, client: Any) -> str:
        """The number of threads and the address."""
        return f"{counted(self.n_threads(client), 'thread')} at {client.scheduler_info()['address']}"

    def n_threads(self, client: Any) -> int:
        """Those of all workers that are there now."""
        return sum(client.nthreads().values())

    def kept(self, client: Any, parcel: Parcel, job: Job) -> AbstractContextManager[None]:
        """As `scheduler.kept` does."""
        from tidu_cli.adapters.dask.scheduler import kept

        return kept(client, parcel, job)

    def window(self, client: Any, name: str, width: Callable[[], int], told: Callable[[int], str]) -> Any:
        """A `Window`."""
        from tidu_cli.adapters.dask.window import Window

        return Window(client, name, width, told)

    def lazily(self, graph: Graph, given: Mapping[Key, Any], axes: Mapping[Key, int], **how: Any) -> Mapping[Key, Any]:
        """As `arrays.lazily` does."""
        from tidu_cli.adapters.dask.arrays import lazily

        return lazily(graph, given, axes, **how)

    def worker(self) -> Worker | None:
        """The worker of Dask's that runs this task."""
        if "distributed" not in sys.modules:
            return None
        from distributed import get_worker

        try:
            worker = get_worker()
        except ValueError:
            return None
        allowed = worker.memory_manager.memory_limit
        return Worker(worker.address, allowed // max(worker.state.nthreads, 1) if allowed else None)

    def is_lazy(self, value: object) -> bool:
        """Whether it is an array of Dask's."""
        from tidu_cli.adapters.dask.arrays import is_dask_array

        return is_dask_array(value)


DASK = _Dask()
