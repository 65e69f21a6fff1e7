// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// The session alone: the test is the daemon, the connection and the clock.
type alone struct {
	*testing.T
	*session
}

func at(seconds float64) instant { return instant(seconds * float64(time.Second)) }

func begin(t *testing.T) alone {
	a := alone{t, newSession(settings{address: "here", grace: 30 * time.Second}, func() float64 { return 0.5 })}
	a.open(0)
	a.connect(0, "OK session=17 secret=s lease_ms=10000")
	return a
}

func (a alone) connect(now instant, lines ...string) {
	a.connected(now)
	sent := a.said()
	a.reply(sent[len(sent)-1], now, lines...)
}

// said returns the lines that were sent since the last look.
func (a alone) said() []string {
	text := strings.TrimSuffix(string(a.out), "\n")
	a.out = a.out[:0]
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func (a alone) reply(request string, now instant, lines ...string) {
	tag, _, _ := strings.Cut(request, " ")
	for _, line := range lines {
		a.receive([]byte(tag+" "+line+"\n"), now)
	}
}

func (a alone) hold(now instant, name string, valid int) *grant {
	a.Helper()
	t := a.take(terms{verb: "LOCK", names: []string{name}, wait: 5 * time.Second}, "", now)
	a.reply(a.said()[0], now, fmt.Sprintf("OK name=%s fence=7 valid_ms=%d ttl_ms=10000 count=1", name, valid))
	if t.err != nil || len(t.grants) != 1 {
		a.Fatalf("not granted: %v", t.err)
	}
	return t.grants[0]
}

func TestWhatIsOverdueWhenTheSessionComesBackIsToldAndNotSent(t *testing.T) {
	a := begin(t)
	g := a.hold(at(1), "x", 9900)
	c := a.check(g, false, 0, at(1))
	a.said()
	a.disconnected(errors.New("cut"), at(2))
	a.connect(at(7), "* name=x fence=7 valid_ms=9000 count=1 owner=t1", "OK session=17 n=1")
	if sent := a.said(); sent != nil {
		t.Errorf("it sent %q", sent)
	}
	if !errors.Is(c.err, ErrDisconnected) {
		t.Errorf("the error is %v", c.err)
	}
	if left := g.left(at(7)); left != 9*time.Second {
		t.Errorf("%v are left", left)
	}
}

func TestAReleaseThatIsOverdueIsSentAllTheSame(t *testing.T) {
	a := begin(t)
	g := a.hold(at(1), "x", 9900)
	f := a.free(g, "", at(1))
	a.said()
	a.disconnected(errors.New("cut"), at(2))
	a.tick(at(6.5))
	if !errors.Is(f.err, ErrDisconnected) {
		t.Errorf("the error is %v", f.err)
	}
	a.connect(at(7), "* name=x fence=7 valid_ms=9000 count=1 owner=t1", "OK session=17 n=1")
	sent := a.said()
	if len(sent) != 1 || !strings.Contains(sent[0], "UNLOCK x owner=t1 fence=7 count=0") {
		t.Fatalf("it sent %q", sent)
	}
	a.tick(at(7.5))
	if !a.online() {
		t.Error("the connection was given up")
	}
	a.reply(sent[0], at(8), "OK name=x count=0")
	if len(a.grants)+len(a.used)+len(a.sent)+len(a.later) > 0 {
		t.Errorf("left behind: %v %v %v %v", a.grants, a.used, a.sent, a.later)
	}
}

func TestAConnectionThatEndsAfterQuitIsNoLossOfIt(t *testing.T) {
	a := begin(t)
	g := a.hold(at(1), "x", 9900)
	quit := a.quit(at(2))
	a.reply(a.said()[0], at(2), "OK")
	a.disconnected(errors.New("the daemon closed the connection"), at(2))
	if quit.err != nil || g.reason != "closed" || a.state != closed {
		t.Errorf("QUIT: %v, lost: %q, state %v", quit.err, g.reason, a.state)
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	a := begin(t)
	for i := 0; i < 5; i++ {
		g := a.hold(at(float64(i)), "x", 9900)
		a.free(g, "", at(float64(i)+0.5))
		a.reply(a.said()[0], at(float64(i)+0.6), "OK name=x count=0")
	}
	if len(a.grants)+len(a.used)+len(a.sent)+len(a.later) > 0 {
		t.Errorf("left behind: %v %v %v %v", a.grants, a.used, a.sent, a.later)
	}
}

func TestManyGrantsAreCheckedAtOneMoment(t *testing.T) {
	a := begin(t)
	for i := 0; i < 50; i++ {
		a.hold(at(float64(i)*0.001), fmt.Sprintf("n%d", i), 9900)
	}
	a.tick(at(3.4))
	if sent := strings.Join(a.said(), "\n"); strings.Count(sent, " CHECK ") != 50 {
		t.Errorf("it sent %s", sent)
	}
	if a.wake <= at(3.5) {
		t.Errorf("it wakes at %v", a.wake)
	}
}

func TestPausesDoubleUpToHalfASecondAndEndWithTheGrace(t *testing.T) {
	a := begin(t)
	a.disconnected(errors.New("cut"), at(10))
	if a.dialAt != at(10) {
		t.Errorf("the first attempt is at %v", a.dialAt)
	}
	now, pauses := at(10), []time.Duration{}
	for a.dialAt < never {
		pauses = append(pauses, a.dialAt.sub(now))
		now = a.dialAt
		a.notConnected(errors.New("refused"), now)
	}
	if pauses[1] > 11*time.Millisecond || pauses[len(pauses)-1] > pauseMost || now.sub(at(40)).Abs() > 600*time.Millisecond || a.state != off {
		t.Errorf("pauses %v up to %v, state %v", pauses, now, a.state)
	}
}

func TestASuspendedMachineEndsTheLock(t *testing.T) {
	a := begin(t)
	g := a.hold(at(1), "x", 600)
	a.tick(at(6)) // the clock went on meanwhile
	if g.reason != "expired" || g.left(at(6)) != 0 {
		t.Errorf("it is lost because of %q", g.reason)
	}
}

func TestAShorterLeaseEndsInTimeWithoutAnAnswer(t *testing.T) {
	a := begin(t)
	g := a.hold(at(1), "x", 9900)
	a.check(g, true, time.Second, at(1))
	if a.wake > at(2) {
		t.Fatalf("it wakes at %v", a.wake)
	}
	a.tick(at(2))
	if g.reason != "expired" {
		t.Errorf("it is lost because of %q", g.reason)
	}
}

func TestAnOwnerThatHasANameAsksForItAsSomebodyElse(t *testing.T) {
	a := begin(t)
	a.take(terms{verb: "LOCK", names: []string{"x"}}, "t9", at(1))
	a.take(terms{verb: "LOCK", names: []string{"x"}}, "t9", at(1))
	a.take(terms{verb: "LOCK", names: []string{"y"}}, "t9", at(1))
	for i, want := range []string{"owner=t9 ", "owner=t9.1 ", "owner=t9 "} {
		if sent := strings.Split(string(a.out), "\n"); !strings.Contains(sent[i], want) {
			t.Errorf("it sent %q", sent[i])
		}
	}
}
