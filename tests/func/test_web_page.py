# SPDX-License-Identifier: BSD-2-Clause
"""The page, in a real browser if one is installed (Debian package chromium). Its pictures are left in the build folder: page.png, page-dark.png, page-phone.png."""
import base64
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import unittest

from authority import Authority
from chromium import PROGRAM, Chromium
from daemon import on_redis
from harness import FuncTest
from process import BUILD, free_port, until
from web import free_web


class Served(FuncTest):
    def test_the_policy_allows_the_style_and_the_script_of_the_page_and_nothing_else(self):
        web = free_web()
        self.daemon({"listen": {"http": web.listen}})
        answer = web.ask("/")
        policy, page = answer["Content-Security-Policy"], answer.text
        self.assertNotIn("unsafe", policy)
        self.assertNotIn("http", policy)
        self.assertIn("default-src 'none'", policy)
        for tag in ("style", "script"):
            [inside] = re.findall("<%s>(.*?)</%s>" % (tag, tag), page, re.S)
            digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
            self.assertIn("%s-src 'sha256-%s'" % (tag, digest), policy)
        self.assertEqual(re.findall(r"(?:src|href|action)\s*=\s*\"(?!#|data:)[^\"]*", page), [])
        self.assertEqual(re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|\sstyle=|\son\w+=", page), [])
        self.assertLess(len(page), 32 << 10)


@unittest.skipUnless(shutil.which("node"), "node is not installed (Debian package nodejs)")
class Judged(FuncTest):
    """What the script of the page makes of a snapshot, in Node.js: whatever it asks a browser for is there, and does nothing."""
    BROWSER = """const any = new Proxy(function () {}, {
        get: (_, key) => key === Symbol.toPrimitive ? () => "" : key === Symbol.iterator ? [][key].bind([]) : any,
        set: () => true, apply: () => any, construct: () => any});
        const document = any, location = any, EventSource = any, addEventListener = any, fetch = any, setTimeout = any, clearTimeout = any, AbortSignal = any;
        """

    def setUp(self):
        super().setUp()
        self.web = free_web()
        self.audit, authority = os.path.join(self.folder(), "audit"), Authority()
        self.addCleanup(authority.remove)
        os.mkdir(self.audit)
        self.files = {days: authority.sign("/CN=localhost", days=days) for days in (30, 5)}
        self.d = self.daemon({"listen": {"http": self.web.listen, "tls": "127.0.0.1:%d" % free_port()}, "audit": {"file": os.path.join(self.audit, "log")},
                              "tls": dict(zip(("cert_file", "key_file"), self.files[30]))}, tcp=True)
        [self.script] = re.findall("<script>(.*?)</script>", self.web.ask("/").text, re.S)

    def judged(self, **totals):
        """The verdict of the page, and its lines about the daemon itself."""
        done = subprocess.run(["node", "-"], text=True, capture_output=True, check=False, timeout=60,
                              input="%s%s;const s = %s; Object.assign(s.totals, %s); console.log(JSON.stringify([...verdictOf(s), ...troublesOf(s)])); process.exit();" %
                              (self.BROWSER, self.script, self.web.ask("/api/v1/snapshot").text, json.dumps(totals)))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_troubles_of_the_daemon_itself_and_what_to_do(self):
        fine = ["OK", "the memory store: locks of this host only", "good"]
        self.assertEqual(self.judged(), fine)
        self.assertIn("! the clock of this host is not that of most stores", self.judged(clock_apart=1)[3])
        good = self.d.config
        self.d.config += "nonsense: 1\n"
        self.d.write_config()
        self.d.send_signal(signal.SIGHUP)
        shutil.rmtree(self.d.runtime_dir)
        with open(self.d.runtime_dir, "w"):
            pass
        os.unlink(self.d.addr)
        os.mkdir(self.d.addr)
        shutil.rmtree(self.audit)
        with open(self.audit, "w"):
            pass
        lines = ["the audit log cannot be written", "nobody can connect to a Unix socket",
                 "the configuration that was read last has an error", "the journal cannot be written"]
        until(lambda: len(self.judged()) == len(fine) + len(lines), "each trouble has a line")
        word, _, kind, *told = self.judged()
        self.assertEqual((word, kind), ("DEGRADED", "warn"))
        for line in lines:
            self.assertEqual(sum(line in text for text in told), 1, line)
        os.unlink(self.d.runtime_dir)
        os.rmdir(self.d.addr)
        os.unlink(self.audit)
        os.mkdir(self.audit)
        self.d.config = good
        self.d.write_config()
        self.d.send_signal(signal.SIGHUP)
        until(lambda: self.judged() == fine, "all is well again")
        for good, soon in zip(*self.files.values()):
            shutil.copy(soon, good)
        self.d.send_signal(signal.SIGHUP)
        until(lambda: self.judged() != fine, "the certificate ends soon")
        self.assertIn("! a certificate of the daemon or of a server, or its authority, ends within 21 days", self.judged()[3])


@unittest.skipUnless(PROGRAM, "no browser is installed (Debian package chromium)")
class Shown(FuncTest):
    COST = 30
    HOSTILE = '<img src=x onerror="window.hacked=1">'

    def setUp(self):
        super().setUp()
        self.web = free_web()
        self.d = self.daemon({"listen": {"http": self.web.listen}})
        self.page = Chromium()
        self.addCleanup(self.page.close)
        self.page.size(1200, 900)

    def open(self):
        self.page.go("http://%s/" % self.web.listen)
        self.page.until("document.getElementById('link')?.textContent === 'live'", "the page shows a snapshot")

    def text(self, element):
        return self.page.run("document.getElementById('%s').innerText" % element)

    def shows(self, element, word):
        self.page.until("document.getElementById('%s')?.innerText.includes(%r)" % (element, word), "%s shows %s" % (element, word))

    def crowd(self):
        """Holders and waiters as of an ordinary day. Returns their clients."""
        nightly, export = self.client(self.d, "nightly-export"), self.client(self.d, "web-3")
        nightly.ok('LOCK export/orders note="nightly export, ask ops"')
        export.ok("LOCK cache/warm ttl=3s")
        export.ok("ACQUIRE licences limit=5")
        for i in range(3):
            export.ok("DEFER mail %d" % i)
        export.ok("TAKE mail")
        readers = [self.client(self.d, "reader-%d" % i) for i in range(2)]
        for reader in readers:
            reader.ok("LOCK catalogue mode=shared")
        waiters = [self.client(self.d, "worker-%d" % i) for i in range(3)]
        for waiter in waiters:
            waiter.begin("LOCK export/orders wait=60s")
        return [nightly, export, *readers, *waiters]

    def names(self):
        """The locks of the table, from the top."""
        return self.page.run("[...document.querySelectorAll('#locks a')].map(a => a.textContent)")

    def choose(self, name):
        self.page.run("[...document.querySelectorAll('#locks a')].find(a => a.textContent === %r).click()" % name)

    def test_who_holds_who_waits_and_what_happens(self):
        crowd = self.crowd()
        self.open()
        self.assertIn("memory joined", self.text("stores"))
        self.assertEqual(self.text("alarms"), "")
        self.assertRegex(self.text("verdict"), "^OK, the memory store: locks of this host only$")
        self.assertRegex(self.page.run("document.title"), "^OK · redlockd ")
        for word in ("mail", "queue", "2 due, 1 taken, 0 dead", "export/orders", "nightly-export", "3 worker-0", "1 of 5", "shared", "reader-0, reader-1"):
            self.shows("locks", word)
        self.assertEqual(self.names()[0], "export/orders", "what is contended is not the first")
        self.choose("export/orders")
        for word in ("nightly export, ask ops", "1. worker-0", "3. worker-2", "fence "):
            self.shows("one", word)
        crowd[1].ok("LOCK events/one")
        self.shows("events", "events/one")
        self.shows("locks", "events/one")
        for client in crowd[4:]:
            client.close()
        self.page.until("!document.getElementById('one').innerText.includes('worker-0')", "those who left are not shown")
        crowd[0].send("BREAK events/one")
        self.shows("losses", "broken")
        self.assertEqual(self.page.complaints, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith(("http://%s/" % self.web.listen, "data:", "about:"))], [])

    def test_rows_keep_their_place_while_locks_come_and_go(self):
        stays, goes = self.client(self.d, "stays"), self.client(self.d, "goes")
        steady = ["m%02d" % i for i in range(0, 24, 2)]
        for name in steady:
            stays.ok("LOCK " + name)
        self.open()
        self.page.until("document.querySelectorAll('#locks a').length === 12", "all are shown")
        tops = "Object.fromEntries([...document.querySelectorAll('#locks a')].map(a => [a.textContent, a.getBoundingClientRect().top]))"
        before = self.page.run(tops)
        for turn in range(8):
            names = ["m%02d" % ((2 * turn + 1) % 24), "a%d" % turn, "z%d" % turn]
            for name in names:
                goes.ok("LOCK " + name)
            self.shows("locks", names[1])
            for name in names:
                goes.ok("UNLOCK " + name)
            self.page.until("![...document.querySelectorAll('tr:not(.free) a')].some(a => a.textContent === %r)" % names[1], "it is not shown as held")
            now = self.page.run(tops)
            self.assertEqual({name: now[name] for name in steady}, {name: before[name] for name in steady}, "rows have moved")

    def test_columns_sort(self):
        holder = self.client(self.d, "b-holder")
        holder.ok("LOCK one")
        self.client(self.d, "a-holder").ok("LOCK two")
        self.client(self.d, "waiter").begin("LOCK one wait=60s")
        self.open()
        self.page.until("document.querySelectorAll('#locks a').length === 2", "all are shown")
        for column, names in (("lock", ["one", "two"]), ("lock", ["two", "one"]), ("holder", ["two", "one"]), ("waiting", ["one", "two"]), ("waiting", ["two", "one"]),
                              ("waiting", ["one", "two"])):
            self.page.run("document.querySelector('#heads button[data-column=%s]').click()" % column)
            self.assertEqual(self.names(), names, column)
        self.assertEqual(self.page.run("document.querySelectorAll('th:not([aria-sort=none])').length"), 0)

    def test_25_locks_fit_on_a_screen_of_1280_by_800(self):
        self.page.size(1280, 800)
        client = self.client(self.d, "holder")
        for i in range(25):
            client.ok("LOCK job/%02d" % i)
        self.open()
        self.page.until("document.querySelectorAll('#locks a').length === 25", "all are shown")
        self.assertLessEqual(self.page.run("Math.max(...[...document.querySelectorAll('#locks tr')].map(row => row.getBoundingClientRect().bottom))"), 800)

    def test_a_lock_has_an_address(self):
        self.client(self.d, "holder").ok("LOCK a/b?c#d")
        self.open()
        self.choose("a/b?c#d")
        address = self.page.run("location.href")
        self.page.go("about:blank")
        self.page.go(address)
        self.shows("one", "held by holder")

    def test_alarms_are_grouped(self):
        self.d.finish()
        self.d = self.daemon({"listen": {"http": self.web.listen}, "alarm": {"held": "100ms"}})
        client = self.client(self.d, "holder")
        for i in range(17):
            client.ok("LOCK job/%02d" % i)
        self.open()
        self.shows("alarms", "! 17 locks held for too long: job/")
        self.assertEqual(self.text("alarms").count("by holder"), 5)
        self.assertEqual(self.text("alarms").count("\n"), 0)

    def contrast(self, element):
        """Of its text against what is behind it."""
        def luminance(colour):
            parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
            return sum(weight * (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4) for weight, part in zip((0.2126, 0.7152, 0.0722), parts))
        text, back = self.page.run("""(e => {
            let back = e;
            while (getComputedStyle(back).backgroundColor === 'rgba(0, 0, 0, 0)') back = back.parentElement;
            return [getComputedStyle(e).color, getComputedStyle(back).backgroundColor]; })(document.querySelector(%r))""" % element)
        first, second = sorted((luminance(text), luminance(back)))
        return (second + 0.05) / (first + 0.05)

    def test_names_are_shown_as_text(self):
        client = self.client(self.d, "</script><b>label")
        self.open()
        client.ok(r'LOCK "%s \xe2\x80\xae\xc2\xad\xe3\x85\xa4\xf3\xa0\x81\x81\n\xff" note="%s"' % (self.HOSTILE.replace('"', r'\"'), self.HOSTILE.replace('"', r'\"')))
        self.shows("locks", self.HOSTILE + r" \u202e\u00ad\u3164\ue0041\u000a\udcff")
        self.shows("locks", "</script><b>label")
        self.page.run("document.querySelector('#locks a').click()")
        self.shows("one", "</script><b>label")
        self.shows("events", self.HOSTILE)
        self.assertIsNone(self.page.run("window.hacked"))
        self.assertEqual(self.page.run("document.querySelectorAll('main img, main b').length"), 0)
        self.assertEqual(self.page.complaints, [])

    def test_keys(self):
        self.crowd()
        self.open()
        self.page.key("/", "/")
        self.assertEqual(self.page.run("document.activeElement.id"), "prefix")
        for letter in "cat":
            self.page.key(letter, letter)
        self.page.until("document.querySelectorAll('#locks a').length === 1", "only catalogue is shown")
        self.page.key("Escape")
        self.page.until("document.querySelectorAll('#locks a').length === 5", "all are shown again")

    def test_widths_and_schemes(self):
        self.crowd()
        self.page.scheme("light")
        self.open()
        self.choose("export/orders")
        light = self.page.run("getComputedStyle(document.body).backgroundColor")
        self.page.picture(os.path.join(BUILD, "page.png"))
        self.page.scheme("dark")
        self.assertNotEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), light)
        self.page.picture(os.path.join(BUILD, "page-dark.png"))
        for scheme in ("dark", "light"):
            self.page.scheme(scheme)
            for element in ("#verdict", "#host", "#locks a", "#stores li", "#one p", "#one li", "#heads button", "#events"):
                self.assertGreaterEqual(self.contrast(element), 4.5, "%s, %s" % (element, scheme))
        for width, height in ((320, 800), (390, 844), (768, 800), (1200, 900)):
            self.page.size(width, height)
            self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
            if width == 390:
                self.page.picture(os.path.join(BUILD, "page-phone.png"))

    def test_a_store_that_votes_but_refuses_something(self):
        store = self.redis()
        self.web = free_web()
        daemon = self.daemon(on_redis([store], {"listen": {"http": self.web.listen}, "lease": "1s", "max_lease": "1s"})).joined()
        store.cli.execute_command("ACL", "SETUSER", "default", "-publish")
        daemon.logged("cause=permission")
        self.open()
        self.shows("alarms", "is joined: it refuses PUBLISH")
        self.shows("stores", "✗ ")
        self.assertRegex(self.text("verdict"), r"^DEGRADED since \d\d:\d\d:\d\d, 1 of 1 stores, 1 needed$")

    def test_stores_that_are_gone(self):
        stores = [self.redis() for _ in range(3)]
        self.web = free_web()
        self.d = self.daemon(on_redis(stores, {"listen": {"http": self.web.listen}, "lease": "1s", "max_lease": "1s"})).joined()
        self.open()
        self.assertEqual(self.text("verdict"), "OK, 3 of 3 stores, 2 needed")
        stores[0].stop()
        self.page.until("document.title.startsWith('✗ DEGRADED')", "the title says that a store is gone")
        self.shows("verdict", "2 of 3 stores, 2 needed")
        stores[1].stop()
        self.page.until("document.title.startsWith('✗ NO QUORUM')", "the title says that there is no quorum")

    def test_a_daemon_that_has_gone_is_shown(self):
        self.open()
        self.d.kill()
        self.page.until("document.getElementById('link').innerText.includes('no answer')", "the page says that the daemon does not answer")
        self.shows("verdict", "NO ANSWER since")
        self.assertEqual(self.page.run("getComputedStyle(document.querySelector('main')).display"), "none", "what is old is shown")
        self.d.start()
        self.page.until("document.getElementById('link')?.textContent === 'live'", "the page goes on")
        self.assertRegex(self.text("verdict"), "^OK")
