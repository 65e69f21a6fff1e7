# SPDX-License-Identifier: BSD-2-Clause
"""HTTP that locks: sessions, locks and events of listen.api, as curl would ask."""
import contextlib
import http.client
import json
import multiprocessing
import os
import select
import signal
import socket
import ssl
import struct
import threading
import time
import urllib.parse

from authority import Authority, openssl
from harness import FuncTest
from process import LATE, WAIT, merged, private, sanitized, until
from web import Answer, Web, beyond_loopback, drain, free_web, push

TOKEN = "open-sesame-0123"
BEARER = {"Authorization": "Bearer " + TOKEN}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Session:
    """One session of the API."""

    def __init__(self, api, **fields):
        self.api = api
        self.made = api.post("/v1/sessions", fields)
        assert self.made.status == 201, (self.made.status, self.made.text)
        self.path = self.made["Location"]

    def lock_path(self, name):
        return "%s/locks/%s" % (self.path, urllib.parse.quote(name, safe=""))

    def post(self, name, **fields):
        return self.api.post(self.lock_path(name), fields)

    def get(self, name, query=""):
        return self.api.ask(self.lock_path(name) + query)

    def put(self, name, **fields):
        return self.api.send("PUT", self.lock_path(name), fields)

    def delete(self, name, query=""):
        return self.api.ask(self.lock_path(name) + query, "DELETE")

    def ping(self):
        return self.api.ask(self.path, "PUT")

    def end(self):
        return self.api.ask(self.path, "DELETE")


class Api(Web):
    """The listener of listen.api."""

    def ask(self, path, method="GET", headers=None, host="localhost", body=None):
        return super().ask(path, method, {**BEARER, **(headers or {})}, host, body)

    def send(self, method, path, fields):
        return self.ask(path, method, {"Content-Type": "application/json"}, body=json.dumps(fields))

    def post(self, path, fields=None):
        return self.send("POST", path, fields or {})

    def session(self, **fields):
        return Session(self, **fields)

    def begin(self, path, fields, method="POST"):
        """A request whose answer is not read yet."""
        body = json.dumps(fields).encode()
        sock = self.connect()
        sock.sendall(b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" %
                     (method.encode(), path.encode(), TOKEN.encode(), len(body), body))
        return sock


def answer_of(sock):
    response = http.client.HTTPResponse(sock)
    response.begin()
    return Answer(response)


class Stream:
    """The stream of events of a session. Each is (id, kind, data)."""

    def __init__(self, session, last=None):
        self.sock = session.api.connect()
        more = "" if last is None else "Last-Event-ID: %s\r\n" % last
        self.sock.sendall(("GET %s/events HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n" % (session.path, TOKEN, more)).encode())
        self.file = self.sock.makefile("rb")
        self.status = int(self.file.readline().split()[1])
        for _ in iter(self.file.readline, b"\r\n"):
            pass
        assert self.file.readline() == b"retry: 2000\n"

    def next(self):
        got = {}
        for line in self.file:
            name, _, value = line.decode().rstrip("\n").partition(":")
            if not name and not value and "event" in got:
                return int(got["id"]), got["event"], json.loads(got["data"])
            if name:
                got[name] = value.strip()
        raise EOFError("the stream has ended")

    def close(self):
        self.file.close()
        self.sock.close()


class ApiTest(FuncTest):
    def start(self, tree=None, api=None, joined=True, token=True, **options):
        api = api or Api(free_web().at)
        secret = os.path.join(self.folder(), "token")
        with open(secret, "w", encoding="ascii", opener=private) as file:
            file.write(TOKEN + "\n")
        d = self.daemon(merged({"listen": {"api": api.listen}, "api": {"token_file": secret} if token else {}}, tree), **options)
        return d.joined() if joined else d, api

    def problem(self, answer, status, code, text=""):
        self.assertEqual((answer.status, answer["Content-Type"]), (status, "application/problem+json"), answer.text)
        told = answer.json
        self.assertEqual((told["status"], told["code"], told["type"]), (status, code, "about:blank"))
        self.assertIn(text, told["detail"])
        return told


