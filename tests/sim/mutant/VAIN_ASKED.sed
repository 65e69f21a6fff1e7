# daemon/core/acquire.c
s/if (nodeset_has(l->name.put_off, i) || flow_is_full/if ((l->name.refs > 1000 \&\& nodeset_has(l->name.put_off, i)) || flow_is_full/
