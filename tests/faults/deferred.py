# SPDX-License-Identifier: BSD-2-Clause
"""DEFER, TAKE, DONE: no two clients believe in one job, and what was told to be done is not handed out again.

S33: beliefs in a job exclude each other, where no fault breaks the assumptions about time. S32: a job that was answered OK to DONE is taken by nobody who asked
later. A fault may cost its home that memory: then nothing is said of it.
"""
import re
from collections import defaultdict

from history import MS

ENDS = ("DONE", "RETRY")
CLOCKS = re.compile("stepped|rates")  # the clock of a home must not be set forward while jobs are run


def spans_of(reader):
    """(job, from, to) of each time in which the client may believe that it has the job."""
    given_up, ended = sorted([*reader.gave_up, *reader.kills]), defaultdict(list)
    for call in [*(call for call, _, _ in reader.answered), *reader.unheard]:
        if call["q"] in ENDS:
            ended[call["job"]].append(call["t"])
    for call, row, _ in reader.answered:
        job = row.get("job") if call["q"] == "TAKE" else call.get("job")
        if row["kind"] != "OK" or call["q"] not in ("TAKE", "CHECKJOB") or not job:
            continue
        until = call["t"] + row["valid"] * MS
        until = min([until, *(at for at in [*given_up, *ended[job]] if at >= row["t"])])
        if row["t"] < until:
            yield job, row["t"], until


def check_beliefs(readers):
    of_job = defaultdict(list)
    for reader in readers:
        for job, begin, end in spans_of(reader):
            of_job[job].append((begin, end, reader.client))
    for job, spans in of_job.items():
        spans.sort()
        for i, (begin, _, client) in enumerate(spans):
            others = [(to, who) for _, to, who in spans[:i] if who != client and to > begin]
            if others:
                yield "S33", "job %s: client %d believes in it %d ms before the belief of client %d ends" % (
                    job, client, (max(others)[0] - begin) // MS, max(others)[1])
                break


def check_done(readers, nemesis):
    first_fault = min([row["t"] for row in nemesis if row["e"] == "fault"], default=float("inf"))
    done = {call["job"]: row["t"] for reader in readers for call, row, _ in reader.answered if call["q"] == "DONE" and row["kind"] == "OK"}
    for reader in readers:
        for call, row, _ in reader.answered:
            job = row.get("job") if call["q"] == "TAKE" and row["kind"] == "OK" else None
            if job in done and done[job] < call["t"] and row["t"] < first_fault:
                yield "S32", "job %s was done, and client %d was given it %d ms later" % (job, reader.client, (row["t"] - done[job]) // MS)


def check_jobs(readers, nemesis, kind):
    """Yields (rule, text) of what is wrong."""
    if kind == "T" and not any(CLOCKS.search(row.get("what") or "") for row in nemesis if row["e"] == "fault"):
        yield from check_beliefs(readers)
    yield from check_done(readers, nemesis)
