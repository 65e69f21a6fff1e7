# SPDX-License-Identifier: BSD-2-Clause
"""Judges BREAK and KILL. That nobody is granted a broken lock before its holder has acknowledged that, or its validity is over, is S13, as for every loss."""
from history import MS
from reader import Violation

LEEWAY_MS = 100  # of free_in_ms: how far the clocks of daemon and stores may drift, and rounding


def carried_out(readers, verb):
    """The requests that were answered OK: (call, answer, daemon)."""
    return [(call, row, daemon) for reader in readers for call, row, daemon in reader.answered if call["q"] == verb and row["kind"] == "OK"]


def check_force(readers, kind):
    breaks, kills = carried_out(readers, "BREAK"), carried_out(readers, "KILL")
    yield from check_reasons(readers)
    yield from check_killed(readers, kills)
    if kind == "T":
        yield from check_broken([grant for reader in readers for grant in reader.grants], breaks)


def check_reasons(readers):
    """S27: nobody is told reason=broken before somebody asked for that, whether he read the answer or not."""
    asked = [call for reader in readers for call in [*reader.unheard, *[call for call, _, _ in reader.answered]] if call["q"] in ("BREAK", "KILL")]
    for reader in readers:
        for push, _ in reader.broken:
            if not any(call["t"] < push["t"] and (call["q"] == "KILL" or call["name"] == push["name"]) for call in asked):
                yield Violation("S27", "c%d %s: LOST reason=broken, and nobody has broken it" % (reader.client, push["name"]))


def check_broken(grants, breaks):
    """S27: a lock that is broken is not renewed: its holder believes no longer than free_in_ms, and at the same daemon no answer is OK any more."""
    for call, row, daemon in breaks:
        for grant in grants:
            if grant.name != call["name"] or grant.told > call["t"] or (grant.ended or row["t"]) < row["t"]:
                continue
            free_at = row["t"] + (row.get("free_in_ms", 0) + LEEWAY_MS) * MS
            for asked, _, valid in grant.anchors:
                if asked > row["t"] and grant.daemon == daemon:
                    yield Violation("S27", "%s: answered OK after BREAK at its daemon" % grant)
                elif asked > row["t"] and asked + valid > free_at and valid:
                    yield Violation("S27", "%s: believed for %.1f ms after BREAK told when it is free" % (grant, (asked + valid - free_at) / MS))


def check_killed(readers, kills):
    """S27: nobody resumes a session that was killed."""
    for reader in readers:
        begun = {}  # (daemon, session): when it began
        for call, row, daemon in reader.answered:
            if call["q"] == "HELLO" and row["kind"] == "OK":
                begun[(daemon, row.get("session"))] = row["t"]
            for kill, said, at in kills if call["q"] == "RESUME" and row["kind"] == "OK" else ():
                key = (daemon, call.get("sid"))
                if key == (at, kill.get("sid")) and begun.get(key, kill["t"]) < kill["t"] and said["t"] < call["t"]:
                    yield Violation("S27", "c%d: session %s of daemon %s was killed, and is resumed" % (reader.client, call["sid"], daemon))
