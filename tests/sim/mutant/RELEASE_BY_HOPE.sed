# daemon/core/debt.c
s|if (a->class == ANSWER_EXECUTED)|if (a->class == ANSWER_EXECUTED \|\| a->class == ANSWER_UNKNOWN)|
