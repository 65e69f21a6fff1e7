# daemon/core/renew.c
s|if (renew_may_ask(&e->members\.node\[i\]) && !nodeset_has(x->unanswered, i))|if (renew_may_ask(\&e->members.node[i]))|
