# daemon/core/debt.c
s|debt_is_unheard(e, op, a->node);|debt_is_unheard(e, op, a->node), op->owed \&= (uint16_t)~bit;|
