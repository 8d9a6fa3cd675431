#include "daemon/data/format.h"

/* tfrecord: files of records, either all of a folder or those that the path names. All records are read once, which
 * checks their checksums and finds their features (tfrecord_survey.h); then the index says where the bytes of each
 * feature lie, and holds the short numbers itself.
 *
 * The .idx files that DALI's tools make beside them are not needed, and not read. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/data/files/seen.h"
#include "daemon/data/files/shards.h"
#include "daemon/data/format_options.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/formats/table_columns.h"
#include "daemon/data/formats/tfrecord/crc32c.h"
#include "daemon/data/formats/tfrecord/tfrecord_survey.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define LOOK_UP_RECORDS 4096u       /* between two checks of the cancel flag, */
#define LOOK_UP_BYTES   (64u << 20) /* but no more than these bytes */

struct found_shard {
        size_t idx_name; /* in listed */
        struct stat status;
        uint64_t n_records;
};

struct pass {
        int root_fd;
        const struct files *files;
        const struct index_watch *watch;
        struct why *why;
        struct listed listed;
        struct ahead *ahead;
        struct survey survey;
        struct growing shards;
        int64_t settled_ns;      /* while the folder was listed */
        uint64_t n_bytes_looked; /* since the cancel flag was checked */
        struct seen seen;
};

static void pass_freep(struct pass **pass) {
        if (!*pass)
                return;
        ahead_free((*pass)->ahead); /* which uses the names */
        listed_fini(&(*pass)->listed);
        survey_fini(&(*pass)->survey);
        growing_fini(&(*pass)->shards);
        free(*pass);
}

/* ---- which files ------------------------------------------------------------------------------------------------ */

/* "train-00003-of-01024", as the files of TensorFlow's sets are numbered. */
static bool is_numbered(const char *name) {
        size_t n = strlen(name);
        const char *tail = n > 15 ? name + n - 15 : NULL;

        if (!tail || strspn(tail + 1, "0123456789") != 5 || strspn(tail + 10, "0123456789") != 5)
                return false;
        return tail[0] == '-' && strncmp(tail + 6, "-of-", 4) == 0;
}

/* Compressed files are taken, and refused when they are opened: without them it would be a different dataset. */
static bool is_taken(const char *name) {
        if (name[0] == '.' || text_ends_with(name, ".idx") || text_ends_with(name, ".index") ||
            text_ends_with(name, ".json"))
                return false;
        return strstr(name, ".tfrec") || is_numbered(name);
}

static const struct shards_kind SHARDS = {
        .what = "TFRecord file",
        .pattern = "*.tfrecord*",
        .path = "a folder of such files (names with \".tfrecord\", or such as train-00000-of-00010), one of them, or a "
                "pattern such as DIR/x-{000..127}.tfrecord",
        .is_taken = is_taken,
        .begins_so = true,
};

/* ---- one pass over all records ----------------------------------------------------------------------------------- */

static int tfrecord_look_up(struct pass *pass, const struct record *record) {
        pass->n_bytes_looked += record->n_bytes;
        seen_add(&pass->seen, record->n_bytes + 16); /* with its lengths and checksums */
        if (!pass->watch || (pass->survey.n_records % LOOK_UP_RECORDS != 0 && pass->n_bytes_looked < LOOK_UP_BYTES))
                return 0;
        pass->n_bytes_looked = 0;
        if (format_look_up(pass->watch, pass->survey.n_records, pass->files->root, pass->why) < 0)
                return -ECANCELED;
        seen_tell(&pass->seen, pass->watch);
        return 0;
}

/* Returns 0, SURVEY_AGAIN or an errno. */
static int survey_records(struct pass *pass, const char *name, struct records *records, uint64_t *ret_n_records) {
        const char *root = pass->files->root;
        struct why detail = { 0 };
        struct record record;
        int r;

        while ((r = records_next(records, &record, &detail)) == 0) {
                r = survey_add(&pass->survey, &record, &detail);
                if (r < 0)
                        return why_set(pass->why, r, "%s/%s: record %" PRIu64 " at byte %" PRIu64 ": %s", root, name,
                                       record.number, record.offset - 12, detail.text);
                if (r == 0)
                        r = tfrecord_look_up(pass, &record);
                if (r != 0)
                        return r;
                *ret_n_records = record.number + 1;
        }
        return r == RECORDS_END ? 0 : why_set(pass->why, r, "%s/%s: %s", root, name, detail.text);
}

