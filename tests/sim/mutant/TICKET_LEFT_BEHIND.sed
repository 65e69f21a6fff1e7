# daemon/core/defeat.c
s|turn_spend(e, l, op->yes);|l->queued = 0;\n\t\tturn_spend(e, l, op->yes);|
