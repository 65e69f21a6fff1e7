# SPDX-License-Identifier: BSD-2-Clause
"""The completions of bash, zsh and fish, each in the shell itself, on a terminal."""
import os
import re
import shutil
import subprocess

from harness import FuncTest
from process import BUILD, REDLOCK, call, reap, spawn, until

WORDS = re.compile(rb"\x1b\][^\x07]*\x07|\x1b[\[(][?>=]?[0-9;]*[A-Za-z]|\x1b[=>]|\r")


class Shell(FuncTest):
    """A shell with the completion of redlock, as a person uses it."""
    COST = 6

    def setUp(self):
        super().setUp()
        if not shutil.which(self.SHELL):
            self.skipTest("no %s here" % self.SHELL)
        self.daemon_ = self.daemon()
        self.client_ = self.client(self.daemon_)
        for name in ("deploy/web", "deploy:db:1", "backup"):
            self.client_.ok('LOCK "%s"' % name)
        until(lambda: b"deploy:db:1" in subprocess.run([REDLOCK, "--addr", self.daemon_.addr, "complete"], stdout=subprocess.PIPE, check=False).stdout, "names")
        self.home = self.folder()
        self.env = dict(os.environ, REDLOCK_ADDR=self.daemon_.addr, HOME=self.home, TERM="dumb", PS1="$ ", LC_ALL="C.UTF-8",
                        PATH="%s:%s" % (os.path.abspath(BUILD), os.environ["PATH"]))
        self.script = os.path.join(os.path.abspath(BUILD), "completion." + self.SHELL)


class Typed(Shell):
    """Types at an interactive shell."""

    def setUp(self):
        super().setUp()
        self.master, slave = self.terminal()
        process = spawn(["setsid", "--ctty", *self.ARGV], env=self.env, stdin=slave, stdout=slave, stderr=slave, cwd=self.home)
        self.addCleanup(reap, process)
        os.close(slave)
        self.type(self.SETUP % self.script + "; echo rea''dy\n", "ready")

    def type(self, text, *expected):
        """Types, and reads until all of these have appeared."""
        os.write(self.master, text.encode())
        seen = b""
        for word in expected:
            while word.encode() not in WORDS.sub(b"", seen):
                more = self.terminal_shows(self.master, word.encode(), 8)
                self.assertTrue(more, "after %r: no %r in %r" % (text, word, seen))
                seen += more
        return WORDS.sub(b"", seen).decode(errors="replace")

    def completed(self, text, whole):
        """The line becomes whole."""
        self.type(text + "\t", whole)
        self.type("\x15echo nex''t\n", "next")

    def test_commands(self):
        self.completed("redlock comp", "redlock complete ")
        self.completed("redlock --addr %s rece" % self.daemon_.addr, "recent ")

    def test_options_of_the_command(self):
        self.completed("redlock run --sh", "--shared ")
        self.completed("redlock rate --per 1m --co", "--cost ")
        self.completed("redlock --ver", "--version ")

    def test_live_names(self):
        self.completed("redlock show back", "backup ")
        self.completed("redlock run --shared dep", "deploy")
        self.completed("redlock break deploy:d", "deploy:db:1 ")
        self.completed("redlock defer --lock back", "backup ")

    def test_the_command_behind_a_name(self):
        self.completed("redlock run a -- redloc", "-- redlock")
        with open(os.path.join(self.home, "an-input"), "w"):
            pass
        self.completed("redlock run a cat an-in", "an-input ")


class Bash(Typed):
    SHELL, ARGV = "bash", ("bash", "--norc", "--noprofile", "-i")
    SETUP = "bind 'set enable-bracketed-paste off'; bind 'set bell-style none'; . %s"


    def test_a_queue_that_a_shell_would_not_take_as_it_is_is_quoted(self):
        self.client_.ok("DEFER 'mail;$(id)' x")
        self.completed("redlock work mai", r"mail\;\$\(id\) ")

    def test_a_queue_with_blanks_is_left_out_and_not_cut(self):
        for name in ("mail", "main street", "main one 2s", r"mai\\n"):
            self.client_.ok("DEFER '%s' x" % name)
        self.client_.ok("DEFER mail x delay=1h")
        self.completed("redlock work mai", "mail ")


class Zsh(Typed):
    SHELL, ARGV = "zsh", ("zsh", "-f", "-i")
    SETUP = "unsetopt zle_bracketed_paste prompt_sp; autoload -Uz compinit; compinit -u -D; . %s"


class Fish(Shell):
    """fish tells what it would offer."""
    SHELL = "fish"

    def offers(self, line):
        done = subprocess.run(["fish", "--no-config", "-c", "source %s; complete -C '%s'" % (self.script, line)], env=self.env, cwd=self.home,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30, check=False)
        self.assertEqual(done.stderr, b"")
        return [row.split("\t")[0] for row in done.stdout.decode().splitlines()]

    def test_commands(self):
        self.assertEqual(self.offers("redlock comp"), ["complete"])
        self.assertEqual(self.offers("redlock --addr x rece"), ["recent"])

    def test_options_of_the_command(self):
        self.assertEqual(self.offers("redlock run --sh"), ["--shared"])
        self.assertEqual(self.offers("redlock rate --per 1m --co"), ["--cost"])
        self.assertEqual(self.offers("redlock rate --sh"), [])

    def test_live_names(self):
        self.assertEqual(self.offers("redlock show back"), ["backup"])
        self.assertEqual(sorted(self.offers("redlock run --shared dep")), ["deploy/web", "deploy:db:1"])
        self.assertEqual(self.offers("redlock defer --lock back"), ["backup"])

    def test_a_queue_with_blanks_is_left_out_and_not_cut(self):
        for name in ("mail", "main street", "main one 2s", r"mai\\n"):
            self.client_.ok("DEFER '%s' x" % name)
        self.assertEqual(self.offers("redlock work mai"), ["mail"])

    def test_the_command_behind_a_name(self):
        self.assertIn("redlock", self.offers("redlock run a -- redloc"))
        with open(os.path.join(self.home, "an-input"), "w"):
            pass
        self.assertEqual(self.offers("redlock run a cat an-in"), ["an-input"])


class Tables(FuncTest):
    """What the completions know is what redlock itself says."""

    def test_each_command_and_option_of_the_help_is_there(self):
        text = call(REDLOCK, "--help")[1]
        words = re.findall(r"^  ([a-z]+) ", text, re.M) + re.findall(r"--([a-z-]+)", text)
        for shell in ("bash", "zsh", "fish"):
            with open(os.path.join(BUILD, "completion." + shell)) as script:
                body = script.read()
            for word in words:
                self.assertIn(word, body, shell)


del Shell, Typed
