// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"strings"
	"time"
)

// An Answer is what the daemon says to [Client.Ask].
type Answer struct {
	// Fields are those of its last line.
	Fields map[string]string
	// Rows are the fields of each row before that.
	Rows []map[string]string
}

// Ask sends any line of redlock-protocol(7), such as "SHOW orders/42". It waits for five seconds, or until the deadline of ctx if that is later. What the line
// takes is yours to keep and to give back. An answer other than OK is an error.
func (c *Client) Ask(ctx context.Context, line string) (*Answer, error) {
	verb, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	if strings.ContainsAny(line, "\r\n") || strings.HasPrefix(verb, "@") {
		return nil, &Error{RetryAfter: -1, Text: "Ask: it is no line without a tag"}
	}
	a := &ask{about: verb, text: line}
	begin := func(at instant) request {
		within := patience
		if deadline, ok := ctx.Deadline(); ok {
			within = max(within, time.Until(deadline)+patience)
		}
		a.call = awaited(at.add(within))
		return c.submit(a, at)
	}
	if err := c.ask(ctx, verb, nil, begin); err != nil {
		return nil, err
	}
	if a.last.kind != "OK" {
		return nil, &Error{Code: a.last.kind, RetryAfter: -1, Text: verb + ": " + a.last.kind + " " + a.last.text}
	}
	answer := &Answer{Fields: a.last.fields()}
	for _, row := range a.rows {
		answer.Rows = append(answer.Rows, row.fields())
	}
	return answer, nil
}
