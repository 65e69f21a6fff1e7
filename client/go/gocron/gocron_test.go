// SPDX-License-Identifier: BSD-2-Clause

package gocron_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	redlockd "github.com/redlockd/redlockd/client/go"
	redlockcron "github.com/redlockd/redlockd/client/go/gocron"
	"github.com/redlockd/redlockd/client/go/redlocktest"
)

func dial(t *testing.T, fake *redlocktest.Fake) *redlockd.Client {
	t.Helper()
	client, err := redlockd.Dial(context.Background(), redlockd.Addr(fake.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("in vain: " + what)
		}
	}
}

// schedule starts a scheduler with a job that runs each 20 ms, and returns its count.
func schedule(t *testing.T, option gocron.SchedulerOption, inside *atomic.Int64) *atomic.Int64 {
	t.Helper()
	count := &atomic.Int64{}
	scheduler, err := gocron.NewScheduler(option)
	if err != nil {
		t.Fatal(err)
	}
	run := func() {
		if inside.Add(1) != 1 {
			t.Error("two run at once")
		}
		time.Sleep(2 * time.Millisecond)
		inside.Add(-1)
		count.Add(1)
	}
	if _, err := scheduler.NewJob(gocron.DurationJob(20*time.Millisecond), gocron.NewTask(run), gocron.WithName("nightly")); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	t.Cleanup(func() { scheduler.Shutdown() })
	return count
}

func TestAJobRunsOnOneHostAtATime(t *testing.T) {
	fake := redlocktest.NewFake()
	t.Cleanup(fake.Close)
	inside := &atomic.Int64{}
	one := schedule(t, gocron.WithDistributedLocker(redlockcron.NewLocker(dial(t, fake), 0)), inside)
	two := schedule(t, gocron.WithDistributedLocker(redlockcron.NewLocker(dial(t, fake), 0)), inside)
	until(t, "it runs", func() bool { return one.Load()+two.Load() > 5 })
}

func TestTheLockerRefusesAndTellsOfALoss(t *testing.T) {
	fake := redlocktest.NewFake()
	t.Cleanup(fake.Close)
	ctx, locker := context.Background(), redlockcron.NewLocker(dial(t, fake), time.Second)
	lock, err := locker.Lock(ctx, "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locker.Lock(ctx, "x"); !errors.Is(err, redlockd.ErrBusy) {
		t.Errorf("the error is %v", err)
	}
	fake.Lose("x")
	if err := lock.Unlock(ctx); !errors.Is(err, redlockd.ErrLost) {
		t.Errorf("the error is %v", err)
	}
}

func TestTheLeaderRunsAllJobsAndAnotherOneFollows(t *testing.T) {
	fake := redlocktest.NewFake()
	t.Cleanup(fake.Close)
	ctx := context.Background()
	first := redlockcron.NewElector(dial(t, fake), "leader")
	until(t, "the first leads", func() bool { return first.IsLeader(ctx) == nil })
	second := redlockcron.NewElector(dial(t, fake), "leader")
	t.Cleanup(func() { second.Close() })
	one := schedule(t, gocron.WithDistributedElector(first), &atomic.Int64{})
	two := schedule(t, gocron.WithDistributedElector(second), &atomic.Int64{})
	until(t, "jobs run", func() bool { return one.Load() > 2 })
	if err := second.IsLeader(ctx); !errors.Is(err, redlockcron.ErrNotLeader) || two.Load() > 0 {
		t.Errorf("the second leads: %v, %d runs", err, two.Load())
	}
	first.Close()
	until(t, "the second leads", func() bool { return two.Load() > 0 })
	if err := first.IsLeader(ctx); err == nil {
		t.Error("the first leads")
	}
}
