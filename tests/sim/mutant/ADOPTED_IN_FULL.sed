# daemon/core/adopt.c
s|if (!l->holder->renew) {|if (!l->holder->renew \&\& l->adoption->deadline.us == INT64_MIN) {|
