# daemon/core/debt.c
s|op->owed = nodes;|op->owed = nodes;\n\tfor (unsigned i = 0, n = 0; i < e->core->conf.nodes; i++)\n\t\tif ((nodes >> i \& 1) \&\& ++n > engine_quorum(e))\n\t\t\top->owed \&= (uint16_t)~(1u << i);|
