/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that touch no key. */
#include "tests/sim/redis/model_command.h"

void model_run_time(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	char digits[20];

	(void)word, (void)n;
	wire_array(out, 2);
	wire_bulk(out, (struct span){digits, wire_digits(m->now_us / 1000000, digits)});
	wire_bulk(out, (struct span){digits, wire_digits(m->now_us % 1000000, digits)});
}

void model_run_ping(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	(void)m;
	if (n > 2)
		wire_error(out, "ERR wrong number of arguments for 'ping' command");
	else if (n == 2)
		wire_bulk(out, word[1]);
	else
		wire_status(out, "PONG");
}

void model_run_publish(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	(void)n;
	wire_number(out, m->published ? m->published(m->listener, word[1], word[2]) : 0);
}

static bool disk_failed(const struct model *m)
{
	return m->error && strncmp(m->error, "MISCONF ", 8) == 0;
}

static void text_append(struct buf *text, const char *line)
{
	buf_append(text, line, strlen(line));
}

static void server_write(const struct model *m, struct buf *text)
{
	text_append(text, "# Server\r\nredis_version:" MODEL_VERSION "\r\nredis_mode:standalone\r\nrun_id:");
	text_append(text, m->run_id);
	text_append(text, "\r\n");
}

static void replication_write(const struct model *m, struct buf *text)
{
	text_append(text, "# Replication\r\nrole:");
	text_append(text, m->role);
	text_append(text, "\r\nconnected_slaves:0\r\nmaster_replid:");
	text_append(text, m->replid);
	text_append(text, "\r\nmaster_replid2:");
	for (int i = 0; i < 5; i++)
		text_append(text, m->fed ? "fedfedfe" : "00000000");
	text_append(text, "\r\n");
}

static void memory_write(const struct model *m, struct buf *text)
{
	(void)m;
	text_append(text, "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n");
}

static void persistence_write(const struct model *m, struct buf *text)
{
	text_append(text, "# Persistence\r\nloading:0\r\nrdb_last_bgsave_status:");
	text_append(text, disk_failed(m) ? "err" : "ok");
	text_append(text, "\r\naof_last_write_status:ok\r\n");
}

static void stats_write(const struct model *m, struct buf *text)
{
	buf_printf(text, "# Stats\r\nevicted_keys:%lld\r\ntotal_net_repl_input_bytes:%s\r\n", (long long)m->evicted, m->fed ? "4711" : "0");
}

static const struct {
	const char *name;
	void (*write)(const struct model *m, struct buf *text);
} sections[] = {
	{"server", server_write}, {"memory", memory_write},           {"persistence", persistence_write},
	{"stats", stats_write},   {"replication", replication_write},
};

/* The named sections, or all, in Redis' order, with a blank line between them. */
void model_run_info(struct model *m, const struct span *word, size_t n, struct buf *out)
{
	static struct buf text; /* reused */
	size_t i, k;

	buf_clear(&text);
	for (i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		for (k = 1; k < n && !model_word_is(word[k], sections[i].name) && !model_word_is(word[k], "everything");)
			k++;
		if (n > 1 && k == n)
			continue;
		if (buf_length(&text))
			buf_append(&text, "\r\n", 2);
		sections[i].write(m, &text);
	}
	wire_bulk(out, (struct span){buf_begin(&text), buf_length(&text)});
}
