# daemon/core/retry.c
s|ticket_spend(e, l, op->yes);|l->contender.queued = NODESET_NONE;\n\t\tticket_spend(e, l, op->yes);|
