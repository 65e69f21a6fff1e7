# SPDX-License-Identifier: BSD-2-Clause
"""A client process that listens: it watches the names of the other clients at its daemon, and records each event. Its PINGs tell up to when it knows all."""
import random
import re
import signal
import time
import traceback

import process
import wire
from history import Log
from session import Gone, Options, Session

PING_S = 0.1


class Listener(Session):
    def take(self, line):
        if line.code != "EVENT":
            super().take(line)
            return
        fields = {key: int(line.fields[key]) for key in ("fence", "session") if key in line}
        fields["shared"] = line.fields.get("mode") == "shared"
        label = re.match(r"c\d+(?= )", line["who"])  # of a session that has told none: its pid or its address
        self.log.tell("event", kind=line["kind"], name=line["name"], label=label and label.group(), **fields)


class Watcher:
    def __init__(self, options):
        self.options, self.rng = options, random.Random("%s/%s" % (options.seed, options.c))
        self.log, self.stopping = Log("%s/c%02d.log" % (options.folder, options.c)), False

    def stop(self, *_):
        self.stopping = True

    def watch(self, session, prefix):
        """Watches for some seconds, then changes the prefix or the connection."""
        session.ask("WATCH", line="WATCH " + wire.quoted(prefix), prefix=prefix)
        end = time.monotonic() + self.rng.uniform(2, 8)
        while not self.stopping and (time.monotonic() < end or not self.options.restless):
            session.listen(PING_S)
            session.ask("PING")
        session.ask("UNWATCH", line="UNWATCH " + wire.quoted(prefix))

    def live(self):
        common = self.options.names[0].rpartition("/")[0] + "/"
        while not self.stopping:
            try:
                session = Listener(self.options, self.log)
                for _ in range(self.rng.randrange(1, 3)):
                    self.watch(session, self.rng.choice((common, common, self.rng.choice(self.options.names))))
                session.drop(self.rng.choice(("close", "quit")))
            except (OSError, Gone):
                time.sleep(self.rng.uniform(0.02, 0.2))


def run(options):
    """The whole life of the process."""
    process.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    options = Options(options)
    watcher = Watcher(options)
    signal.signal(signal.SIGTERM, watcher.stop)
    watcher.log.tell("start", c=options.c, d=options.d, eof_ends=True)
    try:
        watcher.live()
    except AssertionError as error:
        watcher.log.tell("failed", text=str(error))
    except Exception:  # pylint: disable=broad-except
        watcher.log.tell("failed", text=traceback.format_exc()[-1500:])
