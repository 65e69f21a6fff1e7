// SPDX-License-Identifier: BSD-2-Clause
/**
 * Locks of redlockd. Begin with {@link io.redlockd.RedlockClient}.
 */
package io.redlockd;