class Locks(ApiTest):
    COST = 6

    def test_all_verbs(self):
        d, api = self.start()
        s = api.session(name="me")
        self.assertRegex(s.path, r"^/v1/sessions/[0-9]+-[0-9a-f]{32}$")
        granted = s.post("orders/42", wait="5s", note="h\u00e9").json
        self.assertEqual((granted["name"], granted["count"], granted["ttl_ms"]), ("orders/42", 1, 10000))
        self.assertEqual(s.get("orders/42").json["fence"], granted["fence"])
        self.assertEqual(s.put("orders/42", ttl="20s").json["fence"], granted["fence"])
        self.assertGreater(s.get("orders/42").json["valid_ms"], 11000)
        row = self.client(d).ok("SHOW orders/42").rows[0]
        self.assertEqual((row["name"], row["note"], row["session"]), ("me", "h\u00e9", s.made.json["session"].__str__()))
        self.assertEqual(s.delete("orders/42").json, {"name": "orders/42", "count": 0})
        self.problem(s.get("orders/42"), 404, "NOTHELD")
        self.assertEqual(s.ping().json, {})
        self.assertEqual(s.end().status, 200)
        self.problem(s.ping(), 410, "NOTFOUND", "POST /v1/sessions")

    def test_names_of_any_bytes_and_owners(self):
        _, api = self.start()
        s = api.session()
        for name in ("a b", "ü=\"x\"", "a/b/../c", "%", "n" * 512):
            self.assertEqual(s.post(name).json["name"], name)
            self.assertEqual(s.delete(name).status, 200)
        self.assertEqual(api.post(s.path + "/locks/%ff%00").json["name"], "\udcff\0")
        self.assertEqual(api.post(s.path + "/locks/plain/slashes").json["name"], "plain/slashes")
        for name in (513 * "n", "", "%zz", "%4"):
            for method in ("POST", "GET", "DELETE", "PATCH"):
                self.problem(api.send(method, s.path + "/locks/" + name, {}), 400, "ARG", "1 to 512 bytes")
        self.assertEqual(s.post("o", owner="a").status, 200)
        self.problem(s.post("o", owner="b"), 423, "BUSY")
        self.assertEqual(s.delete("o", "?owner=b").json["count"], 0)
        self.assertEqual(s.get("o", "?owner=a").status, 200)
        self.assertEqual(s.delete("o", "?owner=a").status, 200)

    def test_a_repeated_request_is_the_same_lock(self):
        _, api = self.start()
        s = api.session()
        first, again = s.post("a").json, s.post("a", wait="5s").json
        self.assertEqual((again["fence"], again["count"]), (first["fence"], 1))
        self.assertEqual(s.delete("a").status, 200)
        self.assertEqual(s.delete("a").json["count"], 0)
        self.problem(s.post("a", count=2), 400, "ARG", "no count")

    def test_busy_and_waits(self):
        _, api = self.start()
        holder, other = api.session(name="holder"), api.session()
        holder.post("a", note="export", trace=TRACE)
        busy = other.post("a")
        told = self.problem(busy, 423, "BUSY")
        self.assertIn("holder", told["holder"])
        self.assertEqual((told["note"], told["trace"]), ("export", TRACE))
        self.assertGreater(int(busy["Retry-After"]), 0)
        self.assertGreaterEqual(self.problem(other.post("a", wait="300ms"), 408, "TIMEOUT")["waited_ms"], 300)
        sock = api.begin(other.lock_path("a"), {"wait": "30s"})
        until(lambda: holder.api.session().post("a").json.get("waiters") == 1, "it waits")
        self.assertEqual(other.ping().status, 200, "another request of the session is not kept waiting")
        holder.delete("a")
        self.assertEqual(answer_of(sock).status, 200)

    def test_a_wait_that_is_cut_is_withdrawn(self):
        d, api = self.start()
        holder, other, c = api.session(), api.session(), self.client(d)
        holder.post("a")
        sock = api.begin(other.lock_path("a"), {"wait": "30s"})
        until(lambda: c.roles("a") == ["holder", "waiter"], "it waits")
        sock.close()
        until(lambda: c.roles("a") == ["holder"], "it waits no more")
        holder.delete("a")
        self.assertEqual(api.session().post("a").status, 200)

    def test_a_wait_that_is_asked_again_takes_the_place_of_the_first(self):
        _, api = self.start()
        holder, other = api.session(), api.session()
        holder.post("a")
        first = api.begin(other.lock_path("a"), {"wait": "30s"})
        until(lambda: api.session().post("a").json.get("waiters") == 1, "it waits")
        second = api.begin(other.lock_path("a"), {"wait": "30s"})
        self.problem(answer_of(first), 409, "CANCELLED")
        holder.delete("a")
        self.assertEqual(answer_of(second).status, 200)

    def test_a_lost_lock_is_told(self):
        d, api = self.start()
        s = api.session()
        stream = Stream(s)
        self.addCleanup(stream.close)
        fence = s.post("a").json["fence"]
        self.client(d).ok("BREAK a")
        _, kind, data = stream.next()
        self.assertEqual((kind, data["name"], data["fence"], data["reason"]), ("LOST", "a", fence, "broken"))
        self.problem(s.get("a"), 409, "LOST")
        for _ in range(2):
            self.problem(s.delete("a"), 409, "LOST")
        self.assertGreater(s.post("a", wait="30s").json["fence"], fence)
        self.assertEqual(s.delete("a").status, 200)

    def test_events_are_kept_for_the_next_stream(self):
        d, api = self.start()
        s, c = api.session(), self.client(d)
        for name in ("a", "b"):
            s.post(name)
            c.ok("BREAK " + name)
        stream = Stream(s)
        (first, _, a), (second, _, b) = stream.next(), stream.next()
        self.assertEqual((a["name"], b["name"], second), ("a", "b", first + 1))
        newer = Stream(s, last=first)
        self.assertEqual((newer.next()[2]["name"]), "b")
        with self.assertRaises(EOFError):
            stream.next()
        stream.close()
        newer.close()

    def test_events_are_kept_as_far_as_64_KiB_hold_them(self):
        api = self.start()[1]
        s, n = api.session(), 40
        for i in range(n):  # each byte takes six in JSON
            self.assertEqual(s.post(b"\xff" * 505 + b"%02d" % i, owner="\udcff" * 256, renew="no", ttl="300ms").status, 200)
        until(lambda: s.get(b"\xff" * 505 + b"%02d" % (n - 1), "?owner=" + "%ff" * 256).status == 409, "the last lock to be lost")
        stream, told = Stream(s), []
        while not told or told[-1][1] < n - 1:
            number, _, data = stream.next()
            told.append((number, int(data["name"][-2:])))
        stream.close()
        self.assertEqual(told, [(told[-1][0] + i + 1 - n, i) for i in range(told[0][1], n)])
        self.assertTrue(12 <= len(told) <= 16, told)

    def test_mistakes_are_told(self):
        _, api = self.start()
        s = api.session()
        self.problem(s.post("a", wiat="1s"), 400, "ARG", "did you mean wait?")
        self.problem(s.post("a", wait="soon"), 400, "ARG", "wait")
        self.problem(s.post("a", ttl="1h"), 422, "LIMIT", "max_lease")
        self.problem(api.post("/v1/sessions", {"heartbeat": "1s"}), 400, "ARG", "from 2s to 1h")
        self.problem(api.post("/v1/sessions", {"heartbeat": 0}), 400, "ARG", "from 2s to 1h")
        self.problem(api.post("/v1/sessions", {"grace": "1000h"}), 422, "LIMIT", "grace")
        json_type = {"Content-Type": "application/json"}
        for body in ("[]", "{", "{\"a\"}",
                     "{\"wait\":}", "{\"wait\":[]}", "{\"wait\":\"1s\"", "{} {}", "{\"wait\":\"\\ud800\"}", "{\"w w\":1}", "{\"wait\":tru}", "\0"):
            self.problem(api.ask(s.lock_path("a"), "POST", json_type, body=body), 400, "ARG")
        self.problem(api.ask(s.lock_path("a") + "?wait=%zz", "POST", json_type), 400, "ARG", "query")
        self.problem(s.post("a", note="x" * 3000), 400, "ARG", "too long")
        for length, status in ((8192, 200), (8193, 413)):
            self.assertEqual(api.ask(s.lock_path("most"), "POST", json_type, body="{}".ljust(length)).status, status)
        self.assertEqual(api.ask(s.lock_path("a"), "GET", {"X": 8192 * "x"}).status, 400)
        self.problem(api.ask("/v1/nothing"), 404, "NOTFOUND")
        self.problem(api.ask("/"), 404, "NOTFOUND")
        for path, method, allowed in (("/v1/sessions", "GET", "POST"), (s.path, "GET", "PUT, DELETE"),
                                      (s.lock_path("a"), "PATCH", "GET, POST, PUT, DELETE"),
                                      (s.path + "/events", "POST", "GET"), ("/v1/sessions", "OPTIONS", "POST")):
            answer = api.ask(path, method)
            self.problem(answer, 405, "UNKNOWN")
            self.assertEqual(answer["Allow"], allowed)
        self.problem(api.ask("/v1/sessions/1-00000000000000000000000000000000", "PUT"), 410, "NOTFOUND")
        self.problem(api.ask(s.path[:-1] + ("0" if s.path[-1] != "0" else "1"), "PUT"), 410, "NOTFOUND")
        self.assertEqual(s.ping().status, 200)


