/* SPDX-License-Identifier: BSD-2-Clause */
/* See peer.h. */
#include "daemon/base/peer.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NETWORK_BYTES 8

static size_t loopback_write(char out[PEER_ORIGIN_MAX])
{
	return (size_t)snprintf(out, PEER_ORIGIN_MAX, "loopback");
}

/* text is "2001:db8::1", which is not terminated. 0: it is no IPv6 address. */
static size_t network_write(const char *text, size_t n, char out[PEER_ORIGIN_MAX])
{
	char bare[INET6_ADDRSTRLEN], network[INET6_ADDRSTRLEN];
	struct in6_addr a;

	if (n >= sizeof(bare))
		return 0;
	memcpy(bare, text, n);
	bare[n] = '\0';
	if (inet_pton(AF_INET6, bare, &a) != 1)
		return 0;
	if (IN6_IS_ADDR_LOOPBACK(&a))
		return loopback_write(out);
	memset(&a.s6_addr[NETWORK_BYTES], 0, sizeof(a) - NETWORK_BYTES);
	return (size_t)snprintf(out, PEER_ORIGIN_MAX, "%s/%d", inet_ntop(AF_INET6, &a, network, sizeof(network)), NETWORK_BYTES * 8);
}

size_t peer_origin(bool is_unix, int64_t uid, const char *address, size_t n, char out[PEER_ORIGIN_MAX])
{
	size_t written = 0;

	if (is_unix)
		return (size_t)snprintf(out, PEER_ORIGIN_MAX, "uid %" PRId64, uid);
	while (n > 0 && address[n - 1] != ':')
		n--;
	n -= n > 0;
	if (n > 2 && address[0] == '[' && address[n - 1] == ']')
		written = network_write(address + 1, n - 2, out);
	if (written > 0)
		return written;
	if (n > 4 && memcmp(address, "127.", 4) == 0)
		return loopback_write(out);
	n = n < PEER_ORIGIN_MAX ? n : PEER_ORIGIN_MAX;
	memcpy(out, n > 0 ? address : "", n);
	return n;
}
