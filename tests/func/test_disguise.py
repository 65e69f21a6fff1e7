# SPDX-License-Identifier: BSD-2-Clause
"""Names, notes and labels with characters that nobody sees, or that turn the text around them: everywhere they are shown as what they are."""
import json
import os
import re

from harness import FuncTest
from process import until

HIDDEN = "\u202e\u200b\u200f\u2066\u00ad\ufeff\u115f\U000e0041"  # in UTF-8; then a C1 control
NAME = "a" + HIDDEN + "b"
QUOTED = '"' + "".join("\\x%02x" % byte for byte in (NAME + "\x9b").encode()) + '"'


class Disguise(FuncTest):
    COST = 4

    def setUp(self):
        super().setUp()
        self.audit = os.path.join(self.folder(), "audit")
        self.d = self.daemon({"audit": {"file": self.audit}, "alarm": {"held": "50ms"}})
        self.holder = self.client(self.d)
        self.holder.ok("HELLO 1 name=" + QUOTED)
        self.holder.ok("LOCK %s note=%s" % (QUOTED, QUOTED))

    def assertPlain(self, text, what):
        self.assertIsNone(re.search("[\u0080-\u009f%s]" % HIDDEN, text), what)

    def test_on_a_terminal(self):
        for argv in (("ls",), ("ls", "-l"), ("show", NAME + "\x9b"), ("clients",), ("clients", "-l"), ("top", "--once"), ("doctor",)):
            status, out, err = self.call_redlock(self.d, *argv)
            self.assertPlain(out + err, argv)
            if argv[0] != "doctor":
                self.assertEqual(status, 0, argv)
                self.assertIn("a\\xe2\\x80\\xae", out, argv)

    def test_in_json(self):
        for argv in (("ls", "--json"), ("clients", "--json"), ("show", NAME + "\x9b", "--json")):
            _, out, _ = self.call_redlock(self.d, *argv)
            self.assertPlain(out, argv)
            values = [value for line in out.splitlines() for value in json.loads(line).values()]
            self.assertTrue([value for value in values if isinstance(value, str) and NAME in value], argv)

    def test_in_a_reply(self):
        reply = self.holder.ok("LIST locks").rows[0]
        self.assertPlain(str(reply), "LIST")
        self.holder.ok("UNLOCK " + QUOTED)

    def test_in_the_log_and_the_audit_log(self):
        self.d.logged(r"alarm kind=held name=\"a\\xe2\\x80\\xae")
        self.assertPlain(self.d.log(), "the log")
        until(lambda: os.path.getsize(self.audit) > 0, "the audit log has a line")
        with open(self.audit) as lines:
            text = lines.read()
        self.assertPlain(text, "the audit log")
        self.assertIn(NAME, json.loads(text.splitlines()[0])["name"])
