# SPDX-License-Identifier: BSD-2-Clause
"""SIGUSR2 to a program of another build, whose structures in memory differ, and back: it goes on from records, and no client can tell."""
import test_restart
import test_restart_beside
from process import REDLOCKD
from restarts import RestartTest, on_stores


class BuildTest(RestartTest):
    """Each restart is one to the other of two builds."""

    def begin(self, tree=None, start=True, **options):
        daemon = super().begin(tree, False, **options)
        daemon.path = self.own_program(daemon)
        self.programs = [REDLOCKD, self.of_another_build()]
        if not start:
            return daemon
        daemon.start()
        return daemon.joined() if self.STORES else daemon

    def restart(self, daemon, times=1, quietly=True):
        for _ in range(times):
            self.programs.reverse()
            self.replace(daemon.path, self.programs[0])
            super().restart(daemon, 1, quietly)


@on_stores(0, 3, base=BuildTest)
class HoldsOfAnotherBuild(test_restart.Holds):
    COST = 10


@on_stores(1, base=BuildTest)
class LinesOfAnotherBuild(test_restart.Lines):
    COST = 8


class TlsOfAnotherBuild(BuildTest, test_restart_beside.Tls):
    COST = 4
