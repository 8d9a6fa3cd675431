#include "client/dlctl/top/top_amounts.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/shown/amounts.h"

/* The daemon's number, whatever it is. */
static uint64_t top_amounts_whole(double value) {
        return value >= 0 && value < 1e18 ? (uint64_t)llround(value) : 0;
}

static const char *unknown(char text[AMOUNT_MAX]) {
        snprintf(text, AMOUNT_MAX, "-");
        return text;
}

const char *rate_text(char text[AMOUNT_MAX], double per_second) {
        if (per_second < 0)
                return unknown(text);
        if (per_second > 0 && per_second < 9.95)
                snprintf(text, AMOUNT_MAX, "%.1f", per_second);
        else
                format_count(text, top_amounts_whole(per_second));
        return text;
}

const char *byte_rate_text(char text[AMOUNT_MAX], double per_second) {
        char amount[BYTES_TEXT_MAX];

        if (per_second < 0)
                return unknown(text);
        if (top_amounts_whole(per_second) < 1024)
                snprintf(text, AMOUNT_MAX, "%u B/s", (unsigned)top_amounts_whole(per_second));
        else
                snprintf(text, AMOUNT_MAX, "%s/s", format_bytes(amount, top_amounts_whole(per_second)));
        return text;
}

const char *percent_text(char text[AMOUNT_MAX], double share) {
        if (share < 0)
                return unknown(text);
        snprintf(text, AMOUNT_MAX, share > 0 && share < 0.0995 ? "%.1f" : "%.0f", share * 100);
        return text;
}

const char *seconds_text(char text[AMOUNT_MAX], double seconds) {
        if (seconds < 0)
                return unknown(text);
        if (seconds < 0.9995e-3)
                snprintf(text, AMOUNT_MAX, "%.0f us", seconds * 1e6);
        else if (seconds < 0.9995)
                snprintf(text, AMOUNT_MAX, seconds < 9.95e-3 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
        else if (seconds < 60)
                snprintf(text, AMOUNT_MAX, "%.1f s", seconds);
        else
                format_duration(text, top_amounts_whole(seconds));
        return text;
}

const char *workers_text(char text[AMOUNT_MAX], double workers) {
        if (workers < 0)
                return unknown(text);
        snprintf(text, AMOUNT_MAX, "%.0f", workers * 100);
        return text;
}

const char *bytes_text(char text[AMOUNT_MAX], double n_bytes) {
        return n_bytes < 0 ? unknown(text) : format_bytes(text, top_amounts_whole(n_bytes));
}

const char *number_text(char text[AMOUNT_MAX], double n) {
        if (n < 0)
                return unknown(text);
        snprintf(text, AMOUNT_MAX, "%.0f", n);
        return text;
}

/* "n_scratch_waits" -> "scratch waits 12" */
#define FACT_MAX (AMOUNT_MAX + 48u)
static const char *fact_text(char text[FACT_MAX], const Dlp__Fact *fact) {
        uint64_t value = strtoull(fact->value, NULL, 10);
        char amount[AMOUNT_MAX];

        if (strcmp(fact->unit, "ns") == 0)
                seconds_text(amount, (double)value / 1e9);
        else if (strcmp(fact->unit, "bytes") == 0)
                format_bytes(amount, value);
        else
                format_count(amount, value);
        snprintf(text, FACT_MAX, "%.40s %s", strncmp(fact->name, "n_", 2) == 0 ? fact->name + 2 : fact->name, amount);
        for (char *c = text; *c; c++)
                *c = *c == '_' ? ' ' : *c;
        return text;
}

const char *facts_text(char *text, size_t size, Dlp__Fact *const *facts, size_t n_facts, bool only_watched) {
        char one[FACT_MAX];
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < n_facts && n < size; i++)
                if ((facts[i]->watched || !only_watched) && strcmp(facts[i]->value, "0") != 0)
                        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", fact_text(one, facts[i]));
        return text;
}
