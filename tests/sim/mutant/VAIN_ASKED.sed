# daemon/core/acquire.c
s|if ((l->put_off >> i \& 1) .. flow_is_full|if ((l->refs > 1000 \&\& (l->put_off >> i \& 1)) \|\| flow_is_full|
