# daemon/core/acquire.c
s|nodeset_has(op->yes, a->node) && !nodeset_has(l->renewed, a->node)) {|nodeset_has(op->yes, a->node)) {|
