# SPDX-License-Identifier: BSD-2-Clause
"""Lines of the protocol: text to bytes, and bytes to lines. See redlock-protocol(7), THE LINE. Nothing here knows what a line means."""
from __future__ import annotations

import functools
import re

LINE_MOST = 139264
"""The longest line that the daemon sends, LF included: a reply with the payload of a job."""

_PLAIN = re.compile(r"[!#-&(-<>-\[\]-~]+")  # printable ASCII without blank, quotes, '=' and backslash
_CONTROL = re.compile(rb'[\x00-\x1f"\\\x7f]')
_FIELD = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)')
_ESCAPE = re.compile(rb'\\(x[0-9a-fA-F]{2}|.)', re.DOTALL)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


class ProtocolError(Exception):
    """The peer sent what no redlockd sends."""


def as_text(raw: bytes) -> str:
    """Bytes as text. What is no UTF-8 becomes lone surrogates, which as_bytes() turns back."""
    return raw.decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """Text as bytes, the other way round."""
    return text.encode("utf-8", "surrogateescape")


def quote(text: str | bytes) -> str:
    """A word or a value as it stands in a request: as it is if it is plain, else in double quotes."""
    if isinstance(text, str) and _PLAIN.fullmatch(text):
        return text
    raw = as_bytes(text) if isinstance(text, str) else text
    return '"' + as_text(_CONTROL.sub(lambda found: b"\\x%02x" % found[0][0], raw)) + '"'


@functools.lru_cache(1024)
def word(name: str) -> str:
    """quote() of a name, which most programs ask about again and again."""
    return quote(name)


def unquote(value: str) -> str:
    """A value of a reply without its quotes."""
    if not value.startswith('"'):
        return value

    def letter(found: re.Match[bytes]) -> bytes:
        word: bytes = found[1]
        return bytes([int(word[1:], 16)]) if len(word) == 3 else _LETTERS.get(word, word)

    return as_text(_ESCAPE.sub(letter, as_bytes(value[1:-1])))


def fields_of(text: str) -> dict[str, str]:
    """The fields of a reply by name. What is no field is skipped."""
    if '"' in text:
        return {name: unquote(value) for name, value in _FIELD.findall(text)}
    found = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if equals:
            found[name] = value
    return found


def duration(seconds: float) -> str:
    """A duration of a request. Rounded up to a microsecond, so that a short one does not become 0."""
    us = -int(-seconds * 1000000 // 1)
    if us <= 0:
        return "0"
    return f"{us}us" if us % 1000 else f"{us // 1000}ms"


class Line:
    """One line of the daemon. kind is its first word; code that of an error or a push; text what follows."""

    __slots__ = ("kind", "code", "text", "_fields")

    def __init__(self, line: str) -> None:
        self.kind, _, self.text = line.partition(" ")
        self.code = ""
        self._fields: dict[str, str] | None = None
        if self.kind == "ERR" or self.kind == "!":
            self.code, _, self.text = self.text.partition(" ")

    @property
    def fields(self) -> dict[str, str]:
        """The fields by name, quotes removed."""
        if self._fields is None:
            self._fields = fields_of(self.text)
        return self._fields

    def number(self, field: str, otherwise: int = 0) -> int:
        """A whole number by the name of its field; otherwise, if there is none."""
        try:
            return int(self.fields.get(field, otherwise))
        except ValueError:
            return otherwise

    def seconds(self, field: str) -> float:
        """A duration, which the daemon tells in milliseconds."""
        return self.number(field) / 1000

    def __repr__(self) -> str:
        return f"<{self.kind} {self.code} {self.text}>"


class Reader:
    """Puts lines together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are complete now, without their ends."""
        if self._rest:
            data = self._rest + data
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        lines = as_text(data).split("\n") if data.endswith(b"\n") else self._cut(data)
        rest = lines.pop()
        self._rest = as_bytes(rest) if rest else b""
        return lines

    @staticmethod
    def _cut(data: bytes) -> list[str]:
        whole, end, rest = data.rpartition(b"\n")
        if len(rest) > LINE_MOST:
            raise ProtocolError("a line without an end")
        return [*(as_text(whole).split("\n") if end else []), as_text(rest)]
