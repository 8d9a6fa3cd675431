#include "daemon/fetch/http_head.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "daemon/fetch/late/curl_late.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

void http_head_clear(struct http_head *head) {
        *head = (struct http_head){ .n_bytes = UINT64_MAX, .range_total = UINT64_MAX };
}

/* Only digits; a number that does not fit 64 bits is refused. Moves `at` past them. */
static bool http_head_take_number(const char **at, uint64_t *ret_number) {
        uint64_t number = 0;
        const char *digit = *at;

        for (; *digit >= '0' && *digit <= '9'; digit++) {
                uint64_t value = (uint64_t)(*digit - '0');

                if (number > (UINT64_MAX - 1 - value) / 10)
                        return false;
                number = number * 10 + value;
        }
        if (digit == *at)
                return false;
        *at = digit;
        *ret_number = number;
        return true;
}

/* "bytes 0-99/1000", "bytes 0-99/" with a '*' */
static void take_range(struct http_head *head, const char *value) {
        uint64_t first, last, total = UINT64_MAX;

        if (strncasecmp(value, "bytes", 5) != 0)
                return;
        value += 5;
        value += strspn(value, " =");
        if (!http_head_take_number(&value, &first) || *value++ != '-' || !http_head_take_number(&value, &last) ||
            *value++ != '/')
                return;
        if (*value != '*' && !http_head_take_number(&value, &total))
                return;
        if (last < first)
                return;
        head->has_range = true;
        head->range_first = first;
        head->range_last = last;
        head->range_total = total;
}

static void http_head_take_text(char *into, size_t size, const char *value) {
        if (strlen(value) < size)
                strcpy(into, value);
}

static bool http_head_begins(const char *text, const char *with) {
        return strncasecmp(text, with, strlen(with)) == 0;
}

/* Is a body of this Content-Encoding other than the file? Some label plain ones with their charset, or with how they
 * were uploaded ("aws-chunked"). */
static bool is_compression(const char *value) {
        static const char *const CODINGS[] = { "gzip", "x-gzip", "deflate", "br", "zstd", "compress", "x-compress" };
        size_t n;

        for (; *value; value += n) {
                value += strspn(value, ", \t");
                n = strcspn(value, ", \t;");
                for (size_t i = 0; i < ARRAY_SIZE(CODINGS); i++)
                        if (n == strlen(CODINGS[i]) && strncasecmp(value, CODINGS[i], n) == 0)
                                return true;
                n += strcspn(value + n, ",");
        }
        return false;
}

/* "<https://host/list?page=2>; rel="next", <...>; rel="last"" */
static void take_next_link(struct http_head *head, const char *value) {
        const char *begin, *end;

        while ((begin = strchr(value, '<')) && (end = strchr(begin, '>'))) {
                size_t n = (size_t)(end - begin) - 1, n_after = strcspn(end, "<");

                if ((memmem(end, n_after, "rel=\"next\"", 10) || memmem(end, n_after, "rel=next", 8)) &&
                    n < sizeof(head->link_next)) {
                        memcpy(head->link_next, begin + 1, n);
                        head->link_next[n] = '\0';
                }
                value = end + n_after;
        }
}

/* "api";r=0;t=55: nothing is left, and t seconds until there is (draft-ietf-httpapi-ratelimit-headers). */
static void take_rate(struct http_head *head, const char *value) {
        const char *at = strstr(value, ";t=");
        size_t n = at ? strspn(at + 3, "0123456789") : 0;

        if (n > 0 && n < sizeof(head->rate_reset) && strstr(value, ";r=0")) {
                memcpy(head->rate_reset, at + 3, n);
                head->rate_reset[n] = '\0';
        }
}

