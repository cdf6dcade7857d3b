"""The process that runs METIS: it reads graphs from stdin and writes elimination orders to stdout.

`metis.py` starts it as a script with its ``sys.path`` as arguments. It imports nothing of this
package and no NumPy, so that it starts fast. All numbers are int64. A request: the numbers of nodes
and neighbours, METIS's imbalance or -1; the start of each node's neighbours, the neighbours,
the weights of the nodes. A reply: status and size in bytes; the order, or a message as text.
"""

from __future__ import annotations

import os
import signal
import sys
from array import array
from typing import Any, BinaryIO


def read(stream: BinaryIO, count: int) -> array:
    """Read `count` integers; exit the process if the parent has closed the stream."""
    values = array("q", bytes(8 * count))
    remaining = memoryview(values).cast("B")
    while remaining:
        got = stream.readinto(remaining)  # type: ignore[attr-defined]
        if not got:
            sys.exit()
        remaining = remaining[got:]
    return values


def die_with_parent(watch: bool) -> None:
    """Let the kernel kill this process when the other end of stdin closes, even inside METIS.

    METIS polls nothing while it runs. A pipe can raise SIGIO when it closes and when data arrives;
    no data arrives between a request and its reply.
    """
    if not hasattr(os, "O_ASYNC"):
        return
    import fcntl

    flags = fcntl.fcntl(0, fcntl.F_GETFL) & ~os.O_ASYNC
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(0, fcntl.F_SETFL, flags | (os.O_ASYNC if watch else 0))


def order(indptr: array, indices: array, weights: array, imbalance: int) -> array:
    import pymetis

    options = pymetis.Options(compress=0)  # equal nodes were merged before
    if imbalance >= 0:
        options.ufactor = imbalance
    graph = pymetis.CSRAdjacency(indptr, indices)
    perm: Any
    perm, _ = pymetis.nested_dissection(adjacency=graph, vweights=weights, options=options)
    return perm if isinstance(perm, array) else array("q", perm)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    if hasattr(signal, "SIGIO"):
        signal.signal(signal.SIGIO, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
    requests = os.fdopen(os.dup(0), "rb", buffering=0)
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of METIS must not mix with replies
    while True:
        n, neighbours, imbalance = read(requests, 3)
        indptr, indices, weights = (read(requests, size) for size in (n + 1, neighbours, n))
        die_with_parent(True)
        try:
            status, reply = 0, order(indptr, indices, weights, imbalance).tobytes()
        except BaseException as error:
            status, reply = 1, f"{type(error).__name__}: {error}".encode()
        del indptr, indices, weights  # an idle worker should not hold much memory
        die_with_parent(False)
        replies.write(array("q", [status, len(reply)]).tobytes() + reply)
        replies.flush()


if __name__ == "__main__":
    sys.path[:] = sys.argv[1:]
    main()
