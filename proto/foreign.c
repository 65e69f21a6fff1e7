/* SPDX-License-Identifier: BSD-2-Clause */
/* See foreign.h. */
#include "proto/foreign.h"

#include "proto/span.h"

#include <stdbool.h>
#include <strings.h>

#define TLS_HANDSHAKE 0x16 /* RFC 8446, 5.1 */

/* RFC 9110, 5.6.2: the bytes of methods and of names of header fields. */
static bool is_token_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

/* RFC 9112, 3: bytes that recipients may accept as a blank in a request line. */
static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct span token_at(const char *at, const char *end)
{
	const char *stop = at;

	while (stop < end && is_token_byte(*stop))
		stop++;
	return (struct span){at, (size_t)(stop - at)};
}

/* ASCII case is ignored. */
static bool begins(const char *at, const char *end, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(end - at) >= n && strncasecmp(at, word, n) == 0;
}

static bool is_method(struct span word)
{
	static const char *const method[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PROPFIND"};

	for (size_t i = 0; i < sizeof(method) / sizeof(method[0]); i++)
		if (word.n == strlen(method[i]) && strncasecmp(word.p, method[i], word.n) == 0)
			return true;
	return false;
}

/* Whether its last word is "HTTP/1.1" or similar. */
static bool ends_with_version(const char *at, const char *end)
{
	const char *word;

	while (end > at && is_blank(end[-1]))
		end--;
	for (word = end; word > at && !is_blank(word[-1]);)
		word--;
	return word > at && begins(word, end, "HTTP/") && end - word > 5 && is_digit(word[5]);
}

/* If the end of a long line is missing, the method and the target show it. */
static bool is_http(const char *at, const char *end)
{
	struct span method = token_at(at, end);
	const char *target = at + method.n;

	if (method.n == 0 || target == end || !is_blank(*target))
		return false;
	if (ends_with_version(target, end))
		return true;
	while (target < end && is_blank(*target))
		target++;
	return is_method(method) && target < end && (*target == '/' || begins(target, end, "http:") || begins(target, end, "https:"));
}

static bool is_field(const char *at, const char *end)
{
	size_t n = token_at(at, end).n;

	return n > 0 && at + n < end && at[n] == ':';
}

static bool is_resp(const char *at, const char *end)
{
	return end - at >= 2 && (*at == '*' || *at == '$') && is_digit(at[1]);
}

/* The second version of the protocol begins with CR LF CR LF NUL CR LF. */
static bool is_proxy(const char *at, const char *end)
{
	return begins(at, end, "PROXY ") || (at < end && *at == '\0' && (at + 1 == end || (at[1] == '\r' && at + 2 == end)));
}

enum foreign foreign_of(const char *line, size_t n)
{
	const char *at = line, *end = line + n;

	if (at < end && *at == TLS_HANDSHAKE)
		return FOREIGN_TLS;
	while (at < end && is_blank(*at))
		at++;
	if (is_http(at, end))
		return FOREIGN_HTTP;
	if (is_field(at, end))
		return FOREIGN_FIELD;
	if (begins(at, end, "SSH-"))
		return FOREIGN_SSH;
	if (is_resp(at, end))
		return FOREIGN_RESP;
	return is_proxy(at, end) ? FOREIGN_PROXY : FOREIGN_NONE;
}

const char *foreign_name(enum foreign foreign)
{
	static const char *const name[FOREIGN_N] = {
		[FOREIGN_HTTP] = "HTTP",
		[FOREIGN_FIELD] = "HTTP",
		[FOREIGN_TLS] = "TLS",
		[FOREIGN_SSH] = "SSH",
		[FOREIGN_RESP] = "Redis's RESP",
		[FOREIGN_PROXY] = "the PROXY protocol",
	};

	return name[foreign];
}
