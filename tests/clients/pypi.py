# SPDX-License-Identifier: BSD-2-Clause
"""Packages from PyPI in folders under build/. SkipTest where that is not reached."""
import os
import shutil
import subprocess
import sys
import unittest

from process import BUILD  # who imports this puts tests/lib into the path

HERE = os.path.dirname(os.path.abspath(__file__))
_missing = {}  # lists whose packages could not be fetched, and why: the next test does not try again


def folder_of(name):
    """Where installed() puts what a list names."""
    return os.path.join(BUILD, "python-" + name)


def installed(name):
    """The folder of programs, with the packages of NAME.txt. They are fetched once."""
    if name in _missing:
        raise unittest.SkipTest(_missing[name])
    wanted, folder = os.path.join(HERE, name + ".txt"), folder_of(name)
    stamp = os.path.join(folder, os.path.basename(wanted))
    if not os.path.exists(stamp) or read(stamp) != read(wanted):
        shutil.rmtree(folder, ignore_errors=True)
        for argv in ([sys.executable, "-m", "venv", folder], [folder + "/bin/pip", "install", "-q", "--disable-pip-version-check", "-r", wanted]):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
            if done.returncode:
                _missing[name] = "%s: %s" % (os.path.basename(argv[-1]), (done.stderr or done.stdout).strip().splitlines()[-1])
                raise unittest.SkipTest(_missing[name])
        shutil.copy(wanted, stamp)
    return os.path.join(folder, "bin")


def read(path):
    with open(path, encoding="utf-8") as text:
        return text.read()