class Gate(ApiTest):
    COST = 3

    def test_nobody_comes_in_without_the_token(self):
        d, api = self.start()
        for value in ("", "Bearer other", "Basic " + TOKEN, "Bearer " + TOKEN + "x"):
            answer = api.ask("/v1/sessions", "POST", {"Content-Type": "application/json", "Authorization": value}, body="{}")
            self.problem(answer, 401, "AUTH")
            self.assertEqual(answer["WWW-Authenticate"], 'Bearer realm="redlockd"')
        self.assertEqual(len(self.client(d).ok("LIST sessions").rows), 1)

    def test_web_pages_cannot_reach_it(self):
        _, api = self.start()
        json_type = {"Content-Type": "application/json"}
        for origin in ("https://evil.example", "null", "http://localhost", "http://127.0.0.1:%d" % api.at[1]):
            self.problem(api.ask("/v1/sessions", "POST", {"Origin": origin, **json_type}, body="{}"), 403, "DENIED", "Origin")
        for host in ("evil.example", "127.0.0.1.evil.example", "[::1].evil.example"):
            self.problem(api.ask("/v1/sessions", "POST", json_type, host, "{}"), 421, "DENIED")
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", ""):
            self.problem(api.ask("/v1/sessions", "POST", {"Content-Type": kind}, body="{}"), 415, "ARG")
        self.problem(api.ask("/v1/sessions", "POST"), 415, "ARG")
        answer = api.ask("/v1/sessions", "OPTIONS", {"Access-Control-Request-Method": "POST"})
        self.assertEqual((answer.status, answer["Access-Control-Allow-Origin"]), (405, None))

    def test_a_request_that_a_proxy_may_read_otherwise_is_refused(self):
        _, api = self.start()
        s = api.session()
        request = ("POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%%s\r\n\r\n%%s" %
                   (s.lock_path("a"), TOKEN))
        chunked = "2\r\n{}\r\n0\r\n\r\n"
        for headers, body in (("Content-Length: 2\r\nContent-Length: 2", "{}"), ("Content-Length: 2\r\nContent-Length: 0", "{}"),
                              ("Content-Length: +2", "{}"), ("Content-Length: 2, 2", "{}"), ("Content-Length: -2", "{}"),
                              ("Content-Length: 2\r\nTransfer-Encoding: chunked", chunked), ("Transfer-Encoding: xchunked", chunked),
                              ("Transfer-Encoding: gzip, chunked", chunked), ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", chunked),
                              ("Transfer-Encoding : chunked\r\nContent-Length: 2", "{}"), (": x\r\nContent-Length: 2", "{}"),
                              ("Host: localhost\r\nContent-Length: 2", "{}"), ("Authorization: Bearer other\r\nContent-Length: 2", "{}")):
            self.assertRegex(api.raw((request % (headers, body)).encode()), rb"^HTTP/1\.1 400 ", headers)
        self.assertRegex(api.raw((request % ("Transfer-Encoding: chunked", chunked)).replace("/1.1", "/1.0").encode()), rb"^HTTP/1\.\d 400 ")
        self.problem(s.get("a"), 404, "NOTHELD")
        self.assertRegex(api.raw((request % ("Transfer-Encoding: chunked", chunked)).encode()), rb"^HTTP/1\.1 200 ")
        self.assertEqual(s.delete("a").status, 200)

    def test_what_stands_behind_a_request_is_not_read(self):
        _, api = self.start()
        s = api.session()
        head = " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %%d\r\n\r\n" % TOKEN
        both = "PUT " + s.path + head % 0 + "POST " + s.lock_path("a") + head % 2 + "{}"
        self.assertEqual(api.raw(both.encode()).count(b"Content-Type: application/"), 1)
        self.problem(s.get("a"), 404, "NOTHELD")

    def test_no_secret_is_in_the_log(self):
        d, api = self.start({"log": {"level": "debug"}})
        s = api.session(heartbeat="2s", grace="30s")
        s.post("a")
        os.kill(d.pid, signal.SIGUSR2)
        d.logged("restarted sessions")
        self.assertEqual(s.get("a").status, 200)
        api.ask(s.path + "x", "PUT", {"Authorization": "Bearer wrong-" + TOKEN})
        d.stop()
        for secret in (TOKEN, s.path.rpartition("-")[2]):
            self.assertNotIn(secret, d.log())

    def test_a_new_token_ends_what_waits_and_streams(self):
        d, api = self.start()
        holder, other, c = api.session(), api.session(), self.client(d)
        holder.post("a")
        sock, stream = api.begin(other.lock_path("a"), {"wait": "60s"}), Stream(holder)
        until(lambda: c.roles("a") == ["holder", "waiter"], "it waits")
        with open(d.tree["api"]["token_file"], "w", encoding="ascii") as file:
            file.write("other" + TOKEN + "\n")
        d.reload()
        self.problem(answer_of(sock), 401, "AUTH", "token")
        with self.assertRaises(EOFError):
            while True:
                stream.next()
        stream.close()
        until(lambda: c.roles("a") == ["holder"], "it waits no more")

    def test_a_new_token_is_read_by_a_reload(self):
        d, api = self.start()
        with open(d.tree["api"]["token_file"], "w", encoding="ascii") as file:
            file.write("other" + TOKEN + "\n")
        d.reload()
        self.assertEqual(api.post("/v1/sessions").status, 401)
        self.assertEqual(api.ask("/v1/sessions", "POST", {"Authorization": "Bearer other" + TOKEN, "Content-Type": "application/json"}, body="{}").status, 201)

    def test_rules_judge_its_sessions(self):
        _, api = self.start({"rules": [{"names": "free/*", "allow": ["lock"]}, {"names": "harness:ready", "allow": ["lock"]}]})
        s = api.session()
        self.assertEqual(s.post("free/a").status, 200)
        self.problem(s.post("a"), 403, "DENIED", "rule")

    def test_on_a_unix_socket(self):
        path = os.path.join(self.folder(), "api.sock")
        _, api = self.start(api=Api(path))
        self.assertEqual(api.session().post("a").status, 200)
        self.assertEqual(api.ask("/v1/sessions", "POST", {"Authorization": "", "Content-Type": "application/json"}, body="{}").status, 401)


