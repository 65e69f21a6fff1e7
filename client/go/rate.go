// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"fmt"
	"time"
)

// A Quota says what is left of a rate limit.
type Quota struct {
	// Left is how many uses more would be admitted now.
	Left int
	// Reset is when all would be.
	Reset time.Duration
	// Unmetered: the store that counts cannot be used, and the daemon is set up to admit all then.
	Unmetered bool
}

// use is what RATE asks for.
type use struct {
	cost int
	wait time.Duration
}

// Rate counts one more use of a name, if no time of the length per has more than limit. Otherwise it returns an error that is [ErrBusy] and has a RetryAfter,
// or with [Wait] one that is [ErrTimeout].
func (c *Client) Rate(ctx context.Context, name string, limit int, per time.Duration, options ...RateOption) (Quota, error) {
	u := use{cost: 1}
	for _, option := range options {
		option.rate(&u)
	}
	text := appendNumber(appendWord([]byte("RATE "), name), "limit", int64(limit))
	text = appendDuration(text, "per", per)
	if u.cost != 1 {
		text = appendNumber(text, "cost", int64(u.cost))
	}
	if u.wait == Forever {
		text = append(text, " wait=forever"...)
	} else if u.wait > 0 {
		text = appendDuration(text, "wait", u.wait)
	}
	a := &ask{about: name, text: string(text)} // it is never repeated: the use may have been counted
	begin := func(at instant) request {
		deadline := never
		if u.wait != Forever {
			deadline = at.add(u.wait + patience)
		}
		a.call = awaited(deadline)
		return c.submit(a, at)
	}
	if err := c.ask(ctx, "RATE", []string{name}, begin); err != nil {
		return Quota{}, err
	}
	return quota(name, a.last)
}

func quota(name string, l line) (Quota, error) {
	if l.kind == "OK" {
		left, _ := l.number("left")
		_, unmetered := l.field("unmetered")
		return Quota{Left: int(left), Reset: l.duration("reset_ms"), Unmetered: unmetered}, nil
	}
	e := &Error{Kind: ErrTimeout, Name: name, Code: l.kind, RetryAfter: -1, Text: name + ": not admitted in time"}
	if l.kind == "BUSY" {
		e.Kind, e.Text = ErrBusy, name+": the limit is used up"
	}
	if _, ok := l.number("retry_ms"); ok {
		e.RetryAfter = l.duration("retry_ms")
		e.Text += fmt.Sprintf(", free in %v", e.RetryAfter)
	}
	return Quota{}, e
}
