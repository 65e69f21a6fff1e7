// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"strings"
	"time"
)

// A key tells a grant apart from all else that the session has.
type key struct{ name, owner string }

// What a grant is of.
type sort int

const (
	aLock sort = iota
	aPermit
	aJob
)

// A grant is a lock, a permit or a job that the daemon has granted. It may be relied on until a deadline, and not after a loss.
type grant struct {
	sort    sort
	key     key // of a job the queue, and "job:" with the id
	fence   int64
	permit  int
	ttl     time.Duration
	session int // another session than the present one is not told of it

	until     instant // the deadline
	asked     instant // when the request was sent whose answer set the deadline
	checkAt   instant // when the keeper asks next
	riskUntil instant // the deadline when the caller was warned; 0: there is no risk
	checking  bool    // CHECK is under way
	freed     bool    // it was given back, or is being given back
	reason    string  // why it was lost; "" until then

	job *jobTerms // of a job
	to  *held     // who hears what happens
}

// jobTerms is what a job has besides.
type jobTerms struct {
	id, payload, lock string
	attempt           int
}

// jobOwner stands for the owner in the key of a job. No owner of our locks begins so.
func jobOwner(id string) string { return "job:" + id }

// keyOf returns the key of what a row or a push is about.
func keyOf(l line) key {
	if id, ok := l.field("job"); ok {
		return key{l.get("queue"), jobOwner(id)}
	}
	return key{l.get("name"), l.get("owner")}
}

// alive says whether the session has it, as far as the client knows.
func (g *grant) alive() bool { return g.reason == "" && !g.freed }

// left returns for how long it may be relied on.
func (g *grant) left(now instant) time.Duration {
	if !g.alive() || g.until <= now {
		return 0
	}
	return g.until.sub(now)
}

// confirm takes in an answer OK to a request that was sent at that time. An answer to an earlier request than the last says nothing new.
func (g *grant) confirm(asked instant, valid time.Duration) {
	if asked >= g.asked {
		g.asked, g.until = asked, asked.add(valid)
		g.checkAt = asked.add(min(g.ttl/3, valid/2))
	}
}

// riskAt returns when the caller is to be warned, because no answer has moved the deadline on.
func (g *grant) riskAt() instant {
	if g.riskUntil != 0 || g.until == never || g.until.sub(g.asked) <= g.ttl/3 {
		return never
	}
	return g.until.add(-g.ttl / 6)
}

// is says whether a row or a push with the key of this grant is about it, and not about an older or a later one.
func (g *grant) is(l line) bool {
	if g.sort == aJob {
		return true
	}
	fence, ok := l.number("fence")
	if !ok || fence != g.fence {
		return false
	}
	permit, ok := l.number("permit")
	return g.sort != aPermit || !ok || int(permit) == g.permit
}

// appendCheck appends the request that asks whether it is still held.
func (g *grant) appendCheck(dst []byte) []byte {
	dst = appendWord(append(dst, "CHECK "...), g.key.name)
	if g.sort == aJob {
		return appendField(dst, "job", g.job.id)
	}
	return g.appendPermit(appendField(dst, "owner", g.key.owner))
}

// appendExtend appends the request that renews the lease now. A ttl of 0 leaves its length as it is.
func (g *grant) appendExtend(dst []byte, ttl time.Duration) []byte {
	dst = appendField(appendWord(append(dst, "EXTEND "...), g.key.name), "owner", g.key.owner)
	if ttl > 0 {
		dst = appendDuration(dst, "ttl", ttl)
	}
	return g.appendPermit(dst)
}

// appendFree appends the request that gives it back, which may be repeated. extra is the fields of UNLOCK, or DONE or RETRY and its fields.
func (g *grant) appendFree(dst []byte, extra string) []byte {
	switch g.sort {
	case aJob:
		verb, fields, more := strings.Cut(extra, " ")
		dst = appendWord(append(append(dst, verb...), ' '), g.job.id)
		dst = appendField(dst, "queue", g.key.name)
		if more {
			dst = append(append(dst, ' '), fields...)
		}
		return dst
	case aPermit:
		dst = appendWord(append(dst, "RELEASE "...), g.key.name)
		extra = ""
	default:
		dst = appendWord(append(dst, "UNLOCK "...), g.key.name)
	}
	dst = g.appendPermit(appendField(dst, "owner", g.key.owner))
	dst = appendNumber(dst, "fence", g.fence)
	return append(append(dst, " count=0"...), extra...)
}

func (g *grant) appendPermit(dst []byte) []byte {
	if g.sort != aPermit {
		return dst
	}
	return appendNumber(dst, "permit", int64(g.permit))
}
