"""Commands on clusters of their own: Ctrl-C, a scheduler that goes in mid-run, and files that are not what they should be."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import tidu_cli as tidu
from tests.cli.running import ENVIRONMENT, F, invoke, process
from tests.cluster.clusters import needs_dask
from tests.tiers import few
from tests.waiting import LIMIT, until

N = 150


@pytest.fixture(scope="session")
def work(tmp_path_factory):
    """A folder with f.json, which takes some milliseconds an item, items in x.npy, and what comes out of them."""
    folder = tmp_path_factory.mktemp("work")
    document = tidu.trace(lambda x: {"y": np.sin(x * np.arange(300000.0)).sum()}, x="f64[]")
    tidu.save(document, folder / "f.json")
    x = np.linspace(0, 1, N)
    np.save(folder / "x.npy", x)
    # Each item by itself, as a chunk of one is.
    run = tidu.compile(document, engine="numpy")
    np.save(folder / "due.npy", [run(x=v)["y"] for v in x])
    return folder


def words(work, out, *more):
    return ["eval", work / "f.json", "--set", f"x=@{work / 'x.npy'}", "--batch", "x=0", "--chunk", 1, "-o", out, *more]


def chunks(out):
    folder = out.with_name(f"{out.name}.partial")
    return [name for name in os.listdir(folder) if name.endswith(".chunk")] if folder.is_dir() else []


def of_session(number):
    """The processes of a session that are alive, with what they are called."""
    processes = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                name, _, rest = file.read().rpartition(")")
        except OSError:
            continue
        state, _, _, session = rest.split()[:4]
        if int(session) == number and state != "Z":
            processes[int(pid)] = name
    return processes


@pytest.mark.check
@needs_dask
@pytest.mark.parametrize("whom", [pytest.param("the command", marks=pytest.mark.campaign), "all of its processes"])
def test_ctrl_c_leaves_no_process_and_what_is_done(whom, work, tmp_path):
    """To the command alone, as `kill` sends it, and to the group, as a terminal does."""
    out = tmp_path / "y.npz"
    command = ["tidu", *map(str, words(work, out, "--scheduler", "local:2"))]
    running = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        until(lambda: len(chunks(out)) >= 5)
        assert len(of_session(running.pid)) > 2
        (os.kill if whom == "the command" else os.killpg)(running.pid, signal.SIGINT)
        stdout, stderr = running.communicate(timeout=LIMIT)
        until(lambda: not of_session(running.pid))  # Python's own tracker of resources ends last
    finally:
        if of_session(running.pid):
            os.killpg(running.pid, signal.SIGKILL)
    assert (stdout, stderr.decode()) == (b"", "tidu eval: error: interrupted; what is done is kept, go on with --resume\n")
    assert running.returncode == -signal.SIGINT, "as without a cluster"
    assert not out.exists()
    assert 5 <= len(chunks(out)) < N


@contextmanager
def served(folder):
    """A scheduler with a worker, as `dask scheduler` and `dask worker` start them; gives its address and its process."""
    file = folder / f"scheduler-{time.monotonic_ns()}.json"
    python = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": ENVIRONMENT}
    here = ["--no-dashboard", "--host", "127.0.0.1"]
    scheduler = subprocess.Popen(
        [*python, "scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0", "--scheduler-file", file, *here], **quiet
    )
    worker = None
    try:
        until(lambda: file.exists() and file.stat().st_size)
        worker = subprocess.Popen(
            [*python, "worker", "--scheduler-file", file, "--no-nanny", "--nthreads", "1", *here], cwd=folder, **quiet
        )
        yield until(lambda: json.loads(file.read_text())["address"]), scheduler
    finally:
        for started in filter(None, (worker, scheduler)):
            started.kill()
            started.wait()


@pytest.mark.check
@needs_dask
def test_a_scheduler_that_is_killed_and_another_that_goes_on(work, tmp_path):
    out = tmp_path / "y.npz"
    with served(tmp_path) as (address, scheduler):
        command = ["tidu", *map(str, words(work, out, "--scheduler", address))]
        running = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        until(lambda: len(chunks(out)) >= 5)
        scheduler.kill()
        _, stderr = running.communicate(timeout=LIMIT)
        assert running.returncode == 1
        assert stderr == "tidu eval: error: the scheduler does not answer any more; what is done is kept, go on with --resume\n"
    assert not out.exists()
    done = len(chunks(out))
    assert 5 <= done < N
    with served(tmp_path) as (address, _):
        again = process(*words(work, out, "--scheduler", address, "--resume", "-v"))
    assert again.returncode == 0
    assert f"going on from {done} chunks of {N} in {out}.partial" in again.stderr.decode()
    assert np.load(out)["y"].tobytes() == np.load(work / "due.npy").tobytes()
    assert not out.with_name("y.npz.partial").exists()


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A directory of 600 chunks of two items each."""
    folder = tmp_path_factory.mktemp("many") / "x"
    folder.mkdir()
    for k in range(600):
        np.save(folder / f"{k}.npy", np.arange(2 * k, 2 * k + 2) * 0.1)
    return folder


