# daemon/core/retry.c
s|ticket_spend(e, l, r->granted);|l->contender.queued = NODESET_NONE;\n\t\tticket_spend(e, l, r->granted);|
