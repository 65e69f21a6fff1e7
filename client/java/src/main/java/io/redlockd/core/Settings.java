// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

/** What a session asks for. address is for texts. The secret stands in no text. Durations are nanoseconds. */
public record Settings(String address, String label, long grace, long heartbeat, String user, String secret) {
    @Override
    public String toString() {
        return "Settings of " + address;
    }
}
