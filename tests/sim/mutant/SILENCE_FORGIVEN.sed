# daemon/core/hangup.c
s|if (!s->reading \|\| late_us > PAUSE_US) {|if (!s->reading \|\| late_us > -PAUSE_US) {|
