# daemon/core/acquire.c
s/ || !nodeset_has(r->granted, node) || nodeset_has(l->lease.renewed, node))/ || !nodeset_has(r->granted, node))/
