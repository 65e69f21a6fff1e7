// SPDX-License-Identifier: BSD-2-Clause
/** A program that uses the client. */
module user {
    requires io.redlockd;
}
