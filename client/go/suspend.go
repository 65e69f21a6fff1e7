// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"sync"
	"time"
)

// parted is by how much the wall clock may go ahead between two looks before the machine counts as suspended meanwhile.
const parted = 50 * time.Millisecond

// A suspendable makes one clock of two: a monotonic one that may stand still in a suspend, and the wall clock, which may be set. It never goes back, and
// goes ahead when the wall clock does: at worst a lock ends too early.
type suspendable struct {
	mu     sync.Mutex
	ahead  time.Duration // wall clock minus monotonic clock, at the last look
	missed time.Duration // for how long the machine was suspended, as far as one can tell
}

func (c *suspendable) at(monotonic, wall time.Duration) instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	ahead := wall - monotonic
	if ahead-c.ahead > parted {
		c.missed += ahead - c.ahead
	}
	c.ahead = ahead
	return instant(monotonic + c.missed)
}
