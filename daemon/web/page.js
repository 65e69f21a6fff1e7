"use strict";
/*
 * What the daemon tells is shown as text, never as markup: names, labels and notes come from strangers. A snapshot is fetched every two seconds, and soon after
 * an event; events arrive over a stream of their own.
 */
const EVERY_MS = 2000, SOON_MS = 300, EVENTS_MOST = 200, LOSSES_MOST = 20, LOCKS_MOST = 200;
const $ = id => document.getElementById(id);
const contention = new Map(), losses = [];
let leases = new Map(), leasesBefore = new Map();
let prefix = "", paused = false, stream = null, timer = 0, asking = false, answers = false, missed = 0, soonAt = 0;

function make(tag, text, kind) {
	const e = document.createElement(tag);
	if (text !== undefined)
		e.textContent = text;
	if (kind)
		e.className = kind;
	return e;
}

/* A text that a browser may reorder or hide is shown as it is: control characters, marks of direction and what takes no room as their numbers. */
function plain(text) {
	return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\ufff9-\ufffb\ud800-\udfff\p{Bidi_Control}\p{Default_Ignorable_Code_Point}]/gu,
		c => "\\u" + c.codePointAt(0).toString(16).padStart(4, "0"));
}

function age(ms) {
	const s = ms / 1000;
	if (s < 1)
		return Math.max(0, Math.round(ms)) + " ms";
	if (s < 60)
		return s.toFixed(s < 10 ? 1 : 0) + " s";
	if (s < 3600)
		return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
	return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
}

function person(p) {
	const words = [];
	if (p.label)
		words.push(plain(p.label));
	if (p.peer && p.peer !== "unix")
		words.push(plain(p.peer));
	if (p.pid > 0)
		words.push("pid " + p.pid);
	if (p.uid >= 0)
		words.push("uid " + p.uid);
	if (p.host && p.host !== p.label)
		words.push(plain(p.host));
	return words.join(" ") || "somebody";
}

/* The longest validity that this hold has shown so far, which a renewal brings back: nobody tells its ttl. */
function lease(lock, p, valid) {
	const key = JSON.stringify([lock.name, p.session, p.fence]), most = Math.max(valid, leasesBefore.get(key) || 0, 1);
	leases.set(key, most);
	return most;
}

function holder(lock, p) {
	const box = make("div"), valid = p.valid_ms ?? p.ttl_ms, meter = make("meter");
	let text = "held by " + person(p) + (p.held_ms >= 0 ? " for " + age(p.held_ms) : "");
	if (valid >= 0)
		text += ", sure for " + age(valid);
	if (p.count > 1)
		text += ", " + p.count + " times";
	if (p.note)
		text += " — " + plain(p.note);
	box.append(make("p", text));
	if (valid >= 0) {
		meter.max = lease(lock, p, valid);
		meter.low = meter.max / 3;
		meter.high = meter.max * 0.6;
		meter.optimum = meter.max;
		meter.value = valid;
		meter.title = "what is left of the lease";
		meter.setAttribute("aria-label", "left of the lease: " + age(valid));
		box.append(meter);
	}
	return box;
}

function lockBox(lock) {
	const box = make("article", undefined, "lock"), title = make("h3", plain(lock.name)), line = make("ol", undefined, "line");
	if (lock.kind !== "lock")
		title.append(make("span", lock.kind + (lock.limit ? " of " + lock.limit : ""), "tag"));
	else if (lock.mode === "shared")
		title.append(make("span", "shared", "tag"));
	if (lock.alarm)
		title.append(make("span", "alarm: " + plain(lock.alarm), "tag bad"));
	box.append(title);
	if (lock.kind === "queue")
		box.append(make("p", lock.due + " due, " + lock.leased + " taken, " + lock.dead + " dead"));
	for (const p of lock.holders)
		box.append(holder(lock, p));
	if (lock.kept)
		box.append(make("p", "nobody holds it, and it is kept" + (lock.kept.ttl_ms >= 0 ? " for " + age(lock.kept.ttl_ms) : "")));
	else if (!lock.holders.length && lock.kind !== "queue")
		box.append(make("p", "nobody holds it", "faint"));
	lock.waiters.forEach((p, i) => line.append(make("li", (i + 1) + ". " + person(p) + (p.waited_ms >= 0 ? " waits for " + age(p.waited_ms) : " waits") +
		(p.note ? " — " + plain(p.note) : ""))));
	if (lock.waiters.length)
		box.append(line);
	return box;
}

function total(list, name, value) {
	const box = make("div");
	box.append(make("dt", name), make("dd", value));
	list.append(box);
}

/* A joined store with a cause votes, but not all goes well there. */
const isBad = n => n.state !== "joined" || n.cause;

function showStores(s) {
	const list = $("stores"), totals = make("dl");
	list.replaceChildren(...s.stores.map(n => {
		const bad = isBad(n), item = make("li", (bad ? "✗ " : "✓ ") + plain(n.node) + " " + n.state, bad ? "bad" : "good");
		if (n.rtt_us)
			item.append(make("span", " " + (n.rtt_us / 1000).toFixed(2) + " ms", "faint"));
		if (n.reason)
			item.append(make("span", " " + plain(n.reason), "faint"));
		return item;
	}));
	total(totals, "held", s.totals.locks_held);
	total(totals, "waiting", s.totals.waiters);
	total(totals, "sessions", s.totals.sessions);
	total(totals, "granted", s.totals.grants_total);
	total(totals, "refused", s.totals.refusals_total);
	total(totals, "lost", s.totals.losses_total);
	totals.id = "totals";
	$("totals").replaceWith(totals);
}

