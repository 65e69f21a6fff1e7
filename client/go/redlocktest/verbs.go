// SPDX-License-Identifier: BSD-2-Clause

package redlocktest

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// ask does what a request asks for, or lets it wait.
func (f *Fake) ask(r *request) {
	switch r.verb {
	case "HELLO":
		if name := r.fields["name"]; name != "" {
			r.conn.label = name
		}
		r.answer(fmt.Sprintf("OK proto=1 server=redlocktest session=1 secret=none store=memory nodes=1 quorum=1 lease_ms=%d", Lease.Milliseconds()))
	case "PING", "AUTH", "QUIT":
		r.answer("OK")
	case "RESUME":
		r.answer("ERR NOTFOUND there is no such session")
	case "LOCK", "LOCKALL", "LOCKANY", "ACQUIRE", "TAKE":
		f.want(r)
	case "CHECK", "EXTEND":
		f.check(r)
	case "UNLOCK", "RELEASE":
		f.unlock(r)
	case "CANCEL":
		f.cancel(r)
	case "RATE":
		r.answer("OK left=1 reset_ms=0")
	case "DEFER":
		f.put(r)
	case "DONE", "RETRY":
		f.end(r)
	case "DROP":
		f.remove(r)
	case "LIST":
		f.list(r)
	default:
		r.answer("ERR UNKNOWN a fake does not know " + r.verb)
	}
}

// want grants, or lets the request wait.
func (f *Fake) want(r *request) {
	wait := r.fields["wait"]
	if f.try(r) {
		return
	}
	if wait == "" || wait == "0" {
		r.answer("BUSY" + f.holder(r))
		return
	}
	r.until = time.Now().Add(1000 * time.Hour)
	if wait != "forever" {
		r.until = time.Now().Add(duration(wait))
		time.AfterFunc(duration(wait), func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.stops(r) {
				r.answer("TIMEOUT" + f.holder(r))
			}
		})
	}
	f.waiting = append(f.waiting, r)
}

// stops ends the wait of a request, and returns whether it waited.
func (f *Fake) stops(r *request) bool {
	at := slices.Index(f.waiting, r)
	if at >= 0 {
		f.waiting = slices.Delete(f.waiting, at, at+1)
	}
	return at >= 0
}

// serve grants what those who wait can have now, first come first served.
func (f *Fake) serve() {
	for _, r := range slices.Clone(f.waiting) {
		if f.try(r) {
			f.stops(r)
		}
	}
}

// holder is the fields of a refusal.
func (f *Fake) holder(r *request) string {
	if r.verb == "TAKE" {
		return field("queue", r.name())
	}
	for _, h := range f.holds {
		if slices.Contains(r.words, h.name) {
			if h.conn == nil {
				return field("name", h.name) + " holder=@elsewhere"
			}
			return field("name", h.name) + field("holder", h.conn.label)
		}
	}
	return field("name", r.name())
}

// try answers a request if it can be granted, or has to be refused.
func (f *Fake) try(r *request) bool {
	if f.absent {
		r.answer("ERR QUORUM 0 of 1 stores can be used")
		return true
	}
	switch r.verb {
	case "TAKE":
		return f.take(r)
	case "ACQUIRE":
		return f.acquire(r)
	case "LOCKALL":
		if slices.ContainsFunc(r.words, func(name string) bool { return !f.free(r, name) }) {
			return false
		}
		lines := []string{}
		for _, name := range r.words {
			lines = append(lines, "*"+f.grant(r, name, -1))
		}
		for _, text := range append(lines, fmt.Sprintf("OK n=%d", len(lines))) {
			r.answer(text)
		}
		return true
	}
	for _, name := range r.words {
		if f.free(r, name) {
			r.answer("OK" + f.grant(r, name, -1))
			return true
		}
	}
	return false
}

// free says whether the owner may have a lock.
func (f *Fake) free(r *request, name string) bool {
	shared := r.fields["mode"] == "shared"
	return !slices.ContainsFunc(f.holds, func(h *hold) bool {
		return h.name == name && h.key != key{r.conn, name, r.fields["owner"]} && !(shared && h.shared)
	})
}

// grant returns the fields of a grant. What the owner has already keeps its fence.
func (f *Fake) grant(r *request, name string, permit int) string {
	k := key{r.conn, name, r.fields["owner"]}
	if at := slices.IndexFunc(f.holds, func(h *hold) bool { return h.key == k }); at >= 0 {
		return f.holds[at].granted()
	}
	delete(f.lost, k)
	f.fence++
	h := &hold{k, f.fence, permit, r.fields["mode"] == "shared"}
	f.holds = append(f.holds, h)
	return h.granted()
}

func (f *Fake) acquire(r *request) bool {
	limit, _ := strconv.Atoi(r.fields["limit"])
	for permit := 0; permit < limit; permit++ {
		taken := slices.ContainsFunc(f.holds, func(h *hold) bool { return h.name == r.name() && h.permit == permit })
		if !taken {
			r.answer("OK" + f.grant(r, r.name(), permit))
			return true
		}
	}
	return false
}

