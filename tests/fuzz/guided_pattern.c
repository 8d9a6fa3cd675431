/* Any text as a pattern, and any as a path: the first line is the pattern, the second one the path. What is found lies
 * in the path, part after part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/data/formats/listing/pattern.h"
#include "proto/base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        _cleanup_(freep) char *text = malloc(n_bytes + 1);
        struct pattern_found found[PATTERN_PARTS_MAX];
        struct pattern pattern;
        struct why why = { 0 };
        const char *at;
        char *path;

        if (!text)
                _exit(2);
        if (n_bytes > 0)
                memcpy(text, data, n_bytes);
        text[n_bytes] = '\0';
        path = strchr(text, '\n');
        if (!path)
                return 0;
        *path++ = '\0';
        if (pattern_parse(text, &pattern, &why) < 0) {
                if (!why.text[0])
                        abort();
                return 0;
        }
        at = path;
        if (pattern_match(&pattern, path, found) == 1) {
                for (size_t i = 0; i < pattern.n; i++) {
                        if (found[i].at != at ||
                            (!pattern.parts[i].has_slashes && !pattern.parts[i].literal && memchr(at, '/', found[i].n)))
                                abort();
                        at += found[i].n;
                }
                if (at != path + strlen(path))
                        abort();
        }
        return 0;
}
