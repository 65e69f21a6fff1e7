/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line per event to stderr: time, level, event, then key=value pairs with the peer first. Under systemd (JOURNAL_STREAM matches stderr,
 * or log_init says so) the line starts with <n> and carries no time. Values with blanks or quotes are quoted.
 * Called by the outer layers; what core wants said comes out of it as an effect. Thread-safe (one write(2) per line). A line that stderr does not
 * take at once is dropped, and counted in a later one.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTICE, LOG_INFO, LOG_DEBUG }; /* syslog 3 4 5 6 7 */

void log_init(enum log_level level);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* log_event(LOG_WARN, "node-down", "node=%s reason=%s", ...): the caller quotes values that need it with log_quote. */
void log_event(enum log_level level, const char *event, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Lines that are written already, as they stand; nothing is waited for either. */
void log_text(const char *text);

/* value, or "value" with blanks, quotes, backslashes and unprintable bytes escaped; written into scratch, never longer than size. */
const char *log_quote(const char *value, char *scratch, unsigned long size);

#endif
