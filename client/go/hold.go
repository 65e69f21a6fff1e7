// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A Hold is what a [Lock] and a [Job] have in common: it may be relied on for a time, which the daemon moves on, and it can be lost.
type Hold struct{ h *held }

// A held is a Hold as the client sees it. It refers to no Lock, so that the runtime can tell when nobody else does.
type held struct {
	client *Client
	owner  string
	values context.Context // those of whoever asked
	grants []*grant        // as long as it is held

	// mu is taken after that of the client, and guards what follows.
	mu     sync.Mutex
	err    error // why it ended
	isLost bool
	lost   chan struct{}           // closed by a loss; nil until somebody asks
	ctx    context.Context         // nil until somebody asks
	cancel context.CancelCauseFunc // of ctx
}

// ownerKey is the key of a context for the owner of locks of a client that belong together.
type ownerKey struct{ of *Client }

// end tells that it cannot be relied on any more.
func (h *held) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return
	}
	e, _ := err.(*Error)
	h.err, h.isLost = err, e.Kind == ErrLost
	if h.cancel != nil {
		h.cancel(err)
	}
	if h.lost != nil && h.isLost { // whoever hears it may ask the context why
		close(h.lost)
	}
}

// hold takes over what was granted. An error says that it is lost already.
func (c *Client) hold(ctx context.Context, t *take) (*held, error) {
	h := &held{client: c, owner: t.owner, values: ctx, grants: t.grants}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, g := range t.grants {
		if g.reason != "" {
			t.giveBack(c.session, now())
			return nil, lost(g.key.name, g.reason, g.fence)
		}
	}
	for _, g := range t.grants {
		g.to = h
	}
	return h, nil
}

// Name returns the name of the lock or queue, of several names the first.
func (h Hold) Name() string { return h.h.grants[0].key.name }

// Fence returns the fencing token: it grows from grant to grant of a name. Pass it on with each write, and have the storage refuse smaller ones.
func (h Hold) Fence() int64 { return h.h.grants[0].fence }

// Remaining returns for how long it may be relied on, by the local clock; 0: not at all. It asks nobody.
func (h Hold) Remaining() time.Duration {
	c := h.h.client
	c.mu.Lock()
	defer c.mu.Unlock()
	at, least := now(), time.Duration(never)
	for _, g := range h.h.grants {
		least = min(least, g.left(at))
	}
	return least
}

// Err returns nil while it may be relied on, as far as is known, and then why it may not: an error that is [ErrLost] or [ErrUnlocked].
func (h Hold) Err() error {
	if h.Remaining() == 0 { // the deadline may have passed just now
		h.h.client.due()
	}
	h.h.mu.Lock()
	defer h.h.mu.Unlock()
	return h.h.err
}

// Lost returns a channel that is closed when it is lost, and not by Unlock.
func (h Hold) Lost() <-chan struct{} {
	h.h.mu.Lock()
	defer h.h.mu.Unlock()
	if h.h.lost == nil {
		h.h.lost = make(chan struct{})
		if h.h.isLost {
			close(h.h.lost)
		}
	}
	return h.h.lost
}

// Context returns a context that ends when the lock is lost or unlocked; context.Cause says why. It has the values of the context that the lock was taken
// with, but does not end with that: see [Hold.With]. What is locked with it belongs together, so that the daemon sees who waits for whom.
func (h Hold) Context() context.Context {
	h.h.mu.Lock()
	defer h.h.mu.Unlock()
	if h.h.ctx == nil {
		values := context.WithValue(context.WithoutCancel(h.h.values), ownerKey{h.h.client}, h.h.owner)
		h.h.ctx, h.h.cancel = context.WithCancelCause(values)
		if h.h.err != nil {
			h.h.cancel(h.h.err)
		}
	}
	return h.h.ctx
}

// With returns a context that ends with the lock or with parent, whichever is first. Call cancel when it is not needed any more.
func (h Hold) With(parent context.Context) (ctx context.Context, cancel context.CancelFunc) {
	ends := h.Context()
	ctx, end := context.WithCancelCause(context.WithValue(parent, ownerKey{h.h.client}, h.h.owner))
	stop := context.AfterFunc(ends, func() { end(context.Cause(ends)) })
	if ends.Err() != nil {
		end(context.Cause(ends))
	}
	return ctx, func() {
		stop()
		end(context.Canceled)
	}
}

// Ensure asks the daemon, right before an effect that cannot be undone and takes so long. It returns nil if the lock may be relied on for longer; if need be
// the lease is renewed first.
func (h Hold) Ensure(ctx context.Context, d time.Duration) error {
	if err := h.each(ctx, "CHECK", 0); err != nil {
		return err
	}
	if h.Remaining() <= d && h.h.grants[0].sort != aJob {
		if err := h.each(ctx, "EXTEND", 0); err != nil {
			return err
		}
	}
	if h.Remaining() > d {
		return nil
	}
	if err := h.Err(); err != nil {
		return err
	}
	return lost(h.Name(), "short", h.Fence())
}

// Extend renews the lease now, and sets its length if ttl is not 0.
func (h Hold) Extend(ctx context.Context, ttl time.Duration) error { return h.each(ctx, "EXTEND", ttl) }

// each asks about each grant.
func (h Hold) each(ctx context.Context, verb string, ttl time.Duration) error {
	c := h.h.client
	for _, g := range h.h.grants {
		g := g
		begin := func(at instant) request { return c.session.check(g, verb == "EXTEND", ttl, at) }
		if err := c.ask(ctx, verb, []string{g.key.name}, begin); err != nil {
			return err
		}
	}
	return nil
}

// give gives all back, and returns an error if it was lost before.
func (h *held) give(verb, extra string) (err error) {
	c := h.client
	if c.tracer != nil {
		end := c.tracer.Begin(context.WithoutCancel(h.values), verb, []string{h.grants[0].key.name})
		defer func() { end(err) }()
	}
	at := c.enter()
	was := h.ended()
	h.end(unlocked(h.grants[0].key.name))
	frees := make([]*free, 0, len(h.grants))
	for _, g := range h.grants {
		if f := c.session.free(g, extra, at); f != nil {
			frees = append(frees, f)
		}
	}
	for _, f := range frees {
		c.wait(context.Background(), &f.call)
		if was == nil {
			was = f.err
		}
		c.mu.Lock()
	}
	c.leave()
	return was
}

// ended returns why it cannot be relied on any more.
func (h *held) ended() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// dropped is called when nobody refers to it any more.
func (h *held) dropped() {
	if h.ended() != nil {
		return
	}
	c, g := h.client, h.grants[0]
	if c.tracer == nil {
		slog.Warn("redlockd: a lock was not unlocked: it stays held until its client is closed", "name", g.key.name, "fence", g.fence)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trace(Event{Kind: Dropped, Name: g.key.name, Fence: g.fence, Remaining: g.left(now())})
}
