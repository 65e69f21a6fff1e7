// SPDX-License-Identifier: BSD-2-Clause
package user;

import io.redlockd.RedlockClient;
import java.time.Duration;

/** Takes a lock. */
public final class Main {
    private Main() {
    }

    public static void main(String[] args) throws InterruptedException {
        try (var client = RedlockClient.connect(args[0]); var held = client.hold("user", Duration.ofSeconds(5))) {
            System.out.println("fence " + held.fence());
        }
    }
}
