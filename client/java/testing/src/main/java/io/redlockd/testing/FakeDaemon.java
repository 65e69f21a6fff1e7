// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.testing;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** As much of redlockd as the tests of a program need: locks, permits and their queues, in memory. All methods are safe for threads. */
final class FakeDaemon {
    private static final long LEASE_MS = 10_000;

    /** A lock or a permit. A relay that is null is somebody else. */
    private record Holder(Relay relay, String owner, String name, boolean shared, int permit, long fence) {
        boolean is(Relay other, Line line) {
            return relay == other && name.equals(line.names().get(0)) && owner.equals(line.field("owner"));
        }

        String granted() {
            return "name=" + Line.quote(name) + " fence=" + fence + (permit < 0 ? "" : " permit=" + permit) + " valid_ms=" + (LEASE_MS - 100) + " count=1";
        }
    }

    /** A request that waits. */
    private record Waiter(Relay relay, Line line) {
    }

    private final List<Holder> holders = new ArrayList<>();
    private final List<Waiter> waiters = new ArrayList<>();
    private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, task -> {
        Thread thread = new Thread(task, "redlockd-test-timer");
        thread.setDaemon(true);
        return thread;
    });
    private long fences = System.currentTimeMillis() * 1000;
    private int sessions;

    synchronized void request(Relay relay, Line line) {
        switch (line.verb()) {
            case "" -> { } // a heartbeat
            case "HELLO" -> say(relay, line, "OK proto=1 server=fake session=" + ++sessions + " lease_ms=" + LEASE_MS);
            case "AUTH", "QUIT" -> say(relay, line, "OK");
            case "LOCK", "LOCKALL", "LOCKANY", "ACQUIRE" -> take(relay, line);
            case "UNLOCK", "RELEASE" -> {
                holders.removeIf(holder -> holder.is(relay, line));
                say(relay, line, "OK name=" + Line.quote(line.names().get(0)) + " count=0");
                serve();
            }
            case "CHECK", "EXTEND" -> {
                Holder found = holders.stream().filter(holder -> holder.is(relay, line)).findFirst().orElse(null);
                say(relay, line, found == null ? "ERR LOST " + Line.quote(line.names().get(0)) : "OK " + found.granted());
            }
            case "CANCEL" -> cancel(relay, line);
            case "RATE" -> say(relay, line, "OK left=0 reset_ms=0");
            case "BREAK" -> {
                lose(line.names().get(0));
                say(relay, line, "OK");
            }
            default -> say(relay, line, "ERR UNKNOWN the fake has no " + line.verb());
        }
    }

    private static void say(Relay relay, Line to, String text) {
        relay.answer((to.tag + " " + text).strip());
    }

    private void take(Relay relay, Line line) {
        Waiter waiter = new Waiter(relay, line);
        waiters.add(waiter);
        serve();
        long millis = line.millis("wait");
        if (millis == 0) {
            refuse(waiter, "BUSY");
        } else if (millis > 0) {
            timer.schedule(() -> refuse(waiter, "TIMEOUT"), millis, TimeUnit.MILLISECONDS);
        }
    }

    private synchronized void refuse(Waiter waiter, String word) {
        if (waiters.remove(waiter)) {
            say(waiter.relay, waiter.line, word + " name=" + Line.quote(waiter.line.names().get(0)) + " holder=elsewhere");
        }
    }

    private void cancel(Relay relay, Line line) {
        Waiter found = waiters.stream().filter(waiter -> waiter.relay == relay && waiter.line.tag.equals(line.names().get(0))).findFirst().orElse(null);
        say(relay, line, found == null ? "ERR NOTFOUND no request waits with this tag" : "OK");
        if (found != null) {
            waiters.remove(found);
            say(relay, found.line, "ERR CANCELLED the waiting request was withdrawn");
        }
    }

    /** Grants what can be granted, first come first served for each name. */
    private void serve() {
        Set<String> wanted = new HashSet<>();
        for (Waiter waiter : List.copyOf(waiters)) {
            List<Holder> granted = grant(waiter, wanted);
            if (granted.isEmpty()) {
                wanted.addAll(waiter.line.names());
                continue;
            }
            waiters.remove(waiter);
            holders.addAll(granted);
            for (int at = 0; at < granted.size(); at++) {
                say(waiter.relay, waiter.line, (waiter.line.verb().equals("LOCKALL") ? "* " : "OK ") + granted.get(at).granted() + " ttl_ms=" + LEASE_MS);
            }
            if (waiter.line.verb().equals("LOCKALL")) {
                say(waiter.relay, waiter.line, "OK n=" + granted.size());
            }
        }
    }

    /** What a request gets now; nothing: it waits. */
    private List<Holder> grant(Waiter waiter, Set<String> wanted) {
        List<Holder> found = new ArrayList<>();
        for (String name : waiter.line.names()) {
            Holder one = wanted.contains(name) ? null : grant(waiter, name);
            if (one != null) {
                found.add(one);
            }
            if (one != null && waiter.line.verb().equals("LOCKANY")) {
                return found;
            }
        }
        return waiter.line.verb().equals("LOCKANY") || found.size() < waiter.line.names().size() ? List.of() : found;
    }

    private Holder grant(Waiter waiter, String name) {
        boolean shared = waiter.line.field("mode").equals("shared");
        List<Holder> there = holders.stream().filter(holder -> holder.name.equals(name)).toList();
        int permit = -1;
        if (waiter.line.verb().equals("ACQUIRE")) {
            Set<Integer> taken = new HashSet<>();
            there.forEach(holder -> taken.add(holder.permit));
            for (permit = 0; taken.contains(permit); permit++) { } // the first that is free
            if (permit >= Integer.parseInt(waiter.line.field("limit")) || taken.contains(-1)) {
                return null;
            }
        } else if (!there.isEmpty() && !(shared && there.stream().allMatch(holder -> holder.shared))) {
            return null;
        }
        return new Holder(waiter.relay, waiter.line.field("owner"), name, shared, permit, ++fences);
    }

    synchronized void lose(String name) {
        for (Holder holder : List.copyOf(holders)) {
            if (holder.name.equals(name) && holders.remove(holder) && holder.relay != null) {
                String permit = holder.permit < 0 ? "" : " permit=" + holder.permit;
                holder.relay.answer("! LOST name=" + Line.quote(name) + " fence=" + holder.fence + permit + " reason=quorum owner=" + holder.owner);
            }
        }
        serve();
    }

    synchronized Elsewhere heldElsewhere(String name) {
        if (holders.stream().anyMatch(holder -> holder.name.equals(name))) {
            throw new IllegalStateException(name + " is not free");
        }
        Holder holder = new Holder(null, "", name, false, -1, ++fences);
        holders.add(holder);
        return () -> free(holder);
    }

    private synchronized void free(Holder holder) {
        holders.remove(holder);
        serve();
    }

    /** A client has closed its connection. */
    synchronized void gone(Relay relay) {
        waiters.removeIf(waiter -> waiter.relay == relay);
        holders.removeIf(holder -> holder.relay == relay);
        serve();
    }
}
