# daemon/core/renew.c
s|put_back = others_hold(e, l, node);|put_back = instant_max(others_hold(e, l, node), instant_add(e->core->now, SEC));|
