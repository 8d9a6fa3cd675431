#include "client/dlctl/orders/dlctl_blocks.h"

#include <inttypes.h>
#include <stdlib.h>

#include "client/dlctl/control.h"
#include "client/lib/orders/column_file.h"
#include "proto/base/cleanup.h"

static int refuse_memory(uint64_t n) {
        return fail(EXIT_REFUSED, "blocks: no memory for %" PRIu64 " of them", n);
}

static int blocks_cut(uint64_t n_samples, uint64_t each, struct dlp_blocks *ret_blocks) {
        uint64_t n = n_samples / each + (n_samples % each > 0), *ends;

        ends = n <= UINT32_MAX ? malloc(n * sizeof(*ends) + 1) : NULL; /* + 1: never an allocation of 0 bytes */
        if (!ends)
                return refuse_memory(n);
        for (uint64_t i = 0; i < n; i++)
                ends[i] = i + 1 < n ? (i + 1) * each : n_samples;
        *ret_blocks = (struct dlp_blocks){ .ends = ends, .n = (uint32_t)n };
        return EXIT_DONE;
}

static int blocks_add_up(const char *path, uint64_t n_samples, struct dlp_blocks *ret_blocks) {
        _cleanup_(freep) void *values = NULL;
        struct dlp_column sizes;
        struct why why = { "" };
        uint64_t sum = 0, n = 0, *ends;

        if (dli_column_file_read(path, &sizes, &values, &why) < 0)
                return fail(EXIT_REFUSED, "blocks: %s", why.text);
        ends = sizes.n_values <= UINT32_MAX ? malloc(sizes.n_values * sizeof(*ends) + 1) : NULL;
        if (!ends)
                return refuse_memory(sizes.n_values);
        for (uint64_t i = 0; i < sizes.n_values; i++) {
                double size = dlp_column_real(&sizes, i);

                if (!(size >= 0 && size <= (double)(n_samples - sum) && (double)(uint64_t)size == size)) {
                        free(ends);
                        return fail(EXIT_REFUSED,
                                    "blocks: %s: %.10g is number %" PRIu64 "; a whole number of samples is needed, and "
                                    "all blocks together have the %" PRIu64 " of --samples",
                                    path, size, i + 1, n_samples);
                }
                sum += (uint64_t)size;
                if (size > 0)
                        ends[n++] = sum;
        }
        *ret_blocks = (struct dlp_blocks){ .ends = ends, .n = (uint32_t)n };
        if (sum == n_samples)
                return EXIT_DONE;
        return fail(EXIT_REFUSED, "blocks: those of %s have %" PRIu64 " samples together, --samples says %" PRIu64,
                    path, sum, n_samples);
}

int blocks_read(const char *text, uint64_t n_samples, struct dlp_blocks *ret_blocks) {
        uint64_t each = DLP_BLOCKS_SHARE;
        char *end = NULL;

        if (text && text[0] >= '0' && text[0] <= '9')
                each = strtoull(text, &end, 10);
        if (text && (!end || *end))
                return blocks_add_up(text, n_samples, ret_blocks);
        if (each == 0)
                return fail(EXIT_REFUSED, "blocks: 0; at least one sample is needed");
        return blocks_cut(n_samples, each, ret_blocks);
}
