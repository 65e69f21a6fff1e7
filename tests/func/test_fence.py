# SPDX-License-Identifier: BSD-2-Clause
"""contrib/fence: the guards refuse a holder that was paused and does not know it. On the real thing; what is not installed is skipped by name."""
import contextlib
import glob
import importlib.util
import io
import os
import pwd
import shutil
import sqlite3
import subprocess
import threading
import time
import unittest

import redis

from harness import FuncTest
from process import ROOT, reap, spawn, until
from wire import Client

GUARDS = os.path.join(ROOT, "contrib", "fence")
OLD, NEW = 1795238400123456, 1795238402001002


def text(name):
    with open(os.path.join(GUARDS, name), encoding="utf-8") as source:
        return source.read()


def module(name):
    spec = importlib.util.spec_from_file_location(name, os.path.join(GUARDS, name + ".py"))
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


class Rules:
    """What each guard of a database must do. claim(name, fence, shared) is a transaction that says whether it went through; it writes the fence into `data`."""
    COST = 6

    def test_a_smaller_fence_is_refused_and_the_same_one_is_not(self):
        self.assertTrue(self.claim("x", OLD))
        self.assertTrue(self.claim("x", OLD))
        self.assertTrue(self.claim("x", NEW))
        self.assertFalse(self.claim("x", OLD))
        self.assertEqual(self.data(), [OLD, OLD, NEW])
        self.assertTrue(self.claim("y", OLD), "the fence of another name counts")

    def test_readers_do_not_refuse_each_other_and_a_later_writer_refuses_them(self):
        for shared, fence, passes in ((True, 20, True), (True, 10, True), (False, 15, False), (False, 30, True), (True, 25, False), (True, 40, True),
                                      (False, 35, False), (False, 50, True)):
            self.assertEqual(self.claim("x", fence, shared), passes, "%s %d" % ("reader" if shared else "writer", fence))

    def test_the_holders_of_a_real_lock(self):
        daemon = self.daemon()
        with Client(daemon.addr) as one, Client(daemon.addr) as two:
            first = one.ok("LOCK x").num("fence")
            self.assertTrue(self.claim("x", first))
            one.ok("UNLOCK x")
            self.assertTrue(self.claim("x", two.ok("LOCK x").num("fence")))
            self.assertFalse(self.claim("x", first))


class Sqlite(Rules, FuncTest):
    COST = 2

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder(), "db")
        with contextlib.closing(self.open()) as db:
            db.executescript(text("sqlite.sql") + "CREATE TABLE data (n INTEGER);")

    def open(self):
        return sqlite3.connect(self.path, isolation_level=None, timeout=10)

    def claim(self, name, fence, shared=False):
        with contextlib.closing(self.open()) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO data VALUES (?)", (fence,))  # undone if what follows is refused
            try:
                db.execute("INSERT INTO redlock_fence (name, fence, shared) VALUES (?, ?, ?)", (name, fence, shared))
            except sqlite3.IntegrityError as error:
                self.assertIn("the fence is stale", str(error))
                self.assertFalse(db.in_transaction)
                return False
            db.execute("COMMIT")
            return True

    def data(self):
        with contextlib.closing(self.open()) as db:
            return [row[0] for row in db.execute("SELECT n FROM data ORDER BY rowid")]

    def test_what_is_no_fence_is_refused(self):
        with contextlib.closing(self.open()) as db:
            for wrong in ("'7x'", "0", "-1", "1.5", "NULL"):
                with self.assertRaisesRegex(sqlite3.IntegrityError, "no positive integer"):
                    db.execute("INSERT INTO redlock_fence (name, fence) VALUES ('x', %s)" % wrong)


def postgresql():
    """The folder of PostgreSQL's programs, or None."""
    folders = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda folder: int(folder.split("/")[4]))
    return folders[-1] if folders and shutil.which("psql") else None