/* Called by several threads. */
static int tfrecord_open_file(void *userdata, size_t idx_name, int64_t *settled_ns, struct stat *ret_status,
                              struct why *why) {
        const struct pass *pass = userdata;

        return listed_open(pass->root_fd, pass->files->root, pass->listed.names[idx_name], settled_ns, ret_status, why);
}

static int survey_file(struct pass *pass, size_t idx_name) {
        const char *name = pass->listed.names[idx_name];
        struct found_shard shard = { .idx_name = idx_name };
        struct records records;
        int r = ahead_next_file(pass->ahead, &shard.status, pass->why);

        if (r < 0)
                return r;
        seen_file(&pass->seen, (uint64_t)shard.status.st_size);
        records_begin(&records, pass->ahead, (uint64_t)shard.status.st_size);
        r = survey_begin_shard(&pass->survey, name);
        if (r < 0)
                return index_builder_refused(r, pass->files->root, pass->why);
        r = survey_records(pass, name, &records, &shard.n_records);
        if (r != 0)
                return r;
        r = growing_append(&pass->shards, &shard, sizeof(shard));
        return r < 0 ? index_builder_refused(r, pass->files->root, pass->why) : 0;
}

/* Begins again if a feature turns out to need another form. Each feature changes its form once at most, and most of
 * them in the first records. */
static int survey_files(struct pass *pass) {
        const struct cuts_files files = { .n = pass->listed.n, .open = tfrecord_open_file, .userdata = pass };
        struct why detail;
        int r = SURVEY_AGAIN;

        while (r == SURVEY_AGAIN) {
                growing_clear(&pass->shards);
                seen_begin(&pass->seen, pass->listed.n);
                if (ahead_begin(pass->ahead, &files) < 0)
                        return index_builder_refused(-ENOMEM, pass->files->root, pass->why);
                r = 0;
                for (size_t i = 0; i < pass->listed.n && r == 0; i++)
                        r = survey_file(pass, i);
        }
        if (r < 0)
                return r;
        r = survey_finish(&pass->survey);
        if (r < 0)
                return index_builder_refused(r, pass->files->root, pass->why);
        if (pass->survey.n_features == 0 && pass->survey.n_left_out > 0) {
                r = table_no_column(NULL, pass->survey.refusals, &detail);
                return why_set(pass->why, r, "%s/%s", pass->files->root, detail.text);
        }
        if (pass->survey.n_features == 0)
                return why_set(pass->why, -ENOENT, "%s: there is no record with a feature in its %zu files",
                               pass->files->root, pass->listed.n);
        return 0;
}

/* ---- fields ------------------------------------------------------------------------------------------------------ */

static bool is_stored(const struct found_feature *found) {
        return found->form != FOUND_NUMBERS;
}

/* A message that holds bytes values one by one. */
static bool is_list_of_bytes(const struct found_feature *found) {
        return found->form == FOUND_MESSAGE && found->type == FEATURE_BYTES && !found->is_not_single;
}

static enum field_kind tfrecord_kind_of(const struct found_feature *found) {
        if (is_list_of_bytes(found) && !found->is_not_text)
                return FIELD_TEXTS;
        if (found->form == FOUND_VALUE && !found->is_not_picture)
                return FIELD_PICTURE;
        if (found->form == FOUND_VALUE && !found->is_not_sound)
                return FIELD_SOUND;
        if (found->form == FOUND_VALUE && !found->is_not_text)
                return FIELD_TEXT;
        return found->form == FOUND_VALUE || found->form == FOUND_MESSAGE ? FIELD_BYTES : FIELD_VALUE;
}

