// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Lines of the protocol: requests to bytes, and bytes to lines. See THE LINE in redlock-protocol(7). Nothing here knows what a line means.

// lineMost is the longest line that the daemon sends, LF included: an answer with the payload of a job.
const lineMost = 139264

var errEndless = errors.New("a line without an end")

// plain says whether a byte may stand outside quotes in a request: printable ASCII without blank, quotes, '=' and backslash.
func plain(c byte) bool {
	return c > ' ' && c < 0x7f && c != '"' && c != '\'' && c != '=' && c != '\\'
}

// appendWord appends a word or a value, in quotes if it needs them.
func appendWord(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if !plain(s[i]) {
			return appendQuoted(dst, s)
		}
	}
	if s == "" {
		return append(dst, `""`...)
	}
	return append(dst, s...)
}

func appendQuoted(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c == 0x7f {
			dst = append(dst, '\\', 'x', digits[c>>4], digits[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

func quote(s string) string { return string(appendWord(nil, s)) }

func appendField(dst []byte, name, value string) []byte {
	dst = append(append(append(dst, ' '), name...), '=')
	return appendWord(dst, value)
}

func appendNumber(dst []byte, name string, value int64) []byte {
	dst = append(append(append(dst, ' '), name...), '=')
	return strconv.AppendInt(dst, value, 10)
}

// appendDuration appends a field. The duration is rounded up to a microsecond, so that a short one does not become 0.
func appendDuration(dst []byte, name string, d time.Duration) []byte {
	dst = append(append(append(dst, ' '), name...), '=')
	us := (d + time.Microsecond - 1) / time.Microsecond
	switch {
	case us <= 0:
		return append(dst, '0')
	case us%1000 != 0:
		return append(strconv.AppendInt(dst, int64(us), 10), "us"...)
	default:
		return append(strconv.AppendInt(dst, int64(us)/1000, 10), "ms"...)
	}
}

// A line is one line of the daemon, without its tag. kind is its first word, code that of an error or a push, text what follows.
type line struct{ kind, code, text string }

func parseLine(s string) line {
	kind, rest, _ := strings.Cut(s, " ")
	l := line{kind: kind, text: rest}
	if kind == "ERR" || kind == "!" {
		l.code, l.text, _ = strings.Cut(rest, " ")
	}
	return l
}

// nextField cuts the first field off. What is no field is skipped. name is "" at the end.
func nextField(s string) (name, value, rest string) {
	for {
		s = strings.TrimLeft(s, " \t")
		end := strings.IndexAny(s, "= \t\"")
		if end < 0 {
			return "", "", ""
		}
		if s[end] != '=' || end == 0 {
			s = s[end+1:]
			continue
		}
		name, s = s[:end], s[end+1:]
		if !strings.HasPrefix(s, `"`) {
			if end = strings.IndexAny(s, " \t"); end < 0 {
				end = len(s)
			}
			return name, s[:end], s[end:]
		}
		for end = 1; end < len(s) && s[end] != '"'; end++ {
			if s[end] == '\\' {
				end++
			}
		}
		if end >= len(s) {
			return "", "", ""
		}
		return name, unescape(s[1:end]), s[end+1:]
	}
}

// unescape returns what a quoted value stands for.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			out = append(out, s[i])
			continue
		}
		i++
		at := strings.IndexByte("nrtba", s[i])
		if at >= 0 {
			out = append(out, "\n\r\t\b\a"[at])
		} else if n, err := strconv.ParseUint(s[i+1:min(i+3, len(s))], 16, 8); s[i] == 'x' && err == nil {
			out = append(out, byte(n))
			i += 2
		} else {
			out = append(out, s[i])
		}
	}
	return string(out)
}

// field returns the value of a field, and whether the line has it.
func (l line) field(name string) (string, bool) {
	for found, value, rest := nextField(l.text); found != ""; found, value, rest = nextField(rest) {
		if found == name {
			return value, true
		}
	}
	return "", false
}

// get returns the value of a field, or "".
func (l line) get(name string) string {
	value, _ := l.field(name)
	return value
}

// number returns the value of a field that must be a whole number, and whether it is one.
func (l line) number(name string) (int64, bool) {
	value, ok := l.field(name)
	n, err := strconv.ParseInt(value, 10, 64)
	return n, ok && err == nil
}

// duration returns the value of a field in milliseconds, or 0.
func (l line) duration(name string) time.Duration {
	ms, _ := l.number(name)
	return time.Duration(ms) * time.Millisecond
}

// fields returns all fields by name.
func (l line) fields() map[string]string {
	all := make(map[string]string)
	for name, value, rest := nextField(l.text); name != ""; name, value, rest = nextField(rest) {
		all[name] = value
	}
	return all
}

// A lineReader puts lines together from the pieces in which they arrive.
type lineReader struct{ rest []byte }

// feed takes in bytes, and calls f with each line that is complete now, without its end, while f returns true.
func (r *lineReader) feed(data []byte, f func(string) bool) error {
	for {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break
		}
		whole := data[:end]
		if len(r.rest) > 0 {
			whole = append(r.rest, whole...)
			r.rest = r.rest[:0]
		}
		data = data[end+1:]
		if !f(string(bytes.TrimSuffix(whole, []byte("\r")))) {
			return nil
		}
	}
	r.rest = append(r.rest, data...)
	if len(r.rest) > lineMost {
		return errEndless
	}
	return nil
}
