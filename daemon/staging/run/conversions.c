#include "daemon/staging/run/conversions.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/staging/prepare/numpy.h"
#include "daemon/staging/prepare/parquet.h"
#include "proto/base/cleanup.h"

#define NPY ".npy"

/* The first ending that fits counts. */
static const struct conversion CONVERSIONS[] = {
        { ".parquet", { NULL, "-c", PARQUET_TO_ARROW }, NULL }, /* the program: Python */
        { ".npz", { NULL, "-c", NPZ_TO_STORED }, NULL },
        { NPY, { NULL, "-c", NPY_TO_ROWS }, NPY },
        { ".mds.zstd", { "zstd", "-dcq" }, ".mds" },
        { ".mds.gz", { "gzip", "-dc" }, ".mds" },
        { ".mds.bz2", { "bzip2", "-dc" }, ".mds" },
        { ".mds.br", { "brotli", "-dc" }, ".mds" },
        { ".zstd.bin", { "zstd", "-dcq" }, ".bin" },
        { ".gz", { "gzip", "-dc" }, NULL },
        { ".tgz", { "gzip", "-dc" }, NULL },
        { ".zst", { "zstd", "-dcq" }, NULL },
        { ".tzst", { "zstd", "-dcq" }, NULL },
        { ".xz", { "xz", "-dc" }, NULL },
        { ".txz", { "xz", "-dc" }, NULL },
        { ".bz2", { "bzip2", "-dc" }, NULL },
        { ".tbz", { "bzip2", "-dc" }, NULL },
        { ".tbz2", { "bzip2", "-dc" }, NULL },
        { ".lz4", { "lz4", "-dcq" }, NULL },
};

static const struct conversion COPY = { "", { "cat" }, "" };

static const struct conversion *by_ending(const char *path) {
        for (size_t i = 0; i < ARRAY_SIZE(CONVERSIONS); i++) {
                size_t n = strlen(path), n_ending = strlen(CONVERSIONS[i].ending);

                if (n > n_ending && strcmp(path + n - n_ending, CONVERSIONS[i].ending) == 0)
                        return &CONVERSIONS[i];
        }
        return NULL;
}

const struct conversion *conversion_of(const char *path, bool keeps_names) {
        const struct conversion *conversion = by_ending(path);

        return keeps_names && (!conversion || !conversion->becomes) ? &COPY : conversion;
}

bool conversion_keeps_names(const struct plan *plan) {
        bool has_arrays = false, has_others = false;

        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const struct conversion *conversion = by_ending(plan_file(plan, i)->path);

                if (!conversion)
                        continue;
                if (conversion->becomes && strcmp(conversion->ending, NPY) != 0)
                        return true;
                has_arrays |= conversion->becomes != NULL;
                has_others |= !conversion->becomes;
        }
        return has_arrays && !has_others;
}

void conversion_path(const struct conversion *conversion, const char *path, char *ret_path, size_t size) {
        size_t n = strlen(path) - strlen(conversion->ending);

        snprintf(ret_path, size, "%.*s%s", (int)n, path, conversion->becomes);
}

bool conversion_is_needless(const struct plan *plan, const char *path) {
        const struct conversion *conversion = conversion_of(path, true);
        char plain[PATH_MAX];

        conversion_path(conversion, path, plain, sizeof(plain));
        return strcmp(conversion->ending, conversion->becomes) != 0 && plan_find(plan, plain) >= 0;
}
