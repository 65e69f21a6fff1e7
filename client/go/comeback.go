// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// How a session begins, outlives its connection, comes back over another one, and ends.

// open wants a connection.
func (s *session) open(now instant) {
	if s.state == off {
		s.dial(now)
	}
}

func (s *session) dial(at instant) {
	s.state, s.dialAt = dialing, at
}

// dialAgain wants a connection after a random pause; the pauses double.
func (s *session) dialAgain(now instant) {
	if now >= s.giveUpAt {
		s.giveUp()
		return
	}
	longest := min(pauseFirst<<min(s.pauses, 10), pauseMost)
	s.pauses++
	s.dial(now.add(longest/2 + time.Duration(s.random()*float64(longest/2))))
}

// connected: a connection is there. The session begins, or comes back.
func (s *session) connected(now instant) {
	s.time, s.state, s.dialAt = now, greeting, never
	s.reader = lineReader{}
	if s.user != "" && s.secret != "" {
		text := appendWord(append(appendWord([]byte("AUTH "), s.user), ' '), s.secret)
		s.send(&greet{call: call{deadline: now.add(patience)}, stage: auth, text: string(text)}, now)
		return
	}
	s.greet(now)
}

// greet sends RESUME, or HELLO.
func (s *session) greet(now instant) {
	g := &greet{call: call{deadline: now.add(patience)}, stage: hello}
	if s.id != "" && s.resumable() {
		g.stage, g.text = resume, "RESUME "+s.id+" "+s.key
		s.send(g, now)
		return
	}
	text := []byte("HELLO 1")
	if s.label != "" {
		text = appendField(text, "name", s.label)
	}
	if s.heartbeat > 0 {
		text = appendDuration(text, "heartbeat", s.heartbeat)
	}
	if s.granted > 0 {
		text = appendDuration(text, "grace", s.granted)
	}
	g.text = string(text)
	s.send(g, now)
}

// notConnected: an attempt to connect has failed.
func (s *session) notConnected(why error, now instant) {
	s.time, s.cause = now, why
	if s.resumable() {
		s.dialAgain(now)
	} else {
		s.giveUp()
	}
}

// disconnected: the connection broke, or is given up.
func (s *session) disconnected(why error, now instant) {
	if !s.online() {
		return
	}
	s.time, s.cause = now, why
	unanswered := s.unanswered()
	s.out, s.beatAt = s.out[:0], never
	s.events = append(s.events, event{kind: Disconnected, err: s.disconnection()})
	if !s.resumable() {
		s.later = append(unanswered, s.later...)
		s.giveUp()
		return
	}
	was := s.state
	s.state = dialing
	kept := []request{}
	for _, r := range unanswered {
		c := r.common()
		if r.survives() && (c.deadline > now || c.finished) {
			kept = append(kept, r)
		} else if _, ours := r.(*greet); !ours {
			r.overdue(s)
		}
	}
	s.later = append(kept, s.later...)
	if was == greeting {
		s.dialAgain(now)
		return
	}
	s.giveUpAt, s.pauses = now.add(s.granted), 0
	for _, g := range s.grants {
		if g.alive() && g.until < never {
			s.giveUpAt = max(s.giveUpAt, g.until)
		}
	}
	s.dial(now)
}

// unanswered returns what was sent and not answered, in the order in which it was sent, and forgets it.
func (s *session) unanswered() []request {
	all := make([]request, 0, len(s.sent))
	for _, r := range s.sent {
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b request) int { return cmp.Compare(a.common().tag, b.common().tag) })
	clear(s.sent)
	return all
}

// giveUp: there is no session any more, and nobody tries to have one until the next request.
func (s *session) giveUp() {
	s.state = off
	s.end("disconnected")
}

// end: all grants are lost by name, and all requests are told.
func (s *session) end(reason string) {
	s.dialAt, s.giveUpAt, s.beatAt = never, never, never
	s.forgetSession(reason)
	pending := append(s.unanswered(), s.later...)
	s.later, s.out = nil, s.out[:0]
	for _, r := range pending {
		r.overdue(s)
	}
	clear(s.used)
}

func (s *session) forgetSession(reason string) {
	s.id, s.key = "", ""
	s.number++
	s.granted = s.grace
	for _, g := range s.grants {
		s.lose(g, reason)
	}
	clear(s.grants)
}

// begun: HELLO was answered OK.
func (s *session) begun(l line, now instant) {
	s.id, s.key = l.get("session"), l.get("secret")
	s.lease = max(l.duration("lease_ms"), time.Millisecond)
	s.goOn(now)
}

