// SPDX-License-Identifier: BSD-2-Clause

// Package redlocktest is for tests of programs that use redlockd: what do they do when a lock is lost?
//
//	fake := redlocktest.NewFake()
//	defer fake.Close()
//	client, err := redlockd.Dial(ctx, redlockd.Addr(fake.Addr()))
//	…
//	fake.Lose("orders/42") // and see that the program stops
//
// A [Fake] needs no daemon. A [Daemon] is the real one on the memory store, in a folder of its own.
package redlocktest

import "time"

// A Server is what a [Fake] and a [Daemon] can both do.
type Server interface {
	// Addr is for redlockd.Addr.
	Addr() string
	// Lose takes a lock away from whoever holds it.
	Lose(name string)
	// Freeze has the server answer nothing for so long.
	Freeze(d time.Duration)
	// HeldElsewhere has somebody else hold a lock, until release is called.
	HeldElsewhere(name string) (release func())
}

var _ Server = (*Fake)(nil)
