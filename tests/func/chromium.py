# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium, spoken to over its debugging pipe: one JSON message after the other, each ended by a NUL."""
import base64
import json
import os
import select
import shutil
import subprocess
import time

from process import die_with_parent, reap, temp_folder

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60  # a browser is slow to start on a loaded machine


class Chromium:
    """One page. It notes each request, and each complaint of the browser: errors of scripts, and what the Content-Security-Policy forbids."""

    def __init__(self):
        self.folder = temp_folder("redlockd-chromium-")
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()

        def descriptors():
            die_with_parent()
            os.dup2(os.dup(to_browser), 103)
            os.dup2(os.dup(from_browser), 104)
            os.dup2(103, 3)
            os.dup2(104, 4)
        self.process = subprocess.Popen(
            [PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
             "--disable-background-networking", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=" + self.folder, "about:blank"],
            preexec_fn=descriptors, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.count, self.session = b"", 0, None
        self.requests, self.complaints = [], []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.ask(domain + ".enable")

    def close(self):
        reap(self.process)
        os.close(self.read)
        os.close(self.write)
        shutil.rmtree(self.folder, ignore_errors=True)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"]))

    def message(self, deadline):
        while b"\0" not in self.buffer:
            if not select.select([self.read], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError("the browser does not answer")
            data = os.read(self.read, 1 << 20)
            if not data:
                raise AssertionError("the browser has ended")
            self.buffer += data
        one, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(one)

    def ask(self, method, **params):
        self.count += 1
        request = {"id": self.count, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.write, json.dumps(request).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self.message(deadline)
            if message.get("id") == self.count:
                if "error" in message:
                    raise AssertionError("%s: %s" % (method, message["error"]))
                return message["result"]
            self.note(message)

    def go(self, url):
        self.ask("Page.navigate", url=url)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(result["exceptionDetails"])
        return result["result"].get("value")

    def until(self, script, what):
        """Waits until the expression is true."""
        deadline = time.monotonic() + PATIENCE
        while not self.run(script):
            if time.monotonic() > deadline:
                raise AssertionError("%s: not in time; the page: %s" % (what, self.run("document.body.innerText")))
            time.sleep(0.1)

    def key(self, key, text=None):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, **({"text": text} if text and kind == "keyDown" else {}))

    def size(self, width, height):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def scheme(self, scheme):
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))
