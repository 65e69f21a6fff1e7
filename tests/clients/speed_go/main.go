// SPDX-License-Identifier: BSD-2-Clause

// Takes and releases locks for some seconds, and prints how many pairs a second: speed redlockd|redsync GOROUTINES SECONDS ADDRESS …
package main

import (
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

// A pair takes a lock and releases it.
type pair func(ctx context.Context, name string) error

func ours(addresses []string) pair {
	client, err := redlockd.Dial(context.Background(), redlockd.Addr(addresses[0]))
	if err != nil {
		log.Fatal(err)
	}
	return func(ctx context.Context, name string) error {
		lock, err := client.Lock(ctx, name)
		if err != nil {
			return err
		}
		return lock.Unlock()
	}
}

func theirs(addresses []string) pair {
	pools := []pool.Pool{}
	for _, address := range addresses {
		network := "tcp"
		if strings.Contains(address, "/") {
			network = "unix"
		}
		pools = append(pools, goredis.NewPool(redis.NewClient(&redis.Options{Network: network, Addr: address, PoolSize: 64})))
	}
	maker := redsync.New(pools...)
	return func(ctx context.Context, name string) error {
		mutex := maker.NewMutex(name)
		if err := mutex.LockContext(ctx); err != nil {
			return err
		}
		_, err := mutex.UnlockContext(ctx)
		return err
	}
}

func main() {
	n, _ := strconv.Atoi(os.Args[2])
	seconds, _ := strconv.ParseFloat(os.Args[3], 64)
	side := theirs
	if os.Args[1] == "redlockd" {
		side = ours
	}
	one := side(os.Args[4:])
	var count atomic.Int64
	var all sync.WaitGroup
	begun := time.Now()
	for i := 0; i < n; i++ {
		all.Add(1)
		go func(name string) {
			defer all.Done()
			for time.Since(begun).Seconds() < seconds {
				if err := one(context.Background(), name); err != nil {
					log.Fatal(err)
				}
				count.Add(1)
			}
		}(fmt.Sprintf("bench/%d", i))
	}
	all.Wait()
	fmt.Printf("%.0f\n", float64(count.Load())/time.Since(begun).Seconds())
}
