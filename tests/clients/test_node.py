# SPDX-License-Identifier: BSD-2-Clause
"""What is particular to the client for Node.js: node_library.mjs, its README, its package, its types, and the runtimes that it is for."""
import os
import re
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = os.path.join(os.path.dirname(HERE), "lib")
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "client", "node")
sys.path[:0] = [HERE, LIB]

import adapter  # the paths stand above
import run as cases
import verdict
from daemon import Daemon
from process import BUILD, REDLOCKD, ROOT, temp_folder

BUILT = os.path.join(os.path.abspath(BUILD), "client-node")
TOOLS = os.path.join(os.path.abspath(BUILD), "node-tools")
TSC = os.path.join(BUILT, "node_modules", ".bin", "tsc")

# A mistake for each rule but R6, since unlock() has no signal, and R10, since nobody forks: the file of dist, what is there, and what is wrong.
PLANTS = {
    "R1-receipt": ("holds", "this.until = asked + valid;", "this.until = performance.now() / 1000 + valid;"),
    "R1-lease": ("holds", "this.until = asked + valid;", "this.until = asked + Math.max(valid, this.ttl);"),
    "R2": ("requests", "const WAITED_LONG = 0.1;", "const WAITED_LONG = Infinity;"),
    "R3": ("core", "if (!hold.alive || hold.checking ||", "if (hold.alive ||"),
    "R4-fence": ("holds", "owner=${this.owner} fence=${this.fence} count=0${extra}", "owner=${this.owner} count=0${extra}"),
    "R4-count": ("holds", " count=0${extra}", "${extra}"),
    "R5-cancel": ("requests", "else if (core.sent.has(this.tag)) {", "else if (core.sent.has(this.tag)) {\n            return;"),
    "R5-kept": ("requests", "if (this.withdrawn)\n            this.giveBack(core, now);\n        else if (slow)", "if (slow)"),
    "R7-owner": ("core", "let request = new requests_js_1.Take(terms, who, now);\n        if (!request.isJob) {",
                 'let request = new requests_js_1.Take(terms, "t1", now);\n        if (false) {'),
    "R7-tag": ("core", "request.tag = `@${++this.tags}`;", 'request.tag = "@7";'),
    "R8": ("core", 'this.lose(hold, line.get("reason") ?? "unknown");', ""),
    "R9-new": ("core", "if (this.id && this.resumable) {", "if (false) {"),
    "R9-rowless": ("core", 'hold.checkAt = now;\n            else\n                this.lose(hold, "evicted");', "hold.checkAt = now;"),
    "R11": ("lock", "this.warned = true;", "this.warned = true;\n        this.client.engine.core.free(hold, this.client.engine.begin());"),
    "R12": ("core", 'this.events.push({ kind: "push", line });', "throw new wire_js_1.ProtocolError(code);"),
    "R13": ("requests", "exports.PATIENCE = 5;", "exports.PATIENCE = 5000;"),
    "R14": ("place", "return process.env[name] || undefined;", 'return process.env["NO_" + name] || undefined;'),
    "R15-due": ("client", "runs.last.next > 0", "runs.last.next > 1e9"),
    "R15-end": ("once", "Math.max(every - took, 0)", "every"),
    "R15-lost": ("client", "await lock.ensure();", ""),
}


def run(*argv, seconds=300, **options):
    """What a program said. It must end well."""
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds, check=False, **options)
    if done.returncode:
        raise AssertionError("%s: %d\n%s\n%s" % (" ".join(argv), done.returncode, done.stdout, done.stderr))
    return done.stdout


def installed(folder):
    """Packs the package, and installs it into a folder as a user would."""
    quiet = ["--silent", "--no-audit", "--no-fund", "--offline", "--cache", os.path.join(folder, ".npm")]
    tarball = run("npm", "pack", "--pack-destination", folder, *quiet[:1], *quiet[4:], BUILT, cwd=folder).split()[-1]
    with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as out:
        out.write('{"name": "consumer", "private": true, "type": "module"}')
    run("npm", "install", *quiet, os.path.join(folder, tarball), cwd=folder)
    return os.path.join(folder, "node_modules", "redlockd")


