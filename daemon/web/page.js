"use strict";
/*
 * What the daemon tells is shown as text, never as markup: names, labels and notes come from strangers. A snapshot is fetched every second or two, and soon
 * after an event; events arrive over a stream of their own. What is older than STALE_MS is not shown.
 */
const EVERY_MS = 1000, SOON_MS = 300, STALE_MS = 5000, LONG_MS = 60000, CALM_MS = 30000, GONE_MS = 10000;
const EVENTS_MOST = 200, LOSSES_MOST = 20, LOCKS_MOST = 200, WORST = 5;
const COLUMNS = ["lock", "holder", "held", "waiting", "lease"];
const $ = id => document.getElementById(id);
const losses = [], rows = new Map(); /* by name: what is shown of a lock, and since when it is like that */
let order = [], sortBy = "", downwards = false;
let leases = new Map(), leasesBefore = new Map();
let prefix = "", paused = false, stream = null, timer = 0, typing = 0, asking = false, answers = false, answered = 0, missed = 0, soonAt = 0, since = 0, was = "";

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

const clock = at => new Date(at).toTimeString().slice(0, 8);

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

/* Where there is little room: a label says enough. */
const short = p => (p.label ? plain(p.label) + (p.host && p.host !== p.label ? " " + plain(p.host) : "") : person(p));

/* The longest validity that this hold has shown so far, which a renewal brings back: nobody tells its ttl. */
function meterOf(lock, p) {
	const meter = make("meter"), valid = p.valid_ms ?? p.ttl_ms, key = JSON.stringify([lock.name, p.session, p.fence]);
	const most = Math.max(valid, leasesBefore.get(key) || 0, leases.get(key) || 0, 1);
	leases.set(key, most);
	meter.max = most;
	meter.low = most / 3;
	meter.high = most * 0.6;
	meter.optimum = most;
	meter.value = valid;
	meter.title = "sure for " + age(valid);
	meter.setAttribute("aria-label", "left of the lease: " + age(valid));
	return meter;
}

const least = (lock, field) => lock.holders.reduce((a, p) => Math.min(a, p[field] ?? p.ttl_ms ?? Infinity), Infinity);
const longest = (list, field) => list.reduce((a, p) => Math.max(a, p[field] ?? -1), -1);

/* --- the table --- */

/* Alarmed, contended, and all others. A lock that was contended stays among these for a while, so that rows do not jump. */
function rank(row, now) {
	if (row.lock.alarm)
		return 0;
	if (row.lock.waiters.length)
		row.contended = now;
	return now - (row.contended ?? -Infinity) < CALM_MS ? 1 : 2;
}

function sortValue(name) {
	const {lock} = rows.get(name);
	switch (sortBy) {
	case "holder": return lock.holders.length ? short(lock.holders[0]) : "";
	case "held": return longest(lock.holders, "held_ms");
	case "waiting": return lock.waiters.length;
	case "lease": return least(lock, "valid_ms");
	default: return name;
	}
}

function compare(a, b) {
	const x = sortValue(a), y = sortValue(b);
	return (x < y ? -1 : x > y ? 1 : a < b ? -1 : 1) * (downwards ? -1 : 1);
}

/* Each lock keeps its place. A new one takes that of one that is gone, or the last; only a change of rank moves a row. */
function arrange(list, now) {
	const seen = new Set(list.map(lock => lock.name));
	for (const lock of list) {
		const row = rows.get(lock.name) || {rank: -1};
		row.lock = lock;
		row.goneAt = 0;
		rows.set(lock.name, row);
	}
	for (const [name, row] of rows)
		if (!seen.has(name)) {
			row.goneAt ||= now;
			row.lock = {...row.lock, holders: [], waiters: [], alarm: undefined};
		}
	for (const [name, row] of rows) {
		const now_rank = row.goneAt ? row.rank : rank(row, now);
		if (row.rank < 0 || (now_rank !== row.rank && !sortBy)) {
			const first = row.rank < 0;
			row.rank = now_rank;
			place(name, first, now);
		}
	}
	while (order.length && rows.get(order.at(-1)).goneAt)
		rows.delete(order.pop());
	order = order.filter(name => {
		const stays = !rows.get(name).goneAt || now - rows.get(name).goneAt < GONE_MS;
		if (!stays)
			rows.delete(name);
		return stays;
	});
}

