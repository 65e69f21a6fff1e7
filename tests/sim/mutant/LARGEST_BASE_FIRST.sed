# daemon/core/round.c
s|if (nodeset_has(r->granted, i) && r->base\[i\] > largest)|if (nodeset_has(r->granted, i) \&\& largest < 0)|
