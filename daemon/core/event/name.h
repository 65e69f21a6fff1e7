/* SPDX-License-Identifier: BSD-2-Clause */
/* A name at the stores, whatever it is the name of: what calls, releases and notices are about. It lives while anything refers to it. */
#ifndef CORE_NAME_H
#define CORE_NAME_H

#include "daemon/base/map.h"
#include "daemon/core/event/event.h"
#include "daemon/core/event/nodeset.h"

struct name {
	struct map_node node;
	char *text;             /* behind what it is the name of; a long one is on the heap. See NAME_ESCAPE */
	unsigned refs;          /* calls and notices that are about it */
	unsigned releases;      /* of it, that wait for admission */
	uint16_t n;
	struct nodeset put_off; /* stores that were too busy to be told of a release: a dead value of ours may stand there yet */
};

static inline struct span name_text(const struct name *x)
{
	return (struct span){x->text, x->n};
}

/* The text as the client gave it: see NAME_ESCAPE. That of a slot as it is. */
static inline struct span name_unescaped(struct span text)
{
	return text.n > 1 && text.p[0] == NAME_ESCAPE && text.p[1] == NAME_ESCAPE ? (struct span){text.p + 1, text.n - 1} : text;
}

#endif
