# daemon/core/member.c
s/m->quarantine_end = instant_add(since, quarantine_us(\(.*\), 0));/m->quarantine_end = instant_add(since, quarantine_us(\1, 0) \/ (why == foreign_loss ? 2 : 1));/
