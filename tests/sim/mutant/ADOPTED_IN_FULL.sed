# daemon/core/adopt.c
s|if (!x->kept) {|if (!x->kept \&\& x->adoption->deadline.us == INT64_MIN) {|
