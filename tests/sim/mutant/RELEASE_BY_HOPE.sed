# daemon/core/debt.c
s/op->unsure |= bit;/op->unsure |= bit, op->owed \&= (uint16_t)~bit;/
