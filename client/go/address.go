// SPDX-License-Identifier: BSD-2-Clause

package redlockd

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Where the daemon is, and who we are: what the environment says, by the same variables as libredlock(3).

const (
	systemSocket = "/run/redlockd/redlockd.sock"
	port         = 7420
	portTLS      = 7422
	// dialTimeout is for how long one attempt to connect may take.
	dialTimeout = 5 * time.Second
)

// environment returns a variable, unless this program has more rights than its caller, who could then choose which daemon it believes.
func environment(name string) string {
	if os.Getuid() != os.Geteuid() || os.Getgid() != os.Getegid() {
		return ""
	}
	return os.Getenv(name)
}

// defaultAddress returns what stands for "the daemon of this host".
func defaultAddress() string {
	if given := environment("REDLOCK_ADDR"); given != "" {
		return given
	}
	paths := []string{systemSocket}
	if runtime := environment("XDG_RUNTIME_DIR"); runtime != "" {
		paths = append(paths, runtime+"/redlockd/redlockd.sock")
	}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// credentials returns $REDLOCK_USER and the first line of $REDLOCK_SECRET_FILE, or $REDLOCK_SECRET.
func credentials() (user, secret string, err error) {
	user, secret = environment("REDLOCK_USER"), environment("REDLOCK_SECRET")
	if user == "" {
		return "", "", nil
	}
	if path := environment("REDLOCK_SECRET_FILE"); path != "" {
		file, err := os.Open(path)
		if err != nil {
			return "", "", err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Scan()
		if secret, err = lines.Text(), lines.Err(); err != nil {
			return "", "", err
		}
	}
	if secret == "" {
		return "", "", errors.New("REDLOCK_USER is set, but neither REDLOCK_SECRET_FILE nor REDLOCK_SECRET has a secret")
	}
	return user, secret, nil
}

// A place is an address, taken apart.
type place struct {
	network, address string // for package net
	host             string // of TCP
	tls              bool
}

// parseAddress takes an address apart: the path of a Unix socket, host:port, [v6]:port or tls://host:port.
func parseAddress(text string) (place, error) {
	if rest, ok := strings.CutPrefix(text, "tls://"); ok {
		if rest == "" || strings.Contains(rest, "/") {
			return place{}, fmt.Errorf("%q: an address inside TLS is tls://host:port", text)
		}
		return parseHost(rest, portTLS, true)
	}
	path, isPath := strings.CutPrefix(text, "unix:")
	if isPath && path == "" || text == "" {
		return place{}, fmt.Errorf("%q: an address is host:port, or the path of a Unix socket, with a '/'", text)
	}
	if isPath || strings.Contains(path, "/") {
		return place{network: "unix", address: path}, nil
	}
	return parseHost(text, port, false)
}

func parseHost(text string, port int, inTLS bool) (place, error) {
	host, digits := text, ""
	if at := strings.LastIndexByte(text, ':'); at >= 0 && !strings.HasSuffix(text, "]") {
		host, digits = text[:at], text[at+1:]
	}
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		host = host[1 : len(host)-1]
	} else if strings.ContainsAny(host, ":[") {
		return place{}, fmt.Errorf("%q: an IPv6 address must be in brackets: [::1]:%d", text, port)
	}
	if digits != "" {
		n, err := strconv.ParseUint(digits, 10, 16)
		if err != nil || n == 0 {
			return place{}, fmt.Errorf("%q: a port is a number from 1 to 65535", text)
		}
		port = int(n)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return place{network: "tcp", address: net.JoinHostPort(host, strconv.Itoa(port)), host: host, tls: inTLS}, nil
}

// tlsConfig reads the files that $REDLOCK_TLS_CA, $REDLOCK_TLS_CERT, $REDLOCK_TLS_KEY and $REDLOCK_TLS_NAME name.
func tlsConfig(host string) (*tls.Config, error) {
	made := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: because(environment("REDLOCK_TLS_NAME"), host)}
	if path := environment("REDLOCK_TLS_CA"); path != "" {
		pem, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if made.RootCAs = x509.NewCertPool(); !made.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", path)
		}
	}
	if path := environment("REDLOCK_TLS_CERT"); path != "" {
		pair, err := tls.LoadX509KeyPair(path, because(environment("REDLOCK_TLS_KEY"), path))
		if err != nil {
			return nil, err
		}
		made.Certificates = []tls.Certificate{pair}
	}
	return made, nil
}

// connect opens a connection. Of TCP it notices by keepalive that the host of the daemon is gone.
func (p place) connect(ctx context.Context, with *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext(ctx, p.network, p.address)
	for errors.Is(err, syscall.EAGAIN) && ctx.Err() == nil { // more clients connect at this moment than the daemon has accepted
		time.Sleep(10 * time.Millisecond)
		conn, err = (&net.Dialer{}).DialContext(ctx, p.network, p.address)
	}
	if err != nil || !p.tls {
		return conn, err
	}
	if with == nil {
		if with, err = tlsConfig(p.host); err != nil {
			conn.Close()
			return nil, err
		}
	} else if with.ServerName == "" && !with.InsecureSkipVerify {
		with = with.Clone()
		with.ServerName = p.host
	}
	inside := tls.Client(conn, with)
	if err := inside.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return inside, nil
}
