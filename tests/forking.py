"""`tidu` for scripts that tests run: a process that has imported it forks one for each command, which takes a seventh of the time.

A command is a process of its own, with its own arguments, folder, environment and descriptors. Only its imports were done before:
what tests start-up, signals that end it, or the environment of the interpreter, calls the real `tidu`.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import resource
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from tidu_cli.cli.main import cli

ROOT = Path(__file__).parents[1]
Environment = dict[bytes, bytes]
Limits = list[tuple[int, int]]
SERVERS = list["subprocess.Popen[bytes]"]()
USUAL = (
    "build x*sin(x) -i x:f64[3]",
    "check samples/f.json --all",
    "convert samples/f.json --format msgpack",
    "diff samples/f.json samples/f.json",
    "dot samples/f.json",
    "grad samples/f.json --wrt x --set x=3",
    "info samples/f.json",
    "resolve samples/f.json",
    "show samples/f.json",
)
"""What is done once before: it imports what most commands need."""

HIGH = 200
"""Descriptors that commands get are below."""

N_LIMITS = 16
"""How many limits of resources Linux has, by number: `ulimit`."""

CLIENT = """#!{python} -IS
import _signal, _socket, array, marshal, posix, resource, sys
s = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
s.connect({address!r})
fds = [n for n in map(int, posix.listdir("/proc/self/fd")) if n < {high} and n != s.fileno()]
for n in fds[:]:
    try:
        posix.fstat(n)
    except OSError:  # the list's own
        fds.remove(n)
limits = [resource.getrlimit(n) for n in range({n_limits})]
request = marshal.dumps((fds, posix.getcwd(), sys.argv, dict(posix.environ), limits))
s.sendmsg([len(request).to_bytes(8, "little")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", fds))])
s.sendall(request)
for n in {{0, 1}} & set(fds):
    posix.close(n)  # or who reads from this pipe would wait for this process, too
status = int.from_bytes(s.recv(4), "little")
if posix.WIFSIGNALED(status):
    _signal.signal(posix.WTERMSIG(status), _signal.SIG_DFL)
    posix.kill(posix.getpid(), posix.WTERMSIG(status))
posix._exit(posix.WEXITSTATUS(status))
"""


@cache
def client() -> Path:
    """The `tidu` that the process forks which is started for it, and which ends with this one."""
    folder = Path(tempfile.mkdtemp(prefix="tidu-forking-"))
    command = [sys.executable, "-m", "tests.forking", address := f"{folder}/socket"]
    environment = os.environ | {"LC_ALL": "C.UTF-8"}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None and server.stdout.read(1) == b".", "it has not started"
    SERVERS.append(server)  # which ends when its standard input does
    client = folder / "tidu"
    client.write_text(CLIENT.format(python=sys.executable, address=address, high=HIGH, n_limits=N_LIMITS))
    client.chmod(0o755)
    return client


def path() -> str:
    """A PATH on which that is found first."""
    return os.pathsep.join([str(client().parent), str(Path(sys.executable).parent), os.environ["PATH"]])


def serve(address: str) -> bool:
    """Fork for whoever asks, until standard input ends; then the folder goes. True in a process that is to run a command."""
    for line in USUAL:
        CliRunner().invoke(cli, line.split(), catch_exceptions=False)
    gc.collect()
    gc.freeze()  # what is not written to is shared with all that are forked
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(64)
        os.write(1, b".")
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            if 0 in ready:
                shutil.rmtree(Path(address).parent)
                return False
            asking, _ = listener.accept()
            with asking:
                if os.fork() == 0:
                    listener.close()
                    return _told_how_it_ends(asking)
            _reap()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _told_how_it_ends(asking: socket.socket) -> bool:
    """True in a child of this process, which is what was asked for; this one waits for it, and does not return."""
    head, given, _, _ = socket.recv_fds(asking, 8, HIGH)
    request = b""
    while len(request) < int.from_bytes(head, "little"):
        request += asking.recv(1 << 20)
    if (child := os.fork()) == 0:
        asking.close()
        _become(given, *marshal.loads(request))
        return True
    for fd in (0, 1, 2, *given):
        os.close(fd)
    asking.sendall(os.waitpid(child, 0)[1].to_bytes(4, "little"))
    os._exit(0)


def _become(
    given: list[int],
    fds: list[int],
    where: str,
    arguments: list[str],
    environment: dict[bytes, bytes],
    limits: list[tuple[int, int]],
) -> None:
    for number, limit in enumerate(limits):
        resource.setrlimit(number, limit)
    for fd in (0, 1, 2):
        os.close(fd)
    moved = [os.dup2(fd, HIGH + k, inheritable=False) for k, fd in enumerate(given)]
    for fd in given:
        os.close(fd)
    for fd, target in zip(moved, fds, strict=True):
        os.dup2(fd, target)
        os.close(fd)
    os.chdir(where)
    os.environb.clear()
    os.environb.update(environment)
    sys.stdin, sys.stdout, sys.stderr = (
        stream if n in fds else None for n, stream in enumerate((sys.stdin, sys.stdout, sys.stderr))
    )  # as Python has it
    sys.argv = arguments
    sys.path[0] = str(Path(sys.executable).parent)


if __name__ == "__main__" and serve(sys.argv[1]):
    from tidu_cli.__main__ import main  # which sets how signals end the process

    try:
        main()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(status)  # to free what it shares with all others would take longer than most commands
