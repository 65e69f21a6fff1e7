// SPDX-License-Identifier: BSD-2-Clause

// The adapter of the Go client: JSON lines in, JSON lines out (tests/clients/README.md).
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	redlockd "github.com/redlockd/redlockd/client/go"
)

// A row is what a call is asked with.
type row struct {
	ID                                                     int
	Do, Client, Lock, Name, Address, Note, Queue, Payload  string
	Trace                                                  string
	Label, With, Job                                       *string
	Names                                                  []string
	Wait, TTL, Grace, Heartbeat, Seconds, Per, Delay, Keep *float64
	Every, Lasts                                           *float64
	Limit, Priority, Call                                  int
	Cost                                                   *int
	Shared, Sync, Fails                                    bool
	Failed                                                 *bool
}

// A held is a lock or a job.
type held struct {
	redlockd.Hold
	lock *redlockd.Lock
	job  *redlockd.Job

	number int // tells it apart from another one of its handle
}

// A call is one that runs, and may be aborted.
type call struct {
	ctx   context.Context
	abort context.CancelFunc
}

type object map[string]any

var (
	mu      sync.Mutex
	clients = map[string]*redlockd.Client{}
	locks   = map[string]held{}
	calls   = map[int]call{}
	serial  int
	dropped bool
	out     sync.Mutex
)

var errNoLock = errors.New("the adapter has no such lock")
var errFailed = errors.New("what a function of once returns")

func say(o object) {
	out.Lock()
	defer out.Unlock()
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	os.Stdout.Write(append(text, '\n'))
}

func seconds(f *float64) time.Duration {
	if f == nil {
		return 0
	}
	return time.Duration(*f * float64(time.Second))
}

// tracer tells of risks.
type tracer struct{}

func (tracer) Begin(context.Context, string, []string) func(error) { return func(error) {} }

func (tracer) Event(e redlockd.Event) {
	mu.Lock()
	defer mu.Unlock()
	dropped = dropped || e.Kind == redlockd.Dropped
	for handle, h := range locks {
		if e.Kind == redlockd.Risk && h.Name() == e.Name && h.Fence() == e.Fence {
			say(object{"event": "risk", "lock": handle, "name": e.Name, "reason": ""})
		}
	}
}

// took keeps a lock, and says when it is lost, unless the handle is that of another one by then.
func took(handle string, h held) {
	mu.Lock()
	serial++
	number := serial
	h.number = number
	locks[handle] = h
	mu.Unlock()
	ctx, name, over := h.Context(), h.Name(), h.Lost() // and not the lock, which the call drop wants to be collected
	go func() {
		select {
		case <-over:
		case <-ctx.Done():
		}
		mu.Lock()
		defer mu.Unlock()
		e := &redlockd.Error{}
		if locks[handle].number == number && errors.As(context.Cause(ctx), &e) && errors.Is(e, redlockd.ErrLost) {
			say(object{"event": "lost", "lock": handle, "name": name, "reason": e.Reason})
		}
	}()
}

func taken(handle string, lock *redlockd.Lock, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	took(handle, held{Hold: lock.Hold, lock: lock})
	o := object{"name": lock.Name(), "fence": lock.Fence(), "fences": lock.Fences(), "permit": nil, "remaining": lock.Remaining().Seconds()}
	if lock.Permit() >= 0 {
		o["permit"] = lock.Permit()
	}
	return o, nil
}

func (a row) options() (all []redlockd.LockOption) {
	if a.Wait != nil {
		all = append(all, redlockd.Wait(seconds(a.Wait)))
	}
	if a.TTL != nil {
		all = append(all, redlockd.TTL(seconds(a.TTL)))
	}
	if a.Shared {
		all = append(all, redlockd.Shared())
	}
	if a.Note != "" {
		all = append(all, redlockd.Note(a.Note))
	}
	if a.Trace != "" {
		all = append(all, redlockd.TraceParent(a.Trace))
	}
	if a.Priority > 0 {
		all = append(all, redlockd.Priority(a.Priority))
	}
	return all
}

func (a row) handle() string {
	if a.Client == "" {
		return "c"
	}
	return a.Client
}

