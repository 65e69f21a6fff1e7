// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// What an error is about, for errors.Is. The error itself is an [*Error].
var (
	// ErrBusy: somebody else has it, and the request did not wait.
	ErrBusy = errors.New("busy")
	// ErrTimeout: the request waited, and its time ran out.
	ErrTimeout = errors.New("not granted in time")
	// ErrLost: the lock cannot be relied on any more. Reason says why.
	ErrLost = errors.New("lost")
	// ErrNoQuorum: too few stores can be used, or none.
	ErrNoQuorum = errors.New("no quorum")
	// ErrDeadlock: the request would wait for somebody who waits for its owner. What is held stays held.
	ErrDeadlock = errors.New("deadlock")
	// ErrDenied: the daemon does not let this peer, or this user, do that.
	ErrDenied = errors.New("denied")
	// ErrDraining: the daemon is stopping and grants nothing new.
	ErrDraining = errors.New("draining")
	// ErrDisconnected: there is no connection, it broke, or no answer came in time. The text names the address.
	ErrDisconnected = errors.New("disconnected")
	// ErrUnlocked: the lock was given back by this program.
	ErrUnlocked = errors.New("unlocked")
	// ErrClosed: the client was closed. Such an error is also ErrDisconnected.
	ErrClosed = errors.New("this client is closed")
)

// An Error says what went wrong with a request, or with a lock. No text has a secret.
type Error struct {
	// Kind is one of the Err variables, or nil for a code of the daemon that has none.
	Kind error
	// Name is that of the lock, the semaphore, the queue or the rate limit; of several the one that it is about, or all with commas.
	Name string
	// Holder says who has the lock, if ErrBusy or ErrTimeout and if that is known.
	Holder string
	// Trace is the traceparent that the holder gave, if there is one.
	Trace string
	// RetryAfter is when to ask again, if ErrBusy; negative if that is not known.
	RetryAfter time.Duration
	// Code is the word of the daemon: see ERROR CODES in redlock-protocol(7).
	Code string
	// Reason is why a lock is lost: quorum, expired, evicted, broken or idle, as the daemon says; and of the client itself "expired", at the deadline
	// without an answer, "disconnected", without [Grace], "closed", and "short" from [Hold.Ensure] alone: it is held, but not for so long.
	Reason string
	// Fence is that of a lock that is lost.
	Fence int64
	// Text is what people read.
	Text string
	// Err is what caused it, such as context.Canceled or an error of package net.
	Err error
}

// Error returns the text, which names the lock or the address of the daemon.
func (e *Error) Error() string { return "redlockd: " + e.Text }

// Unwrap returns the kind and the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	all := make([]error, 0, 2)
	for _, err := range []error{e.Kind, e.Err} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// Timeout makes it an error as those of package net.
func (e *Error) Timeout() bool { return e.Kind == ErrTimeout }

var kinds = map[string]error{"QUORUM": ErrNoQuorum, "UNAVAILABLE": ErrNoQuorum, "DEADLOCK": ErrDeadlock, "DENIED": ErrDenied, "AUTH": ErrDenied,
	"DRAINING": ErrDraining}

// refusal makes the error of an answer ERR. A code of a later version has no kind.
func refusal(name string, l line) *Error {
	return &Error{Kind: kinds[l.code], Name: name, Code: l.code, RetryAfter: -1, Text: fmt.Sprintf("%s: %s %s", name, l.code, l.text)}
}

func lost(name, reason string, fence int64) *Error {
	text := fmt.Sprintf("the lock %q is lost: %s", name, reason)
	if reason == "short" {
		text = fmt.Sprintf("the lock %q is not certain for so long", name)
	}
	return &Error{Kind: ErrLost, Name: name, Code: "LOST", Reason: reason, Fence: fence, RetryAfter: -1, Text: text}
}

func unlocked(name string) *Error {
	return &Error{Kind: ErrUnlocked, Name: name, RetryAfter: -1, Text: fmt.Sprintf("the lock %q was unlocked", name)}
}

// away makes the error of a caller whose context has ended.
func away(ctx context.Context, names []string) *Error {
	name := strings.Join(names, ", ")
	e := &Error{Name: name, RetryAfter: -1, Err: context.Cause(ctx), Text: name + ": " + context.Cause(ctx).Error()}
	if ctx.Err() != e.Err {
		e.Err = errors.Join(ctx.Err(), e.Err)
	}
	if errors.Is(e.Err, context.DeadlineExceeded) {
		e.Kind = ErrTimeout
	}
	return e
}
