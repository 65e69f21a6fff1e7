# SPDX-License-Identifier: BSD-2-Clause
"""The page, in a real browser if one is installed (Debian package chromium). Its pictures are left in the build folder: page.png, page-dark.png, page-phone.png."""
import base64
import hashlib
import os
import re
import unittest

from chromium import PROGRAM, Chromium
from daemon import on_redis
from harness import FuncTest
from process import BUILD
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
        self.page.until("document.getElementById('%s').innerText.includes(%r)" % (element, word), "%s shows %s" % (element, word))

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

    def test_who_holds_who_waits_and_what_happens(self):
        crowd = self.crowd()
        self.open()
        self.assertIn("memory joined", self.text("stores"))
        self.assertEqual(self.text("alarms"), "none")
        for word in ("mail", "queue", "2 due, 1 taken, 0 dead", "export/orders", "nightly-export", "nightly export, ask ops", "1. worker-0", "3. worker-2", "semaphore of 5", "shared", "reader-1"):
            self.shows("locks", word)
        self.shows("contended", "export/orders: up to 3 waiting")
        crowd[1].ok("LOCK events/one")
        self.shows("events", "events/one")
        self.shows("locks", "events/one")
        for client in crowd[4:]:
            client.close()
        self.page.until("!document.getElementById('locks').innerText.includes('worker-0')", "those who left are not shown")
        crowd[0].send("BREAK events/one")
        self.shows("losses", "broken")
        self.assertEqual(self.page.complaints, [])
        self.assertEqual([url for url in self.page.requests if not url.startswith(("http://%s/" % self.web.listen, "data:", "about:"))], [])

    def test_names_are_shown_as_text(self):
        client = self.client(self.d, "</script><b>label")
        self.open()
        client.ok(r'LOCK "%s \xe2\x80\xae\xc2\xad\xe3\x85\xa4\xf3\xa0\x81\x81\n\xff" note="%s"' % (self.HOSTILE.replace('"', r'\"'), self.HOSTILE.replace('"', r'\"')))
        self.shows("locks", self.HOSTILE + r" \u202e\u00ad\u3164\ue0041\u000a\udcff")
        self.shows("locks", "</script><b>label")
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
        self.page.key("Enter", "\r")
        self.page.until("document.querySelectorAll('.lock').length === 1", "only catalogue is shown")
        self.page.key("Escape")
        self.page.until("document.querySelectorAll('.lock').length === 5", "all are shown again")

    def test_widths_and_schemes(self):
        self.crowd()
        self.page.scheme("light")
        self.open()
        light = self.page.run("getComputedStyle(document.body).backgroundColor")
        self.page.picture(os.path.join(BUILD, "page.png"))
        self.page.scheme("dark")
        self.assertNotEqual(self.page.run("getComputedStyle(document.body).backgroundColor"), light)
        self.page.picture(os.path.join(BUILD, "page-dark.png"))
        for width in (320, 360, 768, 1200):
            self.page.size(width, 800)
            self.assertLessEqual(self.page.run("document.documentElement.scrollWidth"), width)
            if width == 360:
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

    def test_a_daemon_that_has_gone_is_shown(self):
        self.open()
        self.d.kill()
        self.page.until("document.getElementById('link').innerText.includes('no answer')", "the page says that the daemon does not answer")
        self.d.start()
        self.page.until("document.getElementById('link')?.textContent === 'live'", "the page goes on")
