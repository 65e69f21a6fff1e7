// SPDX-License-Identifier: BSD-2-Clause

package redlockd_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	redlockd "github.com/redlockd/redlockd/client/go"
	"github.com/redlockd/redlockd/client/go/redlocktest"
)

// events is a tracer.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, text)
}

func (e *events) Begin(_ context.Context, verb string, names []string) func(error) {
	return func(err error) { e.note(fmt.Sprint(verb, names, err == nil)) }
}

func (e *events) Event(event redlockd.Event) { e.note(string(event.Kind) + " " + event.Name) }

func (e *events) seen(text string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Contains(strings.Join(e.all, "\n"), text)
}

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain: " + what)
		}
	}
}

func dial(t *testing.T, server redlocktest.Server, options ...redlockd.Option) *redlockd.Client {
	t.Helper()
	client, err := redlockd.Dial(context.Background(), append(options, redlockd.Addr(server.Addr()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func start(t *testing.T, options ...redlockd.Option) (*redlocktest.Fake, *redlockd.Client) {
	t.Helper()
	fake := redlocktest.NewFake()
	t.Cleanup(fake.Close)
	return fake, dial(t, fake, options...)
}

func lock(t *testing.T, client *redlockd.Client, name string) *redlockd.Lock {
	t.Helper()
	l, err := client.TryLock(context.Background(), name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestALossEndsTheContextAndSaysWhy(t *testing.T) {
	fake, client := start(t)
	l := lock(t, client, "x")
	ctx, with, over := l.Context(), context.Context(nil), l.Lost()
	with, cancel := l.With(context.Background())
	defer cancel()
	if l.Err() != nil || ctx.Err() != nil || l.Remaining() < 9*time.Second || l.Fence() == 0 {
		t.Fatalf("it is %v, for %v", l, l.Remaining())
	}
	fake.Lose("x")
	<-over
	<-with.Done()
	for what, err := range map[string]error{"Err": l.Err(), "Cause": context.Cause(ctx), "Cause of With": context.Cause(with), "Unlock": l.Unlock(),
		"Ensure": l.Ensure(context.Background(), 0)} {
		var e *redlockd.Error
		if !errors.Is(err, redlockd.ErrLost) || !errors.As(err, &e) || e.Name != "x" {
			t.Errorf("%s is %v", what, err)
		}
	}
	if e := new(redlockd.Error); !errors.As(context.Cause(ctx), &e) || e.Reason != "quorum" || e.Fence != l.Fence() {
		t.Errorf("the reason is %q", e.Reason)
	}
	if l.Remaining() != 0 {
		t.Errorf("%v remain", l.Remaining())
	}
}

func TestUnlockEndsTheContextAndIsNoLoss(t *testing.T) {
	_, client := start(t)
	l := lock(t, client, "x")
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(l.Context()); !errors.Is(cause, redlockd.ErrUnlocked) || errors.Is(cause, redlockd.ErrLost) {
		t.Errorf("the cause is %v", cause)
	}
	select {
	case <-l.Lost():
		t.Error("it is lost")
	default:
	}
	if err := l.Unlock(); !errors.Is(err, redlockd.ErrUnlocked) {
		t.Errorf("a second Unlock is %v", err)
	}
}

func TestTheContextOfTheCallerBoundsTheWaitAndNotTheLock(t *testing.T) {
	fake, client := start(t)
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), t, "value"))
	l, err := client.Lock(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if l.Context().Err() != nil || l.Context().Value(t) != "value" {
		t.Error("the context of the lock ended, or has no values")
	}
	if _, err = client.Lock(ctx, "y"); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	short, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = client.Lock(short, "x")
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, redlockd.ErrTimeout) {
		t.Errorf("the error is %v", err)
	}
	l.Unlock()
	lock(t, dial(t, fake), "x") // nobody waits any more
}

func TestRefusalsSayWhoHasIt(t *testing.T) {
	fake, client := start(t)
	release := fake.HeldElsewhere("x")
	for _, c := range []struct {
		kind error
		ask  func() (*redlockd.Lock, error)
	}{
		{redlockd.ErrBusy, func() (*redlockd.Lock, error) { return client.TryLock(context.Background(), "x") }},
		{redlockd.ErrTimeout, func() (*redlockd.Lock, error) {
			return client.Lock(context.Background(), "x", redlockd.Wait(10*time.Millisecond))
		}},
		{redlockd.ErrBusy, func() (*redlockd.Lock, error) {
			return client.LockAll(context.Background(), []string{"w", "x"}, redlockd.Wait(0))
		}},
	} {
		_, err := c.ask()
		var e *redlockd.Error
		if !errors.Is(err, c.kind) || !errors.As(err, &e) || e.Holder != "@elsewhere" || e.Name != "x" {
			t.Errorf("the error is %v, of %+v", err, e)
		}
	}
	release()
	lock(t, client, "x").Unlock()
	defer fake.NoQuorum()()
	if _, err := client.Lock(context.Background(), "x"); !errors.Is(err, redlockd.ErrNoQuorum) {
		t.Errorf("the error is %v", err)
	}
}

func TestSeveralLocksAndPermits(t *testing.T) {
	_, client := start(t)
	ctx := context.Background()
	both, err := client.LockAll(ctx, []string{"a", "b"})
	if err != nil || len(both.Fences()) != 2 || both.Permit() != -1 {
		t.Fatal(both, err)
	}
	one, err := client.LockAny(ctx, []string{"a", "c"})
	if err != nil || one.Name() != "c" {
		t.Fatal(one, err)
	}
	p, err := client.Acquire(ctx, "s", 2)
	q, err2 := client.Acquire(ctx, "s", 2)
	if err != nil || err2 != nil || p.Permit()+q.Permit() != 1 {
		t.Fatal(p, q, err, err2)
	}
	if _, err := client.Acquire(ctx, "s", 2, redlockd.Wait(0)); !errors.Is(err, redlockd.ErrBusy) {
		t.Error(err)
	}
	for _, l := range []*redlockd.Lock{both, one, p, q} {
		if err := l.Unlock(); err != nil {
			t.Error(err)
		}
	}
	if q, err := client.Rate(ctx, "r", 20, time.Minute, redlockd.Cost(2)); err != nil || q.Left != 1 {
		t.Error(q, err)
	}
}

func TestDoEndsItsFunctionWithTheLock(t *testing.T) {
	fake, client := start(t)
	ctx := context.Background()
	err := client.Do(ctx, "x", func(ctx context.Context, l *redlockd.Lock) error {
		fake.Lose("x")
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, redlockd.ErrLost) || !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	mine := errors.New("mine")
	if err := client.Do(ctx, "x", func(context.Context, *redlockd.Lock) error { return mine }); err != mine {
		t.Errorf("the error is %v", err)
	}
	if err := client.Do(ctx, "x", func(_ context.Context, l *redlockd.Lock) error { return l.Unlock() }); err != nil {
		t.Errorf("the error is %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		client.Do(ctx, "x", func(context.Context, *redlockd.Lock) error { panic("at the disco") })
	}()
	lock(t, client, "x").Unlock()
}

func TestLeadersFollowEachOther(t *testing.T) {
	fake, client := start(t)
	terms := 0
	err := client.Lead(context.Background(), "leader", func(ctx context.Context, l *redlockd.Lock) error {
		if terms++; terms == 3 {
			return nil
		}
		fake.Lose("leader")
		<-ctx.Done()
		return ctx.Err()
	})
	if err != nil || terms != 3 {
		t.Errorf("%d terms, %v", terms, err)
	}
	inner := func(ctx context.Context, _ *redlockd.Lock) error {
		return client.Do(ctx, "inner", func(ctx context.Context, _ *redlockd.Lock) error {
			fake.Lose("inner")
			<-ctx.Done()
			return ctx.Err()
		})
	}
	if err := client.Lead(context.Background(), "leader", inner); !errors.Is(err, redlockd.ErrLost) {
		t.Errorf("the loss of another lock is %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer fake.HeldElsewhere("leader")()
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := client.Lead(ctx, "leader", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestJobsAreDoneOrTriedAgain(t *testing.T) {
	_, client := start(t)
	ctx := context.Background()
	for _, id := range []string{"one", "two"} {
		if got, err := client.Defer(ctx, "mail", []byte("to="+id), redlockd.ID(id), redlockd.Under("box")); got != id || err != nil {
			t.Fatal(got, err)
		}
	}
	seen := []string{}
	err := client.Work(ctx, "mail", func(ctx context.Context, job *redlockd.Job) error {
		seen = append(seen, fmt.Sprint(job.ID, job.Attempt, string(job.Payload), job.Under))
		switch {
		case len(seen) == 1:
			return errors.New("again")
		case job.ID == "two" && len(seen) < 4:
			return job.Retry(0, redlockd.Uncounted())
		}
		return job.Ensure(ctx, time.Second)
	}, redlockd.Wait(0))
	want := "[one1to=onebox one2to=onebox two1to=twobox two1to=twobox]"
	if fmt.Sprint(seen) != want || err != nil {
		t.Errorf("%v, %v", seen, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := client.Work(ctx, "mail", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestACutEndsAllAndTheNextRequestBeginsAnew(t *testing.T) {
	seen := &events{}
	fake, client := start(t, redlockd.Trace(seen))
	l := lock(t, client, "x")
	fake.Cut()
	<-l.Lost()
	if err := l.Unlock(); !errors.Is(err, redlockd.ErrLost) {
		t.Errorf("the error is %v", err)
	}
	lock(t, client, "x").Unlock()
	for _, text := range []string{"LOCK[x] true", "UNLOCK[x] true", "UNLOCK[x] false", "connected", "lost x", "disconnected"} {
		until(t, text, func() bool { return seen.seen(text) })
	}
}

func TestALockThatNobodyRefersToIsReportedAndStays(t *testing.T) {
	seen := &events{}
	fake, client := start(t, redlockd.Trace(seen))
	func() { lock(t, client, "x") }()
	until(t, "it is reported", func() bool {
		runtime.GC()
		return seen.seen("dropped x")
	})
	if _, err := dial(t, fake).TryLock(context.Background(), "x"); !errors.Is(err, redlockd.ErrBusy) {
		t.Errorf("the error is %v", err)
	}
	client.Close()
	until(t, "it is free", func() bool {
		_, err := dial(t, fake).TryLock(context.Background(), "x")
		return err == nil
	})
}

func TestAClosedClientSaysSo(t *testing.T) {
	_, client := start(t)
	l := lock(t, client, "x")
	client.Close()
	if e := new(redlockd.Error); !errors.As(l.Err(), &e) || e.Reason != "closed" {
		t.Errorf("the error is %v", l.Err())
	}
	_, err := client.Lock(context.Background(), "x")
	if !errors.Is(err, redlockd.ErrClosed) || !errors.Is(err, redlockd.ErrDisconnected) {
		t.Errorf("the error is %v", err)
	}
	if err := client.Lead(context.Background(), "x", nil); !errors.Is(err, redlockd.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
	client.Close()
}

func TestAServerThatStandsStillIsNoLossBeforeTheDeadline(t *testing.T) {
	fake, client := start(t)
	l := lock(t, client, "x")
	fake.Freeze(200 * time.Millisecond)
	if l.Err() != nil || l.Remaining() < 9*time.Second {
		t.Errorf("it is %v", l)
	}
	if err := l.Ensure(context.Background(), time.Second); err != nil {
		t.Error(err)
	}
	if err := l.Ensure(context.Background(), time.Hour); !errors.Is(err, redlockd.ErrLost) || l.Err() != nil {
		t.Errorf("the error is %v, and the lock %v", err, l.Err())
	}
}

func TestRiskIsTold(t *testing.T) {
	seen := &events{}
	fake, client := start(t, redlockd.Trace(seen))
	l := lock(t, client, "x")
	fake.Risk("x")
	until(t, "the risk is told", func() bool { return seen.seen("risk x") })
	if l.Err() != nil || l.Remaining() > 4*time.Second {
		t.Errorf("it is %v, for %v", l.Err(), l.Remaining())
	}
}

func TestManyGoroutinesShareAClient(t *testing.T) {
	_, client := start(t)
	var all sync.WaitGroup
	inside, total := 0, 0
	for i := 0; i < 32; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := 0; j < 20; j++ {
				err := client.Do(context.Background(), "shared", func(context.Context, *redlockd.Lock) error {
					if inside++; inside != 1 {
						return errors.New("two at once")
					}
					total++
					inside--
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	all.Wait()
	if total != 640 {
		t.Errorf("%d grants", total)
	}
}

func TestNobodyListens(t *testing.T) {
	_, err := redlockd.Dial(context.Background(), redlockd.Addr("/nowhere/at/all"))
	if !errors.Is(err, redlockd.ErrDisconnected) || !strings.Contains(err.Error(), "/nowhere/at/all") {
		t.Errorf("the error is %v", err)
	}
	if _, err := redlockd.Dial(context.Background(), redlockd.Addr("a:b")); err == nil {
		t.Error("a:b is an address")
	}
}

func TestOnceRunsOnceAndTellsOfIt(t *testing.T) {
	_, client := start(t)
	ctx, runs := context.Background(), 0
	if none, err := client.OnceStatus(ctx, "x"); err != nil || none != (redlockd.Outcome{}) {
		t.Fatal(none, err)
	}
	for i := 0; i < 2; i++ {
		outcome, err := client.Once(ctx, "x", time.Hour, func(context.Context) error {
			runs++
			return nil
		})
		if err != nil || outcome.Ran != (i == 0) || outcome.Host == "" || outcome.Next < 59*time.Minute || runs != 1 {
			t.Fatal(outcome, err, runs)
		}
	}
	if last, err := client.OnceStatus(ctx, "x"); err != nil || !last.Ran || last.Status != 0 || time.Since(last.Began) > time.Minute {
		t.Fatal(last, err)
	}
}

func TestOnceCountsAPanicAndUnlocks(t *testing.T) {
	_, client := start(t)
	ctx := context.Background()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it does not panic")
			}
		}()
		client.Once(ctx, "x", time.Hour, func(context.Context) error { panic("of f") })
	}()
	if last, err := client.OnceStatus(ctx, "x"); err != nil || last.Status != 1 {
		t.Fatal(last, err)
	}
	lock(t, client, "x").Unlock()
}
