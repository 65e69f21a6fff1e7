// SPDX-License-Identifier: BSD-2-Clause

// Takes and releases locks for some seconds, and prints how many pairs a second: speed redlockd|redsync GOROUTINES SECONDS ADDRESS … Without goroutines it
// takes and releases one as it is told, and prints when.
package main

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	redlockd "github.com/redlockd/redlockd/client/go"
)

// A side takes a lock, and returns what releases it.
type side func(ctx context.Context, name string) (func() error, error)

func ours(addresses []string) side {
	client, err := redlockd.Dial(context.Background(), redlockd.Addr(addresses[0]))
	must(err)
	return func(ctx context.Context, name string) (func() error, error) {
		lock, err := client.Lock(ctx, name)
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Unlock() }, nil
	}
}

func theirs(addresses []string) side {
	pools := []pool.Pool{}
	for _, address := range addresses {
		network := "tcp"
		if strings.Contains(address, "/") {
			network = "unix"
		}
		pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Network: network, Addr: address, PoolSize: 64})))
	}
	maker := redsync.New(pools...)
	return func(ctx context.Context, name string) (func() error, error) {
		mutex := maker.NewMutex(name)
		if err := mutex.LockContext(ctx); err != nil {
			return nil, err
		}
		return func() error {
			_, err := mutex.UnlockContext(ctx)
			return err
		}, nil
	}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func handOver(take side) {
	give := func() error { return nil }
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		at, err := time.Now(), error(nil)
		if in.Text() == "lock" {
			give, err = take(context.Background(), "over")
			at = time.Now()
		} else {
			err = give()
		}
		must(err)
		fmt.Printf("%.6f\n", float64(at.UnixMicro())/1e6)
	}
}

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	seconds, _ := strconv.ParseFloat(os.Args[3], 64)
	of := theirs
	if os.Args[1] == "redlockd" {
		of = ours
	}
	take := of(os.Args[4:])
	if n == 0 {
		handOver(take)
		return
	}
	var count atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for i := 0; i < n; i++ {
		all.Add(1)
		go func(name string) {
			defer all.Done()
			for time.Since(begun).Seconds() < seconds {
				give, err := take(context.Background(), name)
				must(err)
				must(give())
				count.Add(1)
			}
		}(fmt.Sprintf("bench/%d", i))
	}
	all.Wait()
	fmt.Printf("%.0f\n", float64(count.Load())/time.Since(begun).Seconds())
}
