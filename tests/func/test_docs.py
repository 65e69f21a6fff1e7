# SPDX-License-Identifier: BSD-2-Clause
"""Each block of docs/ as a reader would run it: sh and python against a daemon, yaml as a configuration. A block of text behind one is what it prints."""
import os
import re
import shutil
import subprocess
import sys

from harness import FuncTest
from process import BUILD, REDLOCKD, ROOT, call, free_port

DOCS = os.path.join(ROOT, "docs")
SCRIPTS = ("export.sh", "deploy.sh", "migrate.sh", "scheduler", "render", "call", "report.sh", "rebuild.sh", "part", "link")


def blocks(path):
    """(language, text, what it prints or None) of each fenced block."""
    with open(path, encoding="utf-8") as page:
        found = re.findall(r"^```(\w+)\n(.*?)^```$", page.read(), re.M | re.S)
    return [(kind, text, found[i + 1][1] if i + 1 < len(found) and found[i + 1][0] == "text" else None) for i, (kind, text) in enumerate(found) if kind != "text"]


def like(text):
    """A pattern for what is printed: … is anything up to the end of the line."""
    return r" *\n".join(re.escape(line.rstrip()).replace("…", "[^\n]*") for line in text.splitlines()) + r"\s*"


class Docs(FuncTest):
    COST = 20

    @staticmethod
    def write(folder, name, text, mode):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, mode)) as file:
            file.write(text)
        return path

    def place(self, tree=None):
        """A folder with the scripts that the recipes call, and what leads to the programs from there."""
        folder = self.folder()
        for name in SCRIPTS:
            self.write(folder, name, "#!/bin/sh\ncase $0 in ./scheduler | ./part) sleep 1 ;; esac\necho ${0#./}\n", 0o755)
        return folder, dict(os.environ, REDLOCK_ADDR=self.daemon(tree).addr, PATH=BUILD_ABSOLUTE + ":" + os.environ["PATH"],
                            PYTHONPATH=os.path.join(ROOT, "client", "python"), PYTHONDONTWRITEBYTECODE="1")

    def run_page(self, name, around=lambda: (None, "")):
        """around: the configuration of each daemon, laid over that of all, and what its block of sh stands behind."""
        for kind, text, prints in blocks(os.path.join(DOCS, name)):
            with self.subTest(text.splitlines()[0]):
                tree, prelude = around()
                folder, env = self.place(tree)
                self.write(folder, "api-token", "open-sesame-0123\n", 0o600)
                if kind == "yaml":
                    path = os.path.join(folder, "redlockd.yaml")
                    with open(path, "w", encoding="utf-8") as config:
                        config.write(text)
                    status, _, err = call(REDLOCKD, "--config", path, "--check-config")
                    self.assertEqual(status, 0, err)
                    continue
                argv = {"sh": ["bash", "-c", prelude + text], "python": [sys.executable, "-c", text]}[kind]
                done = subprocess.run(argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stdout)
                if prints is not None:
                    self.assertRegex(done.stdout, "^%s$" % like(prints))

    def test_start(self):
        self.run_page("start.md")

    def test_recipes(self):
        self.run_page("recipes.md")

    def test_http(self):
        token = self.write(self.folder(), "token", "open-sesame-0123\n", 0o600)
        [first] = [text for kind, text, _ in blocks(os.path.join(DOCS, "http.md")) if text.startswith("printf")]

        def around():
            at = "127.0.0.1:%d" % free_port()
            return {"listen": {"api": at}, "api": {"token_file": token}}, "API=http://%s\n%s" % (at, first)
        self.run_page("http.md", around)

    def test_a_block_that_fails_or_prints_something_else_is_noticed(self):
        self.assertEqual([kind for kind, _, _ in blocks(os.path.join(DOCS, "start.md"))], ["sh", "sh", "yaml"])
        self.assertRegex("a 7\nb\n", "^%s$" % like("a …\nb\n"))
        self.assertNotRegex("a 7\nc\n", "^%s$" % like("a …\nb\n"))
        self.assertNotRegex("a 7\nb\nc\n", "^%s$" % like("a …\nb\n"))

    def test_the_site_has_no_dead_link(self):
        if not shutil.which("mandoc") or call("/usr/bin/python3", "-c", "import markdown")[0]:
            self.skipTest("without mandoc or python3-markdown")
        status, out, err = call("/usr/bin/python3", "-B", os.path.join(DOCS, "build.py"), self.folder())
        self.assertEqual((status, err), (0, ""), out)
        self.assertRegex(out, r"^2\d pages, \d+ links\n$")


BUILD_ABSOLUTE = os.path.abspath(BUILD)