class Lives(ApiTest):
    COST = 45

    def test_a_session_ends_by_its_heartbeat(self):
        _, api = self.start()
        s, other = api.session(heartbeat="2s", grace="0s"), api.session()
        s.post("a")
        begin = time.monotonic()
        self.assertEqual(other.post("a", wait="30s").status, 200)
        self.assertGreater(time.monotonic() - begin, 1.9)
        self.problem(s.ping(), 410, "NOTFOUND")

    def test_a_sign_of_life_keeps_it_and_so_does_a_wait(self):
        _, api = self.start()
        s, holder = api.session(heartbeat="2s", grace="0s"), api.session()
        s.post("mine")
        holder.post("a")
        self.problem(s.post("a", wait="5s"), 408, "TIMEOUT")
        self.assertEqual(s.get("mine").status, 200)
        for _ in range(4):
            time.sleep(1)
            self.assertEqual(s.ping().status, 200)
        self.assertEqual(s.get("mine").status, 200)

    def test_a_stream_is_no_sign_of_life(self):
        _, api = self.start()
        s = api.session(heartbeat="2s", grace="0s")
        fence = s.post("a").json["fence"]
        stream = Stream(s)
        self.assertEqual(stream.next()[1:], ("LOST", {"name": "a", "fence": fence, "reason": "idle"}))
        with self.assertRaises(EOFError):
            stream.next()
        stream.close()

    def test_a_wait_whose_session_is_taken_over_is_told_to_ask_again(self):
        d, api = self.start()
        holder, other, c, taker = api.session(), api.session(grace="30s"), self.client(d), self.client(d)
        holder.post("a")
        other.post("b")
        sock = api.begin(other.lock_path("a"), {"wait": "60s"})
        until(lambda: c.roles("a") == ["holder", "waiter"], "it waits")
        taker.ok("RESUME %s %s" % tuple(other.path.rpartition("/")[2].split("-")))
        self.problem(answer_of(sock), 503, "UNAVAILABLE", "ask again")
        self.assertEqual(other.get("b").status, 200, "it comes back to HTTP")
        c.ok("KILL session=%d" % other.made.json["session"])
        until(lambda: other.ping().status == 410, "it has ended")

    def test_a_session_of_the_line_protocol_has_a_heartbeat_from_now_on(self):
        d, api = self.start()
        c, other = self.client(d), self.client(d)
        hello = c.ok("HELLO 1 grace=1s")
        c.ok("LOCK a")
        self.assertEqual(api.ask("/v1/sessions/%s-%s" % (hello["session"], hello["secret"]), "PUT").status, 200)
        begin = time.monotonic()
        other.ok("LOCK a wait=60s", 60)
        self.assertGreater(time.monotonic() - begin, 29)

    def test_kill_9_of_a_client_that_waits(self):
        d, api = self.start()
        holder, other, c = api.session(), api.session(), self.client(d)
        holder.post("a")
        pid = os.fork()
        if pid == 0:
            sock = api.begin(other.lock_path("a"), {"wait": "60s"})
            sock.recv(1)
            os._exit(0)
        until(lambda: c.roles("a") == ["holder", "waiter"], "it waits")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        until(lambda: c.roles("a") == ["holder"], "its wait ended with it")
        holder.delete("a")
        self.assertEqual(holder.post("a").status, 200)

    def begin_to_wait(self, c, holder, other, name):
        holder.post(name)
        sock = other.api.begin(other.lock_path(name), {"wait": "30s"})
        until(lambda: c.roles(name) == ["holder", "waiter"], "it waits")
        return sock

    def test_a_grant_that_nobody_hears_of_is_given_back(self):
        d, api = self.start()
        holder, other, c = api.session(), api.session(), self.client(d)
        for i in range(40):
            self.begin_to_wait(c, holder, other, "a%d" % i).close()
            holder.delete("a%d" % i)  # the daemon has not noticed yet that the client has gone
            until(lambda name="a%d" % i: c.roles(name) == [], "it is free")

    def test_who_asks_again_keeps_what_is_granted_while_a_cut_is_noticed(self):
        d, api = self.start()
        holder, other, c = api.session(), api.session(), self.client(d)
        for i in range(40):
            name = "a%d" % i
            cut = threading.Thread(target=self.begin_to_wait(c, holder, other, name).close)
            cut.start()
            if i % 2:
                holder.delete(name)
            sock = api.begin(other.lock_path(name), {"wait": "10s"})
            holder.delete(name)
            fence = answer_of(sock).json["fence"]
            cut.join()
            time.sleep(0.15)
            self.assertEqual(other.get(name).json["fence"], fence)

    def test_a_cut_does_not_take_what_the_session_has_heard_of(self):
        _, api = self.start()
        s = api.session()
        fence = s.post("a").json["fence"]
        for _ in range(50):
            api.begin(s.lock_path("a"), {"wait": "30s"}).close()
        time.sleep(0.3)
        self.assertEqual(s.get("a").json["fence"], fence)

    def test_sigusr2_keeps_sessions_and_locks(self):
        d, api = self.start()
        s, other = api.session(name="kept", grace="30s"), api.session()
        fence = s.post("a").json["fence"]
        stream, sock = Stream(s), api.begin(other.lock_path("a"), {"wait": "60s"})
        until(lambda: api.session().post("a").json.get("waiters") == 1, "it waits")
        os.kill(d.pid, signal.SIGUSR2)
        self.problem(answer_of(sock), 503, "DRAINING")
        self.assertEqual(stream.next()[1], "CONTENDED")
        with self.assertRaises(EOFError):
            stream.next()
        until(lambda: self.is_up(api), "it listens again")
        self.assertEqual(s.get("a").json["fence"], fence)
        sock = api.begin(other.lock_path("a"), {"wait": "60s"})
        until(lambda: api.session().post("a").json.get("waiters") == 1, "it waits in its old place")
        s.delete("a")
        self.assertEqual(answer_of(sock).status, 200)
        stream = Stream(s)
        self.assertEqual(stream.status, 200)
        stream.close()

    def test_a_session_does_not_come_back_for_a_client_that_has_gone(self):
        d, api = self.start()
        s = api.session(grace="30s")
        s.post("a")
        os.kill(d.pid, signal.SIGUSR2)
        d.logged("restarted sessions")
        os.kill(d.pid, signal.SIGSTOP)
        sock = api.begin(s.path, {}, "PUT")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()  # the kernel of the daemon forgets whose connection it was
        os.kill(d.pid, signal.SIGCONT)
        until(lambda: api.ask("/v1/nothing").status == 404, "it has read that")
        self.assertEqual(s.get("a").status, 200)

    def test_a_loss_after_a_restart_is_told_to_who_knows_the_last_before(self):
        d, api = self.start()
        s = api.session(grace="30s")
        s.post("a")
        self.client(d).ok("BREAK a")
        stream = Stream(s)
        last = stream.next()[0]
        stream.close()
        s.post("a", wait="30s")
        os.kill(d.pid, signal.SIGUSR2)
        d.logged("restarted sessions")
        self.assertEqual(s.post("b").status, 200)
        self.client(d).ok("BREAK b")
        stream = Stream(s, last)
        while stream.next()[2]["name"] != "b":
            pass
        stream.close()

    @staticmethod
    def is_up(api):
        try:
            return api.ask("/v1/nothing").status == 404
        except OSError:
            return False

    def test_a_restart_on_redis_keeps_locks_for_the_grace(self):
        d, api = self.start({"store": "redis", "redis": {"nodes": [self.redis().node]}})
        s = api.session(grace="30s")
        fence = s.post("a").json["fence"]
        for end in (d.finish, d.kill):
            end()
            d.start()
            until(lambda: s.get("a").status == 200, "the lock is adopted")
            self.assertEqual(s.get("a").json["fence"], fence)
        self.assertEqual(s.delete("a").status, 200)

    def test_the_end_of_the_daemon_answers_who_waits(self):
        d, api = self.start()
        holder, other = api.session(), api.session()
        holder.post("a")
        sock = api.begin(other.lock_path("a"), {"wait": "60s"})
        until(lambda: api.session().post("a").json.get("waiters") == 1, "it waits")
        d.stop()
        self.problem(answer_of(sock), 503, "DRAINING")

    def test_no_quorum(self):
        _, api = self.start({"store": "redis", "redis": {"nodes": ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]}}, joined=False)
        answer = api.session().post("a")
        self.assertIn(self.problem(answer, 503, answer.json["code"])["code"], ("QUORUM", "UNAVAILABLE"))
        self.assertGreater(int(answer["Retry-After"]), 0)