func (a row) connect(ctx context.Context) (any, error) {
	options := []redlockd.Option{redlockd.Grace(seconds(a.Grace)), redlockd.Heartbeat(seconds(a.Heartbeat)), redlockd.Trace(tracer{})}
	if a.Address != "" {
		options = append(options, redlockd.Addr(a.Address))
	}
	if a.Label != nil {
		options = append(options, redlockd.Label(*a.Label))
	}
	client, err := redlockd.Dial(ctx, options...)
	if err == nil {
		mu.Lock()
		clients[a.handle()] = client
		mu.Unlock()
	}
	return nil, err
}

// of returns the client and the lock of a call; remove forgets the lock.
func (a row) of(remove bool) (*redlockd.Client, held, error) {
	mu.Lock()
	defer mu.Unlock()
	h, ok := locks[a.Lock]
	if remove {
		delete(locks, a.Lock)
	}
	if !ok {
		return clients[a.handle()], h, errNoLock
	}
	return clients[a.handle()], h, nil
}

func (a row) take(ctx context.Context, c *redlockd.Client) (any, error) {
	job, err := c.Take(ctx, a.Queue, a.options()...)
	if err != nil {
		return nil, err
	}
	took(a.Lock, held{Hold: job.Hold, job: job})
	return object{"id": job.ID, "payload": string(job.Payload), "attempt": job.Attempt, "fence": job.Fence()}, nil
}

func (a row) deferred(ctx context.Context, c *redlockd.Client) (any, error) {
	options := []redlockd.DeferOption{}
	if a.Delay != nil && *a.Delay > 0 {
		options = append(options, redlockd.Delay(seconds(a.Delay)))
	}
	if a.With != nil {
		options = append(options, redlockd.Under(*a.With))
	}
	if a.Job != nil {
		options = append(options, redlockd.ID(*a.Job))
	}
	id, err := c.Defer(ctx, a.Queue, []byte(a.Payload), options...)
	return object{"id": id}, err
}

func (a row) rate(ctx context.Context, c *redlockd.Client) (any, error) {
	options := []redlockd.RateOption{}
	if a.Wait != nil {
		options = append(options, redlockd.Wait(seconds(a.Wait)))
	}
	if a.Cost != nil {
		options = append(options, redlockd.Cost(*a.Cost))
	}
	q, err := c.Rate(ctx, a.Name, a.Limit, seconds(a.Per), options...)
	return object{"left": q.Left, "reset": q.Reset.Seconds()}, err
}

