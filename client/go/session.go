// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A session decides, and does no I/O: bytes in, bytes and events out, and the time comes with each call. It starts no goroutine, sleeps for nothing, and reads
// no clock. In order: requests come in (submit, take, free, withdraw), lines come in (receive), the connection comes and goes (connected, disconnected,
// notConnected), time passes (tick). out is what is to be sent, events what happened, wake when to call tick at the latest.
type session struct {
	settings
	random func() float64 // from 0 to 1, for pauses

	state    state
	cause    error   // why there is no connection
	time     instant // of the latest call
	dialAt   instant // when a connection is wanted
	wake     instant
	giveUpAt instant // the end of the grace, while there is no connection
	beatAt   instant // when the heartbeat is due
	lease    time.Duration
	granted  time.Duration // the grace that is asked for: that of the settings, or 0 if the daemon refused that
	id       string
	key      string // the secret with which the session comes back
	number   int    // counts sessions
	pauses   int    // attempts to connect since the connection broke

	grants map[key]*grant
	used   map[key]struct{}   // what is held, asked for, or being given back
	sent   map[uint64]request // by tag
	later  []request          // sent when the session is there
	tags   uint64
	owners uint64
	out    []byte
	events []event
	reader lineReader
}

// settings are what a session asks for.
type settings struct {
	address      string // for texts
	label        string
	user, secret string
	grace        time.Duration
	heartbeat    time.Duration
}

// state says where the connection is.
type state int

const (
	off      state = iota // no connection, and none is wanted
	dialing               // no connection, and one is wanted at dialAt
	greeting              // connected, but the session has not begun or come back yet
	up                    // requests are sent as they come
	closed                // the session is over for good
)

// An event happened unasked.
type event struct {
	kind  EventKind
	grant *grant
	err   error
}

const (
	pauseFirst = 10 * time.Millisecond
	pauseMost  = 500 * time.Millisecond
)

func newSession(of settings, random func() float64) *session {
	return &session{settings: of, random: random, dialAt: never, wake: never, giveUpAt: never, beatAt: never, lease: 10 * time.Second, granted: of.grace,
		number: 1, grants: map[key]*grant{}, used: map[key]struct{}{}, sent: map[uint64]request{}}
}

// online says whether there is to be a connection. One that is open otherwise must be closed.
func (s *session) online() bool { return s.state == greeting || s.state == up }

// resumable says whether the session outlives its connection.
func (s *session) resumable() bool { return s.key != "" && s.granted > 0 && s.state != closed }

// disconnection makes the error of whoever gets no answer.
func (s *session) disconnection() error {
	return &Error{Kind: ErrDisconnected, RetryAfter: -1, Text: s.address + ": " + s.cause.Error(), Err: s.cause}
}

// --- requests ---

// submit sends a request, at once or when the session is there.
func (s *session) submit(r request, now instant) {
	switch s.state {
	case up:
		s.send(r, now)
		return
	case closed:
		r.common().finish(s.disconnection())
		return
	case off:
		s.dial(now)
	}
	s.later = append(s.later, r)
	s.wake = earlier(s.wake, r.common().deadline)
}

// send puts the line of a request into the output. T of its answer is now, or later.
func (s *session) send(r request, now instant) {
	c := r.common()
	s.tags++
	c.tag, c.asked = s.tags, now
	if c.finished { // its caller has been told, but it is to be carried out
		c.deadline = now.add(patience)
	}
	s.sent[c.tag] = r
	s.out = append(strconv.AppendUint(append(s.out, '@'), c.tag, 10), ' ')
	s.out = append(r.appendLine(s.out, now), '\n')
	s.wake = earlier(s.wake, c.deadline)
	if k, ok := r.(*check); ok { // which may ask for a shorter lease
		s.wake = earlier(s.wake, k.of.until)
	}
	if s.heartbeat > 0 {
		s.beatAt = now.add(s.heartbeat / 3)
	}
}

// take asks for locks, a permit or a job, as this owner, or as a new one if that is "". What an owner has already, or asks for already, is asked for as
// somebody else.
func (s *session) take(of terms, owner string, now instant) *take {
	t := &take{call: awaited(0), terms: of, owner: owner, until: never}
	if owner == "" {
		s.owners++
		t.owner = "t" + strconv.FormatUint(s.owners, 10)
	}
	for n := 1; slices.ContainsFunc(t.keys(), s.uses); n++ {
		t.owner = owner + "." + strconv.Itoa(n)
	}
	if of.wait != Forever {
		t.until = now.add(of.wait)
	}
	t.deadline = t.until.add(patience)
	for _, k := range t.keys() {
		s.used[k] = struct{}{}
	}
	s.submit(t, now)
	return t
}

func (s *session) uses(k key) bool {
	_, used := s.used[k]
	return used
}

