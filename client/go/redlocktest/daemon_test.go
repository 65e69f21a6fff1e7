// SPDX-License-Identifier: BSD-2-Clause

//go:build unix

package redlocktest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/client/go"
	"github.com/redlockd/redlockd/client/go/redlocktest"
)

func TestAFakeDoesWhatADaemonDoes(t *testing.T) {
	fake := redlocktest.NewFake()
	defer fake.Close()
	for name, server := range map[string]func(t *testing.T) redlocktest.Server{
		"fake":   func(*testing.T) redlocktest.Server { return fake },
		"daemon": func(t *testing.T) redlocktest.Server { return redlocktest.NewDaemon(t, "lease=10s") },
	} {
		t.Run(name, func(t *testing.T) { play(t, server(t)) })
	}
}

func play(t *testing.T, server redlocktest.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	client, err := redlockd.Dial(ctx, redlockd.Addr(server.Addr()), redlockd.Label("worker"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	release := server.HeldElsewhere("x y")
	if _, err := client.TryLock(ctx, "x y"); !errors.Is(err, redlockd.ErrBusy) {
		t.Errorf("the error is %v", err)
	}
	time.AfterFunc(50*time.Millisecond, release)
	lock, err := client.Lock(ctx, "x y", redlockd.Wait(30*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	server.Freeze(100 * time.Millisecond)
	if err := lock.Ensure(ctx, time.Second); err != nil {
		t.Error(err)
	}
	server.Lose("x y")
	select {
	case <-lock.Lost():
	case <-ctx.Done():
		t.Error("the loss was not told")
	}
	if err := lock.Unlock(); !errors.Is(err, redlockd.ErrLost) {
		t.Errorf("the error is %v", err)
	}
	again, err := client.Lock(ctx, "x y", redlockd.Wait(30*time.Second))
	if err != nil || again.Fence() <= lock.Fence() {
		t.Fatalf("%v, %v", again, err)
	}
	if err := again.Unlock(); err != nil {
		t.Error(err)
	}
}