// resumed: RESUME was answered OK. What has a row is held; what has none is lost, unless the daemon says that some are undecided or did not fit.
func (s *session) resumed(rows []line, l line, asked, now instant) {
	at := make(map[key]line, len(rows))
	for _, row := range rows {
		at[keyOf(row)] = row
	}
	undecided := l.duration("open") > 0 || l.duration("more") > 0
	for k, g := range s.grants {
		row, ok := at[k]
		delete(at, k)
		switch {
		case g.freed: // its release is asked again
		case ok && g.is(row):
			g.confirm(asked, row.duration("valid_ms"))
			s.relieve(g)
		case !ok && undecided:
			g.checkAt = now
		default:
			s.lose(g, "evicted")
		}
	}
	keys, queues := s.wanted()
	known := []request{}
	for k, g := range s.grants { // is mentioned before TAKE is asked again, which is not answered with it then
		if g.sort == aJob && g.alive() && queues[k.name] {
			g.checking = true
			known = append(known, &check{call: call{deadline: now.add(patience)}, of: g})
		}
	}
	s.later = append(known, s.later...)
	s.goOn(now)
	for k, row := range at {
		if !keys[k] {
			s.surplus(k, row, queues, now)
		}
	}
}

// wanted returns what requests ask for that are sent again: keys, and queues.
func (s *session) wanted() (keys map[key]bool, queues map[string]bool) {
	keys, queues = map[key]bool{}, map[string]bool{}
	for _, r := range s.later {
		switch r := r.(type) {
		case *take:
			for _, k := range r.keys() {
				keys[k] = true
			}
			if r.takesJob() && !r.withdrawn {
				queues[r.names[0]] = true
			}
		case *quiet:
			keys[r.key] = true
		}
	}
	return keys, queues
}

// surplus gives back what nobody knows of: its grant, or its release, was answered over the connection that broke.
func (s *session) surplus(k key, row line, queues map[string]bool, now instant) {
	fence, _ := row.number("fence")
	g := &grant{key: k, fence: fence, ttl: time.Second, session: s.number}
	if id, ok := row.field("job"); ok {
		if queues[k.name] {
			return
		}
		g.sort, g.job = aJob, &jobTerms{id: id}
	} else if s.grants[k] != nil || !strings.HasPrefix(k.owner, "t") {
		return
	} else if permit, ok := row.number("permit"); ok {
		g.sort, g.permit = aPermit, int(permit)
	}
	s.returnQuietly(g, now)
}

// gone: the daemon does not know the session any more. All is lost by name, and what waits begins anew.
func (s *session) gone(now instant) {
	s.forgetSession("expired")
	for _, r := range s.later {
		r.anew(s)
	}
	s.later = slices.DeleteFunc(s.later, func(r request) bool { return r.common().finished })
	clear(s.used)
	for _, r := range s.later {
		if t, ok := r.(*take); ok {
			for _, k := range t.keys() {
				s.used[k] = struct{}{}
			}
		}
	}
	s.greet(now)
}

// refuse: the daemon does not want us. No request is answered, nor is any later one, until the next attempt.
func (s *session) refuse(err error) {
	s.cause = err
	s.events = append(s.events, event{kind: Disconnected, err: err})
	for _, r := range s.later {
		r.common().finish(err)
	}
	s.giveUp()
}

// goOn sends what has waited for the session.
func (s *session) goOn(now instant) {
	s.state, s.pauses, s.giveUpAt = up, 0, never
	s.events = append(s.events, event{kind: Connected})
	later := s.later
	s.later = nil
	for _, r := range later {
		c := r.common()
		_, tries := r.(*quiet)
		if _, ok := r.(*ready); ok {
			c.finish(nil)
			continue
		}
		if c.deadline <= now && !c.finished && !tries {
			r.overdue(s)
		}
		switch r.(type) {
		case *take, *free: // is carried out even if its caller has been told
		default:
			if c.finished {
				continue
			}
		}
		c.repeated = c.tag != 0
		if r.again(s, now) {
			s.send(r, now)
		}
	}
	s.later = nil // what was parked meanwhile has been sent
	s.wake = now  // what is due is looked for
}

// A greet is a request that comes before all others of a connection.
type greet struct {
	call
	stage stage
	text  string
}

type stage int

const (
	auth stage = iota
	hello
	resume
)

func (g *greet) appendLine(dst []byte, _ instant) []byte { return append(dst, g.text...) }
func (g *greet) overdue(*session)                        { g.finished = true }

func (g *greet) answer(s *session, l line, now instant) error {
	g.finished = true
	refused := refusal(s.address, l)
	switch {
	case l.kind == "OK" && g.stage == auth:
		s.greet(now)
	case l.kind == "OK" && g.stage == hello:
		s.begun(l, now)
	case l.kind == "OK":
		s.resumed(g.rows, l, g.asked, now)
	case g.stage == auth && l.code == "LIMIT": // many sessions of this user come at once: a later attempt is verified
		s.disconnected(refused, now)
	case g.stage == auth:
		refused.Kind, refused.Text = ErrDenied, fmt.Sprintf("%s: the daemon does not accept the user %q: %s", s.address, s.user, l.text)
		s.refuse(refused)
	case g.stage == hello && s.number > 1 && s.granted > 0 && (l.code == "LIMIT" || l.code == "ARG"):
		s.granted = 0 // max_grace of the daemon has become smaller since the session before
		s.greet(now)
	case g.stage == hello:
		s.refuse(refused)
	case l.code == "NOTFOUND" || l.code == "UNKNOWN" || l.code == "ARG":
		s.gone(now)
	default:
		s.disconnected(refused, now)
	}
	return nil
}
