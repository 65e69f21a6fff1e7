// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

// An Outcome is the result of a run of [Client.Once], or of `redlock once`.
type Outcome struct {
	// Ran says whether this call has run it, or for [Client.OnceStatus] whether a run is known. Without one the rest may be zero.
	Ran bool
	// Host is where it ran, Began when that began, and Took how long it lasted.
	Host  string
	Began time.Time
	Took  time.Duration
	// Status is 0 if it went well, and else 1, or the exit status of a command.
	Status int
	// Next is after which time it may begin again.
	Next time.Duration
}

// recordsMost: one, and what runs left that broke off between two requests.
const recordsMost = 8

var record = regexp.MustCompile(`^host=(\S+) began=(\S+) took_ms=(-?\d+) status=(-?\d+)`)

// Once calls f, unless it runs now or has begun within every, on any host; that is no error. f runs under the lock of that name, and its context ends when the
// lock is lost. The error is that of f, and a run that failed counts as well. One whose lock was lost does not: the error is [ErrLost].
func (c *Client) Once(ctx context.Context, name string, every time.Duration, f func(ctx context.Context) error) (outcome Outcome, err error) {
	lock, err := c.TryLock(ctx, name)
	if err != nil {
		if errors.Is(err, ErrBusy) {
			err = nil
		}
		return outcome, err
	}
	err = lock.do(ctx, func(ctx context.Context, lock *Lock) (err error) {
		last, old, err := c.records(ctx, name)
		if err != nil || last.Next > 0 {
			last.Ran = false
			outcome = last
			return err
		}
		begun := now()
		outcome = Outcome{Ran: true, Host: host(), Began: time.Now().UTC().Truncate(time.Second), Status: 1}
		defer func() { // also when f panics
			outcome.Took = now().sub(begun)
			outcome.Next = max(0, every-outcome.Took)
			gone := c.keep(context.WithoutCancel(ctx), lock, outcome, old)
			if err == nil && !errors.Is(gone, ErrLost) { // that Unlock says
				err = gone
			}
		}()
		if err = f(ctx); err == nil {
			outcome.Status = 0
		}
		return err
	})
	return outcome, err
}

// OnceStatus returns the result of the last run of a name, on whatever host. It has not Ran if none is known.
func (c *Client) OnceStatus(ctx context.Context, name string) (Outcome, error) {
	last, _, err := c.records(ctx, name)
	return last, err
}

// records reads the jobs of the queue once/NAME, which nobody takes: the result of a run, due when the next one may begin. It returns the one that is due last,
// and the ids of all.
func (c *Client) records(ctx context.Context, name string) (last Outcome, ids []string, err error) {
	answer, err := c.Ask(ctx, fmt.Sprintf("LIST jobs prefix=%s limit=%d", quote("once/"+name), recordsMost))
	if err != nil {
		return last, nil, err
	}
	for _, row := range answer.Rows {
		found := record.FindStringSubmatch(row["payload"])
		if found == nil {
			continue
		}
		ids = append(ids, row["job"])
		due, _ := strconv.ParseInt(row["due_ms"], 10, 64)
		if next := time.Duration(due) * time.Millisecond; !last.Ran || next > last.Next {
			began, _ := time.Parse(time.RFC3339, found[2])
			took, _ := strconv.ParseInt(found[3], 10, 64)
			status, _ := strconv.Atoi(found[4])
			last = Outcome{true, found[1], began, time.Duration(took) * time.Millisecond, status, next}
		}
	}
	return last, ids, nil
}

// keep stores the result of a run, if its lock is held, and then drops the old records.
func (c *Client) keep(ctx context.Context, lock *Lock, o Outcome, old []string) error {
	if err := lock.Ensure(ctx, 0); err != nil {
		return err
	}
	queue := "once/" + lock.Name()
	text := fmt.Sprintf("host=%s began=%s took_ms=%d status=%d", o.Host, o.Began.Format(time.RFC3339), o.Took.Milliseconds(), o.Status)
	if _, err := c.Defer(ctx, queue, []byte(text), Delay(o.Next)); err != nil {
		return err
	}
	for _, id := range old {
		if _, err := c.Ask(ctx, "DROP "+quote(queue)+" "+quote(id)); err != nil {
			break // the next run drops it
		}
	}
	return nil
}

// host returns the name of this host, at most 64 bytes.
func host() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "?"
	}
	return name[:min(len(name), 64)]
}
