// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"crypto/tls"
	"io"
	"math/rand"
	"net"
	"sync"
	"time"
)

// A Client is a session of redlockd. One is enough for a process: all its goroutines may use it at once, over one connection.
type Client struct {
	config

	mu      sync.Mutex // guards all below, and the grants of the session; it is never held over a call that waits
	session *session
	link    *link // the connection; nil: there is none
	dialing bool
	writing bool   // somebody writes, and goes on until nothing is left
	spare   []byte // a buffer for what is to be sent next
	timer   *time.Timer
	timerAt instant
	events  []Event // for the tracer
	telling bool
	stop    context.CancelFunc // ends an attempt to connect
}

var _ io.Closer = (*Client)(nil)

// Dial connects to the daemon. When the connection breaks later, the client makes another one: see [Grace].
func Dial(ctx context.Context, options ...Option) (*Client, error) {
	config, err := configure(options)
	if err != nil {
		return nil, &Error{RetryAfter: -1, Text: err.Error(), Err: err}
	}
	c := &Client{config: *config, timerAt: never}
	c.session = newSession(config.settings, rand.Float64)
	c.timer = time.AfterFunc(time.Hour, c.due)
	begin := func(at instant) request { return c.submit(&ready{awaited(at.add(dialTimeout + patience))}, at) }
	if err := c.ask(ctx, "HELLO", []string{c.address}, begin); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Close ends the session: all that it holds is free at once. It waits a second at most until the daemon has read that.
func (c *Client) Close() error {
	c.enter()
	if quit := c.session.quit(now()); quit != nil {
		c.wait(context.Background(), &quit.call)
		c.enter()
	}
	if c.session.state != closed {
		c.session.close()
	}
	if c.stop != nil {
		c.stop()
	}
	c.leave()
	return nil
}

// --- requests ---

// enter takes the mutex. leave returns it.
func (c *Client) enter() instant {
	c.mu.Lock()
	at := now()
	c.session.tick(at)
	return at
}

// ask has begin submit a request, and waits until it has finished. When the context ends before, the request is withdrawn.
func (c *Client) ask(ctx context.Context, verb string, names []string, begin func(at instant) request) (err error) {
	if c.tracer != nil {
		end := c.tracer.Begin(ctx, verb, names)
		defer func() { end(err) }()
	}
	if ctx.Err() != nil {
		return away(ctx, names)
	}
	r := begin(c.enter())
	call := r.common()
	if c.wait(ctx, call) {
		return call.err
	}
	at := c.enter()
	defer c.leave()
	if call.finished {
		return call.err
	}
	c.session.drop(r, at)
	return away(ctx, names)
}

// submit is for begin of ask.
func (c *Client) submit(r request, at instant) request {
	c.session.submit(r, at)
	return r
}

// leave does what follows from what the session was told, and returns the mutex.
func (c *Client) leave() {
	c.follow()
	for c.link != nil && len(c.session.out) > 0 && !c.writing {
		link, out := c.link, c.session.out
		c.writing, c.session.out = true, c.spare[:0]
		c.mu.Unlock()
		link.SetWriteDeadline(time.Now().Add(patience))
		_, err := link.Write(out)
		c.mu.Lock()
		c.writing, c.spare = false, out
		if err != nil && c.link == link {
			c.session.disconnected(reason(err), now())
		}
		c.follow()
	}
	c.mu.Unlock()
}

// follow closes, connects, tells, and sets the timer.
func (c *Client) follow() {
	if c.link != nil && !c.session.online() {
		hangUp(c.link.Conn)
		c.link = nil
	}
	if len(c.session.events) > 0 {
		c.tell()
	}
	wake := c.session.wake
	if !c.dialing && c.session.dialAt < never {
		if c.session.dialAt <= now() {
			c.dial()
		} else {
			wake = earlier(wake, c.session.dialAt)
		}
	}
	if wake < c.timerAt {
		c.timerAt = wake
		c.timer.Reset(max(0, wake.sub(now())))
	}
}

// due is called by the timer, the only one: it keeps all grants.
func (c *Client) due() {
	c.mu.Lock()
	c.timerAt = never
	c.session.tick(now())
	c.leave()
}

// --- the connection ---

func (c *Client) dial() {
	c.dialing, c.session.dialAt = true, never
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	go func() {
		defer cancel()
		conn, err := c.place.connect(ctx, c.tls)
		c.mu.Lock()
		c.dialing = false
		switch {
		case c.session.state != dialing: // closed meanwhile
			if conn != nil {
				conn.Close()
			}
		case err != nil:
			c.session.notConnected(reason(err), now())
		default:
			c.link = newLink(conn)
			c.session.connected(now())
			go c.reside(c.link)
		}
		c.leave()
	}()
}

// hangUp closes a connection, and never waits: the farewell of TLS may.
func hangUp(conn net.Conn) {
	if inside, ok := conn.(*tls.Conn); ok {
		go inside.Close()
	} else {
		conn.Close()
	}
}

// --- what happens unasked ---

// tell has everybody hear what happened: those who hold a lock at once, the tracer in a goroutine.
func (c *Client) tell() {
	events := c.session.events
	c.session.events = nil
	at := now()
	for _, e := range events {
		told := Event{Kind: e.kind, Err: e.err}
		if g := e.grant; g != nil {
			told.Name, told.Fence, told.Remaining = g.key.name, g.fence, g.left(at)
			if e.kind == Lost {
				told.Err = lost(g.key.name, g.reason, g.fence)
				if g.to != nil {
					g.to.end(told.Err)
				}
			}
		}
		c.trace(told)
	}
}

// trace tells the tracer. The caller has the mutex.
func (c *Client) trace(e Event) {
	if c.tracer == nil {
		return
	}
	c.events = append(c.events, e)
	if !c.telling {
		c.telling = true
		go func() {
			c.mu.Lock()
			for len(c.events) > 0 {
				events := c.events
				c.events = nil
				c.mu.Unlock()
				for _, e := range events {
					c.tracer.Event(e)
				}
				c.mu.Lock()
			}
			c.telling = false
			c.mu.Unlock()
		}()
	}
}
