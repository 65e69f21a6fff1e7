# SPDX-License-Identifier: BSD-2-Clause
"""What is particular to the Java client: its locks of threads, its README, its package, and the modules beside it."""
import glob
import os
import re
import shutil
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "lib")]

import maven  # the paths stand above
import run
import verdict
from authority import Authority, openssl
from daemon import Daemon
from process import BUILD, REDLOCKD, ROOT, free_port, temp_folder

SOURCE = os.path.join(ROOT, "client", "java")
JAR = os.path.join(BUILD, "client-java", "redlockd.jar")
TESTS = os.path.join(HERE, "java_tests")
QUICK = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# A mistake for each rule but R6, since close() has nothing that could end it, and R10, since nobody forks: the file, what is there, and what is wrong.
PLANTS = {
    "R1-receipt": ("core/Hold", "until = sent + valid;", "until = System.nanoTime() + valid;"),
    "R1-lease": ("core/Hold", "until = sent + valid;", "until = sent + Math.max(valid, ttl);"),
    "R2": ("core/Take", "WAITED_LONG = 100 * Time.MS;", "WAITED_LONG = Time.NEVER;"),
    "R3": ("core/Core", "if (hold.alive() && !hold.checking && hold.checkAt <=", "if (!hold.alive() && hold.checkAt <="),
    "R4-fence": ("core/Hold", '" fence=" + fence + " count=0"', '" count=0"'),
    "R4-count": ("core/Hold", '" fence=" + fence + " count=0"', '" fence=" + fence'),
    "R5-cancel": ("core/Core", "} else if (sent.get(request.tag) == request) {", "} else if (sent.get(request.tag) == request && now < 0) {"),
    "R5-kept": ("core/Take", "if (withdrawn) {\n            giveBack(core, now);\n        } else if (slow)", "if (slow)"),
    "R7-owner": ("core/Core", "String owner = who;", 'String owner = "t1";\n        used.clear();'),
    "R7-tag": ("core/Core", '"@" + Integer.toString(++tags, 36)', '"@7"'),
    "R8": ("core/Core", 'lose(hold, line.get("reason") == null ? "unknown" : line.get("reason"));', ""),
    "R9-new": ("core/Core", "if (!id.isEmpty() && resumable()) {", "if (id.isEmpty() && resumable()) {"),
    "R9-rowless": ("core/Core", 'hold.checkAt = now;\n            } else {\n                lose(hold, "evicted");', "hold.checkAt = now;"),
    "R11": ("Held", "if (hold.alive() && !engine.isClosed()) {", 'if (hold.alive() && !engine.isClosed()) {\n'
            '                    engine.start((core, now) -> core.free(hold, "", now));'),
    "R12": ("core/Core", "Hold hold = risk || lost || ", 'if (!Set.of("LOST", "RISK", "SAFE", "EVENT", "DRAIN").contains(line.code)) {\n'
            "            throw new ProtocolError(line.code);\n        }\n        Hold hold = risk || lost || "),
    "R13": ("core/Core", "filter(request -> request.deadline <= now).findFirst()", "filter(request -> request.deadline < 0).findFirst()"),
    "R14": ("net/Place", "System.getenv(name)", 'System.getenv("NO_" + name)'),
    "R15-due": ("RedlockClient", "runs.last().next().compareTo(Duration.ZERO) > 0", "runs.last().next().isNegative()"),
    "R15-end": ("Runs", "every.minus(took)", "every"),
    "R15-lost": ("Runs", "lock.ensure(Duration.ZERO);", ""),
}


class WithJava(unittest.TestCase):
    """Tests that share a daemon on the memory store."""

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(JAR):
            raise unittest.SkipTest("%s has not been built" % os.path.relpath(JAR, ROOT))
        cls.daemon = Daemon({"lease": "3s", "max_lease": "30s"})
        cls.addClassCleanup(cls.daemon.stop)
        cls.daemon.start()

    def setUp(self):
        self.scratch = temp_folder("redlock-clients-")
        self.addCleanup(shutil.rmtree, self.scratch)

    def run_(self, *argv, timeout=300, **options):
        done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False, **options)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def compile(self, *sources):
        self.run_("javac", "-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "--release", "17", "-Xlint:all", "-Werror", "-cp", JAR, "-d", self.scratch,
                  *sources)


