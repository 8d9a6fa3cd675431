/* top/top_amounts.h: rates and shares as short texts. UNKNOWN is "-". */
#pragma once

#include <stddef.h>

#define AMOUNT_MAX 40u /* bytes with NUL */

const char *rate_text(char text[AMOUNT_MAX], double per_second);      /* "0.4", "3812", "123 k" */
const char *byte_rate_text(char text[AMOUNT_MAX], double per_second); /* "12.3 MiB/s" */
const char *percent_text(char text[AMOUNT_MAX], double share);        /* "0.4", "61" */
const char *seconds_text(char text[AMOUNT_MAX], double seconds);      /* "12 us", "1.2 ms", "3.4 s" */
const char *workers_text(char text[AMOUNT_MAX], double workers);      /* as a percentage of one worker: "142" */
