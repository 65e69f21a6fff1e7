# SPDX-License-Identifier: BSD-2-Clause
"""What is particular to the Go client: its own tests, its README, its module, tools and adapters from the Go proxy, and mistakes that the cases find."""
import contextlib
import glob
import io
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(os.path.dirname(HERE), "lib")
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "go")
sys.path[:0] = [HERE, LIB]

import adapter  # the paths stand above
import run
import verdict
from daemon import Daemon
from process import BUILD, REDLOCKD, temp_folder

OUT = os.path.join(BUILD, "client-go")
STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@v0.7.0"
MODULE = "github.com/redlockd/redlockd/client/go"
ENV = {"GOFLAGS": "-mod=mod", "GOWORK": "off", "GOTOOLCHAIN": "local", "GOCACHE": os.path.join(OUT, "cache"), "GOPATH": os.path.join(OUT, "path"),
       "REDLOCKD": REDLOCKD}
CORE = ("session", "comeback", "request", "take", "grant", "wire", "errors")
# A mistake for each rule but R6, since Unlock has no context that could end, and R10, since nobody forks: the file, what is there, and what is wrong.
PLANTS = {
    "R1": ("grant.go", "g.asked, g.until = asked, asked.add(valid)", "g.asked, g.until = asked, now().add(valid)"),
    "R2": ("take.go", "slow := now.sub(t.asked) > waitedLong", "slow := now.sub(t.asked) > 1<<20*waitedLong"),
    "R3": ("session.go", "if g.alive() && !g.checking && g.checkAt", "if g.alive() && !g.alive() && g.checkAt"),
    "R4": ("grant.go", 'dst = appendNumber(dst, "fence", g.fence)\n', ""),
    "R5": ("session.go", "\tt.withdrawn = true\n\tif len(t.grants) > 0", "\tt.withdrawn = true\n\tif t.withdrawn {\n\t\treturn\n\t}\n\tif len(t.grants) > 0"),
    "R7": ("session.go", 't.owner = "t" + strconv.FormatUint(s.owners, 10)', 't.owner = "t"\n\t\ts.used = map[key]struct{}{}'),
    "R8": ("session.go", '\tcase "LOST":\n\t\ts.lose(g, because(l.get("reason"), "unknown"))\n', '\tcase "LOST":\n'),
    "R9": ("comeback.go", "\t\tdefault:\n\t\t\ts.lose(g, \"evicted\")\n", ""),
    "R11": ("lock.go", "func(l *Lock) { l.h.dropped() }", 'func(l *Lock) { l.h.give("", "") }'),
    "R12": ("session.go", '\tif !strings.HasPrefix(first, "@") {\n\t\treturn nil', '\tif !strings.HasPrefix(first, "@") {\n\t\treturn errEndless'),
    "R13": ("request.go", "const patience = 5 * time.Second", "const patience = 5 * time.Hour"),
    "R14": ("address.go", "\treturn os.Getenv(name)", '\treturn os.Getenv("NO_" + name)'),
    "R15": ("once.go", "\tif err := lock.Ensure(ctx, 0); err != nil {\n\t\treturn err\n\t}\n", ""),
}


