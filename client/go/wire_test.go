// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestWordsAreQuotedIfTheyNeedIt(t *testing.T) {
	for word, want := range map[string]string{"orders/42": "orders/42", "": `""`, "a b": `"a b"`, "a=b": `"a=b"`, "x\n\"\\\x7f": `"x\x0a\x22\x5c\x7f"`,
		"Köln": `"Köln"`, "@a": "@a", "it's": `"it's"`} {
		if got := quote(word); got != want {
			t.Errorf("quote(%q) is %s, want %s", word, got, want)
		}
		if _, value, _ := nextField(" w=" + quote(word)); value != word {
			t.Errorf("%q comes back as %q", word, value)
		}
	}
}

func TestDurationsAreRoundedUpToAMicrosecond(t *testing.T) {
	for d, want := range map[time.Duration]string{0: " w=0", 1: " w=1us", time.Microsecond: " w=1us", 250500 * time.Microsecond: " w=250500us",
		time.Minute: " w=60000ms", time.Millisecond + 1: " w=1001us"} {
		if got := string(appendDuration(nil, "w", d)); got != want {
			t.Errorf("%v is%s, want%s", d, got, want)
		}
	}
}

func TestFieldsAreFoundByName(t *testing.T) {
	l := parseLine(`OK name="a b=\x63" odd x="" fence=7 holder="w \"7\"" n= last=z`)
	want := map[string]string{"name": "a b=c", "x": "", "fence": "7", "holder": `w "7"`, "n": "", "last": "z"}
	if got := l.fields(); !reflect.DeepEqual(got, want) {
		t.Errorf("fields are %q, want %q", got, want)
	}
	if n, ok := l.number("fence"); n != 7 || !ok {
		t.Errorf("fence is %d, %v", n, ok)
	}
	if _, ok := l.number("holder"); ok {
		t.Error("a text is a number")
	}
	if push := parseLine("! LOST name=x"); push.code != "LOST" || push.get("name") != "x" {
		t.Errorf("the push is %+v", push)
	}
}

func TestLinesAreTheSameHoweverTheyArrive(t *testing.T) {
	text := "@1 OK a=1\r\n\n! LOST name=x\n@2 BUSY\n"
	want := []string{"@1 OK a=1", "", "! LOST name=x", "@2 BUSY"}
	for size := 1; size <= len(text); size++ {
		var r lineReader
		var got []string
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			if err := r.feed([]byte(rest[:n]), func(l string) bool { got = append(got, l); return true }); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
	var r lineReader
	if err := r.feed([]byte(strings.Repeat("x", lineMost+1)), nil); !errors.Is(err, errEndless) {
		t.Errorf("a line without an end: %v", err)
	}
}

func FuzzLine(f *testing.F) {
	f.Add(`OK name="a\x00\q" = x="`)
	f.Add(`ERR LOST x`)
	f.Fuzz(func(t *testing.T, text string) {
		parseLine(text).fields()
		if _, value, _ := nextField("w=" + string(appendQuoted(nil, text))); value != text {
			t.Errorf("%q comes back as %q", text, value)
		}
	})
}
