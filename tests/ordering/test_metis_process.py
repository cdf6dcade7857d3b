"""The process in which METIS runs: used again, ended in time, and never in the way of a fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from frontal.errors import OrderingTimeout
from frontal.ordering import adjacency, metis, order
from frontal.ordering.components import Components
from frontal.ordering.graph import Graph

from ..matrices import stencil
from .test_ordering import needs_metis


@needs_metis
class TestProcess:
    """The process in which METIS runs."""

    @pytest.fixture
    def graph(self) -> Graph:
        """One on which METIS works for a while."""
        return adjacency(stencil(40, 40, 40))

    @staticmethod
    def started(monkeypatch) -> list[int]:
        pids = []
        take = metis._take

        def noted():
            worker = take()
            pids.append(worker.process.pid)
            return worker

        monkeypatch.setattr(metis, "_take", noted)
        return pids

    def test_is_used_again(self, monkeypatch):
        pids = self.started(monkeypatch)
        for size in (20, 25, 20):
            order(stencil(size, size), "metis")
        assert len(set(pids)) == 1

    def test_two_runs_at_once_take_two(self, monkeypatch):
        pids = self.started(monkeypatch)
        both, order_one = threading.Barrier(2, timeout=60), metis._Worker.order

        def together(*arguments):
            both.wait()  # else the first might be done before the second begins
            return order_one(*arguments)

        monkeypatch.setattr(metis._Worker, "order", together)
        parts = Components(adjacency(stencil(40, 40)))
        with metis.MetisRun(parts) as first, metis.MetisRun(parts) as second:
            assert np.array_equal(first.result(), second.result())
        assert len(set(pids)) == 2
        assert len(metis._idle) == 1

    def test_is_killed_when_the_time_is_over(self, graph, monkeypatch):
        pids = self.started(monkeypatch)
        start = time.perf_counter()
        with pytest.raises(OrderingTimeout, match="time limit"):
            order(graph, "metis", time_limit=0.02)
        assert time.perf_counter() - start < 2
        assert gone(pids[0])
        found = order(graph, reuse=1e6, time_limit=0.0)
        assert (found.method, list(found.tried)) == ("amd", ["amd"])

    def test_is_killed_by_an_interrupt(self, graph, monkeypatch, interruptible):
        pids = self.started(monkeypatch)
        order(stencil(20, 20), "metis")
        main = threading.main_thread().ident
        alarm = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))
        alarm.start()
        with pytest.raises(KeyboardInterrupt):
            order(graph, "metis")
        assert gone(pids[-1])
        assert order(stencil(20, 20), "metis").method == "metis"

    def test_death_is_an_error_and_no_end(self, graph, monkeypatch):
        pids = self.started(monkeypatch)
        with metis.MetisRun(Components(graph)) as run:
            os.kill(pids[0], signal.SIGKILL)
            with pytest.raises(RuntimeError, match="ended"):
                run.result()
        assert order(stencil(20, 20), "metis").method == "metis"

    def test_dead_idle_process_is_replaced(self, monkeypatch):
        pids = self.started(monkeypatch)
        order(stencil(20, 20), "metis")
        metis._idle[-1].kill()
        order(stencil(20, 20), "metis")
        assert len(set(pids)) == 2

    @pytest.mark.skipif(sys.platform != "linux", reason="counts on a pipe that raises SIGIO")
    def test_dies_with_its_parent(self):
        code = """
            import os, signal, time
            from frontal.ordering import adjacency, metis
            from frontal.ordering.components import Components
            from frontal.problems import poisson3d
            parts = Components(adjacency(poisson3d(50)))
            parts.compressed
            run = metis.MetisRun(parts)
            print(run._worker.process.pid, flush=True)
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGKILL)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True
        )
        assert gone(int(done.stdout), within=0.3)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    @pytest.mark.filterwarnings("ignore::DeprecationWarning")
    def test_forked_process_starts_its_own(self):
        order(stencil(20, 20), "metis")
        theirs = metis._idle[-1].process.pid
        child = os.fork()
        if child == 0:
            code = 1
            try:
                order(stencil(20, 20), "metis")
                code = metis._idle[-1].process.pid == theirs
                metis._at_exit()
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        order(stencil(20, 20), "metis")
        assert metis._idle[-1].process.pid == theirs

    def test_works_where_stdin_and_stdout_are_closed(self):
        code = """
            import os
            os.close(0), os.close(1)
            from frontal.ordering import order
            from frontal.problems import poisson2d
            os._exit(order(poisson2d(20), "metis").method != "metis")
        """
        assert subprocess.run([sys.executable, "-c", textwrap.dedent(code)]).returncode == 0


def gone(pid: int, within: float = 0.0) -> bool:
    """Whether a process has ended, within some seconds."""
    end = time.monotonic() + within
    while True:
        try:
            with open(f"/proc/{pid}/stat") as stream:
                ended = stream.read().rsplit(")", 1)[1].split()[0] in "ZX"
        except FileNotFoundError:
            ended = not os.path.exists("/proc") or not os.path.exists(f"/proc/{pid}")
        if ended or time.monotonic() > end:
            return ended
        time.sleep(0.01)
