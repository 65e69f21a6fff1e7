# daemon/core/observe.c
/case JUMP_THEIRS:/,/break;/s|m->suspect = "[^"]*";||
