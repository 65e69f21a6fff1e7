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

void claim_set_texts(struct claim *c, struct span owner, struct span note)
{
	size_t n = owner.n + note.n;

	c->texts = n > 0 ? mem_alloc(n) : NULL;
	if (owner.n > 0)
		memcpy(c->texts, owner.p, owner.n);
	if (note.n > 0)
		memcpy(c->texts + owner.n, note.p, note.n);
	c->owner_n = (uint16_t)owner.n;
	c->note_n = (uint16_t)note.n;
}

void claim_set_note(struct claim *c, struct span note)
{
	char *former = c->texts;

	claim_set_texts(c, claim_owner(c), note);
	mem_free(former);
}

bool claim_same_owner(const struct claim *a, const struct claim *b)
{
	return claim_is_of(a, b->session, claim_owner(b));
}