static void tfrecord_describe(const struct pass *pass, const struct found_feature *found,
                              struct schema_field *ret_field) {
        struct schema_field field = {
                .kind = tfrecord_kind_of(found),
                .is_stored = is_stored(found),
                .may_be_absent = found->n_with < pass->survey.n_records,
        };

        memcpy(field.name, found->name, sizeof(field.name));
        if (is_list_of_bytes(found))
                field.coding = found->is_list ? CODING_STEPS : CODING_LIST;
        if (field.kind == FIELD_VALUE) {
                field.dtype = found->type == FEATURE_FLOATS ? DLP_DTYPE_FLOAT32 : DLP_DTYPE_INT64;
                field.coding = field.is_stored && found->type == FEATURE_INTS ? CODING_VARINTS : CODING_PLAIN;
                if (found->is_list || found->is_varying || found->count != 1)
                        field.shape[field.n_dims++] = found->is_varying || found->count == 0 ? -1
                                                                                             : (int64_t)found->count;
                if (found->is_list && found->step_count != 1)
                        field.shape[field.n_dims++] = (int64_t)found->step_count;
        }
        *ret_field = field;
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

/* Gives the features of all records to the index, one record after the other. */
struct giving {
        struct pass *pass;
        struct index_builder *builder;
        struct index_row rows[INDEX_FIELDS_MAX]; /* of the sample that is given */
        uint32_t n_stored;
        uint32_t columns[INDEX_FIELDS_MAX]; /* of each feature that is not stored */
        size_t at[INDEX_FIELDS_MAX];        /* the next of its numbers */
};

static int tfrecord_add_fields(struct giving *giving) {
        struct survey *survey = &giving->pass->survey;
        struct schema_field field;
        uint32_t idx_stored = 0;
        int r;

        for (uint32_t i = 0; i < survey->n_features; i++)
                giving->n_stored += is_stored(&survey->features[i]);
        r = index_builder_new(format_tfrecord.name, giving->n_stored, &giving->builder);
        for (uint32_t i = 0; i < survey->n_features && r >= 0; i++) {
                tfrecord_describe(giving->pass, &survey->features[i], &field);
                if (field.is_stored)
                        index_builder_describe(giving->builder, idx_stored++, &field);
                else
                        r = index_builder_add_column(giving->builder, &field, &giving->columns[i]);
        }
        return r;
}

static int give_numbers(struct giving *giving, uint32_t idx_feature, uint64_t idx_record) {
        const struct found_feature *found = &giving->pass->survey.features[idx_feature];
        const uint32_t *counts = (const void *)found->counts.bytes;
        uint64_t count = found->counts.n_bytes > 0 ? counts[idx_record] : found->count, n_bytes;
        size_t at = giving->at[idx_feature];

        if (count == SURVEY_ABSENT)
                return 0;
        n_bytes = count * (found->is_list ? found->step_count : 1) *
                  (found->type == FEATURE_FLOATS ? sizeof(float) : sizeof(int64_t));
        giving->at[idx_feature] += (size_t)n_bytes;
        /* If no record has a number, there is no memory of numbers at all. */
        return index_builder_set_value(giving->builder, giving->columns[idx_feature],
                                       n_bytes > 0 ? found->numbers.bytes + at : (const void *)"", n_bytes);
}

static int give_record(struct giving *giving, uint64_t idx_record) {
        struct survey *survey = &giving->pass->survey;
        struct index_row *rows = giving->rows;
        uint32_t n_rows = 0;
        int r = 0;

        for (uint32_t i = 0; i < survey->n_features && r >= 0; i++) {
                const struct found_place *places = (const void *)survey->features[i].places.bytes;

                if (is_stored(&survey->features[i]))
                        rows[n_rows++] = (struct index_row){ .file = INDEX_NO_FILE,
                                                             .offset = places[idx_record].offset,
                                                             .length = places[idx_record].n_bytes };
                else
                        r = give_numbers(giving, i, idx_record);
        }
        return r < 0 ? r : index_builder_add_sample(giving->builder, rows, 0);
}

static int give_all(struct giving *giving) {
        struct pass *pass = giving->pass;
        const struct found_shard *shards = (const void *)pass->shards.bytes;
        uint64_t idx_record = 0;
        int r = tfrecord_add_fields(giving);

        if (r >= 0)
                r = listed_give_root(&pass->listed, pass->files, giving->builder);
        if (r >= 0)
                index_builder_name_rows(giving->builder);
        for (uint64_t i = 0; i < pass->shards.n_bytes / sizeof(*shards) && r >= 0; i++) {
                r = index_builder_add_shard(giving->builder, pass->listed.names[shards[i].idx_name], &shards[i].status);
                for (uint64_t k = 0; k < shards[i].n_records && r >= 0; k++)
                        r = give_record(giving, idx_record++);
        }
        return r;
}

/* ---- for auto ---------------------------------------------------------------------------------------------------- */

/* A length with its checksum: four bytes that are right by chance once in four billion files. */
static int begins_with_record(int fd) {
        uint8_t bytes[12];
        int r = indexing_read_at(fd, bytes, sizeof(bytes), 0);

        return r < 0 ? format_cannot_tell(r) : crc32c_masked(crc32c(bytes, 8)) == le32(bytes + 8);
}

static int tfrecord_is_it(int root_fd, const struct files *files) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX];
        int64_t settled_ns = 0;
        struct stat status;
        int r = shards_first(root_fd, files, &SHARDS, path);

        if (r <= 0)
                return r;
        fd = listed_open(root_fd, files->root, path, &settled_ns, &status, NULL);
        return fd < 0 ? format_cannot_tell(fd) : begins_with_record(fd);
}