def evaluated(folder, out, *more):
    return invoke("eval", "sin(x) + x", "-i", "x:f64[]", "--set", f"x=@{folder}", "--batch", "x=0", "-o", out, *more)


def test_a_wrong_dtype_in_chunk_500(many, tmp_path):
    """It is seen before anything runs."""
    right = np.load(many / "500.npy")
    np.save(many / "500.npy", right.astype("f4"))
    result = evaluated(many, tmp_path / "y.npz", "--chunk", "100")
    np.save(many / "500.npy", right)
    assert result.exit_code == 1
    assert re.fullmatch(
        r"tidu eval: error: .*x/500.npy: <f4\[2\] does not continue 0.npy, <f8\[2\]; chunks differ in their first axis alone\n",
        result.stderr,
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.check
@needs_dask
@pytest.mark.parametrize("scheduler", few([True, False], 1))
@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-3]), "is cut off, at 141 bytes of 144"),
        pytest.param(lambda path: path.unlink(), "No such file or directory", marks=pytest.mark.campaign),
        pytest.param(
            lambda path: np.save(path, np.zeros(2, "i8")), "changed since the run began: it is <i8", marks=pytest.mark.campaign
        ),
    ],
    ids=["cut", "gone", "another dtype"],
)
def test_a_chunk_that_is_damaged_in_mid_run(scheduler, damage, why, many, tmp_path, client, monkeypatch):
    """It is not what it was when the run began: one line names it, and what is done is kept, and gone on from."""
    from tidu_cli.cluster import saved

    bad, out, begin = many / "500.npy", tmp_path / "y.npz", saved.parts
    right = bad.read_bytes()

    def damaged(*given):
        damage(bad)
        return begin(*given)

    how = ("--scheduler", client.scheduler.address) if scheduler else ()
    monkeypatch.setattr(saved, "parts", damaged)
    reply = evaluated(many, out, "--chunk", "10", *how)
    monkeypatch.undo()
    bad.write_bytes(right)
    assert reply.exit_code == 1, reply.output
    assert re.fullmatch(rf"tidu eval: error: chunk 100 \(items 1000 to 1009\): .*500.npy.*({why}).*\n", reply.stderr), reply.stderr
    assert reply.stderr.endswith("; what is done is kept, go on with --resume\n")
    assert not out.exists() and 1 <= len(chunks(out)) < 120
    again = evaluated(many, out, "--chunk", "10", "--resume", *how)
    assert (again.exit_code, again.stderr) == (0, "")
    x = np.concatenate([np.load(many / f"{k}.npy") for k in range(600)])
    np.testing.assert_allclose(np.load(out)["y"], np.sin(x) + x, rtol=1e-15)


@needs_dask
def test_a_scheduler_that_is_not_there():
    result = invoke("eval", F, "--set", "x=[1,2]", "--batch", "x=0", "--scheduler", "tcp://127.0.0.1:9")
    assert result.exit_code == 1
    assert result.stderr.startswith("tidu eval: error: no scheduler answers at tcp://127.0.0.1:9 (")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("given", "status", "told"),
    [
        (["--scheduler", "local"], 2, "are for a batch; say with --batch KEY=0 which input has one"),
        (["--reduce", "sum"], 2, "are for a batch; say with --batch KEY=0 which input has one"),
        (["--batch", "x=0", "--resume"], 2, "--resume goes on from what is beside OUT; give the -o OUT of the run that broke off"),
        (["--batch", "x=0", "--chunk", "0"], 2, "Invalid value for '--chunk': '0' is not a whole number from 1 on"),
    ],
)
def test_misuse(given, status, told):
    result = invoke("eval", F, "--set", "x=[1,2]", *given)
    assert (result.exit_code, result.stdout) == (status, "")
    assert told in " ".join(result.stderr.split())


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr("tidu_cli.adapters.dask.port.find_spec", lambda name: None)
    result = invoke("eval", F, "--set", "x=[1,2]", "--batch", "x=0", "--scheduler", "local")
    assert result.exit_code == 1
    assert result.stderr == "tidu eval: error: clusters need the packages dask and distributed: pip install 'tidu[dask]'\n"
