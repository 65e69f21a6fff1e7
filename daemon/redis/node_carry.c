/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections of a node, and what it knows of its server. What the sink was told goes on in any case: after `up` it hears `down` of a node whose
 * connections ended with the process, and nothing else.
 */
#include "daemon/redis/node_carry.h"
#include "daemon/base/mem.h"
#include "daemon/redis/link_carry.h"
#include "daemon/redis/node_parts.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

bool node_is_quiet(const struct node *n)
{
	bool quiet = true;

	for (unsigned i = 0; i < n->links.count; i++)
		quiet &= n->state != NODE_UP || link_is_quiet(n->links.item[i]);
	return quiet;
}

void node_give_up(struct node *n, const char *reason)
{
	if (!node_is_quiet(n))
		node_fail(n, DEFECT_OTHER, reason);
}

/* --- the process that ends ------------------------------------------------------------------------------------------- */

static bool node_is_plain(const struct node *n)
{
	bool plain = true;

	for (unsigned i = 0; i < n->links.count; i++)
		plain &= link_is_plain(n->links.item[i]);
	return plain;
}

/* What lies behind the name is whatever was in memory. */
static void endpoint_copy(struct endpoint *to, const struct endpoint *from)
{
	to->n = from->n;
	memcpy(&to->name, &from->name, from->n);
}

static void node_pack_knowledge(const struct node *n, struct node_parcel *p)
{
	p->addresses.count = n->addresses.count;
	for (unsigned i = 0; i < n->addresses.count; i++)
		endpoint_copy(&p->addresses.item[i], &n->addresses.item[i]);
	if (n->sentinel && n->port) {
		p->host = mem_copy(n->host, strlen(n->host));
		p->port = n->port;
	}
	(void)snprintf(p->reason, sizeof(p->reason), "%s", n->reason);
	p->defect = n->defect;
	p->told = n->told;
	p->failures = n->failures;
}

void node_pack(struct node *n, struct node_parcel *p, struct fdlist *fds)
{
	bool stays = n->state == NODE_UP && node_is_plain(n);

	node_pack_knowledge(n, p);
	p->up = n->state == NODE_UP || n->lost;
	p->up_since = n->up_since;
	if (n->subscriber)
		subscriber_pack(n->subscriber, &p->subscriber, stays ? fds : NULL);
	if (!stays)
		return;
	p->replica = n->demoted;
	endpoint_copy(&p->dialled, &n->dialled);
	p->link = mem_alloc(n->links.count * sizeof(*p->link));
	for (unsigned i = 0; i < n->links.count; i++)
		link_pack(n->links.item[i], &p->link[i], fds);
	n->state = NODE_WAITING; /* its timer never fires again */
}

/* --- the process that begins ----------------------------------------------------------------------------------------- */

static bool has(const struct fdlist *fds, size_t place)
{
	return place < fds->n && fds->fd[place] >= 0;
}

static bool links_are_there(const struct node *n, const struct node_parcel *p, const struct fdlist *fds)
{
	bool there = p->link != NULL;

	for (unsigned i = 0; there && i < n->links.count; i++)
		there = has(fds, p->link[i].fd);
	return there;
}

/* Where the server is, and why it is down. */
static void node_recall(struct node *n, const struct node_parcel *p)
{
	n->addresses = p->addresses;
	n->told = p->told;
	n->failures = p->failures;
	(void)snprintf(n->reason, sizeof(n->reason), "%s", p->reason);
	n->defect = p->defect;
	if (!n->sentinel || !p->host)
		return;
	free(n->host);
	n->host = mem_copy(p->host, strlen(p->host));
	n->port = p->port;
	node_expect_name(n, n->conf->server_name ? n->conf->server_name : n->host);
	sentinel_recall(n->sentinel, n->host, n->port);
}

static void node_go_on(struct node *n, const struct node_parcel *p, bool reload, struct fdlist *fds)
{
	for (unsigned i = 0; i < n->links.count; i++)
		link_unpack(n->links.item[i], &p->link[i], fdlist_take(fds, p->link[i].fd), reload);
	evtimer_del(n->timer);
	n->demoted = p->replica;
	node_set_state(n, NODE_UP, "the daemon was restarted");
	n->ready = n->links.count;
	n->up_since = p->up_since;
	n->dialled = p->dialled;
	n->reason[0] = '\0';
	node_watch_name(n);
	if (n->demoted)
		node_arm(n, 0);
	if (n->sentinel)
		sentinel_follow(n->sentinel, true);
	if (n->subscriber)
		subscriber_unpack(n->subscriber, &p->subscriber, (const struct sockaddr *)&n->dialled.name, n->dialled.n, fds);
}

static const char *loss_reason(const struct node_parcel *p, bool same)
{
	if (*p->reason)
		return p->reason;
	if (!same)
		return "the daemon was restarted, and the settings of its connections have changed";
	return p->link ? "the daemon was restarted, and its connections were not handed over" : "the daemon was restarted, and TLS begins anew";
}

void node_unpack(struct node *n, const struct node_parcel *p, bool same, bool reload, struct fdlist *fds)
{
	if (same)
		node_recall(n, p);
	if (n->subscriber)
		subscriber_recall(n->subscriber, &p->subscriber);
	if (p->up && same && links_are_there(n, p, fds)) {
		node_go_on(n, p, reload, fds);
		return;
	}
	n->lost = p->up;
	if (!n->lost)
		return;
	n->defect = *p->reason ? p->defect : DEFECT_OTHER;
	(void)snprintf(n->reason, sizeof(n->reason), "%s", loss_reason(p, same));
}

static void descriptor_close(struct fdlist *fds, size_t place)
{
	int fd = fdlist_take(fds, place);

	if (fd >= 0)
		close(fd);
}

void node_parcel_end(struct node_parcel *p, unsigned links, struct fdlist *fds)
{
	for (unsigned i = 0; p->link && i < links; i++) {
		descriptor_close(fds, p->link[i].fd);
		mem_free(p->link[i].stream.unread.bytes);
	}
	if (p->subscriber.listening)
		descriptor_close(fds, p->subscriber.fd);
	mem_free(p->subscriber.unread.bytes);
	mem_free(p->subscriber.unsent.bytes);
	mem_free(p->link);
	mem_free(p->host);
}
