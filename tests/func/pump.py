# SPDX-License-Identifier: BSD-2-Clause
"""A client that sends pipelined requests at full speed."""
import select

from wire import connect


class Pump:
    """Writes and reads as the socket allows, and counts the lines of the answers."""

    def __init__(self, addr):
        self.sock = connect(addr)
        self.sock.setblocking(False)

    def run(self, data, times, answers):
        """Sends data so many times, each of which brings so many lines of answers. Returns the lines that are not OK."""
        total, wanted, seen, odd, rest, out = times, times * answers, 0, [], b"", b""
        while seen < wanted:
            poll = select.poll()
            poll.register(self.sock, select.POLLIN | (select.POLLOUT if times or out else 0))
            if not poll.poll(20000):
                raise AssertionError("stuck after %d of %d answers" % (seen, wanted))
            try:
                got = self.sock.recv(1 << 18)
                if not got:
                    raise AssertionError("hung up after %d of %d answers" % (seen, wanted))
                *lines, rest = (rest + got).split(b"\n")
                seen += len(lines)
                odd += [line for line in lines if not line.startswith(b"OK ")][:10]
            except BlockingIOError:
                pass
            if not out and times and total - times < seen // answers + 2000:  # at most 2000 rounds ahead
                batch = min(200, times)
                out, times = data * batch, times - batch
            if out:
                try:
                    out = out[self.sock.send(out):]
                except BlockingIOError:
                    pass
        return odd

    def close(self):
        self.sock.close()
