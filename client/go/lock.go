// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// A Lock is a lock that is held, several, or a permit of a semaphore.
type Lock struct{ Hold }

// Lock takes a lock, and waits in its queue until it is granted, ctx ends, or the time of [Wait] is over. ctx bounds the wait, not the lock.
func (c *Client) Lock(ctx context.Context, name string, options ...LockOption) (*Lock, error) {
	return c.lock(ctx, terms{verb: "LOCK", names: []string{name}, wait: Forever}, options)
}

// TryLock takes a lock if it is free, and else returns an error that is [ErrBusy].
func (c *Client) TryLock(ctx context.Context, name string, options ...LockOption) (*Lock, error) {
	return c.lock(ctx, terms{verb: "LOCK", names: []string{name}}, append(options, Wait(0)))
}

// LockAll takes all of these locks, or none. The loss of one is a loss.
func (c *Client) LockAll(ctx context.Context, names []string, options ...LockOption) (*Lock, error) {
	return c.lock(ctx, terms{verb: "LOCKALL", names: names, wait: Forever}, options)
}

// LockAny takes one of these locks, the first that is free. Its Name says which.
func (c *Client) LockAny(ctx context.Context, names []string, options ...LockOption) (*Lock, error) {
	return c.lock(ctx, terms{verb: "LOCKANY", names: names, wait: Forever}, options)
}

// Acquire takes one of limit permits of a semaphore, over all hosts together.
func (c *Client) Acquire(ctx context.Context, name string, limit int, options ...LockOption) (*Lock, error) {
	return c.lock(ctx, terms{verb: "ACQUIRE", names: []string{name}, limit: limit, wait: Forever}, options)
}

func (c *Client) lock(ctx context.Context, of terms, options []LockOption) (*Lock, error) {
	h, err := c.take(ctx, of, options)
	if err != nil {
		return nil, err
	}
	l := &Lock{Hold{h}}
	runtime.SetFinalizer(l, func(l *Lock) { l.h.dropped() })
	return l, nil
}

func (c *Client) take(ctx context.Context, of terms, options []LockOption) (*held, error) {
	for _, option := range options {
		option.take(&of)
	}
	owner, _ := ctx.Value(ownerKey{c}).(string)
	var t *take
	begin := func(at instant) request {
		t = c.session.take(of, owner, at)
		return t
	}
	if err := c.ask(ctx, of.verb, of.names, begin); err != nil {
		return nil, err
	}
	return c.hold(ctx, t)
}

// Unlock gives the lock back. It needs no context, and has five seconds of its own. It returns an error that is [ErrLost] if the lock was lost before.
func (l *Lock) Unlock(options ...UnlockOption) error {
	runtime.SetFinalizer(l, nil)
	var extra []byte
	for _, option := range options {
		extra = option.unlock(extra)
	}
	verb := "UNLOCK"
	if l.Permit() >= 0 {
		verb = "RELEASE"
	}
	return l.h.give(verb, string(extra))
}

// Fences returns the fencing tokens by name, of [Client.LockAll].
func (l *Lock) Fences() map[string]int64 {
	all := make(map[string]int64, len(l.h.grants))
	for _, g := range l.h.grants {
		all[g.key.name] = g.fence
	}
	return all
}

// Permit returns the slot of a permit, from 0 on; -1 if it is none.
func (l *Lock) Permit() int {
	if g := l.h.grants[0]; g.sort == aPermit {
		return g.permit
	}
	return -1
}

// String is for people.
func (l *Lock) String() string {
	if err := l.Err(); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("the lock %q, fence %d", l.Name(), l.Fence())
}

// Do runs f under a lock. The context of f ends when the lock is lost, and with ctx. If the lock was lost, the error is [ErrLost], and also that of f.
func (c *Client) Do(ctx context.Context, name string, f func(ctx context.Context, lock *Lock) error, options ...LockOption) error {
	lock, err := c.Lock(ctx, name, options...)
	if err != nil {
		return err
	}
	return lock.do(ctx, f)
}

// do runs f, and unlocks whatever becomes of it.
func (l *Lock) do(ctx context.Context, f func(ctx context.Context, lock *Lock) error) (err error) {
	inside, cancel := l.With(ctx)
	defer cancel()
	defer func() {
		gone := l.Unlock()
		switch {
		case gone == nil || errors.Is(gone, ErrUnlocked): // f may have unlocked it
		case err == nil:
			err = gone
		default:
			err = fmt.Errorf("%w: %w", gone, err)
		}
	}()
	return f(inside, l)
}
