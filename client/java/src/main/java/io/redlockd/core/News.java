// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** What happened unasked, to a hold or (with none) to the connection. detail is the reason of a loss, or why the connection is down. */
public record News(Kind kind, Hold hold, String detail) {
    /** What it is. */
    public enum Kind { LOST, RISK, SAFE, UP, DOWN }
}