def go(*argv, cwd=SOURCE, online=False, fail=True, timeout=600, **env):
    """Runs the go command, which writes nothing outside BUILD. Returns what it said."""
    everything = {**os.environ, **ENV, **env}
    if not online:
        everything["GOPROXY"] = "off"
    done = subprocess.run([os.environ.get("GO", "go"), *argv], cwd=cwd, env=everything, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode and fail:
        raise AssertionError("go %s: %s%s" % (" ".join(argv), done.stdout, done.stderr))
    return done.stdout + done.stderr


def fetched(*argv, **options):
    """Runs a go command that may need the Go proxy; SkipTest where that is not reached."""
    said = go(*argv, online=True, fail=False, **options)
    if re.search(r"dial tcp|no such host|i/o timeout|module lookup disabled|connection refused|TLS handshake|requires go >=", said):
        raise unittest.SkipTest(said.strip().splitlines()[-1])
    return said


def version():
    """The version of the tool chain, as (1, 21); None: there is none."""
    try:
        return tuple(map(int, re.search(r"go(\d+)\.(\d+)", go("version")).groups()))
    except (OSError, AttributeError):
        return None


class Source(unittest.TestCase):
    def test_gofmt(self):
        files = glob.glob(SOURCE + "/**/*.go", recursive=True) + glob.glob(HERE + "/*_go/*.go")
        gofmt = os.path.join(go("env", "GOROOT").strip(), "bin", "gofmt")
        self.assertEqual(subprocess.run([gofmt, "-l", *files], capture_output=True, text=True, check=True).stdout, "")
        for path in files:
            with open(path, encoding="utf-8") as text:
                lines = text.read().splitlines()
            self.assertEqual(lines[0], "// SPDX-License-Identifier: BSD-2-Clause", path)
            self.assertLessEqual(max(len(line.expandtabs(8)) for line in lines), 160, path)

    def test_it_needs_nothing_and_go_1_21(self):
        with open(SOURCE + "/go.mod", encoding="utf-8") as text:
            self.assertEqual(text.read(), "module %s\n\ngo 1.21\n" % MODULE)
        self.assertFalse(os.path.exists(SOURCE + "/go.sum"))

    def test_the_core_does_no_io_and_reads_no_clock(self):
        for name in CORE:
            with open("%s/%s.go" % (SOURCE, name), encoding="utf-8") as text:
                code = text.read()
            self.assertFalse(set(re.findall(r'^\s(?:import )?"([\w/]+)"$', code, re.M)) & {"net", "os", "sync", "syscall", "crypto/tls", "math/rand"}, name)
            self.assertNotRegex(code, r"\bnow\(\)|time\.(Now|Since|Until|After|NewTimer|Sleep)\b|\bgo func", name)

    def test_its_own_tests(self):
        go("test", "-count=1", "-vet=off", "./...")


class Race(unittest.TestCase):
    """The same under the race detector, which needs cgo."""

    def setUp(self):
        if not shutil.which("gcc") or go("env", "CGO_ENABLED", CGO_ENABLED="1").strip() != "1":
            self.skipTest("the race detector needs cgo and gcc")

    def test_its_own_tests(self):
        go("test", "-race", "-count=1", "./...", CGO_ENABLED="1")

    def test_the_cases(self):
        go("build", "-race", "-o", OUT + "/adapter-race", ".", cwd=HERE + "/adapter_go", CGO_ENABLED="1")
        failed, said = play(OUT + "/adapter-race", run.load(), GORACE="halt_on_error=1")
        self.assertFalse(failed, said)


class Readme(unittest.TestCase):
    def test_its_programs_run_as_printed(self):
        """In a module of a user, which finds the client by a replacement."""
        with open(SOURCE + "/README.md", encoding="utf-8") as text:
            programs = re.findall(r"```go\n(package main\n.*?)```", text.read(), re.S)
        wanted = [r"mine, fence \d+\nacting, for true\n", r"orders/42\n2\na\n[0-4]\n19\nto=ann, attempt 1\nunder user/ann\nruns\ntrue 0\nleading\n"]
        self.assertEqual(len(programs), len(wanted))
        body = programs[0][programs[0].index("func main"):programs[0].index("func check")].strip().splitlines()
        self.assertLessEqual(len(body), 15)
        daemon, folder = Daemon({"lease": "3s"}), temp_folder("redlock-clients-")
        self.addCleanup(shutil.rmtree, folder)
        self.addCleanup(daemon.stop)
        daemon.start()
        go("mod", "init", "user", cwd=folder)
        go("mod", "edit", "-require=%s@v0.0.0" % MODULE, "-replace=%s=%s" % (MODULE, SOURCE), cwd=folder)
        for program, output in zip(programs, wanted):
            with open(folder + "/main.go", "w", encoding="utf-8") as out:
                out.write(program)
            self.assertRegex(go("run", ".", cwd=folder, REDLOCK_ADDR=daemon.addr), "^%s$" % output)


def play(path, cases, rules=None, **env):
    """Plays cases with the adapter at this path. Returns the failed ones, and what there is to say."""
    adapter.ADAPTERS["go"] = ([path], env)
    runner, said = run.Runner(False), io.StringIO()
    with contextlib.redirect_stdout(said):
        runner.run([("go", "", [case]) for case in cases if rules is None or case["rule"] in rules], 10)
    return runner.failed, said.getvalue()


class Vet(unittest.TestCase):
    def test_vet(self):
        go("vet", "./...")
        go("vet", "./...", cwd=HERE + "/adapter_go")

    def test_other_systems(self):
        for system in ("darwin", "windows"):
            go("vet", "-unsafeptr=false", ".", "./redlocktest", GOOS=system, CGO_ENABLED="0")


class Planted(unittest.TestCase):
    """A client with a mistake: a case of its rule must fail."""

    def test_a_case_finds_each_mistake(self):
        cases = sorted((case for case in run.load() if "clock" not in case.get("with", {})), key=run.cost)
        for rule, (name, right, wrong) in PLANTS.items():
            with self.subTest(rule):
                path, planted = os.path.join(SOURCE, name), os.path.join(OUT, "planted-" + name)
                with open(path, encoding="utf-8") as text:
                    code = text.read()
                self.assertEqual(code.count(right), 1, "%s: %s" % (name, right))
                with open(planted, "w", encoding="utf-8") as out:
                    out.write(code.replace(right, wrong))
                with open(OUT + "/overlay.json", "w", encoding="utf-8") as out:
                    json.dump({"Replace": {path: planted}}, out)
                go("build", "-overlay", OUT + "/overlay.json", "-o", OUT + "/adapter-planted", ".", cwd=HERE + "/adapter_go")
                failed, _ = play(OUT + "/adapter-planted", cases, [rule])
                self.assertTrue(failed, "no case finds it")


class Proxy(unittest.TestCase):
    """What comes from the Go proxy."""

    def test_staticcheck(self):
        said = fetched("install", STATICCHECK, cwd="/", GOBIN=OUT)
        self.assertTrue(os.path.exists(OUT + "/staticcheck"), said)
        done = subprocess.run([OUT + "/staticcheck", "./..."], cwd=SOURCE, env={**os.environ, **ENV, "PATH": os.environ["PATH"]}, capture_output=True,
                              text=True, timeout=600, check=False)
        self.assertEqual(done.stdout + done.stderr, "")

    def test_the_adapter_for_gocron(self):
        fetched("mod", "download", cwd=SOURCE + "/gocron")
        go("vet", "./...", cwd=SOURCE + "/gocron", online=True)
        go("test", "-count=1", "./...", cwd=SOURCE + "/gocron", online=True)


def main():
    """Last line: "N passed, N failed". --short leaves out what needs the Go proxy, or takes long."""
    found = version()
    if not found or found < (1, 21):
        print("skipped: client/go: no go 1.21 or later is here\n0 passed, 0 failed")
        return 0
    os.makedirs(OUT, exist_ok=True)
    return verdict.run([Source, Readme] + ([] if "--short" in sys.argv else [Race, Vet, Planted, Proxy]))


if __name__ == "__main__":
    sys.exit(main())
