# daemon/core/acquire.c
s|engine_quorum(e) ? l->put_off : 0;|engine_quorum(e) \&\& l->refs > 1000 ? l->put_off : 0;|
