# daemon/core/op.c
s/kind = CALL_EXTEND, .px_ms = whole_ms(op->px_us), .fence = floor, .create/kind = CALL_EXTEND, .px_ms = whole_ms(op->kind == OP_RENEW ? op->ttl_us : op->px_us), .fence = floor, .create/
