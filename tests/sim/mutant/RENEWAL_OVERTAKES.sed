# daemon/core/renew.c
s|if (renew_may_ask(&e->members\.node\[i\]) && !(l->unanswered >> i & 1))|if (renew_may_ask(\&e->members.node[i]))|
