// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"time"
)

// A Tracer watches a client, for logs, metrics and spans. Its methods may be called by several goroutines at once.
type Tracer interface {
	// Begin is called when a request begins, with its verb (as LOCK) and the names that it asks for. The function that it returns is called at its end.
	Begin(ctx context.Context, verb string, names []string) (end func(error))
	// Event is called for what happens unasked, one event after the other.
	Event(Event)
}

// An EventKind says what happened.
type EventKind string

// What happens unasked.
const (
	Lost         EventKind = "lost"         // a lock cannot be relied on any more
	Risk         EventKind = "risk"         // a renewal failed or is late, or no answer comes: Lost or Safe follows
	Safe         EventKind = "safe"         // the risk is over
	Dropped      EventKind = "dropped"      // nobody refers to a lock any more that was not unlocked: it stays held until the client is closed
	Connected    EventKind = "connected"    // the session has begun, or has come back
	Disconnected EventKind = "disconnected" // the connection broke
)

// An Event says what happened unasked.
type Event struct {
	Kind EventKind
	// Name and Fence are those of the lock.
	Name  string
	Fence int64
	// Remaining is for how long the lock may be relied on.
	Remaining time.Duration
	// Err says why: of Lost and Disconnected.
	Err error
}
