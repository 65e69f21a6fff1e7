# daemon/core/deadlock.c
s|if (!owner_is_in_the_way(s, owner))|if (!owner_is_in_the_way(s, owner) \|\| l)|
