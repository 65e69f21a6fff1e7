/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/core/claim.h"

#include "daemon/base/mem.h"

#include <stdlib.h>

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

static char *text_copy(struct span text)
{
	return text.n > 0 ? mem_copy(text.p, text.n) : NULL;
}

void claim_set_texts(struct claim *c, struct span owner, struct span note)
{
	c->owner = text_copy(owner);
	c->owner_n = (uint16_t)owner.n;
	c->note = text_copy(note);
	c->note_n = (uint16_t)note.n;
}

void claim_set_note(struct claim *c, struct span note)
{
	free(c->note);
	c->note = text_copy(note);
	c->note_n = (uint16_t)note.n;
}

bool claim_same_owner(const struct claim *a, const struct claim *b)
{
	return claim_is_of(a, b->session, claim_owner(b));
}
