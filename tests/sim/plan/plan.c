/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans as text: "field value" lines, then "fault …" and "job …" lines of "field=value" words; what is 0 is left out. */
#include "tests/sim/plan/plan.h"

#include "daemon/core/event/event.h"
#include "daemon/core/member/members.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct fault_row fault_table[FAULT_N] = {
#define FAULT(id, word, class, of, help) [FAULT_##id] = {word, CLASS_##class, OF_##of, help},
#include "tests/sim/plan/fault.def"
#undef FAULT
};

struct plan_field {
	const char *word;
	size_t offset;
};

static const struct plan_field plan_fields[] = {
#define PLAN_ROW(field) {#field, offsetof(struct plan, field)},
	PLAN_FIELDS(PLAN_ROW)
#undef PLAN_ROW
		{NULL, 0}};

static const struct plan_field job_fields[] = {
#define JOB_ROW(field) {#field, offsetof(struct job, field)},
	JOB_FIELDS(JOB_ROW)
#undef JOB_ROW
		{NULL, 0}};

static const struct plan_field fault_fields[] = {
	{"at_us", offsetof(struct fault, at_us)}, {"for_us", offsetof(struct fault, for_us)}, {"a", offsetof(struct fault, a)},
	{"b", offsetof(struct fault, b)},         {"x", offsetof(struct fault, x)},           {NULL, 0},
};

enum fault_class plan_class(const struct plan *p)
{
	for (unsigned i = 0; i < p->faults; i++)
		if (fault_table[p->fault[i].kind].class == CLASS_X)
			return CLASS_X;
	return CLASS_T;
}

int64_t plan_set_back_us(const struct plan *p)
{
	int64_t back[NODES_MAX] = {0};

	for (unsigned i = 0; i < p->faults; i++) {
		const struct fault *f = &p->fault[i];

		if (fault_table[f->kind].class == CLASS_T && f->kind != FAULT_NODE_OLD && f->kind != FAULT_NODE_SAME_REPLID)
			continue;
		if (f->kind != FAULT_NODE_CLOCK || f->x > 0)
			return 0;
		back[f->a % p->nodes] -= f->x;
	}
	for (int64_t i = 1; i < p->nodes; i++)
		if (back[i] != back[0])
			return 0;
	return back[0];
}

int64_t plan_quarantine_us(const struct plan *p)
{
	bool longer = plan_changes_servers(p) && p->stranger_lease_us > p->max_lease_us;
	bool later = plan_changes_servers(p) && plan_stranger_delay_us(p) > p->delay_us;
	int64_t longest = (longer ? p->stranger_lease_us : p->max_lease_us) + (later ? plan_stranger_delay_us(p) : p->delay_us);

	return longest + longest * 3 / 100 + 5 * MSEC;
}

void plan_near_clocks(struct plan *p)
{
	int64_t most = clock_tol_us((unsigned)p->nodes, p->max_lease_us, p->delay_us) / 4;

	if (p->nodes > 1 && p->node_offset_us > most)
		p->node_offset_us = most;
}

static int64_t field_get(const void *object, const struct plan_field *f)
{
	int64_t value;

	memcpy(&value, (const char *)object + f->offset, sizeof(value));
	return value;
}

static void fields_write(FILE *out, const void *object, const struct plan_field *fields)
{
	for (const struct plan_field *f = fields; f->word; f++)
		if (field_get(object, f))
			fprintf(out, " %s=%" PRId64, f->word, field_get(object, f));
	fputc('\n', out);
}

void plan_write(const struct plan *p, FILE *out)
{
	for (const struct plan_field *f = plan_fields; f->word; f++)
		fprintf(out, "%s %" PRId64 "\n", f->word, field_get(p, f));
	for (unsigned i = 0; i < p->faults; i++) {
		fprintf(out, "fault %s", fault_table[p->fault[i].kind].word);
		fields_write(out, &p->fault[i], fault_fields);
	}
	for (unsigned i = 0; i < p->jobs; i++) {
		fputs("job", out);
		fields_write(out, &p->job[i], job_fields);
	}
}

static bool field_set(void *object, const struct plan_field *fields, const char *word, const char *text)
{
	char *end;
	int64_t value = strtoll(text, &end, 10);

	if (end == text || *end)
		return false;
	for (const struct plan_field *f = fields; f->word; f++) {
		if (strcmp(f->word, word))
			continue;
		memcpy((char *)object + f->offset, &value, sizeof(value));
		return true;
	}
	return false;
}

static bool fields_read(void *object, const struct plan_field *fields, char **rest)
{
	char *word;

	while ((word = strtok_r(NULL, " \n", rest))) {
		char *value = strchr(word, '=');

		if (!value)
			return false;
		*value++ = '\0';
		if (!field_set(object, fields, word, value))
			return false;
	}
	return true;
}

static bool fault_read(struct plan *p, char **rest)
{
	const char *word = strtok_r(NULL, " \n", rest);
	struct fault *f = &p->fault[p->faults];

	if (!word || p->faults == FAULTS_MAX)
		return false;
	for (int kind = 0; kind < FAULT_N; kind++) {
		if (strcmp(word, fault_table[kind].word))
			continue;
		f->kind = (enum fault_kind)kind;
		p->faults++;
		return fields_read(f, fault_fields, rest);
	}
	return false;
}

static bool line_read(struct plan *p, char *line)
{
	char *rest = NULL;
	const char *word = strtok_r(line, " \n", &rest), *value;

	if (!word || *word == '#')
		return true;
	if (!strcmp(word, "fault"))
		return fault_read(p, &rest);
	if (!strcmp(word, "job"))
		return p->jobs < JOBS_MAX && fields_read(&p->job[p->jobs++], job_fields, &rest);
	value = strtok_r(NULL, " \n", &rest);
	return value && field_set(p, plan_fields, word, value);
}

/* Is there room for it in the arrays of a world? */
static bool plan_fits(const struct plan *p)
{
	if (p->nodes < 1 || p->nodes > NODES_MAX || p->daemons < 0 || p->daemons > DAEMONS_MAX || p->clients < 0 ||
	    p->clients > CLIENTS_MAX || p->names < 1 || p->names > NAMES_MAX || (p->clients > 0 && p->daemons == 0))
		return false;
	if (p->memory && (p->nodes != 1 || p->daemons != 1 || p->stranger))
		return false;
	if (plan_changes_servers(p) && (p->nodes < 3 || plan_nodes_least(p) < 2))
		return false;
	for (unsigned i = 0; i < p->jobs; i++)
		if (p->job[i].client < 0 || p->job[i].client >= p->clients || p->job[i].name < 0 || p->job[i].name >= p->names ||
		    p->job[i].owner < 0 || p->job[i].owner >= OWNERS_MAX)
			return false;
	return true;
}

int plan_read(struct plan *ret_plan, FILE *in)
{
	char line[1024];
	int number = 0;

	memset(ret_plan, 0, sizeof(*ret_plan));
	while (fgets(line, sizeof(line), in)) {
		number++;
		if (!line_read(ret_plan, line))
			return number;
	}
	return plan_fits(ret_plan) ? 0 : number + 1;
}
