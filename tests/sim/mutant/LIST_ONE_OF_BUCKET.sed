# daemon/core/listing.c
s|for (; node; node = node->next) {|for (; node; node = NULL) {|
