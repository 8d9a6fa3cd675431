#include "daemon/staging/run/conversions.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define BITS_OF_FORMATS 64u

/* After those of formats: files of samples, compressed. */
static const struct format_conversion DECOMPRESSIONS[] = {
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
        { 0 },
};

static const struct format_conversion COPY = { "", { "cat" }, "" };

/* With -f gzip copies what is not compressed: such files may be so in spite of their names, as TensorFlow writes them.
 */
static const struct format_conversion PERHAPS = { "", { "gzip", "-dcf" }, NULL };

static bool conversions_ends_in(const char *path, size_t n, const char *ending) {
        size_t n_ending = strlen(ending);

        return n > n_ending && memcmp(path + n - n_ending, ending, n_ending) == 0;
}

static bool is_named_so(const struct format_naming *naming, const char *path, size_t n) {
        if (naming->is_file)
                return false;
        return naming->is_end ? conversions_ends_in(path, n, naming->part)
                              : memmem(path, n, naming->part, strlen(naming->part)) != NULL;
}

/* The bit of the format whose files of samples have this name, with or without another ending after it. 0: none. */
static uint64_t conversions_form_of(const char *path, size_t n) {
        const struct format *format;

        for (size_t i = 0; (format = format_at(i)) && i < BITS_OF_FORMATS; i++) {
                const struct format_naming *naming = format->written ? format->written->names : NULL;

                for (; naming && naming->part; naming++)
                        if (is_named_so(naming, path, n))
                                return 1ull << i;
        }
        return 0;
}

static bool lies_beside(const struct plan *plan, const char *path, size_t n, const char *name) {
        char beside[PATH_MAX];

        snprintf(beside, sizeof(beside), "%.*s%s", (int)n, path, name);
        return plan_find(plan, beside) >= 0;
}

static bool conversions_fits(const struct format_conversion *row, const struct plan *plan, const char *path) {
        const char *name = text_after_slash(path);
        size_t n = strlen(path);

        return conversions_ends_in(path, n, row->ending) &&
               (!row->begin || strncmp(name, row->begin, strlen(row->begin)) == 0) &&
               (!row->beside || lies_beside(plan, path, (size_t)(name - path), row->beside)) &&
               (!row->without || !lies_beside(plan, path, n - strlen(row->ending), row->without));
}

static const struct format_conversion *conversions_find_in(const struct format_conversion *rows,
                                                           const struct plan *plan, const char *path) {
        for (; rows && rows->ending; rows++)
                if (conversions_fits(rows, plan, path))
                        return rows;
        return NULL;
}

static const struct format_conversion *conversions_planned(const struct plan *plan, const char *path) {
        const struct format_conversion *found = NULL;

        for (size_t i = 0; format_at(i) && !found; i++)
                found = conversions_find_in(format_at(i)->conversions, plan, path);
        return found ? found : conversions_find_in(DECOMPRESSIONS, plan, path);
}

const struct format_conversion *conversion_of(const char *path, const struct conversions *conversions) {
        const struct format_conversion *conversion = conversions_planned(conversions->plan, path);

        if (conversions->keeps_names)
                return !conversion || !conversion->becomes ? &COPY : conversion;
        if (!conversion && (conversions_form_of(path, strlen(path)) & conversions->plain_forms))
                return &PERHAPS;
        return conversion;
}

/* Files that are decompressed, as they are called then. */
static uint64_t form_within(const char *path, const struct format_conversion *conversion) {
        uint64_t form = conversions_form_of(path, strlen(path) - strlen(conversion->ending));

        return form ? form : conversions_form_of(path, strlen(path));
}

static bool keeps_names(const struct plan *plan) {
        bool has_arrays = false, has_others = false;

        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const struct format_conversion *conversion = conversions_planned(plan, plan_file(plan, i)->path);

                if (!conversion)
                        continue;
                if (conversion->becomes && !conversion->is_kept_alone)
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
                const struct format_conversion *conversion = conversions_planned(plan, path);

                has_any |= conversion != NULL;
                if (conversion && conversion->words[0]) /* decompressed: not by Python */
                        ret_conversions->plain_forms |= form_within(path, conversion);
        }
        if (!has_any)
                ret_conversions->plain_forms = UINT64_MAX;
}

void conversion_path(const struct format_conversion *conversion, const char *path, char *ret_path, size_t size) {
        size_t n = strlen(path) - strlen(conversion->ending);

        snprintf(ret_path, size, "%.*s%s", (int)n, path, conversion->becomes);
}

bool conversion_is_needless(const struct plan *plan, const char *path) {
        const struct format_conversion *conversion = conversion_of(
                path, &(struct conversions){ .keeps_names = true, .plan = plan });
        char plain[PATH_MAX];

        conversion_path(conversion, path, plain, sizeof(plain));
        return strcmp(conversion->ending, conversion->becomes) != 0 && plan_find(plan, plain) >= 0;
}
