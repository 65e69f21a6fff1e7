# daemon/core/releases.c
s|nodeset_add(&r->unsure, a->node);|nodeset_add(\&r->unsure, a->node), nodeset_remove(\&r->unconfirmed, a->node);|
