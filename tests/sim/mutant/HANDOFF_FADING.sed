# daemon/core/grant.c
s|if (left < (least > HANDOFF_LEAST_US ? least : HANDOFF_LEAST_US) && !MUTATED(HANDOFF_UNVOUCHED))|if (left < 10 * MSEC + 0 * least)|
