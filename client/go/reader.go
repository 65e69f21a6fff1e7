// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// Who reads. One goroutine at a time has the reader's part of a connection. A caller who waits for an answer takes it if nobody has it, so that the request of
// a lone goroutine costs no change of goroutines. The resident, a goroutine of the connection, has it whenever nobody else has had it for a while, and when
// many callers wait.

// idle is for how long nobody may read before the resident does: a loss is told that much later at most.
const idle = 10 * time.Millisecond

// parkedFor is for how long the resident waits until it is called.
const parkedFor = time.Minute

// A link is a connection. The mutex of the client guards what is not of package net.
type link struct {
	net.Conn
	piece   []byte // of whoever reads
	read    bool   // somebody has the reader's part
	steps   uint64 // how often somebody has read
	waiting int    // callers who wait and do not read
	latest  *call  // of the latest one of these
	parked  bool   // the resident waits until it is called
	bell    chan struct{}
}

func newLink(conn net.Conn) *link {
	return &link{Conn: conn, piece: make([]byte, 16384), bell: make(chan struct{}, 1)}
}

// wait waits until a request has finished, or ctx has ended, and returns whether it has finished. The caller has the mutex; it is returned.
func (c *Client) wait(ctx context.Context, of *call) bool {
	for !of.finished && ctx.Err() == nil {
		l := c.link
		if l != nil && !l.read {
			l.read = true
			c.leave()
			c.readFor(ctx, l, of)
			c.mu.Lock()
			continue
		}
		if l != nil {
			l.waiting++
			l.latest = of
		}
		c.leave()
		select {
		case <-of.done:
		case <-ctx.Done():
		}
		c.mu.Lock()
		if l != nil {
			l.waiting--
		}
	}
	finished := of.finished
	c.leave()
	return finished
}

// readFor reads until a request has finished, ctx has ended, or the connection has.
func (c *Client) readFor(ctx context.Context, l *link, of *call) {
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { l.SetReadDeadline(time.Unix(1, 0)) })
		defer stop()
	}
	for ends := false; !ends; {
		c.step(l)
		ends = of.finished || ctx.Err() != nil || !c.uses(l)
		if ends {
			l.read = false
			l.steps++
			if l.waiting > 0 || l.parked {
				l.ring()
			}
		}
		c.leave()
	}
}

// step reads once, and takes the mutex.
func (c *Client) step(l *link) {
	n, err := l.Read(l.piece)
	at := c.enter()
	if errors.Is(err, os.ErrDeadlineExceeded) { // some caller has left, perhaps this one
		l.SetReadDeadline(time.Time{})
		err = nil
	}
	if c.link != l {
		return
	}
	c.session.receive(l.piece[:n], at)
	c.session.tick(at)
	if err != nil {
		c.session.disconnected(reason(err), at)
	}
}

// uses says whether a connection is still of use.
func (c *Client) uses(l *link) bool { return c.link == l && c.session.online() }

// ring calls the resident.
func (l *link) ring() {
	select {
	case l.bell <- struct{}{}:
	default:
	}
}

// reside is the resident.
func (c *Client) reside(l *link) {
	timer := time.NewTimer(parkedFor)
	defer timer.Stop()
	seen := uint64(0)
	c.mu.Lock()
	for c.link == l {
		if !l.read && (l.waiting > 0 || l.steps == seen) {
			l.read = true
			c.leave()
			c.readOn(l)
		} else {
			c.mu.Unlock()
		}
		c.mu.Lock()
		pause := idle
		if l.parked = l.read && l.steps == seen; l.parked { // somebody waits for long, and calls when he leaves
			pause = parkedFor
		}
		seen = l.steps
		c.mu.Unlock()
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-l.bell:
			if !timer.Stop() {
				select { // before Go 1.23 it may hold a time
				case <-timer.C:
				default:
				}
			}
		}
		c.mu.Lock()
	}
	c.mu.Unlock()
}

// readOn reads until the connection ends, or until the only caller who waited has been answered: the next one may read for itself.
func (c *Client) readOn(l *link) {
	for ends := false; !ends; {
		c.step(l)
		alone := l.waiting == 1 && l.latest.finished
		ends = alone || !c.uses(l)
		l.read = !ends
		c.leave()
	}
}

// reason puts the end of a connection into words.
func reason(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the daemon closed the connection")
	}
	return err
}
