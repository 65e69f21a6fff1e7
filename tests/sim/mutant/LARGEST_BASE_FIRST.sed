# daemon/core/round.c
s|if (nodeset_has(op->yes, i) && op->base\[i\] > largest)|if (nodeset_has(op->yes, i) \&\& largest < 0)|
