#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs in a booted Debian (first.sh): the first minutes of somebody who has the README and the packages that it tells to build.

Each command is typed at a terminal, in the order of the README; those in its examples are taken from there. Last line: "N passed, N failed".
"""
import os
import re
import subprocess
import sys
import time
import urllib.request

from terminal import PROMPT, Terminal, prepare

SHARE, HOME, CONFIG = "/share/redlockd", "/home/ana/redlockd", "/etc/redlockd/redlockd.yaml"
counts = {True: 0, False: 0}


def verdict(passed, text):
    counts[bool(passed)] += 1
    if not passed:
        print("FAILED: %s" % text, flush=True)


def system(command):
    """What is no part of the walk: the host, and the servers of others."""
    return subprocess.run(command, shell=True, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout


def blocks():
    """The examples of the README, each a list of lines."""
    with open(SHARE + "/README.md", encoding="utf-8") as readme:
        found = re.findall(r"(?:^    .*\n)+", readme.read(), re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).splitlines() for block in found]


def example(word):
    """The only example that has this word."""
    found = [block for block in blocks() if any(word in line for line in block)]
    if len(found) != 1:
        raise AssertionError("%d examples of the README have %r" % (len(found), word))
    return found[0]


def commands(word):
    """Its commands, without what stands beside them."""
    return [re.sub(r"\s{3,}\S.*", "", line) for line in example(word)]


def like(line):
    """A pattern for a line of an answer: numbers may be others."""
    return re.sub(r"\d+", r"\\d+", re.escape(line))


class Walk:
    def __init__(self):
        self.one = self.two = None

    def types(self, terminal, command, shows="", status=0, timeout=60):
        """Types a command. All that it prints must match."""
        printed = terminal.run(command, timeout)
        verdict(terminal.status == status, "%s: status %d, not %d: %s" % (command, terminal.status, status, printed))
        verdict(re.fullmatch(shows, printed, re.S), "%s prints:\n%s\nwhich is not like: %s" % (command, printed, shows))
        return printed

    def sees(self, command, *words, terminal=None):
        """Types a command that must print these, among other things."""
        printed = (terminal or self.two).run(command)
        for word in words:
            verdict(re.search(word, printed), "%s does not say %r:\n%s" % (command, word, printed))

    def hold(self, terminal, command):
        terminal.run(command + " &")
        name = re.search(r"run (\S+) --", command)[1]
        deadline = time.monotonic() + 10
        while "holder" not in system("redlock show %s || true" % name):
            if time.monotonic() > deadline:
                raise AssertionError("%s holds nothing" % command)
            time.sleep(0.1)

    # --- in the order of the README ---

    def install(self):
        make, install, *rest = commands("apt install")
        verdict(make == "make deps deb", "the README builds by %s" % make)  # first.sh has the packages
        self.one.type(install)
        self.one.until(r"Do you want to continue\? \[Y/n\] ", 60)
        self.one.type("y")
        printed = self.one.until(PROMPT, 180)
        verdict(self.one.status == 0 and "warning" not in printed.lower(), "%s: %s" % (install, printed))
        for command, shows in zip(rest, (r"ok  redlockd/\S+  memory 1/1  quorum 1  rtt \S+ ms", "mine"), strict=True):
            self.types(self.one, command, shows)
        self.sees("systemctl status redlockd", r"Active: active \(running\)", r'Status: "1/1 stores, 0 sessions, 0 locks, 0 waiters"', "man:redlockd\\(8\\)")
        self.sees("redlock nodes", "memory +joined .*this host only")
        self.types(self.two, "redlock doctor", r"ok    redlockd/\S+ answers in \S+ ms\nok    the memory store: locks are of this host only; .*")

    def two_terminals(self):
        self.hold(self.one, "redlock run demo -- sleep 60")
        holder = r"redlock run sleep/ana pid=\d+ uid=\d+"
        self.two.type('redlock run demo -- echo "my turn"')
        self.two.until(r"waiting for demo  00:02  1st in line, held by %s for \d+s" % holder)
        printed = self.two.interrupt()
        verdict("\nmy turn" not in printed and self.two.status == 130, "^C ends the wait with %d: %s" % (self.two.status, printed))
        self.types(self.two, "redlock ls", r"NAME  HOLDER +HELD  WAITERS\ndemo  %s  \d+s +0" % holder)
        self.types(self.two, "redlock try demo -- true", r"redlock: demo is held by %s for \d+s" % holder, 124)
        self.sees("redlock show demo", r"holder .* sleep 60\b")
        self.sees("redlock top --once", r"\ndemo +redlock run sleep", "memory +joined")
        self.two.type("redlock top")
        self.two.until("q quits")
        self.two.keys("q")
        self.two.until(PROMPT)
        verdict(self.two.status == 0, "redlock top ends with %d" % self.two.status)

    def holder_is_killed(self):
        self.types(self.one, "kill -9 %1; redlock run --wait 1s demo -- echo free", r"free(\n\[1\]\+ +Killed +redlock run demo -- sleep 60)?")
        self.types(self.one, "redlock show demo", r"(\[1\]\+ +Killed .*\n)?ROLE .*\nformer +1 +redlock run sleep.*\nredlock: demo is free", 1)

    def nc(self):
        """The session of the README: where nothing is printed before a line, the newcomer types it."""
        self.hold(self.one, "redlock run orders/43 -- sleep 8")
        first, *lines = example("nc -U")
        self.two.type(first.removeprefix("$ "))
        seen = ""
        for line in lines:
            if line.startswith("^C"):
                break
            if re.match(r"(@\S+ )?OK ", line):
                seen += "(?s:.*)\n" + like(line)
                self.two.until(seen)
                verdict(True, line)
            else:
                self.two.keys(line + "\n")
        self.two.keys("LOK\n")
        self.two.until(r"ERR UNKNOWN no request 'LOK' \(did you mean LOCK\?\)")
        self.two.interrupt()
        for name in ("orders/42", "orders/43"):
            self.types(self.two, "redlock try %s -- echo free" % name, "free")
        self.one.run("wait")

    def beyond_locks(self):
        for name in ("render", "call", "export.sh"):
            with open(os.path.join(HOME, name), "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o755)) as script:
                script.write("#!/bin/sh\necho done-%s\n" % name)
        _, slots, rate, defer, work = commands("--slots 5")
        self.types(self.one, slots, "done-render")
        self.types(self.one, rate, ".*done-call")
        self.hold(self.one, "redlock run nightly -- sleep 5")
        self.sees(defer, "later", terminal=self.two)
        self.one.run("wait")
        self.two.type(work)
        self.two.until("done-export.sh")
        system("until [ -z \"$(redlock queues)\" ]; do sleep 0.1; done")
        self.two.interrupt()
        self.types(self.two, "redlock queues", "redlock: there are no queues")

    def manuals_and_completion(self):
        for page in ("redlock", "redlockd", "redlockd.yaml", "redlock-protocol"):
            self.sees("man -P 'col -b' " + page, "NAME", "DESCRIPTION", "SEE ALSO")
        self.types(self.two, "redlock", "redlock: no command given; redlock --help lists them", 64)
        self.sees("redlock --help", r"usage: redlock", "run NAME")
        for typed, shown in (("redlock sho\t", "redlock show "), ("redlock show lic\t", "redlock show licence ")):
            self.two.type("")
            self.two.until(PROMPT)
            self.two.seen = ""
            self.two.keys(typed)
            self.two.until(shown)
            verdict(True, shown)
            self.two.keys("\x15echo nex''t\n")
            self.two.until(r"\nnext\n\[0\]\$ $")

    def restart(self):
        self.hold(self.one, "redlock run demo -- sleep 600")
        fence = system("redlock show --json demo")
        self.types(self.two, "sudo systemctl restart redlockd; redlock ls", r"NAME .*\ndemo  redlock run sleep\S* .*")
        again = system("redlock show --json demo")
        for field in ("fence", "session"):
            verdict(re.search(r'"%s":\d+' % field, fence)[0] in again, "after the restart: %s, not %s" % (again, fence))
        system("kill -9 $(pidof redlockd)")
        self.types(self.two, "redlock try demo -- true", "redlock: demo is held by redlock run sleep.*", 124)
        self.sees("redlock show demo", "holder .* " + re.search(r'"fence":(\d+)', fence)[1])
        self.types(self.one, "jobs", r"\[1\]\+ +Running +redlock run demo -- sleep 600 &")

    def typo(self):
        """A mistake in the file: the running configuration stays; then a restart with it fails, and says where to look."""
        says = r"/etc/redlockd/redlockd.yaml:1:1: error: unknown key 'leese' \(did you mean 'lease'\?\)"
        self.two.run("sudo sed -i '1i leese: 20s' " + CONFIG)
        self.types(self.two, "sudo systemctl reload redlockd", 'Job for redlockd.service failed.\nSee "systemctl status redlockd.service" and "journalctl.*', 1)
        self.sees("sudo journalctl -u redlockd -n 20", says, r"\n.*\bleese: 20s\n")
        self.types(self.two, "redlock try demo -- true", "redlock: demo is held by .*", 124)
        check, *_ = commands("--check-config")
        self.types(self.two, check, says + "\n  leese: 20s\n  \\^", 78)
        self.two.run("sudo systemctl restart redlockd")
        verdict(self.two.status == 1, "the restart with a mistake ends with %d" % self.two.status)
        since = time.monotonic()
        self.types(self.two, "redlock ping", r"redlock: (redlockd at \S+ closed the connection|the connection to redlockd at \S+ broke); on its host, systemctl status redlockd may say why", 69)
        verdict(time.monotonic() - since < 4, "redlock ping takes %.1f s while the daemon cannot start" % (time.monotonic() - since))
        self.sees("redlock doctor", "fail .*; fix: .*systemctl status redlockd")
        # One start for each that asks. The holder asks, too, and lets go when its lease is over.
        starts = [int(system("sleep %d; journalctl -u redlockd | grep -c 'Starting redlockd'" % wait)) for wait in (0, 3)]
        print("starts with a mistake: %d in 3 s" % (starts[1] - starts[0]))
        verdict(starts[1] - starts[0] <= 15, "the daemon was started %d times in 3 s" % (starts[1] - starts[0]))
        self.two.run("sudo sed -i 1d " + CONFIG)
        self.types(self.two, "sudo systemctl restart redlockd")
        self.types(self.two, "redlock ping", "ok .*")

    def web(self):
        self.one.run("kill %1; wait")
        self.two.run("sudo sed -i 's/^  http: no$/  http: 127.0.0.1:7421/' %s; sudo systemctl restart redlockd" % CONFIG)
        with urllib.request.urlopen("http://127.0.0.1:7421/", timeout=10) as page:
            verdict("redlockd" in page.read().decode(), "the page")
        with urllib.request.urlopen("http://127.0.0.1:7421/metrics", timeout=10) as page:
            verdict("redlockd_sessions" in page.read().decode(), "the metrics")
        self.sees("redlock stats", r"\nsessions +\d")

    def several_hosts(self):
        """Three servers, as the README and SEVERAL HOSTS in redlockd(8) say."""
        system("for i in 1 2 3; do ip addr add 10.0.0.$i/32 dev lo; mkdir -p /srv/$i; touch /srv/$i/acl; redis-server --bind 10.0.0.$i --protected-mode no "
               "--dir /srv/$i --aclfile /srv/$i/acl --maxmemory-policy allkeys-lru --maxmemory 100mb --daemonize yes >/dev/null; done")
        with open("/home/ana/new.yaml", "w", encoding="ascii") as config:
            config.write("\n".join(example("store: redis")) + "\n")
        self.two.run("sudo cp /home/ana/new.yaml " + CONFIG)
        check, restart, doctor = commands("--check-config")
        self.sees(check, r"redlockd.yaml:\d+:\d+: error: /etc/redlockd/redis-password: cannot be read: No such file or directory")
        system("umask 077; echo secret >/etc/redlockd/redis-password; mkdir /etc/systemd/system/redlockd.service.d; "
               "printf '[Service]\\nLoadCredential=redis-password:/etc/redlockd/redis-password\\n' >/etc/systemd/system/redlockd.service.d/override.conf; "
               "chmod 755 /etc/systemd/system/redlockd.service.d; systemctl daemon-reload")
        self.types(self.two, check, "ok: store redis, 3 nodes, quorum 2, 1 listener")
        self.types(self.two, restart)
        self.sees(doctor, r"fail  store 10.0.0.1:6379 is down: WRONGPASS .*; fix: .*doctor --print-acl", "fail  no quorum: 0 of 3 stores vote")
        self.types(self.two, "redlock ping", r"no quorum  redlockd/\S+  redis 0/3  quorum 2  rtt \S+ ms", 1)
        grant = self.two.run("redlock doctor --print-acl").replace("PASSWORD", "secret")
        for i in "123":
            system("printf '%%s\\n' '%s' 'ACL SAVE' | redis-cli -h 10.0.0.%s" % (grant, i))
        self.one.run("until redlock nodes | grep -q refused; do sleep 0.2; done")
        self.sees(doctor, r"fail  store \S+ is refused: maxmemory-policy is allkeys-lru, .*; fix: CONFIG SET maxmemory-policy noeviction")
        for i in "123":
            system("redis-cli -h 10.0.0.%s CONFIG SET maxmemory-policy noeviction" % i)
        self.types(self.two, "redlock run --wait 60s demo -- echo mine", r"waiting for demo .*too few Redis servers vote.*mine")
        system("until redlock ping | grep -q 3/3; do sleep 0.2; done")
        self.sees(doctor, "ok    quorum: 3 of 3 stores vote")
        self.types(self.two, "redlock ping", r"ok  redlockd/\S+  redis 3/3  quorum 2  rtt \S+ ms")

    def uninstall(self):
        system("rm -r /etc/redlockd/redis-password /etc/systemd/system/redlockd.service.d; systemctl daemon-reload")
        command = re.search(r"`(sudo apt purge [a-z ]+)`", open(SHARE + "/README.md", encoding="utf-8").read())[1]
        self.two.type(command)
        self.two.until(r"\[Y/n\] ")
        self.two.type("y")
        printed = self.two.until(PROMPT, 180)
        verdict(self.two.status == 0 and "warning" not in printed.lower(), "%s: %s" % (command, printed))
        left = system("find /etc /run /usr /var/lib/systemd /var/log -iname '*redlock*' ! -path '/var/log/journal/*'").split()
        verdict(not left, "uninstalled, and these are left: %s" % " ".join(left))
        self.types(self.two, "systemctl status redlockd", "Unit redlockd.service could not be found.", 4)

    STEPS = (install, two_terminals, holder_is_killed, nc, beyond_locks, manuals_and_completion, restart, typo, web, several_hosts, uninstall)

    def walk(self):
        self.one, self.two = Terminal("ana", HOME), Terminal("ana", HOME)
        for step in self.STEPS:
            began = time.monotonic()
            try:
                step(self)
            except Exception as fault:  # pylint: disable=broad-except
                verdict(False, "%s broke off: %s" % (step.__name__, fault))
                self.one, self.two = Terminal("ana", HOME), Terminal("ana", HOME)
            print("%s: %.0f s" % (step.__name__.replace("_", " "), time.monotonic() - began), flush=True)


system("useradd -m -s /bin/bash ana && echo 'ana ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ana && echo 127.0.1.1 $(hostname) >>/etc/hosts")
system("cp -r %s %s && chown -R ana: %s" % (SHARE, HOME, HOME))
prepare("ana")
Walk().walk()
if counts[False]:
    print(system("journalctl -u redlockd.service -n 30 --no-pager"))
print("%d passed, %d failed" % (counts[True], counts[False]))
sys.exit(counts[False] > 0)