class Secure(ApiTest):
    """api.tls: an authority for all tests of the class."""
    COST = 8

    @classmethod
    def setUpClass(cls):
        cls.ca = Authority()
        cls.addClassCleanup(cls.ca.remove)
        cls.server = cls.ca.sign("/CN=localhost")

    def secure(self, tree=None, context=None, **options):
        cert, key = self.server
        api = SecureApi(free_web().at)
        api.context = context or self.ca.client_context()
        return self.start(merged({"api": {"tls": "yes"}, "tls": {"cert_file": cert, "key_file": key}}, tree), api, **options)

    def test_all_of_it_inside_tls(self):
        d, api = self.secure()
        s, other, c = api.session(), api.session(), self.client(d)
        fence = s.post("a").json["fence"]
        sock = api.begin(other.lock_path("a"), {"wait": "30s"})
        until(lambda: c.roles("a") == ["holder", "waiter"], "it waits")
        sock.close()
        until(lambda: c.roles("a") == ["holder"], "it waits no more")
        stream = Stream(s)
        self.client(d).ok("BREAK a")
        until(lambda: stream.next()[1:2] == ("LOST",), "the loss is told")
        stream.close()
        self.assertGreater(s.post("a", wait="30s").json["fence"], fence)
        with contextlib.suppress(ConnectionError):
            self.assertEqual(Web(api.at).raw(b"POST /v1/sessions HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n" % TOKEN.encode())[:5], b"")

    def test_a_request_that_has_no_end_is_cut_off(self):
        _, api = self.secure()
        with api.connect() as sock:
            sock.settimeout(1)  # its kernel may wait for room that the end has taken
            self.assertLess(push(sock, b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"\n"), 16 << 20)

    def test_a_client_must_show_a_certificate_and_rules_know_it(self):
        clients = Authority("clients")
        self.addCleanup(clients.remove)
        d, api = self.secure({"tls": {"client_ca_file": clients.cert},
                              "rules": [{"cert": "CN=db3", "allow": ["lock"]}, {"uid": os.getuid(), "allow": ["lock"]}]},
                             token=False)
        with self.assertRaises((ssl.SSLError, ConnectionError, http.client.HTTPException)):
            api.session()
        api.context = self.ca.client_context(clients.sign("/CN=db3"))
        self.assertEqual(api.session().post("a").status, 200)
        api.context = self.ca.client_context(clients.sign("/CN=db4"))
        self.problem(api.session().post("b"), 403, "DENIED")
        self.assertTrue(d.alive())

    def test_a_session_is_for_the_certificate_that_made_it(self):
        clients = Authority("clients")
        self.addCleanup(clients.remove)
        _, api = self.secure({"tls": {"client_ca_file": clients.cert}}, self.ca.client_context(clients.sign("/CN=db3")), token=False)
        s = api.session()
        fence = s.post("a").json["fence"]
        api.context, own = self.ca.client_context(clients.sign("/CN=db4")), api.context
        for answer in (s.get("a"), s.delete("a"), s.post("a"), s.ping(), api.ask(s.path + "/events"), s.end()):
            self.problem(answer, 410, "NOTFOUND")
        api.context = own
        self.assertEqual(s.get("a").json["fence"], fence)

    def test_strangers_who_shake_hands_harm_nobody(self):
        d, api = self.secure()
        s = api.session()
        hello = self.client_hello()
        with contextlib.ExitStack() as stack:
            for i in range(100):
                sock = stack.enter_context(contextlib.closing(Web(api.at).connect()))
                sock.sendall((hello, hello[:40], b"", os.urandom(300))[i % 4])
            begin = time.monotonic()
            self.assertEqual(s.post("a").status, 200)
            self.assertLess(time.monotonic() - begin, LATE)
            client = self.client(d)
            client.ok("LOCK b")

    def test_strangers_whose_certificates_take_long_leave_the_service_its_time(self):
        """A handshake takes the loop several milliseconds: holders and sessions are served between two of them. visits_test has the pace itself."""
        clients, strangers = Authority("clients"), Crowd(self.folder(), self.ca)
        self.addCleanup(clients.remove)
        d, api = self.secure({"tls": {"client_ca_file": clients.cert}}, self.ca.client_context(clients.sign("/CN=db3")), token=False)
        api.source = beyond_loopback(self)
        s, holder = api.session(), self.client(d)
        holder.ok("LOCK a")
        with strangers.shaking(api.at, 52) as refused:
            until(lambda: refused.value > 10, "strangers are refused")
            begin, used, before, worst, asked = time.monotonic(), d.cpu_seconds(), refused.value, 0.0, 0
            while time.monotonic() < begin + 3 or asked < 3:
                sent = time.monotonic()
                holder.ok("CHECK a")
                worst = max(worst, time.monotonic() - sent)
                self.assertEqual(s.ping().status, 200)
                asked += 1
            wall, used, count = time.monotonic() - begin, d.cpu_seconds() - used, refused.value - before
        self.figure("%d strangers refused in %.1f s: %.0f %% of the processor, worst CHECK %.0f ms, %d pings through HTTPS" %
                    (count, wall, 100 * used / wall, 1000 * worst, asked))
        self.assertGreater(count, 0)
        self.assertLess(worst, LATE)
        self.assertTrue(used / wall < 0.6 or sanitized())  # there a step takes longer than the longest rest

    @staticmethod
    def client_hello():
        into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        shake = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(into, out, server_hostname="localhost")
        with contextlib.suppress(ssl.SSLWantReadError):
            shake.do_handshake()
        return out.read()

    def test_a_reload_shows_the_new_certificate(self):
        d, api = self.secure()
        other = Authority("other")
        self.addCleanup(other.remove)
        for path, new in zip(self.server, other.sign("/CN=localhost")):
            with open(path, "rb") as old:
                self.addCleanup(self.write, path, old.read())
            with open(new, "rb") as file:
                self.write(path, file.read())
        d.reload()
        api.context = other.client_context()
        self.assertEqual(api.session().ping().status, 200)

    @staticmethod
    def write(path, data):
        with open(path, "wb") as file:
            file.write(data)


