// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"runtime"
	"strings"
	"time"
)

// A Job was taken from a queue, with its lock. It ends with Done or Retry.
type Job struct {
	Hold
	ID      string
	Payload []byte
	// Attempt counts from 1.
	Attempt int
	// Under is the name of the lock that was granted with the job, or "".
	Under string
}

// Defer puts a job into a queue, to be done later, and returns its id. It may be asked again after a broken connection: it has an id in any case.
func (c *Client) Defer(ctx context.Context, queue string, payload []byte, options ...DeferOption) (id string, err error) {
	text := appendQuoted(append(appendWord([]byte("DEFER "), queue), ' '), string(payload))
	named := false
	for _, option := range options {
		_, isID := option.(idOption)
		named = named || isID
		text = option.deferral(text)
	}
	if !named {
		var random [16]byte
		if _, err := rand.Read(random[:]); err != nil {
			return "", err
		}
		text = ID(hex.EncodeToString(random[:])).deferral(text)
	}
	a := &ask{about: queue, text: string(text), repeatable: true}
	begin := func(at instant) request {
		a.call = awaited(at.add(patience))
		return c.submit(a, at)
	}
	if err := c.ask(ctx, "DEFER", []string{queue}, begin); err != nil {
		return "", err
	}
	return a.last.get("job"), nil
}

// Take takes the first job of a queue that is due, and waits for one as [Client.Lock] does.
func (c *Client) Take(ctx context.Context, queue string, options ...LockOption) (*Job, error) {
	h, err := c.take(ctx, terms{verb: "TAKE", names: []string{queue}, wait: Forever}, options)
	if err != nil {
		return nil, err
	}
	of := h.grants[0].job
	j := &Job{Hold{h}, of.id, []byte(of.payload), of.attempt, of.lock}
	runtime.SetFinalizer(j, func(j *Job) { j.h.dropped() })
	return j, nil
}

// Done ends the job: it is done and gone. Like [Lock.Unlock] it needs no context.
func (j *Job) Done() error { return j.end("DONE") }

// Retry gives the job back, to be due again after delay. The attempt has failed, unless the option [Uncounted] says otherwise.
func (j *Job) Retry(delay time.Duration, options ...RetryOption) error {
	words := []byte("RETRY")
	if delay > 0 {
		words = appendDuration(words, "delay", delay)
	}
	for _, option := range options {
		words = option.retry(words)
	}
	return j.end(string(words))
}

func (j *Job) end(words string) error {
	runtime.SetFinalizer(j, nil)
	verb, _, _ := strings.Cut(words, " ")
	return j.h.give(verb, words)
}

// Work takes jobs of a queue and calls f with each, one after the other, until ctx ends or, with [Wait], until none came for so long: then it returns nil. The
// context of f ends when the job is lost. A job is done when f returns nil, and else to be tried again, unless f ended it. Work waits for a daemon that is
// away.
func (c *Client) Work(ctx context.Context, queue string, f func(ctx context.Context, job *Job) error, options ...LockOption) error {
	for {
		job, err := c.Take(ctx, queue, options...)
		switch {
		case err == nil:
			err = job.do(ctx, f)
		case ctx.Err() == nil && (errors.Is(err, ErrTimeout) || errors.Is(err, ErrBusy)):
			return nil
		}
		if ctx.Err() != nil {
			return away(ctx, []string{queue})
		}
		if err == nil || errors.Is(err, ErrLost) {
			continue
		}
		if !passing(err) {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// do runs f, and ends the job. Its error is that of the end, not that of f.
func (j *Job) do(ctx context.Context, f func(ctx context.Context, job *Job) error) (err error) {
	inside, cancel := j.With(ctx)
	defer cancel()
	done := false
	defer func() { // also when f panics
		if done {
			err = j.Done()
		} else {
			err = j.Retry(0)
		}
		if errors.Is(err, ErrUnlocked) { // f has ended it
			err = nil
		}
	}()
	done = f(inside, j) == nil
	return nil
}
