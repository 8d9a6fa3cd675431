/* top/top_amounts.h: rates and shares as short texts. UNKNOWN is "-". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/dataloader.pb-c.h"

#define AMOUNT_MAX 40u /* bytes with NUL */

const char *rate_text(char text[AMOUNT_MAX], double per_second);      /* "0.4", "3812", "123 k" */
const char *byte_rate_text(char text[AMOUNT_MAX], double per_second); /* "12.3 MiB/s" */
const char *percent_text(char text[AMOUNT_MAX], double share);        /* "0.4", "61" */
const char *seconds_text(char text[AMOUNT_MAX], double seconds);      /* "12 us", "1.2 ms", "3.4 s" */
const char *bytes_text(char text[AMOUNT_MAX], double n_bytes);        /* "1.0 MiB" */
const char *number_text(char text[AMOUNT_MAX], double n);             /* "3", all digits */
const char *workers_text(char text[AMOUNT_MAX], double workers);      /* as a percentage of one worker: "142" */

/* Numbers that the daemon names itself, those that are not 0: "scratch waits 12, shared 3.8 k". Only what is to be
 * watched, or all. Returns `text`. */
const char *facts_text(char *text, size_t size, Dlp__Fact *const *facts, size_t n_facts, bool only_watched);