class Library(unittest.TestCase):
    def test_its_own_tests(self):
        env = dict(os.environ, CLIENT_NODE=BUILT, REDLOCKD=os.path.abspath(REDLOCKD))
        said = run("node", "--test", "--test-reporter", "tap", os.path.join(HERE, "node_library.mjs"), env=env)
        self.assertRegex(said, r"(?m)^# pass [1-9][0-9]")

    def test_the_core_does_no_io_and_reads_no_clock(self):
        for name in ("core", "requests", "greeting", "holds", "wire", "errors"):
            with open(os.path.join(SOURCE, "src", name + ".ts"), encoding="utf-8") as text:
                code = re.sub(r"//.*|/\*[^*]*\*+(?:[^/*][^*]*\*+)*/", "", text.read())
            self.assertNotRegex(code, r"from \"node:|Date\.now|performance|setTimeout|clock\.js|engine\.js|process\.", name)

    def test_the_version_is_that_of_the_daemon(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as text:
            version = re.search(r"^VERSION := (\S+)", text.read(), re.M)[1]
        for name in ("package.json", "package-lock.json"):
            with open(os.path.join(SOURCE, name), encoding="utf-8") as text:
                self.assertIn('\n  "version": "%s",\n' % version, text.read())

    def test_the_lock_file_names_no_place(self):
        with open(os.path.join(SOURCE, "package-lock.json"), encoding="utf-8") as text:
            self.assertNotRegex(text.read(), r'"resolved"|file:|/home/|/root/')


class Package(unittest.TestCase):
    """The package, installed into a clean folder, and the programs of its README, as printed."""

    @classmethod
    def setUpClass(cls):
        cls.folder = temp_folder("redlock-clients-")
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.root = installed(cls.folder)
        cls.daemon = Daemon({"lease": "3s", "max_lease": "30s"})
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.start()

    def program(self, name, text=None):
        path = os.path.join(self.folder, name)
        if text:
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        return run("node", path, cwd=self.folder, env=dict(os.environ, REDLOCK_ADDR=self.daemon.addr), seconds=60)

    def test_programs_of_the_readme_and_types(self):
        with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as text:
            first, block, more, fake = re.findall(r"```(?:js|ts)\n(.*?)```", text.read(), re.S)
        self.assertLessEqual(len(first.splitlines()), 15)
        self.assertRegex(self.program("first.mjs", first), r"^mine, fence \d+\nacting, for true\n$")
        self.assertRegex(self.program("more.cjs", more), r"^\[ 'a', 'b' \]\na\nnull\n[0-4]\ntrue true\nto=ann 1\nruns false\n0\nleading true\nTimeoutError\n$")
        self.assertEqual(self.program("fake.mjs", fake), 'the lock "x" is lost: quorum\nLockLost\n')
        self.compile({"block.ts": block, **self.loads()})
        self.assertRegex(self.program("block.js"), r"^mine, fence \d+\n$")
        for name in self.loads():
            self.assertEqual(self.program(name.replace("ts", "js")), "function function function 0\n")

    @staticmethod
    def loads():
        """Programs that load all parts, in each way that TypeScript knows."""
        parts = (("connect, LockLost", '"redlockd"'), ("startFake", '"redlockd/testing"'), ("runCoordinator", '"redlockd/node-cron"'))
        use = 'const fence: number = new LockLost("x", "y").fence; console.log(typeof connect, typeof startFake, typeof runCoordinator, fence);\n'
        by_import = "".join("import { %s } from %s;\n" % part for part in parts) + use
        by_require = "".join("import part%d = require(%s); const { %s } = part%d;\n" % (i, path, names, i) for i, (names, path) in enumerate(parts)) + use
        return {"use.mts": by_import, "use.cts": by_import, "old.cts": by_require}

    def compile(self, programs):
        for name, text in programs.items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as out:
                out.write(text)
        run(TSC, "--strict", "--target", "es2022", "--lib", "es2022,esnext.disposable", "--module", "nodenext", "--types", "node", "--typeRoots",
            os.path.join(BUILT, "node_modules", "@types"), *programs, cwd=self.folder)

    def test_there_is_one_copy_of_the_code(self):
        said = self.program("both.mjs", 'import { LockLost } from "redlockd"; import { createRequire } from "node:module";\n'
                                        'console.log(createRequire(import.meta.url)("redlockd").LockLost === LockLost);\n')
        self.assertEqual(said, "true\n")

    def test_import_and_require_have_the_same_names(self):
        for part in ("redlockd", "redlockd/testing", "redlockd/node-cron"):
            said = self.program("names.mjs", 'import * as one from "%s"; import { createRequire } from "node:module";\n'
                                             'const names = (all) => Object.keys(all).sort().join();\n'
                                             'console.log(names(one) === names(createRequire(import.meta.url)("%s")));\n' % (part, part))
            self.assertEqual(said, "true\n")

    def test_what_is_in_it(self):
        self.assertEqual(sorted(os.listdir(self.root)), ["LICENSE", "README.md", "dist", "package.json"])
        self.assertFalse([name for name in os.listdir(os.path.join(self.root, "dist")) if not re.search(r"\.(js|mjs|d\.ts|d\.mts)$", name)])


def tools():
    """The folder with the tools of node_tools.txt, from npm; SkipTest where that is not reached. They are fetched once."""
    with open(os.path.join(HERE, "node_tools.txt"), encoding="utf-8") as text:
        wanted = text.read()
    stamp = os.path.join(TOOLS, "node_tools.txt")
    if not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != wanted:
        shutil.rmtree(TOOLS, ignore_errors=True)
        os.makedirs(TOOLS)
        done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--no-save", "--fetch-retries=0", "--cache", TOOLS + "/.npm",
                               "--prefix", TOOLS, *wanted.split()], capture_output=True, text=True, timeout=600, check=False)
        shutil.rmtree(TOOLS + "/.npm", ignore_errors=True)
        if done.returncode:
            raise unittest.SkipTest("npm: " + ((done.stderr or done.stdout).strip().splitlines() or ["no answer"])[-1])
        with open(stamp, "w", encoding="utf-8") as out:
            out.write(wanted)
    return os.path.join(TOOLS, "node_modules")


