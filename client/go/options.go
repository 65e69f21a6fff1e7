// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"crypto/tls"
	"math"
	"os"
	"path/filepath"
	"time"
)

// Forever is a wait without end: that of a request without [Wait]. It still ends with the context of its caller.
const Forever = time.Duration(math.MaxInt64)

// An Option says something to [Dial].
type Option func(*config)

type config struct {
	settings
	place  place
	tls    *tls.Config
	tracer Tracer
}

// Addr is where the daemon is: the path of a Unix socket, host:port or tls://host:port. Without it $REDLOCK_ADDR counts, else the daemon of this host.
func Addr(address string) Option { return func(c *config) { c.address = address } }

// Label says who we are to those who wait for us. Without it that is the name of the program.
func Label(label string) Option { return func(c *config) { c.label = label } }

// Grace has the locks outlive a broken connection, and a crash of the daemon, for that long. But when this process is killed, others wait for its locks for
// that long as well.
func Grace(d time.Duration) Option { return func(c *config) { c.grace = d } }

// Heartbeat has the daemon end the session when this process is stopped for longer.
func Heartbeat(d time.Duration) Option { return func(c *config) { c.heartbeat = d } }

// Login is the user and the secret. Without it $REDLOCK_USER and $REDLOCK_SECRET_FILE, or $REDLOCK_SECRET, count.
func Login(user, secret string) Option {
	return func(c *config) { c.user, c.secret = user, secret }
}

// TLS replaces what the variables REDLOCK_TLS_… say.
func TLS(with *tls.Config) Option { return func(c *config) { c.tls = with } }

// Trace has a [Tracer] watch the client.
func Trace(t Tracer) Option { return func(c *config) { c.tracer = t } }

func configure(options []Option) (*config, error) {
	c := &config{}
	if len(os.Args) > 0 {
		c.label = filepath.Base(os.Args[0])
	}
	for _, option := range options {
		option(c)
	}
	if c.address == "" {
		c.address = defaultAddress()
	}
	var err error
	if c.user == "" {
		if c.user, c.secret, err = credentials(); err != nil {
			return nil, err
		}
	}
	c.place, err = parseAddress(c.address)
	return c, err
}

// A LockOption says how to take a lock, a permit or a job.
type LockOption interface{ take(*terms) }

// A RateOption says how to count a use.
type RateOption interface{ rate(*use) }

// A DeferOption says how to put a job into a queue.
type DeferOption interface{ deferral([]byte) []byte }

// An UnlockOption says how to give a lock back.
type UnlockOption interface{ unlock([]byte) []byte }

// A RetryOption says how to give a job back.
type RetryOption interface{ retry([]byte) []byte }

type (
	waitOption     time.Duration
	ttlOption      time.Duration
	sharedOption   struct{}
	noteOption     string
	spanOption     string
	priorityOption int
	costOption     int
	delayOption    time.Duration
	idOption       string
	underOption    string
	keepOption     time.Duration
	syncOption     struct{}
	uncounted      struct{}
)

// Wait bounds the wait in the queue; then it is [ErrTimeout], which names the holder. A context bounds it as well.
func Wait(d time.Duration) interface {
	LockOption
	RateOption
} {
	return waitOption(max(0, d))
}

// TTL is the length of the lease, which the daemon renews. Without it that is up to the daemon.
func TTL(d time.Duration) LockOption { return ttlOption(d) }

// Shared takes the lock as a reader: readers hold it together.
func Shared() LockOption { return sharedOption{} }

// Note says what the lock is for, to those who look.
func Note(text string) LockOption { return noteOption(text) }

// TraceParent is that of the span that asks. Whoever is refused the lock gets it in [Error.Trace].
func TraceParent(text string) LockOption { return spanOption(text) }

// Priority is from 0 to 9; each level counts as a minute of waiting.
func Priority(level int) LockOption { return priorityOption(level) }

// Cost is how many uses this one counts as; 0 only asks.
func Cost(n int) RateOption { return costOption(n) }

// Delay has the job be due later.
func Delay(d time.Duration) DeferOption { return delayOption(d) }

// ID is that of the job. While a job of this id is there, it is the same job.
func ID(id string) DeferOption { return idOption(id) }

// Under has the lock of this name be granted together with the job.
func Under(name string) DeferOption { return underOption(name) }

// Keep leaves the name taken for so long after the release.
func Keep(d time.Duration) UnlockOption { return keepOption(d) }

// Sync has Unlock return when a quorum of stores has freed the lock.
func Sync() UnlockOption { return syncOption{} }

// Uncounted gives a job back as if it had never been taken. Without a delay it is due in its old place.
func Uncounted() RetryOption { return uncounted{} }

func (o waitOption) take(t *terms)     { t.wait = time.Duration(o) }
func (o waitOption) rate(u *use)       { u.wait = time.Duration(o) }
func (o ttlOption) take(t *terms)      { t.ttl = time.Duration(o) }
func (o sharedOption) take(t *terms)   { t.more = append(t.more, " mode=shared"...) }
func (o noteOption) take(t *terms)     { t.more = appendField(t.more, "note", string(o)) }
func (o spanOption) take(t *terms)     { t.more = appendField(t.more, "trace", string(o)) }
func (o priorityOption) take(t *terms) { t.more = appendNumber(t.more, "priority", int64(o)) }
func (o costOption) rate(u *use)       { u.cost = int(o) }

func (o delayOption) deferral(dst []byte) []byte {
	return appendDuration(dst, "delay", time.Duration(o))
}
func (o idOption) deferral(dst []byte) []byte    { return appendField(dst, "id", string(o)) }
func (o underOption) deferral(dst []byte) []byte { return appendField(dst, "lock", string(o)) }
func (o keepOption) unlock(dst []byte) []byte    { return appendDuration(dst, "keep", time.Duration(o)) }
func (o syncOption) unlock(dst []byte) []byte    { return append(dst, " sync=yes"...) }
func (o uncounted) retry(dst []byte) []byte      { return append(dst, " failed=no"...) }
