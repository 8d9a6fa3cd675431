/* Any bytes as a page of a hub's tree; and the first line of them as a pattern that chooses among its names. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/fetch/origin/hub_listing.h"
#include "daemon/fetch/origin/origin_pattern.h"
#include "proto/base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

struct use {
        struct origin_pattern *pattern; /* NULL: none */
        int n_entries;
};

static int on_entry(void *userdata, const struct hub_entry *entry) {
        struct use *use = userdata;

        if (!entry->path[0] || strlen(entry->path) > HUB_PATH_MAX || (entry->is_file && !entry->sha256 == !entry->etag))
                abort();
        if (use->pattern && origin_pattern_takes(use->pattern, entry->path) &&
            strncmp(entry->path, use->pattern->prefix, use->pattern->n_base) != 0)
                abort();
        return ++use->n_entries == 1000 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        const uint8_t *end = n_bytes > 0 ? memchr(data, '\n', n_bytes < 200 ? n_bytes : 200) : NULL;
        _cleanup_(freep) char *line = end ? strndup((const char *)data, (size_t)(end - data)) : NULL;
        struct origin_pattern pattern = { 0 };
        struct use use = { 0 };
        struct why why = { 0 };

        if (line && origin_pattern_init(&pattern, line, &why) == 0)
                use.pattern = &pattern;
        else if (line && !why.text[0])
                abort();
        why.text[0] = '\0';
        if (end) {
                n_bytes -= (size_t)(end + 1 - data);
                data = end + 1;
        }
        if (hub_listing_parse((const char *)data, n_bytes, on_entry, &use, &why) < 0 && !why.text[0] &&
            use.n_entries < 1000)
                abort();
        if (use.pattern)
                origin_pattern_fini(use.pattern);
        return 0;
}
