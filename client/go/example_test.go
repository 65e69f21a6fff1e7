// SPDX-License-Identifier: BSD-2-Clause

package redlockd_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	redlockd "github.com/redlockd/redlockd/client/go"
	"github.com/redlockd/redlockd/client/go/redlocktest"
)

// connect is redlockd.Dial(ctx), and needs no daemon.
func connect(ctx context.Context) (*redlockd.Client, *redlocktest.Fake) {
	fake := redlocktest.NewFake()
	client, err := redlockd.Dial(ctx, redlockd.Addr(fake.Addr()))
	if err != nil {
		log.Fatal(err)
	}
	return client, fake
}

func Example() {
	ctx := context.Background()
	client, fake := connect(ctx)
	defer fake.Close()
	defer client.Close()

	lock, err := client.Lock(ctx, "orders/42", redlockd.Wait(5*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Println("held:", lock.Remaining() > 0, "with a fence:", lock.Fence() > 0)
	// Output: held: true with a fence: true
}

func ExampleClient_TryLock() {
	ctx := context.Background()
	client, fake := connect(ctx)
	defer fake.Close()
	defer client.Close()
	defer fake.HeldElsewhere("orders/42")()

	_, err := client.TryLock(ctx, "orders/42")
	var refused *redlockd.Error
	if errors.Is(err, redlockd.ErrBusy) && errors.As(err, &refused) {
		fmt.Println(refused.Name, "is with", refused.Holder)
	}
	// Output: orders/42 is with @elsewhere
}

func ExampleClient_Do() {
	ctx := context.Background()
	client, fake := connect(ctx)
	defer fake.Close()
	defer client.Close()

	err := client.Do(ctx, "orders/42", func(ctx context.Context, lock *redlockd.Lock) error {
		fake.Lose("orders/42") // as when the stores are gone
		<-ctx.Done()           // ctx ends with the lock
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, redlockd.ErrLost))
	// Output: true
}

func ExampleClient_Work() {
	ctx := context.Background()
	client, fake := connect(ctx)
	defer fake.Close()
	defer client.Close()

	if _, err := client.Defer(ctx, "mail", []byte("to=ann"), redlockd.Under("box/ann")); err != nil {
		log.Fatal(err)
	}
	err := client.Work(ctx, "mail", func(ctx context.Context, job *redlockd.Job) error {
		fmt.Printf("%s, attempt %d\n", job.Payload, job.Attempt)
		return nil // done; an error has it be tried again
	}, redlockd.Wait(0))
	fmt.Println(err)
	// Output:
	// to=ann, attempt 1
	// <nil>
}

func ExampleHold_Ensure() {
	ctx := context.Background()
	client, fake := connect(ctx)
	defer fake.Close()
	defer client.Close()

	lock, err := client.Lock(ctx, "orders/42")
	if err != nil {
		log.Fatal(err)
	}
	defer lock.Unlock()
	if err := lock.Ensure(ctx, 200*time.Millisecond); err == nil {
		fmt.Println("the next step takes 200 ms at most, and the lock lasts for longer")
	}
	// Output: the next step takes 200 ms at most, and the lock lasts for longer
}
