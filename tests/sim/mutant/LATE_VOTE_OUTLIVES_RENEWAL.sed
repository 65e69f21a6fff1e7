# daemon/core/acquire.c
s/ || !nodeset_has(op->yes, node) || nodeset_has(l->lease.renewed, node))/ || !nodeset_has(op->yes, node))/
