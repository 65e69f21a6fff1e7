// SPDX-License-Identifier: BSD-2-Clause

//go:build unix

package redlocktest

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/client/go"
)

// A Daemon is a real redlockd on the memory store, in a folder of its own.
type Daemon struct {
	t       testing.TB
	address string
	command *exec.Cmd
}

// NewDaemon starts one, with these settings over the others, as in "lease=3s". It ends with the test. The program is $REDLOCKD, or that of PATH; without one
// the test is skipped.
func NewDaemon(t testing.TB, settings ...string) *Daemon {
	t.Helper()
	path := os.Getenv("REDLOCKD")
	if path == "" {
		found, err := exec.LookPath("redlockd")
		if err != nil {
			t.Skip("there is no redlockd: set REDLOCKD, or have it in PATH")
		}
		path = found
	}
	folder, err := os.MkdirTemp("", "redlocktest-") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	d := &Daemon{t: t, address: filepath.Join(folder, "sock")}
	arguments := []string{}
	for _, setting := range append([]string{"store=memory", "guard=trust-first-start", "listen.unix=" + d.address, "listen.tcp=no",
		"runtime_dir=" + filepath.Join(folder, "run")}, settings...) {
		arguments = append(arguments, "--set", setting)
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	os.Mkdir(filepath.Join(folder, "run"), 0o700)
	d.command = exec.Command(path, arguments...)
	d.command.Stdout, d.command.Stderr = log, log
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.command.Process.Kill()
		d.command.Wait()
	})
	if err := d.await(10 * time.Second); err != nil {
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("redlockd does not serve: %v\n%s", err, said)
	}
	return d
}

// await waits until it serves.
func (d *Daemon) await(patience time.Duration) error {
	for until := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		answer, err := d.ask("LOCK redlocktest wait=5s")
		if err == nil && strings.HasPrefix(answer, "OK") || time.Now().After(until) {
			return err
		}
	}
}

var _ Server = (*Daemon)(nil)

// ask sends one line over a connection of its own.
func (d *Daemon) ask(request string) (string, error) {
	conn, err := net.Dial("unix", d.address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := conn.Write([]byte(request + "\n")); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

// Addr is for redlockd.Addr.
func (d *Daemon) Addr() string { return d.address }

// Lose takes a lock away from whoever holds it: reason=broken.
func (d *Daemon) Lose(name string) {
	d.t.Helper()
	answer, err := d.ask("BREAK " + strconv.Quote(name))
	if err == nil && strings.HasPrefix(answer, "ERR") {
		err = errors.New(strings.TrimSpace(answer))
	}
	if err != nil {
		d.t.Fatalf("BREAK %q: %v", name, err)
	}
}

// Freeze stops the daemon for so long. It returns at once.
func (d *Daemon) Freeze(down time.Duration) {
	d.command.Process.Signal(syscall.SIGSTOP)
	time.AfterFunc(down, func() { d.command.Process.Signal(syscall.SIGCONT) })
}

// HeldElsewhere has another client hold a lock, which must be free, until release is called.
func (d *Daemon) HeldElsewhere(name string) (release func()) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	other, err := redlockd.Dial(ctx, redlockd.Addr(d.address), redlockd.Label("elsewhere"))
	if err == nil {
		_, err = other.Lock(ctx, name)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return func() { other.Close() }
}
