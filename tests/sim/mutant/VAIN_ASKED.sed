# daemon/core/acquire.c
s/if (nodeset_has(l->put_off, i) || flow_is_full/if ((l->refs > 1000 \&\& nodeset_has(l->put_off, i)) || flow_is_full/
