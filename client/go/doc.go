// SPDX-License-Identifier: BSD-2-Clause

// Package redlockd is a client of redlockd, a lock manager for programs on many hosts.
//
//	client, err := redlockd.Dial(ctx)
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
//	lock, err := client.Lock(ctx, "orders/42", redlockd.Wait(5*time.Second))
//	if err != nil {
//		return err // errors.Is(err, redlockd.ErrTimeout), and so on
//	}
//	defer lock.Unlock()
//	return write(lock.Context(), lock.Fence())
//
// A lock is granted for a time, its lease, and the daemon renews that while the connection lives. [Hold.Remaining] says for how long the lock may be relied on,
// by the local clock. When it is lost, [Hold.Context] ends, and [Hold.Lost] is closed, within 50 ms.
//
// A goroutine can be stopped between its check and its write, and does not notice that its lock has ended meanwhile. Only the resource can refuse such a write,
// by the fencing token: pass [Hold.Fence] on, and see FENCING in redlock-protocol(7).
//
// A lock is not reentrant: whoever asks again for what he holds waits for himself. Locks that are taken with the context of another lock (Hold.Context, or the
// one that [Client.Do] makes) have the same owner, so that the daemon sees a deadlock among them.
package redlockd
