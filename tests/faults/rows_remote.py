# SPDX-License-Identifier: BSD-2-Clause
"""Rows 5 and 6: clients on other hosts, in network namespaces, whose connections end without notice or by a reset that they did not send."""
import multiprocessing

import proxy
import wire
from process import until
from rows import row

KEEPALIVE_S = 10  # of the daemon


@row(5, "half-open", "the cable to a host of clients is unplugged: no FIN, no reset",
     injects="half-open clients, in namespaces with veth", net=True, remote=2, short=True, client={"answer_s": 8, "impatient": True})
def half_open(w):
    """The clients are impatient: a daemon that has given a client up never answers it."""
    while w.more():
        i = w.rng.randrange(len(w.hosts))
        with w.fault("host %d unplugged" % i), w.unplugged(i):
            w.pause(w.uniform(0.1, 2.5 * w.lease_ms / 1000))
        w.breathe(0.5, 2.0)
    if w.seconds > 15:
        gives_sessions_up(w)


def gives_sessions_up(w):
    daemon = w.daemons[0]
    with wire.Client(daemon.addr) as eye:
        def remote():
            return [str(line) for line in eye.ask("LIST sessions limit=1000").rows if "10.77.0." in str(line)]
        if not remote():
            w.fail("S21", "no session of host 0 is listed")
        with w.fault("host 0 unplugged for long"), w.unplugged(0):
            try:
                until(lambda: not remote(), "the sessions end", 2 * KEEPALIVE_S + 5 + 5 * w.worst_gap)
            except AssertionError:
                w.fail("S21", "the daemon keeps the sessions of a host that is gone: %s" % remote()[:2])


@row(6, "reset-from-afar", "the daemon gets a reset from another host, where the client still runs and believes in its locks",
     injects="clients reset from another host, in namespaces with veth", net=True, remote=1, short=True, client={"answer_s": 1.5, "impatient": True})
def reset(w):
    control, theirs = multiprocessing.Pipe()
    middle = w.context.Process(target=proxy.run, args=(theirs, w.rng.random(), w.hosts[0].pid), daemon=True)
    middle.start()
    w.stack.callback(control.close)  # the proxy ends last, because its end would close all its connections
    w.stack.callback(middle.kill)

    def tell(verb, *args):
        control.send((verb, args))
        return control.recv()
    for i in w.guests(0):
        daemon = w.daemons[i % len(w.daemons)]
        path = "%s/through-%d" % (w.folder, i)
        tell("open", i, path, ("10.77.0.1", daemon.tcp[1]))
        w.kill_client(i)
        w.start_client(i, addr=path)
    w.pause(0.5)
    resets = 0
    while w.more():
        with w.fault("resets"):
            resets += tell("cut", w.rng.sample(w.guests(0), 3), "reset")
        w.breathe(0.1, 1.0)
    w.note("%d connections reset" % resets)
