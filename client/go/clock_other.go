// SPDX-License-Identifier: BSD-2-Clause

//go:build !linux

package redlockd

import "time"

var (
	began = time.Now()
	awake suspendable
)

// now reads the clock of package time, and adds what it missed.
func now() instant {
	t := time.Now()
	return awake.at(t.Sub(began), t.Round(0).Sub(began.Round(0)))
}
