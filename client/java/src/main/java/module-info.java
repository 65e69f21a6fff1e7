// SPDX-License-Identifier: BSD-2-Clause
/** Locks of redlockd, for threads. */
module io.redlockd {
    exports io.redlockd;
}
