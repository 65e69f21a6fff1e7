# daemon/core/member.c
s/m->quarantine_end = instant_add(\([^,]*\), \(quarantine_us(.*)\));$/m->quarantine_end = instant_add(\1, \2 \/ (why == foreign_loss ? 2 : 1));/
