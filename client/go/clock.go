// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"math"
	"time"
)

// An instant is a point in time: nanoseconds by a clock that goes on while the machine is suspended.
type instant int64

// never comes after all others.
const never = instant(math.MaxInt64)

func (t instant) add(d time.Duration) instant {
	if d > 0 && t > never-instant(d) {
		return never
	}
	return t + instant(d)
}

func (t instant) sub(u instant) time.Duration { return time.Duration(t - u) }

func earlier(a, b instant) instant {
	if b < a {
		return b
	}
	return a
}
