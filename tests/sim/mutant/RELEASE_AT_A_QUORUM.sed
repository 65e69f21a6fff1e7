# daemon/core/releases.c
s|r->unconfirmed = nodes;|r->unconfirmed = nodes;\n\tfor (unsigned i = 0, n = 0; i < rs->calls->core->conf.nodes; i++)\n\t\tif (nodeset_has(nodes, i) \&\& ++n > quorum_of(rs->calls->core->conf.nodes))\n\t\t\tnodeset_remove(\&r->unconfirmed, i);|
