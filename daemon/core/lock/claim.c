/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/lock/claim.h"

#include "daemon/base/mem.h"

#include <string.h>

const char *loss_word(enum loss loss)
{
	static const char *const word[] = {
#define LOSS_ROW(id, text) [LOSS_##id] = (text),
		LOSSES(LOSS_ROW)
#undef LOSS_ROW
	};

	return word[loss];
}

bool loss_find(struct span word, enum loss *ret_loss)
{
#define LOSS_ROW(id, text) \
	if (span_equal(word, SPAN(text))) { \
		*ret_loss = LOSS_##id; \
		return true; \
	}
	LOSSES(LOSS_ROW)
#undef LOSS_ROW
	return false;
}

void claim_set_texts(struct claim *c, struct span owner, struct remark remark)
{
	size_t n = owner.n + remark.note.n + remark.trace.n;

	c->texts = n > 0 ? mem_alloc(n) : NULL;
	if (owner.n > 0)
		memcpy(c->texts, owner.p, owner.n);
	c->owner_n = (uint16_t)owner.n;
	c->note_n = (uint16_t)remark.note.n;
	c->traced = remark.trace.n > 0;
	if (n > owner.n)
		remark_write(c->texts + owner.n, remark);
}

void claim_set_remark(struct claim *c, struct remark remark)
{
	char *former = c->texts;

	claim_set_texts(c, claim_owner(c), remark);
	mem_free(former);
}

bool claim_same_owner(const struct claim *a, const struct claim *b)
{
	return claim_is_of(a, b->session, claim_owner(b));
}
