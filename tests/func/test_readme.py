# SPDX-License-Identifier: BSD-2-Clause
"""What README.md shows: its commands, the configuration, and a few lines in each language, as far as these are installed. nc is in test_session_nc."""
import os
import re
import subprocess
import sys

from harness import FuncTest
from process import BUILD, REDLOCKD, ROOT, call, private

with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as page:
    README = page.read()
HERE = os.path.abspath(BUILD)


def indented(word):
    """The lines of the only block that has this word."""
    [block] = [block for block in re.findall(r"(?:^    .*\n)+", README, re.M) if word in block]
    return [line[4:] for line in block.splitlines()]


def fenced(language):
    [block] = re.findall(r"^```%s\n(.*?)^```$" % language, README, re.M | re.S)
    return block


class Readme(FuncTest):
    COST = 8

    def setUp(self):
        super().setUp()
        self.folder_of_it = self.folder()
        self.env = dict(os.environ, REDLOCK_ADDR=self.daemon().addr, PATH=HERE + ":" + os.environ["PATH"], PYTHONDONTWRITEBYTECODE="1",
                        PYTHONPATH=os.path.join(ROOT, "client", "python"))
        for name in ("export.sh", "render", "call"):
            self.write(name, "#!/bin/sh\necho ${0##*/}\n", 0o755)

    def write(self, name, text, mode=0o644):
        path = os.path.join(self.folder_of_it, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, mode)) as out:
            out.write(text)
        return path

    def run_here(self, argv, **options):
        done = subprocess.run(argv, cwd=self.folder_of_it, env={**self.env, **options}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_it_is_short(self):
        self.assertLessEqual(README.count("\n"), 120)

    def test_five_commands(self):
        run, slots, rate, defer, work = [re.sub(r"\s{3,}\S.*", "", line) for line in indented("--slots 5")]
        for command, prints in ((run, "export.sh\n"), (slots, "render\n"), (rate, ".*\ncall\n")):
            self.assertRegex(self.run_here(["bash", "-c", command]), "^%s$" % prints)
        self.run_here(["bash", "-c", "redlock run nightly -- sleep 1 & until redlock show nightly >/dev/null 2>&1; do sleep 0.05; done; %s; wait" % defer])
        self.assertEqual(self.run_here(["bash", "-c", work.replace("work", "work --wait 0")]), "export.sh\n")

    def test_the_line_of_cron_runs_once(self):
        [line] = indented("0 3 * * *")
        command = line.split(None, 5)[5].replace("/usr/local/bin/export", "./export.sh")
        self.assertEqual([self.run_here(["sh", "-c", command]) for _ in range(3)], ["export.sh\n", "", ""])

    def test_the_configuration_of_three_hosts(self):
        path = self.write("redlockd.yaml", "\n".join(indented("store: redis")) + "\n")
        with open(os.path.join(self.folder_of_it, "redis-password"), "w", opener=private) as out:
            out.write("secret\n")
        status, out, err = call(REDLOCKD, "--config", path, "--check-config")
        self.assertEqual((status, out + err), (0, "ok: store redis, 3 nodes, quorum 2, 1 listener\n"))

    PRINTS = r"^order 42 \d{10,}\n$"

    def test_python(self):
        program = "import redlockd\norder = 'order 42'\ndef pay(order, fence):\n    print(order, fence)\n" + fenced("python")
        self.assertRegex(self.run_here([sys.executable, "-c", program]), self.PRINTS)

    def test_javascript(self):
        package = os.path.join(HERE, "client-node")
        if not os.path.exists(os.path.join(package, "package.json")):
            self.skipTest("the client for Node has not been built")
        path = self.write("a.mjs", """import { connect } from %r;
const order = "order 42", pay = async (order, { fence, signal }) => console.log(signal.aborted ? "lost" : order, fence), client = await connect();
%sawait client.close();
""" % (os.path.join(package, "dist", "index.mjs"), fenced("js")))
        self.assertRegex(self.run_here(["node", path]), self.PRINTS)

    def test_go(self):
        if not os.path.exists(os.path.join(HERE, "client-go")):
            self.skipTest("the client for Go has not been built")
        self.write("go.mod", "module a\ngo 1.21\nrequire github.com/redlockd/redlockd/client/go v0.0.0\nreplace github.com/redlockd/redlockd/client/go => %s\n" %
                   os.path.join(ROOT, "client", "go"))
        self.write("a.go", """package main
import (
	"context"
	"fmt"
	"time"
	redlockd "github.com/redlockd/redlockd/client/go"
)
func pay(ctx context.Context, order string, fence int64) error {
	fmt.Println(order, fence)
	return ctx.Err()
}
func main() {
	ctx, order := context.Background(), "order 42"
	client, err := redlockd.Dial(ctx)
	if err == nil {
		defer client.Close()
		err = func() error {
			%s			return err
		}()
	}
	if err != nil {
		panic(err)
	}
}
""" % fenced("go"))
        self.assertRegex(self.run_here(["go", "run", "."], GOFLAGS="-mod=mod", GOPROXY="off", GOCACHE=os.path.join(HERE, "client-go", "cache"),
                                       GOPATH=os.path.join(HERE, "client-go", "path")), self.PRINTS)

    def test_java(self):
        jar = os.path.join(HERE, "client-java", "redlockd.jar")
        if not os.path.exists(jar):
            self.skipTest("the client for Java has not been built")
        path = self.write("A.java", """import io.redlockd.RedlockClient;
import java.time.Duration;
class A {
    static void pay(String order, long fence) { System.out.println(order + " " + fence); }
    public static void main(String[] args) throws Exception {
        var order = "order 42";
        try (var client = RedlockClient.connect()) {
%s        }
    }
}
""" % fenced("java"))
        self.assertRegex(self.run_here(["java", "-cp", jar, path]), self.PRINTS)
