// SPDX-License-Identifier: BSD-2-Clause

//go:build unix

package redlockd_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	redlockd "github.com/redlockd/redlockd/client/go"
	"github.com/redlockd/redlockd/client/go/redlocktest"
)

func TestTheDaemonSeesADeadlockOfLocksThatBelongTogether(t *testing.T) {
	client := dial(t, redlocktest.NewDaemon(t))
	var both, all sync.WaitGroup
	both.Add(2)
	errs := make([]error, 2)
	for i, names := range [][]string{{"a", "b"}, {"b", "a"}} {
		i, names := i, names
		all.Add(1)
		go func() {
			defer all.Done()
			errs[i] = client.Do(context.Background(), names[0], func(ctx context.Context, _ *redlockd.Lock) error {
				both.Done()
				both.Wait()
				return client.Do(ctx, names[1], func(context.Context, *redlockd.Lock) error { return nil })
			})
		}()
	}
	all.Wait()
	if errs[0] == nil {
		errs[0], errs[1] = errs[1], errs[0]
	}
	if !errors.Is(errs[0], redlockd.ErrDeadlock) || errs[1] != nil {
		t.Errorf("the errors are %v", errs)
	}
}

func TestADaemonAnswersAnyLine(t *testing.T) {
	client := dial(t, redlocktest.NewDaemon(t), redlockd.Label("worker 7"))
	l := lock(t, client, "x")
	answer, err := client.Ask(context.Background(), "SHOW x")
	if err != nil || len(answer.Rows) != 1 || answer.Rows[0]["name"] != "worker 7" || answer.Fields["n"] != "1" {
		t.Errorf("it is %+v, %v", answer, err)
	}
	if err := l.Unlock(redlockd.Sync()); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"LOKC x", "@a PING", "PING\nQUIT"} {
		if _, err := client.Ask(context.Background(), line); err == nil {
			t.Errorf("%q is no mistake", line)
		}
	}
}
