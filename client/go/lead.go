// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"context"
	"errors"
	"time"
)

// campaignPause is before another try when there is no daemon, or no quorum.
const campaignPause = time.Second

// Lead campaigns for a leadership, and runs f while it leads. The context of f ends when the lock is lost; then the next campaign begins. Lead returns when f
// returned otherwise, with its error, or when ctx has ended. It waits for a daemon that is away.
func (c *Client) Lead(ctx context.Context, name string, f func(ctx context.Context, lock *Lock) error, options ...LockOption) error {
	for {
		lock, err := c.Lock(ctx, name, options...)
		if err == nil {
			if err = lock.do(ctx, f); ctx.Err() != nil || !lock.lostBy(err) {
				return err
			}
			continue
		}
		if ctx.Err() != nil || !passing(err) {
			return err
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// lostBy says whether an error is the loss of this lock, and not of another one.
func (l *Lock) lostBy(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == ErrLost && e.Name == l.Name() && e.Fence == l.Fence()
}

// passing says whether an error may be gone in a moment.
func passing(err error) bool {
	for _, kind := range []error{ErrDisconnected, ErrNoQuorum, ErrDraining} {
		if errors.Is(err, kind) && !errors.Is(err, ErrClosed) {
			return true
		}
	}
	return false
}

// pause waits before another try.
func pause(ctx context.Context) error {
	timer := time.NewTimer(campaignPause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return away(ctx, nil)
	}
}