function place(name, first, now) {
	const row = rows.get(name);
	if (!first)
		order.splice(order.indexOf(name), 1);
	const gone = first ? order.findIndex(other => rows.get(other).goneAt && rows.get(other).rank === row.rank) : -1;
	if (gone >= 0) {
		rows.delete(order[gone]);
		order[gone] = name;
		return;
	}
	let at = order.findIndex(other => rows.get(other).rank > row.rank);
	if (sortBy)
		at = order.findIndex(other => compare(name, other) < 0);
	order.splice(at < 0 ? order.length : at, 0, name);
}

function resort() {
	order.sort((a, b) => (sortBy ? 0 : rows.get(a).rank - rows.get(b).rank) || compare(a, b));
}

function holderText(lock) {
	if (lock.kind === "queue")
		return lock.due + " due, " + lock.leased + " taken, " + lock.dead + " dead";
	if (lock.holders.length)
		return lock.holders.map(short).join(", ");
	if (lock.kept)
		return "nobody; kept" + (lock.kept.ttl_ms >= 0 ? " for " + age(lock.kept.ttl_ms) : "");
	return lock.holder ? plain(lock.holder) : "nobody";
}

const link = name => "#lock=" + encodeURIComponent(name.replace(/[\ud800-\udfff]/gu, "\ufffd"));

function rowOf(name) {
	const {lock, goneAt} = rows.get(name), tr = make("tr", undefined, goneAt ? "free" : chosen() === link(name) ? "picked" : ""), first = make("td"), a = make("a", plain(name));
	const held = longest(lock.holders, "held_ms"), lease = make("td"), waiting = make("td");
	a.href = link(name);
	a.title = plain(name);
	first.append(a);
	if (lock.alarm)
		first.append(make("span", plain(lock.alarm), "tag bad"));
	if (lock.kind === "semaphore")
		first.append(make("span", (lock.held ?? lock.holders.length) + " of " + lock.limit, "tag"));
	else if (lock.kind !== "lock")
		first.append(make("span", lock.kind, "tag"));
	else if (lock.mode === "shared" && !goneAt)
		first.append(make("span", "shared", "tag"));
	if (lock.waiters.length)
		waiting.append(make("b", String(lock.waiters.length)), " " + short(lock.waiters[0]));
	if (!goneAt && lock.holders.length && least(lock, "valid_ms") < Infinity)
		lease.append(meterOf(lock, lock.holders.reduce((a, b) => ((b.valid_ms ?? b.ttl_ms) < (a.valid_ms ?? a.ttl_ms) ? b : a))));
	const holder = make("td", goneAt ? "free" : holderText(lock));
	holder.title = lock.holders.map(person).join(", ");
	tr.append(first, holder, make("td", held >= 0 ? age(held) : ""), waiting, lease);
	return tr;
}

function showTable() {
	const shown = order.filter(name => name.startsWith(prefix)), focused = document.activeElement?.closest?.("#locks a")?.hash;
	$("locks").replaceChildren(...shown.map(rowOf));
	if (!shown.length) {
		const tr = make("tr"), td = make("td", prefix ? "No lock of this host begins so. redlock show NAME asks the stores who holds one elsewhere." : "No lock is held or waited for.", "faint");
		td.colSpan = COLUMNS.length;
		tr.append(td);
		$("locks").append(tr);
	}
	if (focused)
		[...document.querySelectorAll("#locks a")].find(a => a.hash === focused)?.focus();
	$("heads").replaceChildren(...COLUMNS.map(name => {
		const th = make("th"), button = make("button", name + (sortBy === name ? (downwards ? " ↓" : " ↑") : ""));
		th.scope = "col";
		th.ariaSort = sortBy === name ? (downwards ? "descending" : "ascending") : "none";
		button.type = "button";
		button.dataset.column = name;
		th.append(button);
		return th;
	}));
}

/* --- one lock --- */

const chosen = () => location.hash;

