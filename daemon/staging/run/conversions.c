#include "daemon/staging/run/conversions.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/staging/prepare/numpy.h"
#include "daemon/staging/prepare/prepare_litdata.h"
#include "daemon/staging/prepare/prepare_parquet.h"
#include "proto/base/cleanup.h"

#define NPY ".npy"

/* LitData's chunks that zstd compressed with this effort; without one the name has none. */
#define EFFORT(n)                                                                                                      \
        { ".zstd:" #n ".bin", { "zstd", "-dcq" }, ".bin" }

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
        EFFORT(1),
        EFFORT(2),
        EFFORT(3),
        EFFORT(4),
        EFFORT(5),
        EFFORT(6),
        EFFORT(7),
        EFFORT(8),
        EFFORT(9),
        EFFORT(10),
        EFFORT(11),
        EFFORT(12),
        EFFORT(13),
        EFFORT(14),
        EFFORT(15),
        EFFORT(16),
        EFFORT(17),
        EFFORT(18),
        EFFORT(19),
        EFFORT(20),
        EFFORT(21),
        EFFORT(22),
        { ".csv.gz", { "gzip", "-dc" }, ".csv" },
        { ".csv.zst", { "zstd", "-dcq" }, ".csv" },
        { ".csv.xz", { "xz", "-dc" }, ".csv" },
        { ".csv.bz2", { "bzip2", "-dc" }, ".csv" },
        { ".tsv.gz", { "gzip", "-dc" }, ".tsv" },
        { ".tsv.zst", { "zstd", "-dcq" }, ".tsv" },
        { ".tsv.xz", { "xz", "-dc" }, ".tsv" },
        { ".tsv.bz2", { "bzip2", "-dc" }, ".tsv" },
        { ".txt.gz", { "gzip", "-dc" }, ".txt" },
        { ".txt.zst", { "zstd", "-dcq" }, ".txt" },
        { ".txt.xz", { "xz", "-dc" }, ".txt" },
        { ".txt.bz2", { "bzip2", "-dc" }, ".txt" },
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

static const struct conversion CHUNK = { ".bin", { NULL, "-c", CHUNK_TO_PLAIN }, ".bin" };
static const struct conversion COPY = { "", { "cat" }, "" };

/* With -f gzip copies what is not compressed: such files may be so in spite of their names, as TensorFlow writes them.
 */
static const struct conversion PERHAPS = { "", { "gzip", "-dcf" }, NULL };

enum {
        FORM_TAR = 1,
        FORM_RECORDS = 2,
        FORM_LINES = 4,
        FORM_ARROW = 8,
        FORMS_ALL = 15
};

/* Which of these files of samples has this name, with or without another ending after it? 0: none. */
static uint32_t conversions_form_of(const char *path, size_t n) {
        static const struct {
                const char *ending;
                uint32_t form;
        } FORMS[] = { { ".tar", FORM_TAR },       { ".tgz", FORM_TAR },      { ".tzst", FORM_TAR },
                      { ".txz", FORM_TAR },       { ".tbz", FORM_TAR },      { ".tbz2", FORM_TAR },
                      { ".tfrec", FORM_RECORDS }, { ".jsonl", FORM_LINES },  { ".ndjson", FORM_LINES },
                      { ".arrow", FORM_ARROW },   { ".feather", FORM_ARROW } };

        if (memmem(path, n, ".tfrecord", strlen(".tfrecord"))) /* also train.tfrecord-00003-of-01024 */
                return FORM_RECORDS;
        for (size_t i = 0; i < ARRAY_SIZE(FORMS); i++) {
                size_t n_ending = strlen(FORMS[i].ending);

                if (n > n_ending && memcmp(path + n - n_ending, FORMS[i].ending, n_ending) == 0)
                        return FORMS[i].form;
        }
        return 0;
}

static bool lies_beside(const struct plan *plan, const char *path, size_t n, const char *name) {
        char beside[PATH_MAX];

        snprintf(beside, sizeof(beside), "%.*s%s", (int)n, path, name);
        return plan_find(plan, beside) >= 0;
}

/* LitData's chunk-0-0.bin beside its index.json; the files of tokens that Megatron has have an .idx each. */
static bool is_chunk(const struct plan *plan, const char *path) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        size_t n = strlen(path), n_folder = (size_t)(name - path), n_ending = strlen(CHUNK.ending);

        return strncmp(name, "chunk-", strlen("chunk-")) == 0 && strcmp(path + n - n_ending, CHUNK.ending) == 0 &&
               lies_beside(plan, path, n_folder, "index.json") && !lies_beside(plan, path, n - n_ending, ".idx");
}

static const struct conversion *conversions_planned(const struct plan *plan, const char *path) {
        for (size_t i = 0; i < ARRAY_SIZE(CONVERSIONS); i++) {
                size_t n = strlen(path), n_ending = strlen(CONVERSIONS[i].ending);

                if (n > n_ending && strcmp(path + n - n_ending, CONVERSIONS[i].ending) == 0)
                        return &CONVERSIONS[i];
        }
        return is_chunk(plan, path) ? &CHUNK : NULL;
}

const struct conversion *conversion_of(const char *path, const struct conversions *conversions) {
        const struct conversion *conversion = conversions_planned(conversions->plan, path);

        if (conversions->keeps_names)
                return !conversion || !conversion->becomes ? &COPY : conversion;
        if (!conversion && (conversions_form_of(path, strlen(path)) & conversions->plain_forms))
                return &PERHAPS;
        return conversion;
}

/* Files that are decompressed, as they are called then. */
static uint32_t form_within(const char *path, const struct conversion *conversion) {
        uint32_t form = conversions_form_of(path, strlen(path) - strlen(conversion->ending));

        return form ? form : conversions_form_of(path, strlen(path));
}

static bool keeps_names(const struct plan *plan) {
        bool has_arrays = false, has_others = false;

        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const struct conversion *conversion = conversions_planned(plan, plan_file(plan, i)->path);

                if (!conversion)
                        continue;
                if (conversion->becomes && strcmp(conversion->ending, NPY) != 0)
                        return true;
                has_arrays |= conversion->becomes != NULL;
                has_others |= !conversion->becomes;
        }
        return has_arrays && !has_others;
}

void conversions_find(const struct plan *plan, struct conversions *ret_conversions) {
        bool has_any = false;

        *ret_conversions = (struct conversions){ .keeps_names = keeps_names(plan), .plan = plan };
        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const char *path = plan_file(plan, i)->path;
                const struct conversion *conversion = conversions_planned(plan, path);

                has_any |= conversion != NULL;
                if (conversion && conversion->words[0]) /* decompressed: not by Python */
                        ret_conversions->plain_forms |= form_within(path, conversion);
        }
        if (!has_any)
                ret_conversions->plain_forms = FORMS_ALL;
}

void conversion_path(const struct conversion *conversion, const char *path, char *ret_path, size_t size) {
        size_t n = strlen(path) - strlen(conversion->ending);

        snprintf(ret_path, size, "%.*s%s", (int)n, path, conversion->becomes);
}

bool conversion_is_needless(const struct plan *plan, const char *path) {
        const struct conversion *conversion = conversion_of(path,
                                                            &(struct conversions){ .keeps_names = true, .plan = plan });
        char plain[PATH_MAX];

        conversion_path(conversion, path, plain, sizeof(plain));
        return strcmp(conversion->ending, conversion->becomes) != 0 && plan_find(plan, plain) >= 0;
}
