# daemon/core/retry.c
s|turn_spend(e, l, op->yes);|l->contender.queued = NODESET_NONE;\n\t\tturn_spend(e, l, op->yes);|