static int tfrecord_build(int root_fd, const struct files *files, const struct format_options *options,
                          const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(pass_freep) struct pass *pass = calloc(1, sizeof(*pass));
        struct giving giving = { .pass = pass };
        int r;

        if (!pass)
                return why_errno(why, -ENOMEM, "%s: its index", files->root);
        pass->root_fd = root_fd;
        pass->files = files;
        pass->watch = watch;
        pass->why = why;
        pass->survey.refusals = format_refusals(options);
        r = ahead_new(AHEAD_THREADS, &pass->ahead);
        if (r < 0)
                return index_builder_refused(r, pass->files->root, pass->why);
        r = shards_find(&pass->listed, root_fd, files, &SHARDS, format_option(options, "split"), &pass->settled_ns,
                        why);
        if (r == 0)
                r = survey_files(pass);
        if (r < 0)
                return r;
        r = give_all(&giving);
        if (r < 0) {
                index_builder_free(giving.builder);
                return index_builder_refused(r, pass->files->root, pass->why);
        }
        if (watch && watch->progress)
                watch->progress(watch->userdata, pass->survey.n_records);
        *ret_builder = giving.builder;
        return 0;
}

static const struct setting OPTIONS[] = {
        OPTION_SPLIT,
        { 0 },
};

static const struct format_naming NAMES[] = { { ".tfrecord" }, { ".tfrec" }, { 0 } };

/* A length, and a checksum of it. */
static bool tfrecord_begins(const uint8_t *head, size_t n) {
        (void)n;
        return le32(head + 8) == crc32c_masked(crc32c(head, 8));
}

static const struct format_written WRITTEN = {
        .suffix = ".tfrecord", .n_head = 16, .begins_so = tfrecord_begins, .names = NAMES
};

const struct format format_tfrecord = {
        .name = "tfrecord",
        .doc = "A folder of TFRecord files (names with `.tfrecord` or `.tfrec`, and numbered names such as "
               "`train-00003-of-01024`, in the order of their names), a single file, or a pattern of files. A "
               "record is a sample; it is called FILE:N, counted from 0 in each file.",
        .example = "path = \"/data/train-*-of-01024\"",
        .takes_files = true,
        .is_read_through = true,
        .cut = records_cut,
        .options = OPTIONS,
        .names = NAMES,
        .written = &WRITTEN,
        .is_it = tfrecord_is_it,
        .build = tfrecord_build,
};
