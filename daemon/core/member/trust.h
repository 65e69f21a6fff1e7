/* SPDX-License-Identifier: BSD-2-Clause */
/* trust_first_start: stores without a marker are joined at once, as long as this daemon has never joined a store and has found no marker anywhere. */
#ifndef CORE_TRUST_H
#define CORE_TRUST_H

#include "daemon/core/member/members.h"

/* A probe found no marker. Joins the blank stores once all are probed, or a quorum is blank and the slower ones have had their time. */
void trust_blank(struct members *ms);
/* A marker was found: this is no first start. Stores that waited for trust are quarantined. */
void trust_withdraw(struct members *ms);

#endif