function showOne() {
	const name = order.find(one => link(one) === chosen()), {lock, goneAt} = rows.get(name) || {}, box = $("one");
	if (!name) {
		if (chosen().startsWith("#lock=")) {
			$("one-title").textContent = plain(decodeURIComponent(chosen().slice(6)));
			box.replaceChildren(make("p", "Nobody holds it or waits for it on this host.", "faint"));
		}
		return;
	}
	$("one-title").textContent = plain(name);
	box.replaceChildren();
	if (goneAt)
		box.append(make("p", "free since " + clock(goneAt), "faint"));
	else if (!lock.holders.length)
		box.append(make("p", holderText(lock), "faint"));
	for (const p of lock.holders) {
		const valid = p.valid_ms ?? p.ttl_ms;
		box.append(make("p", "held by " + person(p) + (p.held_ms >= 0 ? " for " + age(p.held_ms) : "") + (valid >= 0 ? ", sure for " + age(valid) : "") +
			(p.count > 1 ? ", " + p.count + " times" : "") + (p.fence ? ", fence " + p.fence : "") + (p.note ? " — " + plain(p.note) : "")));
		if (valid >= 0)
			box.append(meterOf(lock, p));
	}
	if (lock.waiters.length) {
		const line = make("ol");
		line.append(...lock.waiters.map((p, i) => make("li", (i + 1) + ". " + person(p) + (p.waited_ms >= 0 ? " waits for " + age(p.waited_ms) : " waits") +
			(p.note ? " — " + plain(p.note) : ""))));
		box.append(line);
	}
}

/* --- is anything wrong --- */

/* At the daemon itself: figures, what they mean, and what to do. */
const TROUBLES = [
	[t => t.sockets_lost > 0,
		"nobody can connect to a Unix socket of the daemon: its file was removed, or another one is in its place. Remove that: the log tells the path."],
	[t => t.config_last_reload_successful === 0,
		"the configuration that was read last has an error; a restart would fail. Correct what redlockd --check-config or the log shows, and reload."],
	[t => t.journal_writable === 0,
		"the journal cannot be written: no session could be resumed after a restart. Make room on the disk of runtime_dir; the log tells the error."],
	[t => t.audit_writable === 0,
		"the audit log cannot be written: its lines are left out. Make room on its disk, or its directory again; the log tells the error."],
	[t => t.clock_apart > 0,
		"the clock of this host is not that of most stores, which agree. Run chrony or another NTP client: certificates may seem to have ended by it."],
	[t => t.certificate_expires_seconds < 21 * 86400,
		"a certificate of the daemon or of a server, or its authority, ends within 21 days, or has ended. Renew the one that the log tells, and reload."]];

const troublesOf = s => TROUBLES.filter(([is]) => is(s.totals)).map(([, text]) => "! " + text);

/* A joined store with a cause votes, but not all goes well there. */
const isBad = n => n.state !== "joined" || n.cause;

function verdictOf(s) {
	const good = s.stores.filter(n => n.state === "joined").length, needed = Math.floor(s.stores.length / 2) + 1;
	const how = s.server.store === "memory" ? "the memory store: locks of this host only" : good + " of " + s.stores.length + " stores, " + needed + " needed";
	if (s.server.quorum !== "yes")
		return ["NO QUORUM", how + "; no lock is granted", "bad"];
	if (s.totals.draining)
		return ["DRAINING", how + "; nothing new is granted", "warn"];
	if (s.stores.some(isBad) || troublesOf(s).length)
		return ["DEGRADED", how, "warn"];
	return ["OK", how, "good"];
}

function showVerdict(word, text, kind, host) {
	const colour = {good: "%231a7f47", warn: "%23b36b00", bad: "%23b3261e"}[kind];
	if (word !== was)
		since = Date.now();
	was = word;
	$("verdict").textContent = word + (kind === "good" ? ", " : " since " + clock(since) + ", ") + text;
	$("verdict").className = kind;
	document.title = (kind === "good" ? "" : "✗ ") + word + " · redlockd " + host;
	$("icon").href = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><circle cx='8' cy='8' r='7' fill='" + colour + "'/></svg>";
}

/* One line for each kind, with the worst: name, who, how long. */
function group(list, what, field, who) {
	if (!list.length)
		return [];
	const worst = list.map(lock => [lock, longest(who(lock), field)]).sort((a, b) => b[1] - a[1]).slice(0, WORST);
	return ["! " + list.length + (list.length === 1 ? " lock " : " locks ") + what + ": " + worst.map(([lock, ms]) => plain(lock.name) +
		(who(lock).length ? " by " + short(who(lock)[0]) : "") + (ms >= 0 ? " for " + age(ms) : "")).join("; ") + (list.length > WORST ? "; …" : "")];
}

