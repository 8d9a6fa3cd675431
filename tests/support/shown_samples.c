#include "tests/support/shown_samples.h"

#include <check.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int samples_open(const struct tree *tree, const char *format, const char *below, const char *options,
                 struct dataset **ret_dataset, struct why *why) {
        char path[PATH_MAX];
        struct dataset_spec spec = { .name = "shown", .path = path, .format = format, .options = options };

        snprintf(path, sizeof(path), "%s/%s", tree->root, below);
        return dataset_open(&spec, "/proc/nowhere", NULL, ret_dataset, NULL, why);
}

static char *append(char *at, const char *end, const char *format, ...) __attribute__((format(printf, 3, 4)));
static char *append(char *at, const char *end, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        at += vsnprintf(at, (size_t)(end - at), format, arguments);
        va_end(arguments);
        ck_assert(at < end);
        return at;
}

/* "name:kind" of each field but the name of the sample: b bytes, t text, p picture, s sound, m masks with the most of a
 * sample, i8 f8 b1 values, [shape]; "'" after a stored field, "?" if it may be absent. */
static char *show_schema(const struct source *source, char *at, const char *end) {
        for (uint32_t i = 0; i < source->schema.n_fields; i++) {
                const struct schema_field *field = &source->schema.fields[i];

                if (field->kind == FIELD_NAME)
                        continue;
                at = append(at, end, "%s%s:%s", i ? " " : "", field->name,
                            field->kind == FIELD_PICTURE        ? "p"
                            : field->kind == FIELD_SOUND        ? "s"
                            : field->kind == FIELD_BYTES        ? "b"
                            : field->kind == FIELD_MASKS        ? "m"
                            : field->kind == FIELD_TEXT         ? "t"
                            : field->dtype == DLP_DTYPE_BOOL    ? "b1"
                            : field->dtype == DLP_DTYPE_INT64   ? "i8"
                            : field->dtype == DLP_DTYPE_UINT64  ? "u8"
                            : field->dtype == DLP_DTYPE_FLOAT32 ? "f4"
                                                                : "f8");
                for (uint32_t k = 0; k < field->n_dims; k++)
                        at = append(at, end, "[%" PRId64 "]", field->shape[k]);
                if (field->kind == FIELD_MASKS)
                        at = append(at, end, "%u", field->max_rows);
                at = append(at, end, "%s%s", field->is_stored ? "'" : "", field->may_be_absent ? "?" : "");
        }
        return append(at, end, "\n");
}

static char *show_stored(const struct tree *tree, const struct source *source, uint64_t sample, uint32_t field,
                         char *at, const char *end) {
        char path[PATH_MAX];
        struct extent extent;
        int fd;

        source_locate(source, sample, field, &extent);
        if (extent.flags & EXTENT_ABSENT)
                return append(at, end, "-");
        if (extent.flags & EXTENT_UNREACHABLE)
                return append(at, end, "missing");
        if (extent.shard)
                snprintf(path, sizeof(path), "%s/%s", tree->root, extent.shard);
        else
                snprintf(path, sizeof(path), "%s/%s%s%s", tree->root, extent.dir, extent.dir[0] ? "/" : "",
                         extent.name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        ck_assert_msg(fd >= 0, "%s", path);
        ck_assert_int_eq(pread(fd, at, extent.length, (off_t)extent.offset), (ssize_t)extent.length);
        close(fd);
        at[extent.length] = '\0';
        return at + extent.length;
}

static char *show_value(const struct source *source, uint64_t sample, uint32_t field, char *at, const char *end) {
        const struct schema_field *described = &source->schema.fields[field];
        uint64_t n_bytes = source_length(source, sample, field);
        union {
                int64_t integers[64];
                double floats[64];
                float singles[64];
                uint8_t bytes[512];
        } value;

        if (!source_has(source, sample, field))
                return append(at, end, "-");
        ck_assert_uint_le(n_bytes, sizeof(value));
        source_value(source, sample, field, &value);
        if (described->kind == FIELD_BYTES || described->kind == FIELD_MASKS)
                return append(at, end, "%.*s", (int)n_bytes, (const char *)value.bytes);
        if (described->kind == FIELD_TEXT)
                return append(at, end, "\"%.*s\"", (int)n_bytes, (const char *)value.bytes);
        for (uint64_t i = 0; i < n_bytes / dlp_dtype_bytes(described->dtype); i++)
                if (described->dtype == DLP_DTYPE_INT64)
                        at = append(at, end, "%s%" PRId64, i ? "," : "", value.integers[i]);
                else if (described->dtype == DLP_DTYPE_UINT64)
                        at = append(at, end, "%s%" PRIu64, i ? "," : "", (uint64_t)value.integers[i]);
                else if (described->dtype == DLP_DTYPE_FLOAT64)
                        at = append(at, end, "%s%.17g", i ? "," : "", value.floats[i]);
                else if (described->dtype == DLP_DTYPE_FLOAT32)
                        at = append(at, end, "%s%g", i ? "," : "", (double)value.singles[i]);
                else
                        at = append(at, end, "%s%u", i ? "," : "", value.bytes[i]);
        return at;
}

void samples_expect(const struct tree *tree, const char *format, const char *below, const char *options,
                    const char *expected) {
        static char shown[65536];
        char *at = shown, *end = shown + sizeof(shown);
        const struct source *source;
        struct dataset *dataset;
        struct why why = { 0 };

        ck_assert_msg(samples_open(tree, format, below, options, &dataset, &why) == 0, "%s", why.text);
        source = dataset_source(dataset);
        at = show_schema(source, at, end);
        for (uint64_t i = 0; i < source->n_samples; i++) {
                char name[SOURCE_NAME_SIZE];

                source_name(source, i, name);
                at = append(at, end, "%s", name);
                for (uint32_t k = 0; k < source->schema.n_fields; k++) {
                        if (source->schema.fields[k].kind == FIELD_NAME)
                                continue;
                        at = append(at, end, " | ");
                        at = source->schema.fields[k].is_stored ? show_stored(tree, source, i, k, at, end)
                                                                : show_value(source, i, k, at, end);
                }
                at = append(at, end, "\n");
        }
        ck_assert_str_eq(shown, expected);
        dataset_unref(dataset);
}

void samples_refuse(const struct tree *tree, const char *format, const char *below, const char *options,
                    const char *words) {
        struct dataset *dataset;
        struct why why = { 0 };
        int r = samples_open(tree, format, below, options, &dataset, &why);

        ck_assert_msg(r < 0, "it was accepted, without \"%s\"", words);
        ck_assert_msg(strstr(why.text, words) != NULL, "\"%s\" lacks \"%s\"", why.text, words);
}
