# daemon/core/member.c
s|member_become(ms, m, MEMBER_PROBING, "");|member_become(ms, m, m->marker[0] == 'j' ? MEMBER_JOINED : MEMBER_PROBING, "");|