function showAlarms(s) {
	const alarms = [];
	if (s.server.quorum !== "yes")
		alarms.push("No quorum: too few stores can be used, so no lock is granted.");
	for (const n of s.stores)
		if (isBad(n))
			alarms.push("Store " + plain(n.node) + " is " + n.state + (n.reason ? ": " + plain(n.reason) : "") + ".");
	for (const lock of s.locks)
		if (lock.alarm)
			alarms.push(plain(lock.name) + ": " + plain(lock.alarm) + " for too long.");
	if (missed)
		alarms.push(missed + " events were left out: they came too fast.");
	$("alarms").replaceChildren(...alarms.map(text => make("li", "! " + text, "bad")));
	if (!alarms.length)
		$("alarms").replaceChildren(make("li", "none", "good"));
}

function showContended(s) {
	for (const lock of s.locks)
		if (lock.waiters.length)
			contention.set(lock.name, Math.max(contention.get(lock.name) || 0, lock.waiters.length));
	const first = [...contention].sort((a, b) => b[1] - a[1]).slice(0, 10);
	if (contention.size > 1000) {
		contention.clear();
		first.forEach(([name, n]) => contention.set(name, n));
	}
	$("contended").replaceChildren(...first.map(([name, n]) => make("li", plain(name) + ": up to " + n + " waiting")));
	if (!first.length)
		$("contended").replaceChildren(make("li", "nobody has waited since this page was opened", "faint"));
}

function show(s) {
	document.title = "redlockd " + plain(s.server.host);
	$("host").textContent = plain(s.server.host) + " " + s.server.version + ", store " + s.server.store + ", up " + age(s.server.uptime_ms);
	showStores(s);
	showAlarms(s);
	showContended(s);
	leasesBefore = leases;
	leases = new Map();
	$("locks").replaceChildren(...s.locks.map(lockBox));
	if (!s.locks.length)
		$("locks").replaceChildren(make("p", "no lock is held or waited for", "faint"));
	$("more").hidden = !s.more;
}

function state(text, kind) {
	$("link").textContent = text;
	$("link").className = kind || "";
}

/* Live are both: the state, and the events. */
function showLink() {
	if (!answers)
		return;
	if (stream.readyState === EventSource.OPEN)
		state("live", "good");
	else
		state("no events come", "bad");
}

async function ask() {
	clearTimeout(timer);
	if (asking)
		return;
	asking = true;
	try {
		const answer = await fetch("/api/v1/snapshot?limit=" + LOCKS_MOST + "&prefix=" + encodeURIComponent(prefix), {cache: "no-store"});
		if (!answer.ok)
			throw new Error("status " + answer.status);
		show(await answer.json());
		answers = true;
		showLink();
	} catch (e) {
		answers = false;
		state("no answer from the daemon (" + e.message + "); trying again", "bad");
	}
	asking = false;
	clearTimeout(timer);
	timer = setTimeout(ask, document.hidden ? 5 * EVERY_MS : EVERY_MS);
}

/* However many events come. */
function soon() {
	if (Date.now() < soonAt)
		return;
	soonAt = Date.now() + SOON_MS;
	clearTimeout(timer);
	timer = setTimeout(ask, SOON_MS);
}

function told(message) {
	const e = JSON.parse(message.data), text = new Date().toTimeString().slice(0, 8) + "  " + message.type.padEnd(8) + "  " + plain(e.name) + "  " + plain(e.who || "") +
		(e.held_ms >= 0 ? "  held " + age(e.held_ms) : "") + (e.reason ? "  " + plain(e.reason) : "") + (e.waiters ? "  waiting: " + e.waiters : "");
	if (message.type === "lost") {
		losses.unshift(text);
		losses.length = Math.min(losses.length, LOSSES_MOST);
		$("losses").replaceChildren(...losses.map(line => make("li", line, "bad")));
	}
	if (e.waiters)
		contention.set(e.name, Math.max(contention.get(e.name) || 0, e.waiters));
	if (!paused) {
		$("events").prepend(make("li", text, message.type === "lost" ? "bad new" : "new"));
		while ($("events").children.length > EVENTS_MOST)
			$("events").lastChild.remove();
	}
	soon();
}

function watch() {
	if (stream)
		stream.close();
	stream = new EventSource("/api/v1/events?prefix=" + encodeURIComponent(prefix));
	stream.onopen = stream.onerror = showLink;
	for (const kind of ["granted", "released", "lost", "waiting"])
		stream.addEventListener(kind, told);
	stream.addEventListener("missed", message => { missed += JSON.parse(message.data).count; });
	stream.addEventListener("gap", message => { missed += JSON.parse(message.data).missed; });
}

$("search").addEventListener("submit", e => e.preventDefault());
$("prefix").addEventListener("change", () => {
	prefix = $("prefix").value;
	watch();
	ask();
});
$("pause").addEventListener("click", () => {
	paused = !paused;
	$("pause").setAttribute("aria-pressed", paused);
	$("pause").textContent = paused ? "Go on" : "Pause";
});
document.addEventListener("keydown", e => {
	if (e.key === "/" && document.activeElement !== $("prefix")) {
		e.preventDefault();
		$("prefix").focus();
	} else if (e.key === "Escape" && document.activeElement === $("prefix")) {
		$("prefix").value = "";
		$("prefix").dispatchEvent(new Event("change"));
		$("prefix").blur();
	}
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
$("losses").replaceChildren(make("li", "none since this page was opened", "faint"));
watch();
ask();