func (s *session) release(keys []key) {
	for _, k := range keys {
		delete(s.used, k)
	}
}

// withdraw: the caller wants it no more. The wait is cancelled, or what was granted is given back.
func (s *session) withdraw(t *take, now instant) {
	if t.withdrawn {
		return
	}
	t.withdrawn = true
	if len(t.grants) > 0 {
		t.finished = true
		t.giveBack(s, now)
	} else if s.sent[t.tag] == request(t) {
		s.submit(&cancel{call: call{deadline: now.add(patience)}, tag: t.tag}, now)
	} else if at := slices.Index(s.later, request(t)); at >= 0 && !(t.tag != 0 && s.resumable()) { // nobody has heard of it
		s.later = slices.Delete(s.later, at, at+1)
		s.release(t.keys())
	}
}

// drop: the caller of any request wants the answer no more. What is under way at the daemon is cancelled.
func (s *session) drop(r request, now instant) {
	switch r := r.(type) {
	case *take:
		s.withdraw(r, now)
	case *ask:
		if !r.repeatable && s.sent[r.tag] == request(r) { // it may wait, as RATE does
			s.submit(&cancel{call: call{deadline: now.add(patience)}, tag: r.tag}, now)
		}
	}
}

// free gives a grant back. It returns nil if there is nothing to tell the daemon any more.
func (s *session) free(g *grant, extra string, now instant) *free {
	if g.freed {
		return nil
	}
	g.freed = true
	if g.session != s.number || s.grants[g.key] != g { // another session; or the job was taken again meanwhile
		return nil
	}
	f := &free{call: awaited(now.add(patience)), of: g, extra: extra}
	s.submit(f, now)
	return f
}

// check asks whether a grant is still there, or with extend for a new lease.
func (s *session) check(g *grant, extend bool, ttl time.Duration, now instant) *check {
	c := &check{call: awaited(now.add(patience)), of: g, extend: extend, ttl: ttl}
	if g.alive() {
		g.checking = true
		s.submit(c, now)
	} else {
		c.finish(lost(g.key.name, because(g.reason, "released"), g.fence))
	}
	return c
}

// quit ends the session. It returns nil if there is no connection to say so on.
func (s *session) quit(now instant) *farewell {
	if s.state != up {
		return nil
	}
	f := &farewell{ask{call: awaited(now.add(time.Second)), about: "QUIT", text: "QUIT"}}
	s.send(f, now)
	return f
}

// close: nothing is held from here on, and nothing is asked any more.
func (s *session) close() {
	s.cause, s.state = ErrClosed, closed
	s.end("closed")
	s.wake = never
}

// --- what requests do with the session ---

// has: the session has this from now on.
func (s *session) has(g *grant) {
	s.grants[g.key] = g
	s.wake = earlier(s.wake, earlier(g.checkAt, g.until))
}

// forget: the session has it no more, and another one of its key may be asked for.
func (s *session) forget(g *grant) {
	g.freed = true
	if s.grants[g.key] == g {
		delete(s.grants, g.key)
		delete(s.used, g.key)
	}
}

// returnQuietly frees what nobody knows of.
func (s *session) returnQuietly(g *grant, now instant) {
	if g.freed || g.session != s.number {
		g.freed = true
		return
	}
	g.freed = true
	delete(s.grants, g.key)
	s.freeQuietly(g, now)
}

// freeQuietly sends a release of which only the errors of the connection matter. The key stays in use until it is answered.
func (s *session) freeQuietly(g *grant, now instant) {
	s.used[g.key] = struct{}{}
	extra := ""
	if g.sort == aJob {
		extra = "RETRY failed=no"
	}
	s.submit(&quiet{call: call{deadline: now.add(patience)}, text: string(g.appendFree(nil, extra)), key: g.key}, now)
}

// lose: a grant cannot be relied on any more. Its key stays in use until its caller lets it go, and so acknowledges the loss.
func (s *session) lose(g *grant, reason string) {
	if g.alive() {
		g.reason = reason
		s.events = append(s.events, event{kind: Lost, grant: g})
	}
}

// relieve: an answer has moved the deadline on.
func (s *session) relieve(g *grant) {
	s.wake = earlier(s.wake, earlier(g.checkAt, g.until))
	if g.riskUntil != 0 && g.until > g.riskUntil.add(g.ttl/10) {
		s.safe(g)
	}
}

// safe: the risk is over.
func (s *session) safe(g *grant) {
	if g.riskUntil != 0 {
		g.riskUntil = 0
		s.events = append(s.events, event{kind: Safe, grant: g})
	}
}

// risk: a renewal failed or is late, or no answer comes.
func (s *session) risk(g *grant) {
	if g.riskUntil == 0 {
		g.riskUntil = g.until
		s.events = append(s.events, event{kind: Risk, grant: g})
	}
}

