# daemon/core/member.c
s|if (!span_equal(marker, span_of(m->timed))) {|if (!span_equal(marker, span_of(m->timed)) \&\& !instant_before(ms->core->now, m->quarantine_end)) {|
