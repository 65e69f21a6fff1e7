/* SPDX-License-Identifier: BSD-2-Clause */
/* Problems of a server that works: with its name or path, or with new connections. The worse one is reported; the connections stay. */
#include "daemon/redis/node_parts.h"

#include <stdio.h>

/* Two of one family: a name may have one of each. */
static bool addresses_are_ambiguous(const struct addresses *a)
{
	unsigned of_6 = 0;

	for (unsigned i = 0; i < a->count; i++)
		of_6 += a->item[i].name.ss_family == AF_INET6;
	return of_6 > 1 || a->count - of_6 > 1;
}

/* The worse problem. Without a descriptor no sentinel or resolver can be asked, so that one comes first. */
static void node_report_trouble(struct node *n)
{
	const struct node_trouble *trouble = n->wrong.defect && n->shut.defect != DEFECT_DESCRIPTORS ? &n->wrong : &n->shut;
	char where[300] = "";

	if (n->sentinel && n->state == NODE_UP && !n->renamed)
		sentinel_where(n->sentinel, where, sizeof(where));
	if (n->conf->sink->unwatched)
		n->conf->sink->unwatched(n->conf->sink->context, n->index, trouble->defect, trouble->reason, where);
}

void node_on_tried(void *context, enum defect defect, const char *reason)
{
	struct node *n = context;

	if (!defect)
		n->cert_ends = redial_cert_ends(n->redial);
	n->shut.defect = defect;
	(void)snprintf(n->shut.reason, sizeof(n->shut.reason), "%s%s", defect ? "it takes no new connection: " : "", reason);
	node_report_trouble(n);
}

/* A report about its place; DEFECT_NONE: all is well. */
static void node_on_place(void *context, enum defect defect, const char *reason)
{
	struct node *n = context;

	n->wrong.defect = defect;
	(void)snprintf(n->wrong.reason, sizeof(n->wrong.reason), "%s", reason);
	node_report_trouble(n);
}

/* "": its name or path is in order. */
static void node_report_where(struct node *n, const char *reason)
{
	node_on_place(n, *reason ? DEFECT_UNKNOWN_HOST : DEFECT_NONE, reason);
}

void node_report_name(struct node *n)
{
	char text[300] = "";

	if (n->split)
		(void)snprintf(text, sizeof(text), NODE_SPLIT);
	else if (n->named && addresses_are_ambiguous(&n->addresses))
		(void)snprintf(text, sizeof(text), "%s has several addresses: each daemon may use another server", n->host);
	else if (n->elsewhere == LOOKS_REPORTED)
		(void)snprintf(text, sizeof(text), "%.200s leads to other addresses now", n->host);
	else if (n->elsewhere)
		(void)snprintf(text, sizeof(text), "%.200s led to other addresses within the last minute", n->host);
	node_report_where(n, text);
}

void node_report_path(struct node *n, const char *what)
{
	char reason[sizeof(n->reason)];

	if (n->astray == (*what != '\0'))
		return;
	n->astray = *what;
	(void)snprintf(reason, sizeof(reason), "the path %.150s %s: no other daemon can connect", n->path, what);
	if (n->astray)
		node_report_where(n, reason);
	else
		node_report_name(n);
}

/* The connected server goes on. A short failure of the name server is not reported, nor is a lack of descriptors: new connections report that. */
void node_miss_name(struct node *n, enum defect defect, const char *why)
{
	char reason[sizeof(n->reason)];

	if (defect == DEFECT_DESCRIPTORS || ++n->unknown < LOOKS_REPORTED)
		return;
	(void)snprintf(reason, sizeof(reason), "%.150s, for a minute now: no daemon that starts can connect", why);
	node_on_place(n, defect, reason);
}

void node_compare(struct node *n, struct span one, struct span other)
{
	n->split |= other.n > 0 && one.n > 0 && !span_equal(other, one);
	if (n->split)
		node_report_name(n);
}

void node_on_sentinels(void *context, enum defect defect, const char *reason)
{
	struct node *n = context;

	if (n->split)
		node_report_name(n);
	else
		node_on_place(n, defect, reason);
}