function showAlarms(s) {
	const alarmed = s.locks.filter(lock => lock.alarm), held = alarmed.filter(lock => lock.alarm.startsWith("held"));
	const waited = s.locks.filter(lock => (lock.alarm && !lock.alarm.startsWith("held")) || longest(lock.waiters, "waited_ms") > LONG_MS);
	const lines = [
		...s.stores.filter(isBad).map(n => "! Store " + plain(n.node) + " is " + n.state + (n.reason ? ": " + plain(n.reason) : "") + "."),
		...troublesOf(s),
		...group(held, "held for too long", "held_ms", lock => lock.holders),
		...group(waited, "waited for too long", "waited_ms", lock => lock.waiters),
		...(missed ? ["! " + missed + " events were left out: they came too fast."] : [])];
	$("alarms").replaceChildren(...lines.map(text => make("li", text, "bad")));
}

function showStores(s) {
	$("stores").replaceChildren(...s.stores.map(n => {
		const item = make("li", (isBad(n) ? "✗ " : "✓ ") + plain(n.node) + " " + n.state, isBad(n) ? "bad" : "good");
		if (n.rtt_us)
			item.append(make("span", " " + (n.rtt_us / 1000).toFixed(2) + " ms", "faint"));
		return item;
	}));
}

function show(s) {
	const t = s.totals, now = Date.now();
	$("host").textContent = plain(s.server.host) + " " + s.server.version + ", store " + s.server.store + ", up " + age(s.server.uptime_ms);
	$("counts").textContent = t.locks_held + " held, " + t.waiters + " waiting, " + t.sessions + " sessions, " + t.losses_total + " lost";
	$("counts").className = t.losses_total ? "bad" : "";
	showVerdict(...verdictOf(s), plain(s.server.host));
	showAlarms(s);
	showStores(s);
	leasesBefore = leases;
	leases = new Map();
	const fresh = !order.length;
	arrange(s.locks, now);
	if (fresh)
		resort();
	showTable();
	showOne();
	$("more").hidden = !s.more;
	$("more").textContent = "These are the first " + s.locks.length + " by name; a longer beginning shows fewer.";
	document.body.className = "";
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
	const asked = prefix;
	try {
		const answer = await fetch("/api/v1/snapshot?limit=" + LOCKS_MOST + "&prefix=" + encodeURIComponent(asked),
			{cache: "no-store", signal: AbortSignal.timeout(STALE_MS)});
		if (!answer.ok)
			throw new Error("status " + answer.status);
		const snapshot = await answer.json();
		if (asked === prefix)
			show(snapshot);
		answers = true;
		answered = Date.now();
		showLink();
	} catch (e) {
		answers = false;
		state("no answer from the daemon (" + e.message + "); trying again", "bad");
		if (Date.now() - answered >= STALE_MS || e instanceof TypeError) {
			document.body.className = "stale";
			showVerdict("NO ANSWER", "the daemon is gone, or cannot be reached; what it told before is not shown", "bad", "");
		}
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
	const e = JSON.parse(message.data), text = clock(Date.now()) + "  " + message.type.padEnd(8) + "  " + plain(e.name) + "  " + plain(e.who || "") +
		(e.held_ms >= 0 ? "  held " + age(e.held_ms) : "") + (e.reason ? "  " + plain(e.reason) : "") + (e.waiters ? "  waiting: " + e.waiters : "");
	if (message.type === "lost") {
		losses.unshift(text);
		losses.length = Math.min(losses.length, LOSSES_MOST);
		$("losses").replaceChildren(...losses.map(line => make("li", line, "bad")));
	}
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

/* What is here already is shown at once; the daemon is asked when no letter has come for a moment. */
function filter() {
	prefix = $("prefix").value;
	showTable();
	clearTimeout(typing);
	typing = setTimeout(() => {
		rows.clear();
		order = [];
		watch();
		ask();
	}, SOON_MS);
}

$("search").addEventListener("submit", e => e.preventDefault());
$("prefix").addEventListener("input", filter);
$("heads").addEventListener("click", e => {
	const column = e.target.dataset.column;
	if (!column)
		return;
	if (sortBy !== column)
		[sortBy, downwards] = [column, column === "held" || column === "waiting"];
	else if (downwards === (column === "held" || column === "waiting"))
		downwards = !downwards;
	else
		sortBy = "", downwards = false;
	resort();
	showTable();
	[...document.querySelectorAll("#heads button")].find(b => b.dataset.column === column).focus();
});
addEventListener("hashchange", () => { showTable(); showOne(); });
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
		filter();
		$("prefix").blur();
	}
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) ask(); });
$("losses").replaceChildren(make("li", "none since this page was opened", "faint"));
watch();
ask();
