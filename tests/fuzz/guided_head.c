/* Any lines as what a web server says before its body, and as the error that it sends then. */
#include <stdlib.h>
#include <string.h>

#include "daemon/fetch/http_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

/* The text is exactly as long as it is, so that a sanitizer sees what reads on. */
static void take_line(struct http_head *head, const uint8_t *line, size_t n) {
        char *exact = malloc(n ? n : 1);

        memcpy(exact, line, n);
        http_head_line(head, exact, n);
        free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static const char *const NAMES[] = { "Code", "Message", "", "a", "Region" };
        struct http_head *head = malloc(sizeof(*head));
        const uint8_t *at = data, *end = data + n_bytes;
        char text[40];

        http_head_clear(head);
        while (at < end) {
                const uint8_t *newline = memchr(at, '\n', (size_t)(end - at));
                size_t n = newline ? (size_t)(newline + 1 - at) : (size_t)(end - at);

                take_line(head, at, n);
                at += n;
        }
        if (strnlen(head->etag, sizeof(head->etag)) == sizeof(head->etag) ||
            strnlen(head->retry_after, sizeof(head->retry_after)) == sizeof(head->retry_after) ||
            strnlen(head->date, sizeof(head->date)) == sizeof(head->date) ||
            strnlen(head->bucket_region, sizeof(head->bucket_region)) == sizeof(head->bucket_region))
                abort();
        http_etag_agrees(head->etag, "W/\"e\"");
        head->n_error_bytes = n_bytes < sizeof(head->error) ? n_bytes : sizeof(head->error);
        memcpy(head->error, data, head->n_error_bytes);
        for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
                if (strlen(http_head_error_element(head, NAMES[i], text, sizeof(text))) >= sizeof(text))
                        abort();
        free(head);
        return 0;
}
