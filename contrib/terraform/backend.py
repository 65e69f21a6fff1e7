#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
A backend for the state of Terraform and OpenTofu, whose locks are locks of redlockd: one file, no dependencies.

    backend.py --api http://127.0.0.1:7423 --token-file api-token --folder /var/lib/terraform --listen 127.0.0.1:7480

The state NAME is the file NAME.tfstate in the folder, and its lock is terraform/NAME. LOCK answers 200, or 423 with who has it; UNLOCK frees it. While somebody
has a lock, its session gets a sign of life each HEARTBEAT / 3. What belongs to a lock stands in NAME.lock, so this program may be started again, or on another
host with the same folder, within HEARTBEAT + GRACE. A state is written only by the one who has the lock: the daemon is asked before each write.
"""
import argparse
import contextlib
import http.client
import http.server
import ipaddress
import json
import os
import re
import threading
import time
import urllib.parse

HEARTBEAT, GRACE = 60, 600  # seconds; a lease of redlockd ends that long after this program has died
BODY_MOST = 256 << 20
NAME = re.compile(r"/state/([A-Za-z0-9_.-]{1,100})$")


class Locks:
    """The locks of all states. A lock is a session of redlockd, and the record of Terraform about who has it."""

    def __init__(self, api, token, folder):
        self.api, self.token, self.folder, self.guard = urllib.parse.urlsplit(api), token, folder, threading.Lock()

    def file(self, name, end):
        return os.path.join(self.folder, name + end)

    def ask(self, method, path, fields=None):
        """(status, headers, answer) of redlockd."""
        kind = http.client.HTTPSConnection if self.api.scheme == "https" else http.client.HTTPConnection
        connection = kind(self.api.hostname, self.api.port, timeout=30)
        with contextlib.closing(connection):
            connection.request(method, path, json.dumps(fields or {}), {"Authorization": "Bearer " + self.token, "Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.headers, json.loads(answer.read() or b"{}")

    @staticmethod
    def path(session, name):
        return "%s/locks/%s" % (session, urllib.parse.quote("terraform/" + name, safe=""))

    def read(self, name):
        """What belongs to the lock: {"session", "info"}; None: nobody has it."""
        try:
            with open(self.file(name, ".lock"), encoding="utf-8") as file:
                return json.load(file)
        except FileNotFoundError:
            return None

    def held(self, name):
        """The same, and None if redlockd says that it is held no more."""
        lock = self.read(name)
        if not lock:
            return None
        status = self.ask("PUT", self.path(lock["session"], name))[0]
        if status == 200:
            return lock
        if status in (404, 409, 410):
            if self.read(name) == lock:  # and not one that another of these programs has taken meanwhile
                self.forget(name)
            return None
        raise OSError("redlockd answers %d" % status)

    def forget(self, name):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.file(name, ".lock"))

    def lock(self, name, info):
        """None: it is locked; else the info of who has it."""
        with self.guard:
            held = self.held(name)
            if held:
                return None if held["info"].get("ID") == info.get("ID") else held["info"]
            status, headers, answer = self.ask("POST", "/v1/sessions", {"name": "terraform", "heartbeat": "%ds" % HEARTBEAT, "grace": "%ds" % GRACE})
            if status != 201:
                raise OSError(answer.get("detail", "redlockd answers %d" % status))
            session = headers["Location"]
            with contextlib.ExitStack() as ends:
                ends.callback(self.end, session)
                note = "%s by %s" % (info.get("Operation", "?"), info.get("Who", "?"))
                status, _, answer = self.ask("POST", self.path(session, name), {"note": note[:200], "wait": "2s"})
                if status == 200:
                    replace(self.file(name, ".lock"), json.dumps({"session": session, "info": info}).encode())
                    ends.pop_all()
                    return None
            if status in (408, 423):
                return {"ID": "", "Who": answer.get("holder", "somebody"), "Info": answer.get("note", ""), "Operation": "redlockd"}
            raise OSError(answer.get("detail", "redlockd answers %d" % status))

    def end(self, session):
        status = self.ask("DELETE", session)[0]
        if status not in (200, 410):
            raise OSError("redlockd answers %d" % status)

    def unlock(self, name, lock_id):
        """False: another one has it. Without an id: by force."""
        with self.guard:
            lock = self.read(name)
            if lock and lock_id and lock["info"].get("ID") != lock_id:
                return False
            if lock:
                self.end(lock["session"])
            self.forget(name)
            return True

    def may_write(self, name, lock_id):
        with self.guard:
            held = self.held(name)
            return held is None and not lock_id or held is not None and held["info"].get("ID") == lock_id

    def live(self):
        """Signs of life for all locks, for ever."""
        while True:
            for entry in os.listdir(self.folder):
                if entry.endswith(".lock"):
                    with contextlib.suppress(OSError, ValueError), self.guard:
                        self.held(entry[:-len(".lock")])
            time.sleep(HEARTBEAT / 3)


def replace(path, data):
    """The file has the old content or the new one, whatever happens."""
    with open(path + ".new", "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def is_known(host):
    """Whether a request may name this host: an address or localhost. A page of the web that lets its own name point here names that one."""
    name = urllib.parse.urlsplit("//" + host).hostname
    with contextlib.suppress(ValueError):
        return name == "localhost" or bool(ipaddress.ip_address(name))
    return False


class Handler(http.server.BaseHTTPRequestHandler):
    locks, timeout = None, 60

    def log_message(self, *_):
        pass

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def serve(self):
        url = urllib.parse.urlsplit(self.path)
        match = NAME.fullmatch(url.path)
        length = self.headers.get("Content-Length") or "0"
        if self.headers.get("Origin") or not is_known(self.headers.get("Host") or ""):
            self.answer(403)
            return
        if not length.isdecimal() or int(length) > BODY_MOST:
            self.answer(413)
            return
        body = self.rfile.read(int(length))
        if not match or len(body) < int(length):
            self.answer(404 if not match else 400)
            return
        lock_id = urllib.parse.parse_qs(url.query).get("ID", [""])[0]
        try:
            getattr(self, "serve_" + self.command)(match[1], lock_id, body)
        except (OSError, http.client.HTTPException, ValueError, AttributeError) as error:
            self.answer(503, json.dumps({"error": str(error)}).encode())

    def serve_GET(self, name, _, __):
        try:
            with open(self.locks.file(name, ".tfstate"), "rb") as file:
                self.answer(200, file.read())
        except FileNotFoundError:
            self.answer(404)

    def serve_POST(self, name, lock_id, body):
        if not self.locks.may_write(name, lock_id):
            self.answer(409, b'{"error": "the lock is not yours any more"}')
            return
        replace(self.locks.file(name, ".tfstate"), body)
        self.answer(200)

    def serve_DELETE(self, name, lock_id, _):
        if not self.locks.may_write(name, lock_id):
            self.answer(409, b'{"error": "the lock is not yours any more"}')
            return
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.locks.file(name, ".tfstate"))
        self.answer(200)

    def serve_LOCK(self, name, _, body):
        other = self.locks.lock(name, json.loads(body))
        self.answer(423 if other else 200, json.dumps(other).encode() if other else b"")

    def serve_UNLOCK(self, name, _, body):
        self.answer(200 if self.locks.unlock(name, json.loads(body).get("ID") if body else None) else 409)

    do_GET = do_POST = do_DELETE = do_LOCK = do_UNLOCK = serve


def main():
    parser = argparse.ArgumentParser(description="State of Terraform and OpenTofu, locked by redlockd.")
    parser.add_argument("--api", required=True, help="listen.api of redlockd, as a URL")
    parser.add_argument("--token-file", required=True)
    parser.add_argument("--folder", required=True, help="where states are kept")
    parser.add_argument("--listen", default="127.0.0.1:7480")
    args = parser.parse_args()
    with open(args.token_file, encoding="ascii") as file:
        Handler.locks = Locks(args.api, file.readline().strip(), args.folder)
    host, _, port = args.listen.rpartition(":")
    server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
    threading.Thread(target=Handler.locks.live, daemon=True).start()
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
