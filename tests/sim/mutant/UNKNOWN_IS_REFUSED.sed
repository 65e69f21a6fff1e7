# daemon/core/op.c
s|if (a->class == ANSWER_UNKNOWN)|if (a->class == ANSWER_UNKNOWN \&\& op->kind == OP_WITHDRAW)|
