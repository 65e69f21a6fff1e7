# daemon/core/adopt.c
s|if (!l->holder->renew) {|if (!l->holder->renew \&\& l->lease.adoption->deadline.us == INT64_MIN) {|
