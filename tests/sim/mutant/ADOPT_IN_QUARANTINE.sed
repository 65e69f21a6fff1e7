# daemon/core/adopt.c
s|nodes \|= (uint16_t)((member_usable(&e->members\.node\[i\]) && !flow_is_full(&e->members\.node\[i\]\.flow)) << i);|nodes \|= (uint16_t)((e->members.node[i].connected \&\& !flow_is_full(\&e->members.node[i].flow)) << i);|
