// SPDX-License-Identifier: BSD-2-Clause

package redlocktest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A request is a line of a client, taken apart.
type request struct {
	conn   *conn
	tag    string
	verb   string
	words  []string
	fields map[string]string
	until  time.Time // the end of its wait; zero: it does not wait
}

// parse takes a line apart. In a quoted section \xHH stands for a byte, as this client writes it.
func parse(text string) *request {
	r := &request{fields: map[string]string{}}
	for _, token := range tokens(text) {
		name, value, isField := strings.Cut(token.text[:token.plain], "=")
		switch {
		case isField:
			r.fields[name] = value + token.text[token.plain:]
		case r.verb == "" && r.tag == "" && strings.HasPrefix(token.text, "@"):
			r.tag = token.text
		case r.verb == "":
			r.verb = strings.ToUpper(token.text)
		default:
			r.words = append(r.words, token.text)
		}
	}
	return r
}

// A token is a word; plain is how much of it stands before a quoted section.
type token struct {
	text  string
	plain int
}

func tokens(text string) (all []token) {
	var word []byte
	inside, quoted, plain := false, false, 0
	for i := 0; i <= len(text); i++ {
		switch {
		case i == len(text) || !quoted && (text[i] == ' ' || text[i] == '\t'):
			if inside {
				all = append(all, token{string(word), min(plain, len(word))})
			}
			word, inside, plain = nil, false, 1<<30
		case text[i] == '"':
			if !quoted {
				plain = min(plain, len(word))
			}
			inside, quoted = true, !quoted
		case quoted && text[i] == '\\' && i+3 < len(text) && text[i+1] == 'x':
			n, _ := strconv.ParseUint(text[i+2:i+4], 16, 8)
			word = append(word, byte(n))
			i += 3
		default:
			if !inside {
				plain = 1 << 30
			}
			word, inside = append(word, text[i]), true
		}
	}
	return all
}

// duration reads one of a request.
func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		ms, _ := strconv.Atoi(text)
		d = time.Duration(ms) * time.Millisecond
	}
	return d
}

// field writes one of an answer.
func field(name, value string) string {
	quoted := &strings.Builder{}
	for i := 0; i < len(value); i++ {
		if c := value[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			fmt.Fprintf(quoted, `\x%02x`, c)
		} else {
			quoted.WriteByte(c)
		}
	}
	return " " + name + `="` + quoted.String() + `"`
}
