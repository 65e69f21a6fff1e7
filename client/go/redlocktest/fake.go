// SPDX-License-Identifier: BSD-2-Clause

package redlocktest

import (
	"bufio"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Lease is for how long a [Fake] grants a lock. Nothing expires by itself.
const Lease = 10 * time.Second

// A Fake speaks the protocol of redlockd, keeps locks, permits and jobs in memory, and does at any time what a daemon does when something fails. It knows no
// grace, no users and no limits: a broken connection is the end of its session.
type Fake struct {
	listener net.Listener

	mu      sync.Mutex
	conns   map[*conn]bool
	holds   []*hold
	lost    map[key]*hold // until they are acknowledged
	waiting []*request
	jobs    []*job
	fence   int64
	absent  bool // there is no quorum
}

// A key is that of the lock of one owner.
type key struct {
	conn        *conn
	name, owner string
}

// A hold is a lock or a permit. conn is nil of somebody elsewhere.
type hold struct {
	key
	fence  int64
	permit int // -1: it is a lock
	shared bool
}

// A job waits in its queue, or is with a client.
type job struct {
	queue, id, payload, lock string
	attempt                  int
	due                      time.Time
	with                     *conn
}

type conn struct {
	net.Conn
	label string
}

// NewFake starts one, on a port of the loopback interface. Close it in the end.
func NewFake() *Fake {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic("redlocktest: " + err.Error())
	}
	f := &Fake{listener: listener, conns: map[*conn]bool{}, lost: map[key]*hold{}, fence: 1000}
	go f.accept()
	return f
}

// Close ends it.
func (f *Fake) Close() {
	f.listener.Close()
	f.Cut()
}

// Addr is for redlockd.Addr.
func (f *Fake) Addr() string { return f.listener.Addr().String() }

// Lose takes a lock away from all who hold it. Others may get it at once.
func (f *Fake) Lose(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose(func(h *hold) bool { return h.name == name }, "quorum")
	f.serve()
}

// Risk warns all who hold a lock: a renewal is late.
func (f *Fake) Risk(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.holds {
		if h.name == name && h.conn != nil {
			h.conn.say("!", "RISK"+h.fields()+fmt.Sprintf(" left_ms=%d", (Lease/3).Milliseconds()))
		}
	}
}

// NoQuorum has all locks be lost, and none be granted, until restore is called.
func (f *Fake) NoQuorum() (restore func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.absent = true
	f.lose(func(h *hold) bool { return h.conn != nil }, "quorum")
	f.serve()
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.absent = false
	}
}

// Freeze has it answer nothing for so long. It returns at once.
func (f *Fake) Freeze(d time.Duration) {
	f.mu.Lock()
	time.AfterFunc(d, f.mu.Unlock)
}

// HeldElsewhere has somebody on another host hold a lock, and takes it from those who hold it, until release is called.
func (f *Fake) HeldElsewhere(name string) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lose(func(h *hold) bool { return h.name == name }, "evicted")
	f.fence++
	other := &hold{key: key{nil, name, "elsewhere"}, fence: f.fence, permit: -1}
	f.holds = append(f.holds, other)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.drop(func(h *hold) bool { return h == other })
		f.serve()
	}
}

// Cut breaks all connections.
func (f *Fake) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c := range f.conns {
		c.Close()
	}
}

func (f *Fake) accept() {
	for {
		raw, err := f.listener.Accept()
		if err != nil {
			return
		}
		c := &conn{Conn: raw, label: raw.RemoteAddr().String()}
		f.mu.Lock()
		f.conns[c] = true
		f.mu.Unlock()
		go f.listen(c)
	}
}

func (f *Fake) listen(c *conn) {
	defer c.Close()
	lines := bufio.NewReader(c)
	for {
		text, err := lines.ReadString('\n')
		f.mu.Lock()
		if err != nil {
			f.leave(c)
			f.mu.Unlock()
			return
		}
		if r := parse(strings.TrimRight(text, "\r\n")); r.verb != "" {
			r.conn = c
			f.ask(r)
			f.serve()
		}
		f.mu.Unlock()
	}
}

// leave ends a session.
func (f *Fake) leave(c *conn) {
	delete(f.conns, c)
	f.drop(func(h *hold) bool { return h.conn == c })
	f.waiting = slices.DeleteFunc(f.waiting, func(r *request) bool { return r.conn == c })
	for _, j := range f.jobs {
		if j.with == c {
			j.with = nil
		}
	}
	f.serve()
}

func (f *Fake) drop(which func(*hold) bool) { f.holds = slices.DeleteFunc(f.holds, which) }

func (f *Fake) lose(which func(*hold) bool, reason string) {
	for _, h := range f.holds {
		if which(h) && h.conn != nil {
			f.lost[h.key] = h
			h.conn.say("!", "LOST"+h.fields()+" reason="+reason)
		}
	}
	f.drop(func(h *hold) bool { return which(h) && h.conn != nil })
}

func (h *hold) fields() string {
	text := fmt.Sprintf("%s%s fence=%d", field("name", h.name), field("owner", h.owner), h.fence)
	if h.permit >= 0 {
		text += fmt.Sprintf(" permit=%d", h.permit)
	}
	return text
}

// granted is the fields of a grant.
func (h *hold) granted() string {
	return fmt.Sprintf("%s valid_ms=%d ttl_ms=%d count=1", h.fields(), (Lease - 100*time.Millisecond).Milliseconds(), Lease.Milliseconds())
}

func (c *conn) say(tag, text string) {
	if tag != "" {
		tag += " "
	}
	c.Write([]byte(tag + text + "\n"))
}

func (r *request) answer(text string) { r.conn.say(r.tag, text) }

// name is the first word.
func (r *request) name() string {
	if len(r.words) == 0 {
		return ""
	}
	return r.words[0]
}

func (r *request) key() key { return key{r.conn, r.name(), r.fields["owner"]} }
