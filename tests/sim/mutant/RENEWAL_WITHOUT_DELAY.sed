# daemon/core/ask.c
s/kind = CALL_EXTEND, .px_ms = whole_ms(r->px_us), .fence = floor, .create/kind = CALL_EXTEND, .px_ms = whole_ms(r->question == QUESTION_RENEW ? r->ttl_us : r->px_us), .fence = floor, .create/
