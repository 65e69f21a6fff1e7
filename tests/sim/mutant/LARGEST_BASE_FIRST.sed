# daemon/core/acquire.c
s|if ((op->yes >> i & 1) && op->base\[i\] > largest)|if ((op->yes >> i \& 1) \&\& largest < 0)|