class Behaviour(WithJava):
    def behave(self, java):
        self.compile(*glob.glob(TESTS + "/*.java"))
        done = self.run_(*java, "-cp", JAR + ":" + self.scratch, "io.redlockd.Behaviour", self.daemon.addr)
        self.assertNotIn("FAILED", done.stdout, done.stderr)
        self.assertGreater(done.stdout.count("passed "), 20)
        return done.stdout

    def test_threads_clocks_and_losses(self):
        said = self.behave(QUICK)
        for why in re.findall(r"^skipped: (.*)$", said, re.M):
            print("skipped: Behaviour: " + why)

    def test_the_core_without_io(self):
        self.compile(*glob.glob(TESTS + "/*.java"))
        done = self.run_(*QUICK, "-cp", JAR + ":" + self.scratch, "io.redlockd.core.WithoutIO")
        self.assertNotIn("FAILED", done.stdout, done.stderr)
        self.assertGreater(done.stdout.count("passed "), 5)

    def test_the_version_is_that_of_the_daemon(self):
        with open(os.path.join(ROOT, "Makefile"), encoding="utf-8") as text:
            version = re.search(r"^VERSION := (\S+)", text.read(), re.M)[1]
        poms = glob.glob(SOURCE + "/pom.xml") + glob.glob(SOURCE + "/*/pom.xml")
        self.assertTrue(poms)
        for pom in poms:
            with open(pom, encoding="utf-8") as text:
                own = re.findall(r"<artifactId>redlockd-[a-z-]+</artifactId>\s*<version>([^<]+)<", text.read())
            self.assertEqual(set(own), {version}, pom)

    def test_the_core_does_no_io_and_starts_no_thread(self):
        for path in glob.glob(SOURCE + "/src/main/java/io/redlockd/core/*.java"):
            with open(path, encoding="utf-8") as text:
                words = text.read()
            for word in ("java.net", "java.nio.channels", "java.io.", "new Thread", "nanoTime", "currentTimeMillis", "getenv"):
                self.assertNotIn(word, words, path)


def programs_of_readme():
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as text:
        return re.findall(r"```java\n(.*?)```", text.read(), re.S)


class Readme(WithJava):
    def program(self, text):
        """Compiles a program, and returns the name of its class."""
        name = re.search(r"^class (\w+)", text, re.M)[1]
        path = os.path.join(self.scratch, name + ".java")
        with open(path, "w", encoding="utf-8") as out:
            out.write(text)
        self.compile(path)
        return name

    def test_its_programs_run_as_printed(self):
        programs = programs_of_readme()
        wanted = [r"mine, fence \d+\nacting, for true\n", r"\[a, b\]\na\n[0-4]\nto=ann 1\ntrue 0\nleading true\n"]
        self.assertEqual(len(programs), len(wanted))
        self.assertLessEqual(len(programs[0].splitlines()), 15)
        for program, output in zip(programs, wanted):
            done = self.run_(*QUICK, "-cp", JAR + ":" + self.scratch, self.program(program), env=dict(os.environ, REDLOCK_ADDR=self.daemon.addr))
            self.assertEqual(done.stderr, "")
            self.assertRegex(done.stdout, "^%s$" % output)


    def test_certificates_of_clients_come_from_files_in_pem(self):
        authority, name = Authority(), self.program(programs_of_readme()[0])
        self.addCleanup(authority.remove)
        cert, key = authority.sign("/CN=localhost")
        daemon = Daemon({"listen": {"tls": "127.0.0.1:%d" % free_port()}, "tls": {"cert_file": cert, "key_file": key, "client_ca_file": authority.cert}})
        self.addCleanup(daemon.stop)
        daemon.start()
        rsa = os.path.join(self.scratch, "rsa")
        openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=rsa", "-keyout", rsa + ".pkcs8", "-out", rsa + ".csr")
        openssl("rsa", "-traditional", "-in", rsa + ".pkcs8", "-out", rsa + ".pkcs1")
        openssl("x509", "-req", "-in", rsa + ".csr", "-CA", authority.cert, "-CAkey", authority.key, "-CAcreateserial", "-out", rsa + ".pem")

        def first(*pair):
            env = dict(os.environ, REDLOCK_ADDR="tls://" + daemon.tree["listen"]["tls"], REDLOCK_TLS_CA=authority.cert)
            env.update(zip(("REDLOCK_TLS_CERT", "REDLOCK_TLS_KEY"), pair))
            return subprocess.run([*QUICK, "-cp", JAR + ":" + self.scratch, name], env=env, capture_output=True, text=True, timeout=120, check=False)
        for pair in (authority.sign("/CN=ec"), (rsa + ".pem", rsa + ".pkcs8"), (rsa + ".pem", rsa + ".pkcs1")):
            done = first(*pair)
            self.assertRegex(done.stdout, r"^mine, fence \d+\nacting, for true\n$", done.stderr)
        self.assertIn("DisconnectedException: tls://127.0.0.1", first().stderr)


