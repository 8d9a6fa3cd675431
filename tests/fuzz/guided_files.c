/* A path and what is merged with it, each a line: parts, lists and patterns. All names that come of them stay in their
 * folder, each is there once, and each list has as many as the path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/data/files/named.h"
#include "daemon/data/index/index_layout.h"
#include "proto/base/cleanup.h"

#define NAMES_MAX 2000u /* more take long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void check(const struct files *files, const char *merge) {
        if (!files->root || !files->root[0] || files->n_names == 0 || files->n_merged > FILES_MERGED_MAX)
                abort();
        if ((files->n_merged > 0) != (merge != NULL))
                abort();
        for (size_t i = 0; i < files_n_all(files) && i < NAMES_MAX; i++) {
                if (!files->names[i][0] || !index_is_inner_path(files->names[i]))
                        abort();
                for (size_t k = 0; k < i && k < 16; k++)
                        if (strcmp(files->names[i], files->names[k]) == 0)
                                abort();
        }
}

/* Numbers of ranges are cut to two digits: a million names are a limit of its own, and slow. */
static void shorten(char *text) {
        char *to = text;
        size_t n_digits = 0;

        for (const char *at = text; *at; at++) {
                n_digits = *at >= '0' && *at <= '9' ? n_digits + 1 : 0;
                if (n_digits <= 2)
                        *to++ = *at;
        }
        *to = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        _cleanup_(freep) char *text = malloc(n_bytes + 1);
        _cleanup_(files_fini) struct files files = { 0 };
        struct why why = { 0 };
        size_t n_braces = 0;
        char *merge;

        if (!text)
                _exit(2);
        if (n_bytes > 0)
                memcpy(text, data, n_bytes);
        text[n_bytes] = '\0';
        shorten(text);
        for (const char *at = text; *at; at++)
                n_braces += *at == '{';
        if (n_braces > 4)
                return 0; /* each may be 100 names */
        merge = strchr(text, '\n');
        if (merge)
                *merge++ = '\0';
        if (named_find(text, n_bytes % 7 == 0, merge, true, &files, &why) < 0) {
                if (!why.text[0])
                        abort();
                return 0;
        }
        check(&files, merge);
        return 0;
}
