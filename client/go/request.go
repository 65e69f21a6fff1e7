// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"fmt"
	"strings"
	"time"
)

// patience is for how long an answer may take, in addition to the wait that the request asks for.
const patience = 5 * time.Second

// A request knows the line that it sends, what its answers mean, and what becomes of it when the connection breaks. It has no clock and no socket: the session
// sends its line, and hands it the answer.
type request interface {
	common() *call
	// appendLine appends what is sent, without tag and line end.
	appendLine(dst []byte, now instant) []byte
	// answer takes in the answer. An error says that it is none.
	answer(s *session, l line, now instant) error
	// overdue: no answer came in time, or the session is over.
	overdue(s *session)
	// anew: the session was not resumed, and another one begins, in which what has not finished by then is sent.
	anew(s *session)
	// again: there is a connection again. It returns whether the line is to be sent over it.
	again(s *session, now instant) bool
	// survives: it is sent again in the resumed session when its answer was lost.
	survives() bool
}

// A call is what all requests have, and what is usual of them.
type call struct {
	tag      uint64  // 0: it was never sent
	asked    instant // when the line was sent last
	deadline instant // when the answer is overdue
	repeated bool    // it was sent before
	finished bool    // its caller may be told
	err      error
	rows     []line
	done     chan struct{} // closed when it has finished; nil if nobody waits
}

func awaited(deadline instant) call { return call{deadline: deadline, done: make(chan struct{})} }

func (c *call) common() *call                { return c }
func (c *call) overdue(s *session)           { c.finish(s.disconnection()) }
func (c *call) anew(*session)                {}
func (c *call) again(*session, instant) bool { return true }
func (c *call) survives() bool               { return false }

// finish tells the caller.
func (c *call) finish(err error) {
	if c.finished {
		return
	}
	c.finished, c.err = true, err
	if c.done != nil {
		close(c.done)
	}
}

// ready is finished when the session is there. Nothing is sent.
type ready struct{ call }

func (*ready) appendLine(dst []byte, _ instant) []byte { return dst }
func (*ready) answer(*session, line, instant) error    { return nil }

// An ask is any line of the protocol.
type ask struct {
	call
	about      string // the name for errors
	text       string
	repeatable bool // as DEFER with an id is
	last       line // of the answer
}

func (a *ask) appendLine(dst []byte, _ instant) []byte { return append(dst, a.text...) }
func (a *ask) survives() bool                          { return a.repeatable }

func (a *ask) answer(_ *session, l line, _ instant) error {
	a.last = l
	if l.kind == "ERR" {
		a.finish(refusal(a.about, l))
	} else {
		a.finish(nil)
	}
	return nil
}

// A farewell is QUIT. The daemon ends the connection after its answer, which is no loss of it.
type farewell struct{ ask }

func (f *farewell) answer(s *session, l line, now instant) error {
	err := f.ask.answer(s, l, now)
	s.close()
	return err
}

// A check is CHECK, or EXTEND: for the keeper, for a caller, or for a grant that waited.
type check struct {
	call
	of     *grant
	grant  *take         // the grant that waited
	extend bool          // it is EXTEND,
	ttl    time.Duration // with this ttl, or as it was
}

func (c *check) survives() bool { return true }

func (c *check) appendLine(dst []byte, now instant) []byte {
	if !c.extend {
		return c.of.appendCheck(dst)
	}
	if c.ttl > 0 && c.ttl < c.of.ttl { // whatever is answered, the shorter lease counts from here
		c.of.until = earlier(c.of.until, now.add(c.ttl-c.ttl/100-3*time.Millisecond))
	}
	return c.of.appendExtend(dst, c.ttl)
}

func (c *check) answer(s *session, l line, now instant) error {
	g, err := c.of, error(nil)
	switch {
	case l.kind == "OK" && g.is(l):
		if c.ttl > 0 {
			g.ttl = c.ttl
		}
		g.confirm(c.asked, l.duration("valid_ms"))
		s.relieve(g)
	case l.kind == "OK" || l.code == "LOST" || l.code == "NOTHELD":
		s.lose(g, "evicted")
	default: // the stores do not answer, or the daemon has no time: the deadline stays
		g.checkAt = now.add(g.ttl / 3)
		err = refusal(g.key.name, l)
	}
	c.end(s, err, now)
	return nil
}

// end tells whoever asked.
func (c *check) end(s *session, err error, now instant) {
	c.of.checking = false
	if err == nil && c.of.reason != "" {
		err = lost(c.of.key.name, c.of.reason, c.of.fence)
	}
	c.finish(err)
	if c.grant != nil {
		c.grant.checked(s, err, now)
	}
}

func (c *check) overdue(s *session) { c.end(s, s.disconnection(), s.time) }
func (c *check) anew(s *session)    { c.end(s, nil, s.time) }

// A free gives a grant back: UNLOCK, RELEASE, DONE or RETRY. It does not end with its caller, and has patience of its own.
type free struct {
	call
	of    *grant
	extra string
}

func (f *free) survives() bool                          { return true }
func (f *free) appendLine(dst []byte, _ instant) []byte { return f.of.appendFree(dst, f.extra) }

func (f *free) answer(s *session, l line, now instant) error {
	g, err := f.of, error(nil)
	s.forget(g)
	switch {
	case l.kind != "ERR":
	case l.code == "NOTHELD" && f.repeated: // the first was carried out
	case l.code == "NOTHELD" || l.code == "LOST":
		err = lost(g.key.name, because(g.reason, "evicted"), g.fence)
	default:
		err = refusal(g.key.name, l)
		if strings.Contains(f.extra, " ") { // a keep or a delay that is too long; the daemon would renew what nobody knows of
			s.freeQuietly(g, now)
		}
	}
	f.finish(err)
	return nil
}

// overdue: the caller is told; with grace the lock is freed when the session is back.
func (f *free) overdue(s *session) {
	if s.resumable() {
		f.finish(s.disconnection())
		s.park(f)
	} else {
		f.anew(s)
	}
}

// anew: the end of the session has freed it, or will.
func (f *free) anew(s *session) {
	s.forget(f.of)
	f.finish(nil)
}

// A quiet gives something back for which nobody waits.
type quiet struct {
	call
	text string
	key  key // is free for another grant when it is answered
}

func (q *quiet) survives() bool                          { return true }
func (q *quiet) appendLine(dst []byte, _ instant) []byte { return append(dst, q.text...) }
func (q *quiet) anew(*session)                           { q.finished = true }

func (q *quiet) answer(s *session, _ line, _ instant) error {
	delete(s.used, q.key)
	q.finished = true
	return nil
}

func (q *quiet) again(_ *session, now instant) bool {
	q.deadline = now.add(patience)
	return true
}

func (q *quiet) overdue(s *session) {
	q.deadline = never
	if s.resumable() {
		s.park(q)
	} else {
		q.finished = true
	}
}

// A cancel withdraws a request that waits. Its answer says nothing: that of the request does.
type cancel struct {
	call
	tag uint64
}

func (c *cancel) appendLine(dst []byte, _ instant) []byte {
	return fmt.Appendf(dst, "CANCEL @%d", c.tag)
}
func (c *cancel) overdue(*session) { c.finished = true }

func (c *cancel) answer(*session, line, instant) error {
	c.finished = true
	return nil
}

func because(reason, otherwise string) string {
	if reason != "" {
		return reason
	}
	return otherwise
}
