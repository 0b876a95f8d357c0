"""What workers keep, as a plugin of Dask's: its scheduler gives it to each worker once, whenever that comes."""

from __future__ import annotations

from distributed import Worker, WorkerPlugin

from tidu_cli.cluster.job import Job, Parcel
from tidu_cli.cluster.work import forget, keep


class Keeping(WorkerPlugin):
    """A worker that has this plugin has the parcel or the job."""

    def __init__(self, thing: Parcel | Job) -> None:
        self.thing = thing

    def setup(self, worker: Worker) -> None:
        """Called once on every worker."""
        keep(self.thing)

    def teardown(self, worker: Worker) -> None:
        """Called when it is not needed any more."""
        forget(self.thing.name)
