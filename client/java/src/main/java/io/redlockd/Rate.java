// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.time.Duration;

/**
 * A use that was admitted by a rate limit.
 *
 * @param left how many more would be admitted now
 * @param reset when all would be
 * @param unmetered the store that counts cannot be used, and the use was not counted
 */
public record Rate(int left, Duration reset, boolean unmetered) {
}