class Planted(unittest.TestCase):
    """A client with a mistake: a case of its rule must fail."""

    def test_a_case_finds_each_mistake(self):
        folder, commands = temp_folder("redlock-clients-"), {}
        self.addCleanup(shutil.rmtree, folder)
        for plant, (name, right, wrong) in PLANTS.items():
            dist = shutil.copytree(os.path.join(BUILT, "dist"), os.path.join(folder, plant))
            with open(os.path.join(dist, name + ".js"), "r+", encoding="utf-8") as file:
                code = file.read()
                self.assertEqual(code.count(right), 1, "%s: %s" % (name, right))
                file.seek(0)
                file.truncate()
                file.write(code.replace(right, wrong))
            commands[plant] = [*adapter.ADAPTERS["node"][0][:-1], os.path.join(dist, "index.js")]
        self.assertEqual(cases.unfound("node", commands), "")


class Tools(unittest.TestCase):
    """What needs tools from npm."""

    def consumer(self):
        folder = temp_folder("redlock-clients-")
        self.addCleanup(shutil.rmtree, folder)
        installed(folder)
        return folder

    def link(self, folder, *names):
        for name in names:
            os.symlink(os.path.join(tools(), name), os.path.join(folder, "node_modules", name))

    def test_are_the_types_wrong(self):
        binaries, folder = tools() + "/.bin", temp_folder("redlock-clients-")
        self.addCleanup(shutil.rmtree, folder)
        tarball = run("npm", "pack", "--silent", "--pack-destination", folder, "--cache", folder + "/.npm", BUILT, cwd=folder).split()[-1]
        said = run(binaries + "/attw", os.path.join(folder, tarball), "--no-color", "--no-emoji", cwd=folder)
        self.assertIn("No problems found", said)

    def test_publint(self):
        self.assertIn("All good!", run(tools() + "/.bin/publint", "--strict", self.consumer() + "/node_modules/redlockd"))

    def test_types(self):
        folder = self.consumer()
        self.link(folder, "tsd")
        os.makedirs(os.path.join(folder, "node_modules", "@types"))
        os.symlink(os.path.join(BUILT, "node_modules", "@types", "node"), os.path.join(folder, "node_modules", "@types", "node"))
        with open(os.path.join(folder, "package.json"), "w", encoding="utf-8") as out:
            out.write('{"name": "consumer", "version": "1.0.0", "type": "module", "types": "index.d.ts", "files": ["index.d.ts"], "tsd": {"directory": "types",'
                      ' "compilerOptions": {"module": "node16", "moduleResolution": "node16", "target": "es2022", "lib": ["es2022", "esnext.disposable"]}}}')
        with open(os.path.join(folder, "index.d.ts"), "w", encoding="utf-8") as out:
            out.write('export * from "redlockd";\n')
        os.makedirs(os.path.join(folder, "types"))
        shutil.copy(os.path.join(HERE, "node_types.ts"), os.path.join(folder, "types", "index.test-d.ts"))
        run(tools() + "/.bin/tsd", cwd=folder)

    def test_biome(self):
        run(tools() + "/.bin/biome", "lint", "--error-on-warnings", "--config-path", SOURCE, os.path.join(SOURCE, "src"), cwd=SOURCE)

    def test_node_cron_runs_each_fire_once(self):
        folder = self.consumer()
        self.link(folder, "node-cron")
        shutil.copy(os.path.join(HERE, "node_cron.mjs"), folder)
        self.assertEqual(run("node", "--preserve-symlinks", os.path.join(folder, "node_cron.mjs"), cwd=folder, seconds=60), "true true\n")


class Runtimes(unittest.TestCase):
    """The conformance cases, in other runtimes than that of the system."""

    def cases(self, *command):
        if not os.path.exists(command[0]):
            raise unittest.SkipTest("%s did not come from npm" % os.path.relpath(command[0], TOOLS))
        said = run(sys.executable, "-B", os.path.join(HERE, "run.py"), "--adapter", "node", env=dict(os.environ, CLIENTS_NODE=" ".join(command)))
        self.assertRegex(said, r"\n1[0-9]{2} passed, 0 failed\n$")

    def test_node_22(self):
        self.cases(tools() + "/node22/bin/node", "--expose-gc")

    def test_node_24(self):
        self.cases(tools() + "/node24/bin/node", "--expose-gc")

    def test_bun(self):
        self.cases(tools() + "/.bin/bun")

    def test_deno(self):
        self.cases(tools() + "/.bin/deno", "run", "-A")


def main():
    """Last line: "N passed, N failed". --short leaves out what needs npm."""
    if not os.path.exists(os.path.join(BUILT, "dist", "index.js")):
        print("skipped: client/node: it has not been built\n0 passed, 0 failed")
        return 0
    return verdict.run([Library, Package] + ([] if "--short" in sys.argv else [Planted, Tools, Runtimes]))


if __name__ == "__main__":
    sys.exit(main())