func (a row) once(ctx context.Context, c *redlockd.Client) (any, error) {
	outcome, err := c.Once(ctx, a.Name, seconds(a.Every), func(ctx context.Context) error {
		select {
		case <-time.After(seconds(a.Lasts)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if a.Fails {
			return errFailed
		}
		return nil
	})
	return object{"ran": outcome.Ran}, err
}

func (a row) status(ctx context.Context, c *redlockd.Client) (any, error) {
	o, err := c.OnceStatus(ctx, a.Name)
	began, took, next := o.Began.Format(time.RFC3339), o.Took.Seconds(), o.Next.Seconds()
	return object{"ran": o.Ran, "host": o.Host, "began": began, "took": took, "status": o.Status, "next": next}, err
}

func (a row) give(h held) error {
	switch {
	case a.Do == "done":
		return h.job.Done()
	case a.Do == "retry" && a.Failed != nil && !*a.Failed:
		return h.job.Retry(seconds(a.Delay), redlockd.Uncounted())
	case a.Do == "retry":
		return h.job.Retry(seconds(a.Delay))
	}
	options := []redlockd.UnlockOption{}
	if a.Keep != nil && *a.Keep > 0 {
		options = append(options, redlockd.Keep(seconds(a.Keep)))
	}
	if a.Sync {
		options = append(options, redlockd.Sync())
	}
	return h.lock.Unlock(options...)
}

func state(h held) object {
	left, reason := h.Remaining(), ""
	e := &redlockd.Error{}
	isLost := errors.As(h.Err(), &e) && errors.Is(e, redlockd.ErrLost)
	if isLost {
		reason = e.Reason
	}
	return object{"held": left > 0, "lost": isLost, "reason": reason, "remaining": left.Seconds(), "fence": h.Fence()}
}

// drop lets the last reference to a lock go.
func (a row) drop() any {
	mu.Lock()
	delete(locks, a.Lock)
	mu.Unlock()
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		runtime.GC()
		mu.Lock()
		warned := dropped
		mu.Unlock()
		if warned {
			return object{"warned": true}
		}
	}
	return object{"warned": false}
}

func closeAll() {
	mu.Lock()
	all := clients
	clients, locks, dropped = map[string]*redlockd.Client{}, map[string]held{}, false
	mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

func (a row) do(ctx context.Context) (any, error) {
	c, h, err := a.of(a.Do == "unlock" || a.Do == "done" || a.Do == "retry")
	switch a.Do {
	case "connect":
		return a.connect(ctx)
	case "lock":
		var lock *redlockd.Lock
		if a.Wait != nil && *a.Wait == 0 {
			lock, err = c.TryLock(ctx, a.Name, a.options()...)
		} else {
			lock, err = c.Lock(ctx, a.Name, a.options()...)
		}
		return taken(a.Lock, lock, err)
	case "locks":
		lock, err := c.LockAll(ctx, a.Names, a.options()...)
		return taken(a.Lock, lock, err)
	case "any":
		lock, err := c.LockAny(ctx, a.Names, a.options()...)
		return taken(a.Lock, lock, err)
	case "semaphore":
		lock, err := c.Acquire(ctx, a.Name, a.Limit, a.options()...)
		return taken(a.Lock, lock, err)
	case "rate":
		return a.rate(ctx, c)
	case "defer":
		return a.deferred(ctx, c)
	case "take":
		return a.take(ctx, c)
	case "once":
		return a.once(ctx, c)
	case "status":
		return a.status(ctx, c)
	case "abort":
		mu.Lock()
		calls[a.Call].abort()
		mu.Unlock()
		return nil, nil
	case "close":
		mu.Lock()
		delete(clients, a.handle())
		mu.Unlock()
		return nil, c.Close()
	case "reset":
		closeAll()
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch a.Do {
	case "unlock", "done", "retry":
		end := make(chan error, 1)
		go func() { end <- a.give(h) }()
		select { // the caller may leave; the release goes on
		case err := <-end:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case "ensure":
		if err := h.Ensure(ctx, seconds(a.Seconds)); err != nil {
			return nil, err
		}
	case "extend":
		if err := h.Extend(ctx, seconds(a.TTL)); err != nil {
			return nil, err
		}
	case "state":
		return state(h), nil
	case "drop":
		h = held{}
		return a.drop(), nil
	default:
		return nil, fmt.Errorf("the adapter cannot %q", a.Do)
	}
	return object{"remaining": h.Remaining().Seconds()}, nil
}

var names = []struct {
	kind error
	name string
}{{context.Canceled, "Aborted"}, {redlockd.ErrBusy, "Busy"}, {redlockd.ErrTimeout, "LockTimeout"}, {redlockd.ErrLost, "LockLost"},
	{redlockd.ErrNoQuorum, "NoQuorum"}, {redlockd.ErrDeadlock, "Deadlock"}, {redlockd.ErrDenied, "Denied"}, {redlockd.ErrDraining, "Draining"},
	{redlockd.ErrDisconnected, "Disconnected"}, {errFailed, "Failed"}}

func failure(err error) object {
	o := object{"error": "RedlockError", "text": err.Error(), "holder": nil, "retry_after": nil, "trace": nil}
	for _, n := range names {
		if errors.Is(err, n.kind) {
			o["error"] = n.name
			break
		}
	}
	if e := (&redlockd.Error{}); errors.As(err, &e) {
		o["name"], o["code"], o["reason"] = e.Name, e.Code, e.Reason
		if e.Holder != "" {
			o["holder"] = e.Holder
		}
		if e.Trace != "" {
			o["trace"] = e.Trace
		}
		if e.RetryAfter >= 0 {
			o["retry_after"] = e.RetryAfter.Seconds()
		}
	}
	return o
}

func (a row) run(ctx context.Context) {
	o := object{}
	ok, err := a.do(ctx)
	if err != nil {
		o = failure(err)
	} else {
		o["ok"] = ok
	}
	o["id"] = a.ID
	say(o)
}

func main() {
	say(object{"id": "hello", "can": []string{"finaliser", "threads", "once-ends", "once-left"}})
	lines := bufio.NewReader(os.Stdin)
	for decoder := json.NewDecoder(lines); ; {
		a := row{}
		if err := decoder.Decode(&a); err != nil {
			return
		}
		ctx, abort := context.WithCancel(context.Background())
		mu.Lock()
		calls[a.ID] = call{ctx, abort}
		mu.Unlock()
		go a.run(ctx)
	}
}
