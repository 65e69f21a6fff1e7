/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line per event to stderr: time, level, event, then key=value pairs with the peer first. If JOURNAL_STREAM names stderr, which log_init checks, the line
 * starts with <n> and has no time. Values with blanks or quotes are quoted. Only the outer layers call log_event; core logs by effects. Thread-safe (one call
 * per line). A line that stderr does not take at once is dropped, or cut where stderr took a part of it. A later line reports the number of such lines.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTICE, LOG_INFO, LOG_DEBUG }; /* syslog 3 4 5 6 7 */

/* Checks what stderr is, and opens a terminal or pipe again so as not to wait for it. May be called again when stderr is another file. */
void log_init(enum log_level level);
void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* log_event(LOG_WARN, "node-down", "node=%s reason=%s", ...): the caller quotes values that need it with log_quote. */
void log_event(enum log_level level, const char *event, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Logs the lines of a text unchanged. Never blocks. */
void log_text(const char *text);

/* Returns value if it needs no quotes, else a quoted and escaped copy in scratch, cut to size bytes. */
const char *log_quote(const char *value, char *scratch, unsigned long size);

#endif
