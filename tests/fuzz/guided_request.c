/* Any bytes as what a browser, a scraper or a stranger sends to dlctl web: the head of a request, which is read as far
 * as it goes, checked against names of hosts, and asked for its numbers. */
#include <stdlib.h>
#include <string.h>

#include "proto/http/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct request *request, const char *text, size_t n) {
        static const char *const NAMES[] = { "localhost", "127.0.0.1", "::1", "node7.example", NULL };
        const char *const pieces[] = { request->path, request->query, request->host };

        for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
                if (pieces[i][0] && (pieces[i] < text || pieces[i] + strlen(pieces[i]) > text + n))
                        abort();
        if (request->path[0] != '/')
                abort();
        request_host_is(request, NAMES);
        request_number(request, "since", 0);
        request_number(request, "errors", 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        size_t n = n_bytes < REQUEST_HEAD_MAX ? n_bytes : REQUEST_HEAD_MAX;
        char *text = malloc(n + 1); /* of that size, so that a read past the end is seen */
        const char *why = NULL;
        struct request request;
        int status;

        if (!text)
                return 0;
        memcpy(text, data, n);
        text[n] = '\0';
        n = request_head_length(text, n);
        text[n] = '\0';
        status = request_parse(text, n, &request, &why);
        if (status == 0)
                check(&request, text, n);
        else if (status < 400 || !why || !why[0])
                abort();
        free(text);
        return 0;
}
