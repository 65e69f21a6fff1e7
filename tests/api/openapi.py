#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
openapi.py build-folder [seed]: does listen.api do what docs/openapi.yaml says? schemathesis draws requests, right and wrong ones, for a real daemon. It comes
from PyPI, in the versions below, into build-folder/schemathesis; where that cannot be reached: "skipped: …". The last line is the verdict.
"""
import os
import shutil
import subprocess
import sys
import venv

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VERSION = ("schemathesis==4.4.4", "hypothesis==6.148.2")
EXAMPLES = "60"  # requests drawn for each operation and phase
CHECKS = ",".join(("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance", "response_schema_conformance",
                   "unsupported_method", "ignored_auth"))

os.environ.setdefault("REDLOCKD_BUILD", sys.argv[1])
sys.path[:0] = [os.path.join(ROOT, "tests", "lib"), os.path.join(ROOT, "tests", "func")]

from daemon import Daemon  # noqa: E402
from process import free_port, private, temp_folder  # noqa: E402
from test_api import TOKEN, Api  # noqa: E402


def program(folder):
    """The path of schemathesis; None: it cannot be had."""
    path = os.path.join(folder, "bin", "schemathesis")
    if not os.path.exists(path):
        venv.create(folder, with_pip=True)
        done = subprocess.run([os.path.join(folder, "bin", "pip"), "-q", "--disable-pip-version-check", "install", *VERSION], timeout=600,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            print(done.stdout[-1000:])
            return None
    return path


def narrowed(session):
    """The description for a run: its sessions are one that there is and one that there is not, and nobody waits for long."""
    import yaml
    with open(os.path.join(ROOT, "docs", "openapi.yaml"), encoding="utf-8") as file:
        spec = yaml.safe_load(file)
    parts = spec["components"]
    parts["parameters"]["Session"]["schema"] = {"type": "string", "enum": [session, "1-" + 32 * "0"]}
    parts["schemas"]["LockTerms"]["properties"]["wait"] = {"enum": ["0", "10ms"]}
    return yaml.safe_dump(spec)


def run(st, folder, api, seed, only):
    path = os.path.join(folder, "openapi.yaml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(narrowed(api.session(heartbeat="1h").path.rpartition("/")[2]))
    return subprocess.run([st, "run", path, "--url", "http://" + api.listen, "-H", "Authorization: Bearer " + TOKEN, "--checks", CHECKS, "--seed", seed,
                           "--max-examples", EXAMPLES, "--phases", "examples,coverage,fuzzing", "--exclude-operation-id", "followSession", *only],
                          cwd=folder, stdin=subprocess.DEVNULL, timeout=1200, check=False).returncode


def main():
    build, seed = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "1"
    st = program(os.path.join(build, "schemathesis"))
    if not st:
        print("skipped: openapi: %s cannot be fetched from PyPI" % " ".join(VERSION))
        return 0
    api = Api(("127.0.0.1", free_port()))
    token = os.path.join(temp_folder(), "token")
    with open(token, "w", encoding="ascii", opener=private) as file:
        file.write(TOKEN + "\n")
    d = Daemon({"listen": {"api": api.listen}, "api": {"token_file": token}})
    try:
        d.start().joined()
        # What ends sessions comes last, so that the others find theirs.
        failed = [run(st, d.folder, api, seed, only) for only in (["--exclude-operation-id", "endSession"], ["--include-operation-id", "endSession"])]
        alive = d.alive() and api.session().post("a").status in (200, 423)
    finally:
        d.stop()
        shutil.rmtree(os.path.dirname(token))
    print("openapi: %s" % ("passed" if alive and not any(failed) else "FAILED, seed %s" % seed))
    return 0 if alive and not any(failed) else 1


if __name__ == "__main__":
    sys.exit(main())
