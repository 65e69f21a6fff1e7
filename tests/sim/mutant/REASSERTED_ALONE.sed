# daemon/core/renew.c
s|put_back = others_hold(e, x, node);|put_back = instant_max(others_hold(e, x, node), instant_add(e->core->now, SEC));|
