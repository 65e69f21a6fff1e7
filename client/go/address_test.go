// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAddresses(t *testing.T) {
	for text, want := range map[string]place{
		"a:1":         {"tcp", "a:1", "a", false},
		"host":        {"tcp", "host:7420", "host", false},
		":99":         {"tcp", "127.0.0.1:99", "127.0.0.1", false},
		"[::1]":       {"tcp", "[::1]:7420", "::1", false},
		"[::1]:5":     {"tcp", "[::1]:5", "::1", false},
		"tls://h":     {"tcp", "h:7422", "h", true},
		"tls://h:8":   {"tcp", "h:8", "h", true},
		"unix:/a/b":   {"unix", "/a/b", "", false},
		"unix:b":      {"unix", "b", "", false},
		"./b":         {"unix", "./b", "", false},
		"/run/r.sock": {"unix", "/run/r.sock", "", false},
	} {
		if got, err := parseAddress(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "unix:", "::1", "a:b", "a:0", "a:70000", "tls://", "tls:///x", "[::1"} {
		if got, err := parseAddress(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

func TestTheSecretIsTheFirstLineOfTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte("horse\r\nbattery\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REDLOCK_USER", "ann")
	t.Setenv("REDLOCK_SECRET", "wrong")
	t.Setenv("REDLOCK_SECRET_FILE", path)
	if user, secret, err := credentials(); user != "ann" || secret != "horse" || err != nil {
		t.Errorf("%q, %q, %v", user, secret, err)
	}
	t.Setenv("REDLOCK_SECRET_FILE", "")
	t.Setenv("REDLOCK_SECRET", "")
	if _, _, err := credentials(); err == nil {
		t.Error("a user without a secret is no mistake")
	}
}

func TestAClockThatStandsStillInASuspendIsCorrected(t *testing.T) {
	var c suspendable
	look := func(monotonic, wall, want time.Duration) {
		t.Helper()
		if got := c.at(monotonic, wall); got != instant(want) {
			t.Errorf("it is %v, want %v", time.Duration(got), want)
		}
	}
	look(time.Second, time.Second+10*time.Millisecond, time.Second)                        // they drift
	look(2*time.Second, 5*time.Second, 2*time.Second+2990*time.Millisecond)                // a suspend
	look(3*time.Second, 0, 3*time.Second+2990*time.Millisecond)                            // the wall clock is set back: nothing
	look(4*time.Second, time.Second+time.Millisecond, 4*time.Second+2990*time.Millisecond) // and goes on
}

func TestTheClockGoesOn(t *testing.T) {
	before := now()
	time.Sleep(20 * time.Millisecond)
	if passed := now().sub(before); passed < 19*time.Millisecond || passed > 20*time.Second {
		t.Errorf("%v have passed", passed)
	}
}
