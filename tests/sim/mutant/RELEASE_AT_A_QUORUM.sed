# daemon/core/release.c
s|op->owed = nodes;|op->owed = nodes;\n\tfor (unsigned i = 0, n = 0; i < e->core->conf.nodes; i++)\n\t\tif (nodeset_has(nodes, i) \&\& ++n > engine_quorum(e))\n\t\t\tnodeset_remove(\&op->owed, i);|