class Planted(WithJava):
    """A client with a mistake: a case of its rule must fail."""

    def test_a_case_finds_each_mistake(self):
        commands = {}
        for plant, (name, right, wrong) in PLANTS.items():
            with open(os.path.join(SOURCE, "src/main/java/io/redlockd", name + ".java"), encoding="utf-8") as text:
                code = text.read()
            self.assertEqual(code.count(right), 1, "%s: %s" % (name, right))
            classes = os.path.join(self.scratch, plant)
            source = os.path.join(classes, os.path.basename(name) + ".java")
            os.mkdir(classes)
            with open(source, "w", encoding="utf-8") as out:
                out.write(code.replace(right, wrong))
            self.run_("javac", "-J-XX:+UseSerialGC", "-J-XX:TieredStopAtLevel=1", "--release", "17", "-cp", JAR, "-d", classes, source)
            commands[plant] = [*QUICK, "-cp", ":".join((classes, JAR, os.path.join(os.path.dirname(JAR), "adapter.jar"))), "Adapter"]
        self.assertEqual(run.unfound("java", commands), "")


class Package(WithJava):
    """What needs Maven Central."""

    def test_jar_sources_and_javadoc_are_installed_and_a_project_uses_them(self):
        maven.install(SOURCE)
        for kind in ("", "-sources", "-javadoc"):
            self.assertTrue(glob.glob(maven.REPOSITORY + "/io/redlockd/redlockd-client/*/redlockd-client-*[0-9]%s.jar" % kind), kind)
        project = os.path.join(self.scratch, "project")
        shutil.copytree(TESTS + "/project", project)
        maven.run(project, "package", "dependency:copy-dependencies")
        self.assertEqual(len(glob.glob(project + "/target/dependency/*.jar")), 1)  # no dependency at run time
        done = self.run_(*QUICK, "--module-path", project + "/target/classes:" + project + "/target/dependency", "--module", "user/user.Main", self.daemon.addr)
        self.assertRegex(done.stdout, r"^fence \d+\n$")

    def test_the_modules_beside_it(self):
        maven.install(SOURCE)
        for module, least in (("shedlock", 15), ("spring", 5), ("testing", 16)):
            with self.subTest(module):
                count = maven.install(os.path.join(SOURCE, module), REDLOCK_ADDR=self.daemon.addr, REDLOCKD=REDLOCKD)
                self.assertGreaterEqual(count, least)

    def test_virtual_threads_of_a_later_java_do_not_pin(self):
        self.compile(*glob.glob(TESTS + "/*.java"))
        for version in ("21.0.8.0", "25.0.2.1"):
            java = maven.later_java(version)
            done = self.run_(java, "-XX:+UseSerialGC", "-Djdk.tracePinnedThreads=full", "-cp", JAR + ":" + self.scratch, "io.redlockd.Behaviour",
                             self.daemon.addr)
            for wrong in ("FAILED", "skipped", "<== monitors"):
                self.assertNotIn(wrong, done.stdout, done.stderr)


def main():
    """Last line: "N passed, N failed". --short leaves out what needs Maven Central."""
    return verdict.run([Behaviour, Readme] + ([] if "--short" in sys.argv else [Planted, Package]))


if __name__ == "__main__":
    sys.exit(main())
