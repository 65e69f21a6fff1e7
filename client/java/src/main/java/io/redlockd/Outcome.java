// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd;

import java.time.Duration;
import java.time.Instant;

/**
 * The result of a run of {@link RedlockClient#once}, or of {@code redlock once}.
 *
 * @param host where it ran
 * @param began when it began there
 * @param took how long it lasted
 * @param status 0 if it went well, else 1, or the exit status of a command
 * @param next in which time it may begin again
 */
public record Outcome(String host, Instant began, Duration took, int status, Duration next) {
}