func (f *Fake) check(r *request) {
	if id, ok := r.fields["job"]; ok {
		for _, j := range f.jobs {
			if j.queue == r.name() && j.id == id && j.with == r.conn {
				r.answer("OK" + j.fields())
				return
			}
		}
	}
	for _, h := range f.holds {
		if h.key == r.key() {
			r.answer("OK" + h.granted())
			return
		}
	}
	r.answer(f.missing(r))
}

// missing is the answer about what the owner does not have.
func (f *Fake) missing(r *request) string {
	if _, ok := f.lost[r.key()]; ok {
		return "ERR LOST the lock was lost"
	}
	return "ERR NOTHELD the session does not hold it"
}

func (f *Fake) unlock(r *request) {
	had := slices.ContainsFunc(f.holds, func(h *hold) bool { return h.key == r.key() })
	switch {
	case had:
		f.drop(func(h *hold) bool { return h.key == r.key() })
		r.answer("OK" + field("name", r.name()) + " count=0")
	case f.lost[r.key()] != nil:
		delete(f.lost, r.key())
		r.answer("ERR LOST the lock was lost")
	default:
		r.answer("OK" + field("name", r.name()) + " count=0")
	}
}

func (f *Fake) cancel(r *request) {
	for _, other := range f.waiting {
		if other.conn == r.conn && other.tag == r.name() {
			f.stops(other)
			r.answer("OK")
			other.answer("ERR CANCELLED the waiting request was withdrawn")
			return
		}
	}
	r.answer("ERR NOTFOUND no request waits with this tag")
}

// --- jobs ---

func (j *job) fields() string {
	text := field("queue", j.queue) + field("job", j.id) + fmt.Sprintf(" attempt=%d valid_ms=%d", j.attempt, (Lease-100*time.Millisecond).Milliseconds())
	if j.lock != "" {
		text += field("name", j.lock)
	}
	return text
}

func (f *Fake) put(r *request) {
	id := r.fields["id"]
	if !slices.ContainsFunc(f.jobs, func(j *job) bool { return j.queue == r.name() && j.id == id }) {
		payload := ""
		if len(r.words) > 1 {
			payload = r.words[1]
		}
		f.jobs = append(f.jobs, &job{queue: r.name(), id: id, payload: payload, lock: r.fields["lock"], due: f.later(r)})
	}
	r.answer("OK" + field("queue", r.name()) + field("job", id) + " due_ms=0")
}

// later returns when a job is due, and has it be served then.
func (f *Fake) later(r *request) time.Time {
	delay := duration(r.fields["delay"])
	if delay > 0 {
		time.AfterFunc(delay, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.serve()
		})
	}
	return time.Now().Add(delay)
}

func (f *Fake) take(r *request) bool {
	for _, j := range f.jobs {
		if j.queue == r.name() && j.with == nil && !j.due.After(time.Now()) {
			j.with = r.conn
			j.attempt++
			f.fence++
			r.answer("OK" + j.fields() + fmt.Sprintf(" ttl_ms=%d fence=%d", Lease.Milliseconds(), f.fence) + field("payload", j.payload))
			return true
		}
	}
	return false
}

// list shows the jobs of a queue that are due, now or later.
func (f *Fake) list(r *request) {
	if r.name() != "jobs" {
		r.answer("ERR UNKNOWN a fake lists jobs alone")
		return
	}
	n := 0
	for _, j := range f.jobs {
		if j.queue == r.fields["prefix"] && j.with == nil {
			n++
			due := fmt.Sprintf(" state=due due_ms=%d failed=0", max(0, time.Until(j.due).Milliseconds()))
			r.answer("*" + field("queue", j.queue) + field("job", j.id) + due + field("payload", j.payload))
		}
	}
	r.answer(fmt.Sprintf("OK n=%d more=0", n))
}

func (f *Fake) remove(r *request) {
	before := len(f.jobs)
	f.jobs = slices.DeleteFunc(f.jobs, func(j *job) bool {
		return j.queue == r.name() && len(r.words) > 1 && j.id == r.words[1] && j.with == nil
	})
	if len(f.jobs) == before {
		r.answer("ERR NOTFOUND there is no such job that nobody has")
		return
	}
	r.answer("OK" + field("queue", r.name()))
}

// end is DONE and RETRY.
func (f *Fake) end(r *request) {
	at := slices.IndexFunc(f.jobs, func(j *job) bool { return j.id == r.name() && j.queue == r.fields["queue"] && j.with == r.conn })
	if at < 0 {
		r.answer("ERR NOTHELD the session does not have the job")
		return
	}
	j := f.jobs[at]
	j.with = nil
	if r.verb == "DONE" {
		f.jobs = slices.Delete(f.jobs, at, at+1)
	} else if j.due = f.later(r); r.fields["failed"] == "no" {
		j.attempt--
	}
	r.answer("OK" + field("queue", j.queue) + field("job", j.id))
}
