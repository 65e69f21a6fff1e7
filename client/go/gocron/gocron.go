// SPDX-License-Identifier: BSD-2-Clause

// Package gocron has gocron run each job on one host: as a Locker, or as an Elector.
//
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(redlockcron.NewLocker(client, time.Minute)))
package gocron

import (
	"context"
	"errors"
	"time"

	"github.com/go-co-op/gocron/v2"
	redlockd "github.com/redlockd/redlockd/client/go"
)

// A Locker has each run of a job happen on one host. A job runs under the lock of its name; set it by gocron.WithName.
type Locker struct {
	client  *redlockd.Client
	keep    time.Duration
	options []redlockd.LockOption
}

var (
	_ gocron.Locker  = (*Locker)(nil)
	_ gocron.Elector = (*Elector)(nil)
)

// NewLocker makes one. keep leaves a name taken for so long after a run, so that a host with a late clock does not run a short job again: half of the time
// between two runs is good.
func NewLocker(client *redlockd.Client, keep time.Duration, options ...redlockd.LockOption) *Locker {
	return &Locker{client, keep, options}
}

// Lock takes the lock of a job if it is free.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lock, err := l.client.TryLock(ctx, key, l.options...)
	if err != nil {
		return nil, err
	}
	return &held{lock, l.keep}, nil
}

type held struct {
	lock *redlockd.Lock
	keep time.Duration
}

// Unlock ends a run. It says if the lock was lost meanwhile: the job may have run on another host as well.
func (h *held) Unlock(context.Context) error {
	if h.keep <= 0 {
		return h.lock.Unlock()
	}
	return h.lock.Unlock(redlockd.Keep(h.keep))
}

// ErrNotLeader says that another host runs the jobs.
var ErrNotLeader = errors.New("another host leads")

// An Elector has all jobs run on one host, the leader. It campaigns until Close.
type Elector struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
	term   chan *redlockd.Lock // has the lock of the present term, or nil
}

// NewElector campaigns for the leadership of this name.
func NewElector(client *redlockd.Client, name string, options ...redlockd.LockOption) *Elector {
	ctx, cancel := context.WithCancel(context.Background())
	e := &Elector{cancel: cancel, ended: make(chan struct{}), term: make(chan *redlockd.Lock, 1)}
	e.term <- nil
	go func() {
		defer close(e.ended)
		e.err = client.Lead(ctx, name, func(ctx context.Context, lock *redlockd.Lock) error {
			e.set(lock)
			<-ctx.Done()
			e.set(nil)
			return context.Cause(ctx)
		}, options...)
	}()
	return e
}

func (e *Elector) set(lock *redlockd.Lock) {
	<-e.term
	e.term <- lock
}

// IsLeader returns nil if this host leads now.
func (e *Elector) IsLeader(context.Context) error {
	lock := <-e.term
	e.term <- lock
	select {
	case <-e.ended:
		return e.err
	default:
	}
	if lock == nil || lock.Remaining() == 0 {
		return ErrNotLeader
	}
	return nil
}

// Close ends the campaign, and the term if this host leads.
func (e *Elector) Close() error {
	e.cancel()
	<-e.ended
	return nil
}
