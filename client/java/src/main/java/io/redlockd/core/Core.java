// SPDX-License-Identifier: BSD-2-Clause
package io.redlockd.core;

import io.redlockd.DisconnectedException;
import io.redlockd.RedlockException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * A session, without I/O: bytes in, bytes and events out. The caller says what time it is with each call, opens a connection when {@link #dialAt} says so, and
 * closes it when {@link #online} is false. Nothing here sleeps, reads a clock, opens a socket or starts a thread, and nothing here is safe for threads: the
 * caller has a mutex.
 *
 * <p>In order: requests come in (submit, take, free, withdraw); lines come in (receive); the connection comes and goes (connected, disconnected, notConnected);
 * time passes (tick). What is to be sent is {@link #takeOutput}, what happened is in the two lists of events, when to call tick at the latest is {@link #wake}.
 */
public final class Core {
    private static final long PAUSE_FIRST = 10 * Time.MS;
    private static final long PAUSE_MOST = 500 * Time.MS;

    /** Where the connection is. */
    private enum State {
        /** No connection, and none is wanted. */
        OFF,
        /** No connection, and one is wanted at dialAt. */
        AWAY,
        /** Connected, but the session has not begun or come back yet. */
        GREETING,
        /** Requests are sent as they come. */
        UP,
        /** The session is over for good. */
        CLOSED
    }

    final Settings settings;
    private State state = State.OFF;
    private String why;
    private long time;
    private long dialAt = Time.NEVER;
    private long wake = Time.NEVER;
    private long giveUpAt = Time.NEVER;
    private long beatAt = Time.NEVER;
    private long lease = 10 * Time.SECOND;
    private long grace;
    private String id = "";
    private String secret = "";
    /** Counts sessions: a hold of another one is not told to the daemon. */
    private int session = 1;
    private int pauses;
    /** Whether an attempt to connect is under way. */
    private boolean dialing;
    private int tags;
    private final Map<Key, Hold> holds = new HashMap<>();
    /** Keys of what is held, asked for, or being given back. */
    private final Set<Key> used = new HashSet<>();
    private Map<String, Request> sent = new LinkedHashMap<>();
    /** Sent when the session is there. */
    private List<Request> later = new ArrayList<>();
    private List<Request> done = new ArrayList<>();
    private List<News> news = new ArrayList<>();
    private final StringBuilder out = new StringBuilder();
    private LineReader reader = new LineReader();

    /** A session that wants no connection yet. */
    public Core(Settings settings) {
        this.settings = settings;
        this.grace = settings.grace();
        this.why = settings.address() + ": no connection yet";
    }

    // --- what the front end looks at ---

    /** Whether there is to be a connection now. One that is open otherwise must be closed. */
    public boolean online() {
        return state == State.GREETING || state == State.UP;
    }

    /** Whether the session outlives its connection. */
    public boolean resumable() {
        return !secret.isEmpty() && grace > 0 && state != State.CLOSED;
    }

    /** When to open a connection. */
    public long dialAt() {
        return dialAt;
    }

    /** An attempt to connect begins. It ends with connected, notConnected or, if it is not wanted any more, notWanted. */
    public void dialing() {
        dialing = true;
        dialAt = Time.NEVER;
    }

    /** Whether the connection that was opened is wanted still. */
    public boolean isWanted() {
        return state == State.AWAY;
    }

    /** An attempt to connect has ended, and is of no use. */
    public void notWanted() {
        dialing = false;
    }

    /** When to call tick at the latest. */
    public long wake() {
        return wake;
    }

    /** What happened to the connection last, with the address. */
    public String why() {
        return why;
    }

    /** Whether nothing is left behind: nothing is held, asked for or being given back. For tests. */
    boolean idle() {
        return holds.isEmpty() && used.isEmpty() && sent.isEmpty() && later.isEmpty();
    }

    long time() {
        return time;
    }

    long lease() {
        return lease;
    }

    int session() {
        return session;
    }

    /** The bytes that are to be sent, or null. They are handed out once. */
    public byte[] takeOutput() {
        if (out.length() == 0) {
            return null;
        }
        byte[] bytes = Words.bytes(out.toString());
        out.setLength(0);
        return bytes;
    }

    /** The requests that have finished since the last call. */
    public List<Request> takeDone() {
        if (done.isEmpty()) {
            return List.of();
        }
        List<Request> taken = done;
        done = new ArrayList<>(1);
        return taken;
    }

    /** What else happened since the last call. */
    public List<News> takeNews() {
        if (news.isEmpty()) {
            return List.of();
        }
        List<News> taken = news;
        news = new ArrayList<>(1);
        return taken;
    }

    // --- requests ---

    /** Sends a request, at once or when the session is there. Returns it. */
    public <R extends Request> R submit(R request, long now) {
        if (state == State.UP) {
            send(request, now);
            return request;
        }
        if (state == State.CLOSED) {
            throw new DisconnectedException(settings.address() + ": this client is closed");
        }
        later.add(request);
        wake = Math.min(wake, request.deadline);
        open(now);
        return request;
    }

    /** Something is due at this moment. */
    void wakeBy(long moment) {
        wake = Math.min(wake, moment);
    }

    /** Puts the line of a request into the output. T of its answer is now, or later. */
    void send(Request request, long now) {
        String tag = "@" + Integer.toString(++tags, 36);
        request.tag = tag;
        request.asked = now;
        if (request.finished()) { // the caller has been told, but it is to be carried out
            request.deadline = now + Time.PATIENCE;
        }
        sent.put(tag, request);
        out.append(tag).append(' ').append(request.line(this, now)).append('\n');
        wake = Math.min(wake, request.deadline);
        if (settings.heartbeat() > 0) {
            beatAt = now + settings.heartbeat() / 3;
        }
    }

    /**
     * Asks for locks, a permit or a job. who is the thread: all that it holds has this owner, so that the daemon sees who waits for whom. Only what it has
     * already, or asks for already, it asks for as somebody else.
     */
    public Take take(Terms terms, String who, long now) {
        if (terms.isJob()) {
            return submit(new Take(terms, "", List.of(), now), now);
        }
        String owner = who;
        List<Key> keys = keysOf(terms, owner);
        for (int n = 1; keys.stream().anyMatch(used::contains); n++) {
            owner = who + "." + n;
            keys = keysOf(terms, owner);
        }
        Take request = new Take(terms, owner, keys, now);
        submit(request, now);
        used.addAll(keys);
        return request;
    }

    private static List<Key> keysOf(Terms terms, String owner) {
        if (terms.names().size() == 1) {
            return List.of(new Key(terms.names().get(0), owner));
        }
        return terms.names().stream().map(name -> new Key(name, owner)).toList();
    }

    /** The caller wants it no more: the wait is cancelled, or what was granted is given back. */
    private void withdraw(Take request, long now) {
        if (request.withdrawn) {
            return;
        }
        request.withdrawn = true;
        if (!request.holds.isEmpty()) {
            request.finish(null, null);
            request.giveBack(this, now);
        } else if (sent.get(request.tag) == request) {
            submit(new Cancel(request.tag, now + Time.PATIENCE), now);
        } else if (later.contains(request) && !(resumable() && !request.tag.isEmpty())) { // nobody has heard of it
            later.remove(request);
            used.removeAll(request.keys);
        }
    }

    /** The caller of any request wants the answer no more. What is under way at the daemon is cancelled, unless it is to be carried out in any case. */
    public void drop(Request request, long now) {
        if (request instanceof Take take) {
            withdraw(take, now);
        } else if (request instanceof Ask && !request.survives() && sent.get(request.tag) == request) { // it may wait, as RATE does
            submit(new Cancel(request.tag, now + Time.PATIENCE), now);
        }
    }

    /** Gives a hold back. Null: there is nothing to tell the daemon any more. */
    public Free free(Hold hold, String extra, long now) {
        if (hold.freed) {
            return null;
        }
        hold.freed = true;
        if (hold.session != session || holds.get(hold.key) != hold) { // another session; or the job was taken again meanwhile
            return null;
        }
        return submit(new Free(hold, extra, now + Time.PATIENCE), now);
    }

    /** Asks whether a hold is still there. */
    public Check check(Hold hold, long now) {
        Check request = new Check(hold, null, now + Time.PATIENCE);
        if (hold.alive()) {
            return submit(request, now);
        }
        hold.checking = false;
        finish(request, null, hold.lost());
        return request;
    }

    /** Renews a lease. */
    public Extend extend(Hold hold, long ttl, long now) {
        if (!hold.alive()) {
            throw hold.lost();
        }
        return submit(new Extend(hold, ttl, now + Time.PATIENCE), now);
    }

    /** Ends the session. Null: there is no connection to say so on. */
    public Ask quit(long now) {
        if (state != State.UP) {
            return null;
        }
        Ask request = new Quit(now + Time.SECOND);
        send(request, now);
        return request;
    }

    /** Nothing is held from here on, and nothing is asked any more. */
    public void close() {
        why = settings.address() + ": this client is closed";
        state = State.CLOSED;
        endSession("closed");
    }

    /** The clock has stood still, as in a suspend: nothing is relied on until a CHECK that is sent from now on is answered. */
    public void doubt(long now) {
        for (Hold hold : holds.values()) {
            if (hold.alive()) {
                hold.doubt = now;
                hold.checkAt = now;
                hold.checking = false; // one that is under way was sent before
            }
        }
        wake = now;
    }

    // --- what requests do with the session ---

    /** The caller of a request is to be told. */
    void finish(Request request, Object result, RedlockException error) {
        if (!request.finished()) {
            request.finish(result, error);
            done.add(request);
        }
    }

    /** The session has this from now on. */
    void has(Hold hold) {
        holds.put(hold.key, hold);
        wake = Math.min(wake, Math.min(hold.checkAt, hold.until));
    }

    /** Another hold of this key may be asked for. */
    void unused(Key key) {
        used.remove(key);
    }

    /** The session has it no more. */
    void forget(Hold hold) {
        hold.freed = true;
        if (holds.remove(hold.key, hold)) {
            used.remove(hold.key);
        }
    }

    /** Frees what nobody knows of. */
    void returnQuietly(Hold hold, long now) {
        boolean old = hold.freed || hold.session != session;
        hold.freed = true;
        if (!old) {
            holds.remove(hold.key);
            freeQuietly(hold, now);
        }
    }

    /** Sends a release of which only the errors of the connection matter. The key stays in use until it is answered. */
    void freeQuietly(Hold hold, long now) {
        used.add(hold.key);
        submit(new Quiet(hold.freeUnseen(), hold.key, now + Time.PATIENCE), now);
    }

    /** A hold cannot be relied on any more. Its key stays in use until its caller lets it go, and so acknowledges the loss. */
    void lose(Hold hold, String reason) {
        if (hold.alive()) {
            hold.reason = reason;
            news.add(new News(News.Kind.LOST, hold, reason));
        }
    }

    /** An answer has moved the deadline on. */
    void relieve(Hold hold, long now) {
        wake = Math.min(wake, Math.min(hold.checkAt, hold.until));
        if (hold.riskUntil != Time.NEVER && hold.until > hold.riskUntil + hold.ttl / 10) {
            safe(hold);
        }
    }

    private void safe(Hold hold) {
        if (hold.riskUntil != Time.NEVER) {
            hold.riskUntil = Time.NEVER;
            news.add(new News(News.Kind.SAFE, hold, ""));
        }
    }

    /** A renewal failed or is late, or no answer comes. */
    private void risk(Hold hold) {
        if (hold.riskUntil == Time.NEVER) {
            hold.riskUntil = hold.until;
            news.add(new News(News.Kind.RISK, hold, ""));
        }
    }

    /** Sends a request again when the session comes back. */
    void park(Request request) {
        if (!later.contains(request)) {
            later.add(request);
            wake = Math.min(wake, request.deadline);
        }
    }

    // --- lines ---

    /** Takes in bytes of the daemon. */
    public void receive(ByteBuffer data, long now) {
        time = now;
        try {
            Map<String, Request> mine = sent;
            for (String text : reader.feed(data)) {
                int blank = text.indexOf(' ');
                String tag = blank < 0 ? text : text.substring(0, blank);
                Request request = mine.get(tag);
                if (request != null) {
                    answer(request, new Line(blank < 0 ? "" : text.substring(blank + 1)), now);
                } else if (tag.equals("!")) {
                    push(new Line(text), now);
                }
                if (sent != mine) { // the connection has been given up
                    return;
                }
            }
        } catch (ProtocolError error) {
            disconnected("the daemon sent what is no answer: " + error.getMessage(), now);
        }
    }

    private void answer(Request request, Line line, long now) {
        switch (line.kind) {
            case "*" -> request.row(line);
            case "OK", "BUSY", "TIMEOUT", "ERR" -> {
                sent.remove(request.tag);
                try {
                    request.answer(this, line, now);
                } catch (ProtocolError error) {
                    sent.put(request.tag, request); // it ends with the connection
                    throw error;
                }
            }
            default -> { } // a word of another time
        }
    }

    private void push(Line line, long now) {
        boolean risk = line.code.equals("RISK");
        boolean lost = line.code.equals("LOST");
        Hold hold = risk || lost || line.code.equals("SAFE") ? holdOf(line) : null;
        if (hold == null || !hold.alive()) {
            return;
        }
        if (lost) {
            lose(hold, line.get("reason") == null ? "unknown" : line.get("reason"));
            return;
        }
        hold.until = Math.min(hold.until, now + line.nanos(risk ? "left_ms" : "valid_ms"));
        if (risk) {
            risk(hold);
        } else {
            safe(hold);
            hold.checkAt = now; // a push moves no deadline on
        }
        wake = now;
    }

    /** The hold that a push is about, or null. */
    private Hold holdOf(Line line) {
        String owner = line.get("owner");
        if (owner != null && owner.startsWith(Key.JOB)) { // the lock of a job
            return holds.values().stream().filter(hold -> hold instanceof JobHold job && owner.equals(Key.JOB + job.key.name() + "/" + job.job))
                    .findFirst().orElse(null);
        }
        Hold hold = holds.get(Key.of(line));
        return hold != null && hold.isAt(line) ? hold : null;
    }

    // --- the connection ---

    /** Wants a connection. */
    private void open(long now) {
        if (state == State.OFF) {
            dial(now);
        }
    }

    /** A connection is there: the session begins, or comes back. */
    public void connected(long now) {
        time = now;
        dialing = false;
        state = State.GREETING;
        dialAt = Time.NEVER;
        reader = new LineReader();
        if (settings.user() != null && settings.secret() != null) {
            send(new Greeting.Auth(settings, now + Time.PATIENCE), now);
        } else {
            greet(now);
        }
    }

    /** Sends RESUME, or HELLO. */
    void greet(long now) {
        if (!id.isEmpty() && resumable()) {
            send(new Greeting.Resume(id, secret, now + Time.PATIENCE), now);
        } else {
            send(new Greeting.Hello(settings, grace, now + Time.PATIENCE), now);
        }
    }

    /** An attempt to connect has failed. */
    public void notConnected(String text, long now) {
        time = now;
        dialing = false;
        why = settings.address() + ": " + text;
        if (resumable()) {
            dialAgain(now);
        } else {
            giveUp();
        }
    }

    /** The connection broke, or is given up. */
    public void disconnected(String text, long now) {
        if (!online()) {
            return;
        }
        time = now;
        why = settings.address() + ": " + text;
        boolean greeting = state == State.GREETING;
        List<Request> pending = new ArrayList<>(sent.values());
        sent = new LinkedHashMap<>();
        out.setLength(0);
        beatAt = Time.NEVER;
        news.add(new News(News.Kind.DOWN, null, why));
        if (!resumable()) {
            later.addAll(0, pending);
            giveUp();
            return;
        }
        state = State.AWAY;
        List<Request> kept = new ArrayList<>();
        for (Request request : pending) {
            if (request.survives() && (request.deadline > now || request.finished())) {
                kept.add(request);
            } else if (!(request instanceof Greeting)) {
                request.overdue(this);
            }
        }
        later.addAll(0, kept);
        if (greeting) {
            dialAgain(now);
            return;
        }
        giveUpAt = now + grace;
        for (Hold hold : holds.values()) {
            if (hold.alive() && hold.until < Time.NEVER) {
                giveUpAt = Math.max(giveUpAt, hold.until);
            }
        }
        pauses = 0;
        dial(now);
    }

    private void dial(long at) {
        state = State.AWAY;
        dialAt = dialing ? Time.NEVER : at;
        wake = Math.min(wake, dialAt);
    }

    private void dialAgain(long now) {
        if (now >= giveUpAt) {
            giveUp();
            return;
        }
        long longest = Math.min(PAUSE_FIRST << Math.min(pauses, 10), PAUSE_MOST);
        pauses++;
        dial(now + longest / 2 + ThreadLocalRandom.current().nextLong(longest / 2));
    }

    /** There is no session any more, and nobody tries to have one until the next request. */
    private void giveUp() {
        state = State.OFF;
        endSession("disconnected");
    }

    /** All holds are lost by name, and all requests are told. */
    private void endSession(String reason) {
        dialAt = Time.NEVER;
        giveUpAt = Time.NEVER;
        forgetSession(reason);
        List<Request> pending = new ArrayList<>(sent.values());
        pending.addAll(later);
        sent = new LinkedHashMap<>();
        later = new ArrayList<>();
        out.setLength(0);
        pending.forEach(request -> request.overdue(this));
        used.clear();
    }

    private void forgetSession(String reason) {
        id = "";
        secret = "";
        session++;
        grace = settings.grace();
        new ArrayList<>(holds.values()).forEach(hold -> lose(hold, reason));
        holds.clear();
    }

    // --- greeting: what its answers do ---

    /** HELLO was answered OK. */
    void begun(Line line, long now) {
        id = line.get("session") == null ? "" : line.get("session");
        secret = line.get("secret") == null ? "" : line.get("secret");
        lease = line.number("lease_ms", 10000) * Time.MS;
        up(now);
    }

    /** HELLO was refused. Whether another one was sent: max_grace of the daemon has become smaller since the session before. */
    boolean humbler(Line line, long now) {
        if (!(line.code.equals("LIMIT") || line.code.equals("ARG")) || session == 1 || grace == 0) {
            return false;
        }
        grace = 0;
        greet(now);
        return true;
    }

    /** RESUME was answered OK: what has a row is held, what has none is lost, unless the daemon says that some are undecided or did not fit. */
    void resumed(List<Line> rows, Line line, long asked, long now) {
        Map<Key, Line> at = new LinkedHashMap<>();
        rows.forEach(row -> at.put(Key.of(row), row));
        boolean undecided = line.number("open", 0) > 0 || line.number("more", 0) > 0;
        for (Hold hold : new ArrayList<>(holds.values())) {
            Line row = at.remove(hold.key);
            if (hold.freed) { // its release is asked again
                continue;
            }
            if (row != null && hold.isAt(row)) {
                hold.confirm(asked, row.nanos("valid_ms"));
                relieve(hold, now);
            } else if (row == null && undecided) {
                hold.checkAt = now;
            } else {
                lose(hold, "evicted");
            }
        }
        Set<Key> wanted = new HashSet<>();
        Set<String> queues = new HashSet<>();
        for (Request request : later) {
            if (request instanceof Take take) {
                wanted.addAll(take.keys);
                if (take.terms.isJob() && !take.withdrawn) {
                    queues.add(take.terms.names().get(0));
                }
            } else if (request instanceof Quiet quiet) {
                wanted.add(quiet.key);
            }
        }
        knownJobs(queues, now);
        up(now);
        at.forEach((key, row) -> surplus(key, row, wanted, queues, now));
    }

    /** Before a TAKE is asked again each job that is known is mentioned, so that it is not answered with one of them. */
    private void knownJobs(Set<String> queues, long now) {
        List<Request> known = new ArrayList<>();
        for (Hold hold : holds.values()) {
            if (hold instanceof JobHold && hold.alive() && queues.contains(hold.key.name())) {
                known.add(new Check(hold, null, now + Time.PATIENCE));
            }
        }
        later.addAll(0, known);
    }

    /** A row of what nobody knows of: the grant, or the release, was answered over the connection that broke. */
    private void surplus(Key key, Line row, Set<Key> wanted, Set<String> queues, long now) {
        if (row.get("job") != null) {
            if (!queues.contains(key.name())) {
                returnQuietly(new JobHold(row, lease, session), now);
            }
        } else if (!wanted.contains(key) && !holds.containsKey(key) && key.owner().startsWith("t")) {
            long fence = row.number("fence", 0);
            Hold hold = row.get("permit") == null ? new Hold(key, fence, lease, session)
                    : new Permit(key, fence, lease, session, row.number("permit", 0));
            returnQuietly(hold, now);
        }
    }

    /** The daemon does not know the session any more: all is lost by name, and what waits begins anew. */
    void gone(long now) {
        forgetSession("expired");
        List<Request> before = later;
        later = new ArrayList<>();
        before.forEach(request -> request.sessionOver(this));
        before.removeIf(request -> request.finished());
        later.addAll(0, before);
        used.clear();
        for (Request request : later) {
            if (request instanceof Take take) {
                used.addAll(take.keys);
            }
        }
        greet(now);
    }

    /** The daemon does not want us. No request is answered, nor is any later one, until the next attempt. */
    void refused(RedlockException error) {
        why = error.getMessage();
        news.add(new News(News.Kind.DOWN, null, why));
        later.forEach(request -> finish(request, null, error));
        giveUp();
    }

    private void up(long now) {
        state = State.UP;
        pauses = 0;
        giveUpAt = Time.NEVER;
        news.add(new News(News.Kind.UP, null, ""));
        List<Request> waited = later;
        later = new ArrayList<>();
        for (Request request : waited) {
            if (request.deadline <= now && !request.finished() && !(request instanceof Quiet)) {
                request.overdue(this);
            }
            if (!request.finished() || request instanceof Take || request instanceof Free) {
                request.again(this, now);
            }
        }
        later = new ArrayList<>(); // what was parked by its overdue() has been sent now
        wake = now; // what is due is looked for
    }

    // --- time ---

    /** Does what is due. Sets wake to when something is due next. */
    public void tick(long now) {
        time = now;
        if (now < wake) {
            return;
        }
        if (state == State.UP) {
            keep(now);
        }
        expire(now);
        Request late = sent.values().stream().filter(request -> request.deadline <= now).findFirst().orElse(null);
        if (late != null) {
            disconnected("no answer within " + (now - late.asked) / Time.MS + " ms", now);
        }
        for (Request request : new ArrayList<>(later)) {
            if (request.deadline <= now && !request.finished()) {
                later.remove(request);
                request.overdue(this);
            }
        }
        wake = nextMoment();
    }

    /** CHECKs what is due, and what is nearly due with it: one moment for many holds. */
    private void keep(long now) {
        for (Hold hold : holds.values()) {
            if (hold.alive() && !hold.checking && hold.checkAt <= now + hold.ttl / 30) {
                send(new Check(hold, null, now + Time.PATIENCE), now);
            }
        }
        if (now >= beatAt) {
            out.append('\n');
            beatAt = now + settings.heartbeat() / 3;
        }
    }

    private void expire(long now) {
        for (Hold hold : holds.values()) {
            if (hold.alive() && hold.until <= now) {
                lose(hold, "expired");
            } else if (hold.alive() && hold.riskAt() <= now) {
                risk(hold);
            }
        }
    }

    private long nextMoment() {
        long next = Math.min(dialAt, beatAt);
        for (Request request : sent.values()) {
            next = Math.min(next, request.deadline);
        }
        for (Request request : later) {
            next = request.finished() ? next : Math.min(next, request.deadline);
        }
        for (Hold hold : holds.values()) {
            if (hold.alive()) {
                next = Math.min(next, Math.min(hold.until, hold.riskAt()));
                next = hold.checking || state != State.UP ? next : Math.min(next, hold.checkAt);
            }
        }
        return next;
    }
}