static void http_head_take_field(struct http_head *head, const char *name, const char *value) {
        uint64_t number;

        if (strcasecmp(name, "content-length") == 0) {
                if (http_head_take_number(&value, &number) && !*value)
                        head->n_bytes = number;
        } else if (strcasecmp(name, "content-range") == 0) {
                take_range(head, value);
        } else if (strcasecmp(name, "accept-ranges") == 0) {
                head->has_ranges = strcasestr(value, "bytes");
        } else if (strcasecmp(name, "content-type") == 0) {
                head->is_html = http_head_begins(value, "text/html") || http_head_begins(value, "application/xhtml");
        } else if (strcasecmp(name, "content-encoding") == 0) {
                head->is_encoded |= is_compression(value);
        } else if (strcasecmp(name, "etag") == 0) {
                http_head_take_text(head->etag, sizeof(head->etag), value);
        } else if (strcasecmp(name, "last-modified") == 0) {
                http_head_take_text(head->modified, sizeof(head->modified), value);
        } else if (strcasecmp(name, "retry-after") == 0) {
                http_head_take_text(head->retry_after, sizeof(head->retry_after), value);
        } else if (strcasecmp(name, "date") == 0) {
                http_head_take_text(head->date, sizeof(head->date), value);
        } else if (strcasecmp(name, "x-amz-bucket-region") == 0) {
                http_head_take_text(head->bucket_region, sizeof(head->bucket_region), value);
        } else if (strcasecmp(name, "x-error-code") == 0) {
                http_head_take_text(head->error_code, sizeof(head->error_code), value);
        } else if (strcasecmp(name, "x-error-message") == 0) {
                snprintf(head->error_message, sizeof(head->error_message), "%s", value);
        } else if (strcasecmp(name, "link") == 0) {
                take_next_link(head, value);
        } else if (strcasecmp(name, "ratelimit") == 0) {
                take_rate(head, value);
        } else if (strcasecmp(name, "chunk-xxh3") == 0) {
                head->has_xxh3 = strlen(value) == 16 && strspn(value, "0123456789abcdef") == 16;
                head->xxh3 = head->has_xxh3 ? strtoull(value, NULL, 16) : 0;
        }
}

void http_head_line(struct http_head *head, const char *line, size_t n_bytes) {
        char text[4096];
        char *value, *end;

        if (n_bytes >= sizeof(text) || memchr(line, '\0', n_bytes))
                return;
        memcpy(text, line, n_bytes);
        text[n_bytes] = '\0';
        if (http_head_begins(text, "HTTP/")) {
                const char *status = strchr(text, ' ');

                http_head_clear(head);
                head->status = status ? (int)strtol(status, NULL, 10) : 0;
                return;
        }

        value = strchr(text, ':');
        if (!value)
                return;
        *value++ = '\0';
        value += strspn(value, " \t");
        end = value + strlen(value);
        while (end > value && strchr(" \t\r\n", end[-1]))
                *--end = '\0';
        http_head_take_field(head, text, value);
}

bool http_etag_agrees(const char *one, const char *other) {
        if (!one || !other || !*one || !*other)
                return true;
        if (http_head_begins(one, "W/"))
                one += 2;
        if (http_head_begins(other, "W/"))
                other += 2;
        return strcmp(one, other) == 0;
}

bool http_head_is_dated(const struct http_head *head) {
        time_t modified = head->modified[0] ? curl_getdate(head->modified, NULL) : -1;
        time_t answered = head->date[0] ? curl_getdate(head->date, NULL) : -1;

        return modified >= 0 && (answered < 0 || modified < answered);
}

const char *http_head_error_element(const struct http_head *head, const char *name, char *text, size_t size) {
        char tag[32];
        const char *begin, *end;
        int n_tag = snprintf(tag, sizeof(tag), "<%s>", name);

        text[0] = '\0';
        begin = memmem(head->error, head->n_error_bytes, tag, (size_t)n_tag);
        if (!begin)
                return text;
        begin += n_tag;
        end = memchr(begin, '<', head->n_error_bytes - (size_t)(begin - head->error));
        if (!end)
                return text;
        snprintf(text, size, "%.*s", (int)(end - begin), begin);
        text_make_printable(text);
        return text;
}