class Crowd:
    """Clients that show certificates of nobody, 8 KiB of them, whose points take long to decode, and connect again once they are refused."""

    def __init__(self, folder, ca):
        key, cert = (os.path.join(folder, name) for name in ("stranger.key", "stranger.pem"))
        openssl("ecparam", "-name", "secp521r1", "-genkey", "-noout", "-conv_form", "compressed", "-out", key)
        openssl("req", "-x509", "-key", key, "-subj", "/CN=x", "-out", cert)
        with open(cert, encoding="ascii") as file:
            one = file.read()
        with open(cert, "a", encoding="ascii") as file:
            file.write(one * (8192 // len(ssl.PEM_cert_to_DER_cert(one)) - 1))
        self.context = ca.client_context((cert, key))

    @contextlib.contextmanager
    def shaking(self, at, count):
        fork = multiprocessing.get_context("fork")
        refused = fork.Value("L", 0)
        crowd = [fork.Process(target=self.run, args=(at, count // 4, refused), daemon=True) for _ in range(4)]
        for process in crowd:
            process.start()
        try:
            yield refused
        finally:
            for process in crowd:
                process.kill()
                process.join()

    def begin(self, at):
        sock = self.context.wrap_socket(socket.create_connection(at), server_hostname="localhost", do_handshake_on_connect=False)
        sock.setblocking(False)
        return sock

    def go_on(self, sock):
        """False: the daemon has refused it."""
        try:
            sock.do_handshake()
            return bool(sock.recv(100))
        except ssl.SSLWantReadError:
            return True
        except OSError:
            return False

    def run(self, at, count, refused):
        socks = [self.begin(at) for _ in range(count)]
        while True:
            for sock in [sock for sock in socks if not self.go_on(sock)]:
                with refused:
                    refused.value += 1
                sock.close()
                socks.remove(sock)
                socks.append(self.begin(at))
            select.select(socks, [], [], 0.1)


class SecureApi(Api):
    context = None

    def connect(self, timeout=WAIT):
        return self.context.wrap_socket(super().connect(timeout), server_hostname="localhost")


class Bounds(ApiTest):
    COST = 8

    def test_one_peer_cannot_take_all_sessions(self):
        _, api = self.start()
        made = 0
        while True:
            answer = api.post("/v1/sessions")
            if answer.status != 201:
                break
            made += 1
        self.problem(answer, 429, "LIMIT", "too many sessions")
        self.assertEqual(made, 901)

    def test_requests_that_wait_leave_room_for_others(self):
        d, api = self.start()
        holder, other = api.session(), api.session()
        holder.post("a")
        socks = []
        with contextlib.ExitStack() as stack:
            for i in range(256):
                sock = stack.enter_context(contextlib.closing(api.begin(other.lock_path("a"), {"wait": "60s", "owner": str(i)})))
                socks.append(sock)
            until(lambda: holder.get("a").status == 200 and any(readable(sock) for sock in socks), "one is refused")
            self.problem(answer_of(next(sock for sock in socks if readable(sock))), 429, "LIMIT", "wait")
            self.assertEqual(holder.ping().status, 200)
            self.assertTrue(d.alive())
        until(lambda: api.session().post("a").json.get("waiters") == 0, "all waits have ended")

    def test_one_peer_cannot_take_all_connections(self):
        d, api = self.start()
        with contextlib.ExitStack() as stack:
            socks = [stack.enter_context(contextlib.closing(api.connect())) for _ in range(600)]
            until(lambda: len([1 for sock in socks if readable(sock)]) >= 120, "the oldest have ended")
            self.assertEqual(api.session().post("a").status, 200)
            self.assertTrue(d.alive())

    def test_a_stream_that_nobody_reads_is_ended(self):
        d, api = self.start(api=Api(os.path.join(self.folder(), "api.sock")))  # the kernel keeps little for a Unix socket
        s, c = api.session(), self.client(d)
        stream = Stream(s)
        names = ["%03d" % i + 500 * "\x01" for i in range(300)]  # six bytes each, in JSON
        for name in names:
            self.assertEqual(s.post(name).status, 200)
            c.ok('BREAK "%s"' % name.replace("\x01", "\\x01"))
        told = []
        with self.assertRaises(EOFError):
            while True:
                told.append(stream.next()[0])
        self.assertLess(len(told), len(names))
        stream.close()
        stream = Stream(s, last=told[-1])
        first = stream.next()[0]
        self.assertGreaterEqual(first, max(told[-1] + 1, told[0] + len(names) - 64), "64 are kept at most")
        self.assertLessEqual(first, told[0] + len(names) - 16, "64 KiB are kept: events of 3 KB")
        stream.close()

    def test_a_slow_body_is_closed_in_5_s(self):
        _, api = self.start()
        with api.connect(20) as sock:
            begin = time.monotonic()
            sock.sendall(b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            drain(sock)
            self.assertLess(time.monotonic() - begin, 9)


def readable(sock):
    return bool(select.select([sock], [], [], 0)[0])
