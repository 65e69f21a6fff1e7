# daemon/core/op.c
s|struct call call = {\.kind = CALL_EXTEND, \.px_ms = whole_ms(op->px_us), \.fence = floor, \.create = create, \.exact = op->kind == OP_LEAVE};|struct call call = {.kind = CALL_EXTEND, .px_ms = whole_ms(op->kind == OP_RENEW ? op->ttl_us : op->px_us), .fence = floor, .create = create, .exact = op->kind == OP_LEAVE};|
