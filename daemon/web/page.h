/* SPDX-License-Identifier: BSD-2-Clause */
/* The page, one file with its styles and its script: made by embed.sh from page.html, page.css and page.js. */
#ifndef WEB_PAGE_H
#define WEB_PAGE_H

#include <stddef.h>

extern const char page_text[];
extern const size_t page_length;
extern const char page_csp[]; /* allows the one style and the one script by their hashes, and requests to the origin of the page */

#endif
