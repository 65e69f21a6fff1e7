# daemon/core/release.c
s|nodeset_add(&op->unsure, a->node);|nodeset_add(\&op->unsure, a->node), nodeset_remove(\&op->owed, a->node);|
