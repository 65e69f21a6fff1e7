// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"syscall"
	"unsafe"
)

const clockBoottime = 7 // CLOCK_BOOTTIME of <time.h>

// now reads CLOCK_BOOTTIME. The clock of package time stands still while the machine is suspended.
func now() instant {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&t)), 0)
	return instant(t.Nano())
}
