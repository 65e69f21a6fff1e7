# daemon/core/adopt.c
s|if (member_usable(&e->members\.node\[i\]) && !flow_is_full(&e->members\.node\[i\]\.flow))|if (e->members.node[i].connected \&\& !flow_is_full(\&e->members.node[i].flow))|
