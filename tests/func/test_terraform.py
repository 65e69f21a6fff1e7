# SPDX-License-Identifier: BSD-2-Clause
"""contrib/terraform: LOCK and UNLOCK as the http backend of Terraform asks, and Terraform itself where it is installed."""
import http.client
import json
import os
import shutil
import subprocess
import sys

from process import ROOT, free_port, reap, spawn, until
from test_api import ApiTest


class Terraform(ApiTest):
    COST = 8

    def backend(self, api):
        """Starts the backend. Returns it."""
        token = self.write("token", "open-sesame-0123\n")
        self.port = free_port()
        server = spawn([sys.executable, "-B", os.path.join(ROOT, "contrib", "terraform", "backend.py"), "--api", "http://" + api.listen, "--token-file", token,
                        "--folder", self.states, "--listen", "127.0.0.1:%d" % self.port], stdout=subprocess.PIPE)
        self.addCleanup(reap, server)
        self.assertEqual(server.stdout.readline(), b"ready\n")
        return server

    def setUp(self):
        super().setUp()
        self.states, self.here = self.folder(), self.folder()

    def write(self, name, text):
        path = os.path.join(self.here, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def ask(self, method, body=None, query="", name="net", headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, "/state/" + name + query, body if isinstance(body, bytes) else json.dumps(body), headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def test_locks_exclude_and_states_are_kept(self):
        d, api = self.start()
        server = self.backend(api)
        one, two = {"ID": "1", "Who": "ann@db1", "Operation": "apply"}, {"ID": "2", "Who": "bob", "Operation": "plan"}
        self.assertEqual(self.ask("GET")[0], 404)
        self.assertEqual(self.ask("LOCK", one)[0], 200)
        self.assertEqual(self.ask("LOCK", one)[0], 200, "repeated")
        self.assertEqual([(status, json.loads(body)["Who"]) for status, body in [self.ask("LOCK", two)]], [(423, "ann@db1")])
        self.assertIn("apply by ann@db1", self.client(d).ok("SHOW terraform/net").rows[0]["note"])
        self.assertEqual(self.ask("POST", b'{"v":1}', "?ID=1")[0], 200)
        self.assertEqual(self.ask("POST", b'{"v":2}', "?ID=2")[0], 409)
        self.assertEqual(self.ask("GET"), (200, b'{"v":1}'))
        self.assertEqual(self.ask("UNLOCK", two)[0], 409)
        reap(server)
        self.backend(api)
        self.assertEqual(self.ask("LOCK", two)[0], 423, "it goes on after it was killed")
        self.assertEqual(self.ask("UNLOCK", one)[0], 200)
        self.assertEqual(self.ask("LOCK", two)[0], 200)
        self.client(d).ok("BREAK terraform/net")
        self.assertEqual(self.ask("POST", b'{"v":3}', "?ID=2")[0], 409, "what was lost is not written")
        holder = self.client(d)
        holder.ok("LOCK terraform/other note=maintenance")
        status, body = self.ask("LOCK", one, name="other")
        self.assertEqual((status, json.loads(body)["Info"]), (423, "maintenance"))

    def test_what_it_refuses(self):
        d, api = self.start()
        self.backend(api)
        for headers in ({"Origin": "null"}, {"Host": "evil.example"}, {"Host": ""}):
            for method, body in (("GET", b""), ("POST", b"{}"), ("LOCK", {"ID": "1"}), ("UNLOCK", b""), ("DELETE", b"")):
                self.assertEqual(self.ask(method, body, headers=headers)[0], 403)
        for length in ("-1", "x", "999999999999"):
            self.assertEqual(self.ask("POST", b"", headers={"Content-Length": length})[0], 413)
        for body in (b"", b"[]", b"{", b"7"):
            self.assertEqual(self.ask("LOCK", body)[0], 503)
        self.assertEqual(self.ask("GET", name="..%2fx")[0], 404)
        self.assertEqual(self.client(d).roles("terraform/net"), [])

    def test_a_lock_that_cannot_be_kept_is_freed_and_one_that_cannot_be_freed_is_kept(self):
        d, api = self.start()
        self.backend(api)
        os.mkdir(os.path.join(self.states, "net.lock.new"))
        self.assertEqual(self.ask("LOCK", {"ID": "1"})[0], 503)
        self.assertEqual(self.client(d).roles("terraform/net"), [])
        os.rmdir(os.path.join(self.states, "net.lock.new"))
        self.assertEqual(self.ask("LOCK", {"ID": "1"})[0], 200)
        d.kill()
        self.assertEqual(self.ask("UNLOCK", {"ID": "1"})[0], 503)
        d.start()
        until(lambda: self.ask("UNLOCK", {"ID": "1"})[0] == 200, "it is freed")
        self.assertEqual(self.client(d).roles("terraform/net"), [])

    def test_terraform(self):
        terraform = shutil.which("tofu") or shutil.which("terraform")
        if not terraform:
            self.skipTest("neither tofu nor terraform is installed")
        d, api = self.start()
        self.backend(api)
        address = "http://127.0.0.1:%d/state/net" % self.port
        self.write("main.tf", """terraform {
  backend "http" {
    address = "%s"
    lock_address = "%s"
    unlock_address = "%s"
  }
}
resource "terraform_data" "a" {
  input = "one"
  provisioner "local-exec" {
    command = "touch begun; while [ ! -e go ]; do sleep 0.1; done"
  }
}
""" % (address, address, address))

        def run(*argv):
            return subprocess.run([terraform, *argv, "-no-color"], cwd=self.here, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        env = dict(os.environ, CHECKPOINT_DISABLE="1", TF_IN_AUTOMATION="1", HOME=self.here)
        done = run("init")
        self.assertEqual(done.returncode, 0, done.stdout)
        apply = spawn([terraform, "apply", "-auto-approve", "-no-color"], cwd=self.here, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(reap, apply)
        until(lambda: os.path.exists(os.path.join(self.here, "begun")), "it applies", 60)
        self.assertIn("OperationTypeApply", self.client(d).ok("SHOW terraform/net").rows[0]["note"])
        done = run("plan")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("Error acquiring the state lock", done.stdout)
        self.write("go", "")
        self.assertEqual(apply.wait(60), 0)
        self.assertEqual(self.client(d).roles("terraform/net"), [])
        done = run("plan", "-detailed-exitcode")
        self.assertEqual(done.returncode, 0, done.stdout)
