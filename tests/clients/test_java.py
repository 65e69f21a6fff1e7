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
import verdict
from authority import Authority, openssl
from daemon import Daemon
from process import BUILD, REDLOCKD, ROOT, free_port, temp_folder

SOURCE = os.path.join(ROOT, "client", "java")
JAR = os.path.join(BUILD, "client-java", "redlockd.jar")
TESTS = os.path.join(HERE, "java_tests")
QUICK = ("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


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
    return verdict.run([Behaviour, Readme] + ([] if "--short" in sys.argv else [Package]))


if __name__ == "__main__":
    sys.exit(main())