// park has a request sent again when the session comes back.
func (s *session) park(r request) {
	if !slices.Contains(s.later, r) {
		s.later = append(s.later, r)
		s.wake = earlier(s.wake, r.common().deadline)
	}
}

// --- lines ---

// receive takes in bytes of the daemon.
func (s *session) receive(data []byte, now instant) {
	s.time = now
	var wrong error
	err := s.reader.feed(data, func(text string) bool {
		wrong = s.line(text, now)
		return wrong == nil && s.online()
	})
	if wrong == nil {
		wrong = err
	}
	if wrong != nil {
		s.disconnected(wrong, now)
	}
}

func (s *session) line(text string, now instant) error {
	first, rest, _ := strings.Cut(text, " ")
	if first == "!" {
		s.push(parseLine(text), now)
		return nil
	}
	if !strings.HasPrefix(first, "@") {
		return nil
	}
	tag, _ := strconv.ParseUint(first[1:], 10, 64)
	r, ok := s.sent[tag]
	if !ok {
		return nil
	}
	l := parseLine(rest)
	switch l.kind {
	case "*":
		r.common().rows = append(r.common().rows, l)
	case "OK", "BUSY", "TIMEOUT", "ERR":
		delete(s.sent, tag)
		if err := r.answer(s, l, now); err != nil {
			s.sent[tag] = r // it ends with the connection
			return err
		}
	}
	return nil
}

func (s *session) push(l line, now instant) {
	if l.code != "LOST" && l.code != "RISK" && l.code != "SAFE" {
		return
	}
	g := s.grantOf(l)
	if g == nil || !g.alive() {
		return
	}
	switch l.code {
	case "LOST":
		s.lose(g, because(l.get("reason"), "unknown"))
	case "RISK":
		g.until = earlier(g.until, now.add(l.duration("left_ms")))
		s.risk(g)
	case "SAFE":
		g.until = earlier(g.until, now.add(l.duration("valid_ms")))
		s.safe(g)
		g.checkAt = now // a push moves no deadline on
	}
	s.wake = now
}

// grantOf returns the grant that a push is about, or nil.
func (s *session) grantOf(l line) *grant {
	if owner := l.get("owner"); strings.HasPrefix(owner, "job:") { // the lock of a job
		for k, g := range s.grants {
			if g.sort == aJob && owner == "job:"+k.name+"/"+g.job.id {
				return g
			}
		}
		return nil
	}
	if g := s.grants[keyOf(l)]; g != nil && g.is(l) {
		return g
	}
	return nil
}

// --- time ---

// tick does what is due, and sets wake to when something is due next, except for dialAt.
func (s *session) tick(now instant) {
	s.time = now
	if now < s.wake {
		return
	}
	if s.state == up {
		s.keep(now)
	}
	s.expire(now)
	for _, r := range s.sent {
		if c := r.common(); c.deadline <= now {
			s.disconnected(&overdue{now.sub(c.asked)}, now)
			break
		}
	}
	for _, r := range slices.Clone(s.later) {
		if c := r.common(); c.deadline <= now && !c.finished {
			s.later = slices.DeleteFunc(s.later, func(other request) bool { return other == r })
			r.overdue(s)
		}
	}
	s.wake = s.next()
}

// An overdue is why a connection is given up whose daemon does not answer.
type overdue struct{ after time.Duration }

func (o *overdue) Error() string {
	return "no answer within " + strconv.FormatFloat(math.Max(0, o.after.Seconds()), 'f', 1, 64) + " s"
}
func (o *overdue) Timeout() bool { return true }

// keep asks about what is due, and what is nearly due with it: one moment for many grants.
func (s *session) keep(now instant) {
	for _, g := range s.grants {
		if g.alive() && !g.checking && g.checkAt <= now.add(g.ttl/30) {
			g.checking = true
			s.send(&check{call: call{deadline: now.add(patience)}, of: g}, now)
		}
	}
	if now >= s.beatAt {
		s.out = append(s.out, '\n')
		s.beatAt = now.add(s.heartbeat / 3)
	}
}

func (s *session) expire(now instant) {
	for _, g := range s.grants {
		if g.alive() && g.until <= now {
			s.lose(g, "expired")
		} else if g.alive() && g.riskAt() <= now {
			s.risk(g)
		}
	}
}

// next returns when something is due next.
func (s *session) next() instant {
	next := never
	if s.state == up {
		next = s.beatAt
	}
	for _, r := range s.sent {
		next = earlier(next, r.common().deadline)
	}
	for _, r := range s.later {
		if !r.common().finished {
			next = earlier(next, r.common().deadline)
		}
	}
	for _, g := range s.grants {
		if g.alive() {
			next = earlier(next, earlier(g.until, g.riskAt()))
			if !g.checking && s.state == up {
				next = earlier(next, g.checkAt)
			}
		}
	}
	return next
}