@unittest.skipUnless(postgresql() and os.geteuid() == 0, "without PostgreSQL's server, or not as root, who may start it as another user")
class Postgresql(Rules, FuncTest):
    COST = 10

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = subprocess.run(["mktemp", "-d"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        nobody = pwd.getpwnam("nobody")
        os.chown(cls.home, nobody.pw_uid, nobody.pw_gid)
        cls.user = ["setpriv", "--reuid=%d" % nobody.pw_uid, "--regid=%d" % nobody.pw_gid, "--clear-groups"]
        data = os.path.join(cls.home, "data")
        subprocess.run([*cls.user, postgresql() + "/initdb", "-D", data, "-U", "postgres", "--no-sync", "-A", "trust"], check=True, stdout=subprocess.DEVNULL)
        cls.server = spawn([*cls.user, postgresql() + "/postgres", "-D", data, "-k", cls.home, "-c", "listen_addresses=", "-c", "fsync=off"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: cls.psql("SELECT 1").returncode == 0, "PostgreSQL answers")

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait(30)
        shutil.rmtree(cls.home)
        super().tearDownClass()

    @classmethod
    def psql(cls, script):
        return subprocess.run(["psql", "-X", "-q", "-A", "-t", "-h", cls.home, "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-d", "postgres"],
                              input=script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, cwd="/")

    def setUp(self):
        super().setUp()
        done = self.psql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;" + text("postgresql.sql") + "CREATE TABLE data (i serial, n bigint);")
        self.assertEqual(done.returncode, 0, done.stderr)

    def claim(self, name, fence, shared=False):
        done = self.psql("BEGIN; INSERT INTO data (n) VALUES (%d); SELECT redlock_fence('%s', %d, %s); COMMIT;" % (fence, name, fence, shared))
        if done.returncode:
            self.assertRegex(done.stderr, r"ERROR:  RL001: the fence %d of the lock %s is stale" % (fence, name))
        return not done.returncode

    def data(self):
        return [int(n) for n in self.psql("SELECT n FROM data ORDER BY i").stdout.split()]

    def test_a_later_holder_waits_until_the_transaction_of_the_old_one_is_over(self):
        began = time.monotonic()
        old = threading.Thread(target=self.psql, args=("BEGIN; SELECT redlock_fence('x', 1); INSERT INTO data (n) VALUES (1); SELECT pg_sleep(1); COMMIT;",))
        old.start()
        until(lambda: self.psql("SELECT 1 FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND wait_event = 'PgSleep'").stdout.strip() == "1", "the old one is in it")
        later = self.psql("BEGIN; SELECT redlock_fence('x', 2); SELECT n FROM data; COMMIT;").stdout.split()
        old.join()
        self.assertEqual(later, ["1"], "the later holder has not seen what the old one wrote")
        self.assertGreater(time.monotonic() - began, 0.9)

    def test_a_fenced_table_takes_nothing_without_a_fence(self):
        self.psql("CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON data FOR EACH STATEMENT EXECUTE FUNCTION redlock_fenced();")
        for write in ("INSERT INTO data (n) VALUES (1)", "UPDATE data SET n = 2", "DELETE FROM data", "TRUNCATE data"):
            done = self.psql(write + ";")
            self.assertRegex(done.stderr, "ERROR:  RL002: the table data is written to without a fence")
            done = self.psql("BEGIN; SELECT redlock_fence('x', 1); COMMIT; %s;" % write)
            self.assertIn("RL002", done.stderr, "the fence of an earlier transaction counts")
            self.assertEqual(self.psql("BEGIN; SELECT redlock_fence('x', 1); %s; COMMIT;" % write).returncode, 0)


@unittest.skipUnless(shutil.which("mariadbd") and shutil.which("mariadb-install-db"), "without MariaDB's server")
class Mariadb(Rules, FuncTest):
    COST = 12

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.home = subprocess.run(["mktemp", "-d"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        options = ["--no-defaults", "--datadir=" + cls.home + "/data"] + (["--user=root"] if os.geteuid() == 0 else [])
        subprocess.run(["mariadb-install-db", *options, "--auth-root-authentication-method=normal", "--skip-test-db"], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        cls.server = spawn(["mariadbd", *options, "--socket=" + cls.home + "/socket", "--skip-networking", "--pid-file=" + cls.home + "/pid"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(lambda: cls.sql("SELECT 1").returncode == 0, "MariaDB answers", timeout=60)

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        reap(cls.server)
        shutil.rmtree(cls.home)
        super().tearDownClass()

    @classmethod
    def sql(cls, script, base="mysql"):
        return subprocess.run(["mariadb", "--no-defaults", "-N", "-B", "-u", "root", "-S", cls.home + "/socket", base], input=script, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)

    def setUp(self):
        super().setUp()
        self.sql("DROP DATABASE IF EXISTS guarded; CREATE DATABASE guarded;")
        done = self.sql(text("mysql.sql") + "CREATE TABLE data (i int AUTO_INCREMENT PRIMARY KEY, n bigint);", "guarded")
        self.assertEqual(done.returncode, 0, done.stderr)

    def claim(self, name, fence, shared=False):
        done = self.sql("START TRANSACTION; INSERT INTO data (n) VALUES (%d); CALL redlock_fence('%s', %d, %s); COMMIT;" % (fence, name, fence, shared), "guarded")
        if done.returncode:
            self.assertRegex(done.stderr, r"ERROR 1644 \(45000\).*the fence is stale")
        return not done.returncode

    def data(self):
        return [int(n) for n in self.sql("SELECT n FROM data ORDER BY i", "guarded").stdout.split()]


class RedisScript(FuncTest):
    def test_a_smaller_fence_is_refused(self):
        server = self.redis()
        guarded = server.cli.register_script(text("redis.lua"))
        self.assertEqual(guarded(keys=["k", "k:fence"], args=["one", OLD]), b"OK")
        self.assertEqual(guarded(keys=["k", "k:fence"], args=["two", NEW, "EX", 100]), b"OK")
        with self.assertRaisesRegex(redis.ResponseError, "^STALE the lock has had the fence %d$" % NEW):
            guarded(keys=["k", "k:fence"], args=["late", OLD])
        self.assertEqual((server.cli.get("k"), server.cli.get("k:fence"), server.cli.ttl("k:fence")), (b"two", b"%d" % NEW, -1))
        self.assertGreater(server.cli.ttl("k"), 90)


class Store:
    """An object store with conditional writes, as much of it as the guard asks for."""

    class ClientError(Exception):
        def __init__(self, code):
            super().__init__(code)
            self.response = {"Error": {"Code": code}}

    class exceptions:
        pass
    exceptions.ClientError = ClientError

    def __init__(self):
        self.objects, self.version, self.meanwhile = {}, 0, []

    def head_object(self, Bucket, Key):
        if (Bucket, Key) not in self.objects:
            raise self.ClientError("404")
        return self.objects[Bucket, Key]

    def put_object(self, Bucket, Key, Body, Metadata, IfMatch=None, IfNoneMatch=None):
        if self.meanwhile:
            self.meanwhile.pop()()
        here = self.objects.get((Bucket, Key))
        if (here is not None) if IfNoneMatch else (here is None or here["ETag"] != IfMatch):
            raise self.ClientError("PreconditionFailed")
        self.version += 1
        self.objects[Bucket, Key] = {"ETag": str(self.version), "Metadata": Metadata, "Body": Body}


class ObjectStore(FuncTest):
    def test_a_smaller_fence_is_refused_also_when_another_write_comes_in_between(self):
        s3, store = module("s3"), Store()
        s3.put(store, "b", "k", b"one", OLD)
        s3.put(store, "b", "k", b"two", NEW)
        with self.assertRaises(s3.Stale):
            s3.put(store, "b", "k", b"late", OLD)
        for key, before in (("new", None), ("old", OLD - 1)):
            if before:
                s3.put(store, "b", key, b"zero", before)
            store.meanwhile.append(lambda key=key: s3.put(store, "b", key, b"two", NEW))
            with self.assertRaises(s3.Stale):
                s3.put(store, "b", key, b"late", OLD)
            self.assertEqual(store.objects["b", key]["Body"], b"two")

    def test_it_gives_up(self):
        s3, store = module("s3"), Store()
        s3.put(store, "b", "k", b"one", 1)
        store.put_object = lambda **_: (_ for _ in ()).throw(Store.ClientError("PreconditionFailed"))
        with self.assertRaisesRegex(TimeoutError, "k was written by others 3 times in a row"):
            s3.put(store, "b", "k", b"two", 2, attempts=3)


class Middleware(FuncTest):
    def setUp(self):
        super().setUp()
        self.seen, self.path = [], os.path.join(self.folder(), "fences")

    def application(self, environ, start_response):
        self.seen.append(environ.get("HTTP_REDLOCK_FENCE"))
        start_response("200 OK", [])
        return [b"done"]

    def ask(self, fence=None, method="POST", application=None):
        status = []
        environ = {"REQUEST_METHOD": method, "wsgi.input": io.BytesIO(), **({"HTTP_REDLOCK_FENCE": fence} if fence else {})}
        module("http_middleware").Fenced(application or self.application, self.path)(environ, lambda said, headers: status.append(said))
        return status[-1]

    def test_a_stale_request_does_not_reach_the_application(self):
        self.assertEqual(self.ask("x y %d" % OLD), "200 OK")
        self.assertEqual(self.ask("x y %d" % NEW), "200 OK")
        self.assertEqual(self.ask("x y %d" % OLD), "412 Precondition Failed")
        self.assertEqual(self.ask("z %d" % OLD), "200 OK")
        for none in (None, "7", "x", "x 7x", "x -7", "x %d" % 2 ** 53):
            self.assertEqual(self.ask(none), "428 Precondition Required")
        self.assertEqual(len(self.seen), 3)
        self.assertEqual(self.ask(method="GET"), "200 OK")

    def test_a_request_is_over_before_a_later_holder_is_let_in(self):
        order, entered = [], threading.Event()

        def slow(environ, start_response):
            order.append("old begins")
            entered.set()
            time.sleep(0.3)
            order.append("old ends")
            return self.application(environ, start_response)

        def quick(environ, start_response):
            order.append("new")
            return self.application(environ, start_response)
        old = threading.Thread(target=self.ask, args=("x %d" % OLD,), kwargs={"application": slow})
        old.start()
        entered.wait(10)
        self.assertEqual(self.ask("x %d" % NEW, application=quick), "200 OK")
        old.join()
        self.assertEqual(order, ["old begins", "old ends", "new"])

    def test_the_fence_of_a_request_that_failed_counts(self):
        def fails(environ, start_response):
            raise ValueError("half done")
        with self.assertRaises(ValueError):
            self.ask("x %d" % NEW, application=fails)
        self.assertEqual(self.ask("x %d" % OLD), "412 Precondition Failed")
