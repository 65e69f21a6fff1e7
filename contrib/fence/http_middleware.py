# SPDX-License-Identifier: BSD-2-Clause
"""
The guard of a fence in front of a WSGI application: a request that changes something shows its lock and its fence.

    Redlock-Fence: orders/42 1795238400123456

412 answers a stale fence, 428 a request without one. The guard keeps its numbers in a file of SQLite (sqlite.sql), and holds that file until the application has
answered: a request that was let in is over before a later holder of any lock is let in. So it suits few and short requests. Where the application has a database,
let its transaction check the fence instead.
"""
import os
import sqlite3

SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sqlite.sql")
SAFE = ("GET", "HEAD", "OPTIONS")


class Fenced:
    """Wraps a WSGI application. path: the file of the numbers, made if it is missing. timeout: how many seconds a request waits for the ones before it."""

    def __init__(self, application, path, timeout=30.0):
        self.application, self.path, self.timeout = application, path, timeout
        with self._open() as db, open(SCHEMA, encoding="utf-8") as schema:
            if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'redlock_fences'").fetchone():
                db.executescript(schema.read())
        db.close()

    def _open(self):
        return sqlite3.connect(self.path, timeout=self.timeout, isolation_level=None)

    def __call__(self, environ, start_response):
        if environ["REQUEST_METHOD"] in SAFE:
            return self.application(environ, start_response)
        name, _, fence = environ.get("HTTP_REDLOCK_FENCE", "").rpartition(" ")
        if not name or not fence.isascii() or not fence.isdigit() or int(fence) >= 2 ** 53:
            return refuse(start_response, "428 Precondition Required", "Redlock-Fence: NAME FENCE is required")
        db = self._open()
        try:
            db.execute("BEGIN IMMEDIATE")
            try:
                db.execute("INSERT INTO redlock_fence (name, fence) VALUES (?, ?)", (name, int(fence)))
            except sqlite3.IntegrityError as stale:
                return refuse(start_response, "412 Precondition Failed", str(stale))
            try:
                body = self.application(environ, start_response)
                try:
                    return [b"".join(body)]
                finally:
                    getattr(body, "close", lambda: None)()
            finally:
                db.execute("COMMIT")  # also after an error: the application may have done half of it
        finally:
            db.close()


def refuse(start_response, status, text):
    """Answers instead of the application."""
    start_response(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [text.encode() + b"\n"]
