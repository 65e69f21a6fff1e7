# daemon/core/acquire.c
s|} else if (present && l->state == LOCK_HELD && (op->yes & bit) && !(l->renewed & bit)) {|} else if (present \&\& l->state == LOCK_HELD \&\& (op->yes \& bit)) {|
