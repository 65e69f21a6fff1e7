# daemon/core/members.c
s|if (offset\.us == INT64_MIN)|if (offset.us <= INT64_MAX)|
