// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// waitedLong: a grant that took longer than this is asked about again before its caller sees it. Its deadline may be near, or past.
const waitedLong = 100 * time.Millisecond

var errIncomplete = errors.New("a grant without name, fence or valid_ms")

// terms is what a take asks for.
type terms struct {
	verb  string
	names []string
	wait  time.Duration
	ttl   time.Duration // 0: that of the daemon
	limit int           // of a semaphore
	more  []byte        // the other fields, as they stand in the line
}

// about names it in errors.
func (t *terms) about() string { return strings.Join(t.names, ", ") }

// A take is LOCK, LOCKALL, LOCKANY, ACQUIRE or TAKE.
type take struct {
	call
	terms
	owner     string
	until     instant // the end of the wait
	grants    []*grant
	withdrawn bool
	refused   error // why it waits for the next daemon
}

func (t *take) survives() bool { return true }

// takesJob: a queue is no lock. What it gives has a key of its own.
func (t *take) takesJob() bool { return t.verb == "TAKE" }

// keys returns what the session may have by this request.
func (t *take) keys() []key {
	if t.takesJob() {
		return nil
	}
	all := make([]key, len(t.names))
	for i, name := range t.names {
		all[i] = key{name, t.owner}
	}
	return all
}

func (t *take) appendLine(dst []byte, now instant) []byte {
	dst = append(dst, t.verb...)
	for _, name := range t.names {
		dst = appendWord(append(dst, ' '), name)
	}
	left := t.wait
	if t.repeated && t.until != never {
		left = t.until.sub(now)
	}
	if t.until == never {
		dst = append(dst, " wait=forever"...)
	} else if left > 0 {
		dst = appendDuration(dst, "wait", left)
	}
	if t.limit > 0 {
		dst = appendNumber(dst, "limit", int64(t.limit))
	}
	if t.ttl > 0 {
		dst = appendDuration(dst, "ttl", t.ttl)
	}
	dst = append(dst, t.more...)
	if t.takesJob() {
		return dst
	}
	return append(appendField(dst, "owner", t.owner), " count=1"...)
}

func (t *take) answer(s *session, l line, now instant) error {
	switch {
	case l.kind == "OK":
		rows := t.rows
		if len(rows) == 0 {
			rows = []line{l}
		}
		t.rows, t.grants = nil, nil
		for _, row := range rows {
			g, err := t.granted(s, row)
			if err != nil {
				return err
			}
			t.grants = append(t.grants, g)
		}
		t.record(s, now)
	case l.code == "DRAINING" && t.wait != 0 && s.resumable() && !t.withdrawn:
		t.refused, t.deadline = t.error(l), t.until
		s.park(t)
	default:
		if t.repeated && t.verb == "LOCKALL" { // it may have some of the names from before the cut
			t.giveUp(s, now)
		} else {
			s.release(t.keys())
		}
		t.finish(t.error(l))
	}
	return nil
}

// granted makes what a row, or the answer itself, grants.
func (t *take) granted(s *session, l line) (*grant, error) {
	g := &grant{ttl: l.duration("ttl_ms"), session: s.number}
	if g.ttl == 0 {
		g.ttl = t.ttl
	}
	if g.ttl == 0 {
		g.ttl = s.lease
	}
	fence, isFenced := l.number("fence")
	valid, isValid := l.number("valid_ms")
	g.fence = fence
	if t.takesJob() {
		attempt, _ := l.number("attempt")
		g.sort, g.job = aJob, &jobTerms{l.get("job"), l.get("payload"), l.get("name"), max(1, int(attempt))}
		g.key, isFenced = key{l.get("queue"), jobOwner(g.job.id)}, g.job.id != ""
	} else {
		g.key = key{l.get("name"), t.owner}
		if permit, ok := l.number("permit"); ok {
			g.sort, g.permit = aPermit, int(permit)
		}
	}
	if g.key.name == "" || !isFenced || !isValid {
		return nil, errIncomplete
	}
	g.confirm(t.asked, time.Duration(valid)*time.Millisecond)
	return g, nil
}

// record has the session keep what was granted, before the next line, which may be its loss.
func (t *take) record(s *session, now instant) {
	slow := now.sub(t.asked) > waitedLong
	for _, g := range t.grants {
		if slow { // only CHECK tells a fresh deadline
			g.until, g.checkAt = never, never
		}
		s.has(g)
	}
	if t.verb == "LOCKANY" {
		s.release(slices.DeleteFunc(t.keys(), func(k key) bool { return k == t.grants[0].key }))
	}
	switch {
	case t.withdrawn:
		t.giveBack(s, now)
	case slow:
		for _, g := range t.grants {
			g.checking = true
			s.submit(&check{call: call{deadline: now.add(patience)}, of: g, grant: t}, now)
		}
	default:
		t.finish(nil)
	}
}

// checked: one of the grants was asked about again. When all were, the caller sees them; if one is not certain, none of them.
func (t *take) checked(s *session, err error, now instant) {
	if t.finished {
		return
	}
	if err != nil {
		t.giveBack(s, now)
		t.finish(err)
	} else if !slices.ContainsFunc(t.grants, func(g *grant) bool { return g.checking }) {
		t.finish(nil)
	}
}

// giveBack frees what was granted and nobody wants.
func (t *take) giveBack(s *session, now instant) {
	for _, g := range t.grants {
		s.returnQuietly(g, now)
	}
}

// giveUp gives up the place in the queue, or what was granted, of a request whose answer was lost. A job comes back by its row of RESUME.
func (t *take) giveUp(s *session, now instant) {
	verb := "UNLOCK "
	if t.verb == "ACQUIRE" {
		verb = "RELEASE "
	}
	for _, k := range t.keys() {
		text := append(appendField(appendWord([]byte(verb), k.name), "owner", k.owner), " count=0"...)
		s.submit(&quiet{call: call{deadline: now.add(patience)}, text: string(text), key: k}, now)
	}
}

func (t *take) again(s *session, now instant) bool {
	t.deadline = t.until.add(patience)
	if t.withdrawn {
		t.giveUp(s, now)
	}
	return !t.withdrawn
}

func (t *take) overdue(s *session) {
	err := t.refused
	if err == nil {
		err = s.disconnection()
	}
	t.finish(err)
	t.withdrawn = true
	if s.resumable() && t.tag != 0 {
		s.park(t)
	} else {
		s.release(t.keys())
	}
}

func (t *take) anew(*session) {
	if t.withdrawn {
		t.finished = true
	}
}

// error makes the error of an answer other than OK.
func (t *take) error(l line) error {
	about := t.about()
	if l.kind == "ERR" {
		return refusal(about, l)
	}
	e := &Error{Kind: ErrBusy, Name: because(l.get("name"), about), Holder: l.get("holder"), Trace: l.get("trace"), Code: l.kind, RetryAfter: -1,
		Text: about + " is busy"}
	if l.kind == "TIMEOUT" || t.wait != 0 {
		e.Kind, e.Text = ErrTimeout, about+": not granted"
		if t.until != never {
			e.Text += fmt.Sprintf(" within %v", t.wait)
		}
	} else if _, ok := l.number("retry_ms"); ok {
		e.RetryAfter = l.duration("retry_ms")
	}
	if e.Holder != "" {
		e.Text += ", held by " + e.Holder
	}
	return e
}
