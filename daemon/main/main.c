/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: reads the configuration, then checks it, prints it, or runs the daemon. */
#include "daemon/main/daemon.h"

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/files/audit_file.h"
#include "daemon/files/credentials.h"
#include "daemon/main/passed.h"
#include "daemon/restart/trial.h"
#include "daemon/systemd/systemd.h"
#include "daemon/systemd/unit.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum action { ACTION_RUN, ACTION_CHECK, ACTION_DUMP, ACTION_VERSION, ACTION_HELP, ACTION_USAGE };

struct options {
	struct daemon_args args;
	const char **sets;
	enum action action;
	bool quiet;
	bool trial;
	unsigned passed; /* of a trial: the kinds of sockets that were passed to the running daemon */
};

static const struct option long_option[] = {
	{"config", required_argument, NULL, 'c'}, {"check-config", no_argument, NULL, 'C'}, {"dump-config", no_argument, NULL, 'D'},
	{"set", required_argument, NULL, 's'},    {"quiet", no_argument, NULL, 'q'},        {"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, 'h'},         {"trial", no_argument, NULL, 'T'},        {"passed", required_argument, NULL, 'P'},
	{0},
};

static void print_usage(FILE *out)
{
	fputs("usage: redlockd [--config FILE] [--set PATH=VALUE]… [--check-config [--quiet]] [--dump-config] [--version] [--help]\n", out);
}

static void print_help(void)
{
	print_usage(stdout);
	fputs("\n"
	      "  --config FILE     read this configuration; without one the memory store serves this host\n"
	      "  --set PATH=VALUE  one key over what the file says, like redis.timeout=80ms; may be repeated\n"
	      "  --check-config    check it, print one line, exit: 0, or 78 when something is wrong\n"
	      "  --quiet           with --check-config: print mistakes only\n"
	      "  --dump-config     print what would be in effect, with the origin of each value\n"
	      "  --version         print the version\n"
	      "  --help            print this\n"
	      "\nkeys:\n",
	      stdout);
	conf_keys(stdout);
	fputs("\nredlockd(8), redlockd.yaml(5), redlock(1), redlock-protocol(7)\n", stdout);
}

static void options_read(struct options *o, int argc, char **argv)
{
	int c;

	o->sets = mem_alloc(sizeof(*o->sets) * (size_t)argc);
	o->args.sets = o->sets;
	while ((c = getopt_long(argc, argv, "c:s:qVh", long_option, NULL)) != -1) {
		switch (c) {
		case 'c':
			o->args.config = optarg;
			break;
		case 's':
			o->sets[o->args.set_count++] = optarg;
			break;
		case 'C':
			o->action = ACTION_CHECK;
			break;
		case 'D':
			o->action = ACTION_DUMP;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'T':
			o->trial = true;
			break;
		case 'P':
			o->passed = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'V':
			o->action = ACTION_VERSION;
			break;
		case 'h':
			o->action = ACTION_HELP;
			break;
		default:
			o->action = ACTION_USAGE;
			return;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "redlockd: unexpected argument '%s'\n", argv[optind]);
		o->action = ACTION_USAGE;
	}
}

/* The files that --check-config examines. A start opens the audit log itself, because a daemon that continues sessions runs without it. */
static int files_check(const struct conf *conf, struct conf_report *report)
{
	const char *path = conf->origin[KEY_AUDIT_FILE].bad ? NULL : conf->audit.file;
	int r = credentials_check(conf, report), error = path ? audit_file_check(path) : 0;

	if (!error)
		return r;
	conf_refuse(conf, KEY_AUDIT_FILE, report, "the audit log cannot be written: %s: %s", path, strerror(-error));
	return -1;
}

/* A restart by the service manager ends the daemon first. The hint is to check the next one before that. */
static void hint_print(const struct options *o)
{
	if (!getenv("INVOCATION_ID"))
		return;
	fprintf(stderr, "redlockd: not started; before the next restart, this tells mistakes while the daemon runs: redlockd%s%s --check-config\n",
	        o->args.config ? " --config " : "", o->args.config ? o->args.config : "");
}

/* A mistake ends the start, so standard error gets all of them, however slow its reader is. A daemon that starts logs its warnings, and does not wait. */
static int run(const struct options *o)
{
	struct conf_report report = {.files = true, .more = credentials_check};
	struct conf conf;
	char *text = NULL;
	size_t n;
	int status;

	report.out = open_memstream(&text, &n);
	if (!report.out)
		mem_exhausted();
	status = conf_read(&conf, o->args.config, o->args.sets, o->args.set_count, &report) < 0 ? EX_CONFIG : EX_OK;
	if (fclose(report.out))
		mem_exhausted();
	if (status == EX_OK) {
		log_init((enum log_level)conf.log.level);
		log_text(text);
	} else {
		fputs(text, stderr);
		hint_print(o);
		systemd_turn_away();
	}
	free(text);
	if (status == EX_OK)
		status = daemon_run(&conf, &o->args);
	conf_release(&conf);
	return status;
}

/* An operator who has just edited a file may forget to name it. */
static void summary_print(const struct options *o, const struct conf *conf)
{
	conf_summary(conf, stdout);
	if (!o->args.config)
		puts("no file was read: --config FILE names one, as in --config /etc/redlockd/redlockd.yaml");
}

/* A passed socket has no place in the configuration. False: there is a flaw, and it was reported. */
static bool passed_is_sound(const struct options *o, const struct conf *conf)
{
	const char *flaw = passed_flaw(conf, o->passed);

	if (flaw)
		fprintf(stderr, "redlockd: error: a socket was passed: %s\n", flaw);
	return !flaw;
}

/* Root reads what the service may not. That is no mistake, because another user may run the daemon. */
static void unit_warn(const struct options *o, const struct conf *conf)
{
	struct conf_report report = {.out = stderr};
	struct unit unit;

	unit_read(&unit, "");
	unit_check(&unit, conf, o->args.config, &report);
	conf_report_print(&report);
}

static int with_configuration(const struct options *o)
{
	struct conf_report report = {.out = stderr, .files = o->action == ACTION_CHECK};
	struct conf conf;
	int status = EX_OK;

	if (o->action == ACTION_CHECK)
		report.more = o->trial ? credentials_check : files_check;
	if (conf_read(&conf, o->args.config, o->args.sets, o->args.set_count, &report) < 0 || !passed_is_sound(o, &conf))
		status = EX_CONFIG;
	if (o->action == ACTION_CHECK && !o->trial)
		unit_warn(o, &conf);
	if (status == EX_OK && o->trial && !stores_try(&conf))
		status = TRIAL_EX_NO_QUORUM;
	if (status == EX_OK && o->action == ACTION_DUMP)
		conf_dump(&conf, stdout);
	else if (status == EX_OK && !o->quiet)
		summary_print(o, &conf);
	conf_release(&conf);
	return status;
}

/* Opens /dev/null for each closed standard descriptor. Otherwise a file that is opened later would get its number, and receive the log. */
static bool descriptors_fill(void)
{
	int fd;

	for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	static struct program program;
	struct options o = {.args.program = &program};
	int status = EX_OK;

	program_init(&program, argv);
	if (!descriptors_fill())
		return EX_UNAVAILABLE;
	options_read(&o, argc, argv);
	switch (o.action) {
	case ACTION_USAGE:
		print_usage(stderr);
		status = EX_USAGE;
		break;
	case ACTION_HELP:
		print_help();
		break;
	case ACTION_VERSION:
		puts("redlockd " REDLOCKD_VERSION);
		break;
	case ACTION_RUN:
		status = run(&o);
		break;
	default:
		status = with_configuration(&o);
		break;
	}
	free(o.sets);
	return status;
}
