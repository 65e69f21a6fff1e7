# SPDX-License-Identifier: BSD-2-Clause
"""Handshakes and records of TLS that somebody has changed on the way, cut off, repeated, or put in another order."""
import contextlib
import os
import random
import socket
import ssl

from authority import Authority
from process import WAIT, until
from test_tls import TlsTest


def records(data):
    """The records of these bytes, the last one perhaps cut off."""
    found = []
    while data:
        n = 5 + int.from_bytes(data[3:5], "big") if len(data) >= 5 else len(data)
        found.append(bytearray(data[:n]))
        data = data[n:]
    return found


def nothing(_, flight):
    return flight


def one_byte(chance, flight):
    record = chance.choice(flight)
    record[chance.randrange(len(record))] ^= 1 << chance.randrange(8)
    return flight


def some_bytes(chance, flight):
    record = chance.choice(flight)
    for _ in range(chance.choice((2, 5, 50))):
        record[chance.randrange(len(record))] = chance.randrange(256)
    return flight


def length_of_record(chance, flight):
    chance.choice(flight)[3:5] = chance.choice((0, 1, 5, 16384, 16385, 18432, 65535)).to_bytes(2, "big")
    return flight


def length_within(chance, flight):
    """Lengths of messages and of what they hold are runs of bytes that are mostly 0."""
    record = chance.choice(flight)
    at = chance.randrange(min(len(record), 400))
    record[at:at + 2] = chance.choice((0, 1, 255, 256, 32768, 65535)).to_bytes(2, "big")
    return flight


def kind_of_record(chance, flight):
    chance.choice(flight)[0] = chance.choice((0, 20, 21, 22, 23, 24, 255))
    return flight


def version_of_record(chance, flight):
    chance.choice(flight)[1:3] = chance.choice((b"\x00\x00", b"\x02\x00", b"\x03\x00", b"\x03\x05", b"\x7f\x1c"))
    return flight


def cut(chance, flight):
    whole = b"".join(flight)
    return [bytearray(whole[:chance.randrange(len(whole))])]


def twice(chance, flight):
    at = chance.randrange(len(flight))
    return flight[:at + 1] * 2 + flight[at + 1:]


def left_out(chance, flight):
    flight.pop(chance.randrange(len(flight)))
    return flight


def disordered(chance, flight):
    chance.shuffle(flight)
    return flight


def empty_records(chance, flight):
    """No more than a peer may send, or far more."""
    kind = chance.choice((21, 22, 23))
    return [bytearray((kind, 3, 3, 0, 0)) for _ in range(chance.choice((1, 40, 3000)))] + flight


def alerts(chance, flight):
    return [bytearray((21, 3, 3, 0, 2, chance.choice((1, 2)), chance.choice((0, 10, 40, 90, 100, 255)))) for _ in range(chance.choice((1, 10)))] + flight


def in_pieces(chance, flight):
    """The same messages in records of few bytes each. Right before keys are used."""
    size = chance.choice((1, 7, 100))
    return [record[:3] + len(record[at:at + size]).to_bytes(2, "big") + record[at:at + size] for record in flight for at in range(5, len(record), size)]


CHANGES = (nothing, one_byte, some_bytes, length_of_record, length_within, kind_of_record, version_of_record, cut, twice, left_out, disordered, empty_records,
           alerts, in_pieces)


class Mutated(TlsTest):
    COST = 20
    ROUNDS = 300

    def talk(self, chance, context, lines):
        """One connection, of which one flight is changed. Returns the lines that came back."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
        change, when, flights = chance.choice(CHANGES), chance.randrange(3), 0
        got, shaken = b"", False
        with contextlib.suppress(ssl.SSLError, OSError), socket.create_connection(self.address, WAIT) as sock:
            sock.settimeout(0.05)
            for _ in range(8):
                with contextlib.suppress(ssl.SSLWantReadError):
                    if not shaken:
                        tls.do_handshake()
                        shaken = True
                        tls.write(lines)
                    got += tls.read(65536)
                data = outgoing.read()
                if data:
                    flight = records(data)
                    data = b"".join(change(chance, flight) if flights == when else flight)
                    flights += 1
                    sock.sendall(data)
                with contextlib.suppress(TimeoutError):
                    data = sock.recv(65536)
                    if not data:
                        break
                    incoming.write(data)
        return got

    def test_changed_flights_harm_nobody(self):
        clients = Authority("clients")
        self.addCleanup(clients.remove)
        daemon = self.secure_daemon({"tls": {"client_ca_file": clients.cert}})
        contexts = []
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for pair in (clients.sign("/CN=db3"), None):
                contexts.append((self.ca.client_context(pair), pair))
                contexts[-1][0].minimum_version = contexts[-1][0].maximum_version = version
        plain, secure = self.client(daemon), self.secure_client(context=contexts[2][0])
        plain.ok("LOCK plain")
        secure.ok("LOCK secure")
        descriptors = len(os.listdir("/proc/%d/fd" % daemon.pid)) if os.geteuid() == 0 else 0
        seed = random.randrange(10 ** 9)
        chance, whole = random.Random(seed), 0
        for i in range(self.ROUNDS):
            context, pair = chance.choice(contexts)
            got = self.talk(chance, context, b"LOCK stray-%d\nPING\n" % i)
            self.assertFalse(got and not pair, "seed %d: an answer to a client without a certificate: %r" % (seed, got))
            whole += got.endswith(b"\nOK\n")
            plain.ok("PING")
        self.figure("seed %d: %d of %d connections were served all the same" % (seed, whole, self.ROUNDS))
        self.assertGreater(whole, self.ROUNDS // 50, "seed %d" % seed)
        self.assertTrue(daemon.alive(), "seed %d" % seed)
        secure.ok("CHECK secure")
        plain.ok("CHECK plain")
        until(lambda: len(plain.ok("LIST sessions").rows) == 2, "no session is left behind, seed %d" % seed)
        self.assertEqual(plain.ok("LIST locks prefix=stray").rows, [])
        if descriptors:
            until(lambda: len(os.listdir("/proc/%d/fd" % daemon.pid)) <= descriptors, "no connection is left behind, seed %d" % seed)
        self.secure_client(context=contexts[0][0]).ok("PING")
