# daemon/core/turn.c
s|if (offset\.us == INT64_MIN)|if (offset.us <= INT64_MAX)|
