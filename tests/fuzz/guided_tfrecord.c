/* Any bytes as a TFRecord file: what is found lies within the file, there are as many numbers as the records say, and
 * the index opens.
 *
 * The first byte: bit 0 makes the checksums right again; bit 1 makes one record of all the bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/protobuf/message_texts.h"
#include "daemon/data/format.h"
#include "daemon/data/formats/tfrecord/crc32c.h"
#include "daemon/data/formats/tfrecord/tfrecord_survey.h"
#include "daemon/data/index/index.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"
#include "tests/fuzz/folder.h"
#include "tests/support/ahead_of.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

static void find(const char *what) {
        fprintf(stderr, "fuzz: a TFRecord file was accepted %s\n", what);
        abort();
}

static void put_u32(uint8_t *at, uint32_t value) {
        memcpy(at, &value, sizeof(value));
}

/* Follows the lengths, and makes one fit where it leads outside. */
static void mend(uint8_t *bytes, size_t n_bytes) {
        for (size_t at = 0; n_bytes - at >= 16;) {
                uint64_t left = n_bytes - at - 16, n;

                memcpy(&n, bytes + at, 8);
                n = n > left ? left : n;
                memcpy(bytes + at, &n, 8);
                put_u32(bytes + at + 8, crc32c_masked(crc32c_by_table(bytes + at, 8)));
                put_u32(bytes + at + 12 + n, crc32c_masked(crc32c(bytes + at + 12, n)));
                at += 16 + n;
        }
}

static int survey_once(struct survey *survey, struct ahead *ahead, int fd, size_t n_bytes) {
        struct why why = { 0 };
        struct records records;
        struct record record;
        int r;

        ahead_of_begin(ahead, &(struct ahead_of){ .fd = fd, .n_bytes = n_bytes });
        records_begin(&records, ahead, n_bytes);
        r = survey_begin_shard(survey, "s");
        while (r == 0 && (r = records_next(&records, &record, &why)) == 0) {
                if (record.offset > n_bytes || record.n_bytes > n_bytes - record.offset)
                        find("with a record that leads outside");
                r = survey_add(survey, &record, &why);
                if (r == SURVEY_AGAIN)
                        return 2;
        }
        if (r < 0 && !why.text[0])
                abort();
        if (r == RECORDS_END && survey_finish(survey) < 0)
                _exit(2);
        return r;
}

static void check_places(const struct survey *survey, const struct found_feature *found, size_t n_bytes) {
        const struct found_place *places = (const void *)found->places.bytes;
        uint64_t n = found->places.n_bytes / sizeof(*places), n_with = 0;

        if (n != survey->n_records)
                find("with a place too few");
        for (uint64_t i = 0; i < n; i++) {
                if (places[i].offset == INDEX_ROW_ABSENT)
                        continue;
                n_with++;
                if (places[i].offset > n_bytes || places[i].n_bytes > n_bytes - places[i].offset)
                        find("with a field that leads outside");
        }
        if (n_with != found->n_with)
                find("whose absent fields were counted wrongly");
}

static void check_numbers(const struct survey *survey, const struct found_feature *found) {
        const uint32_t *counts = (const void *)found->counts.bytes;
        uint64_t n_numbers = 0, n_with = 0, unit = found->type == FEATURE_FLOATS ? 4 : 8;

        if (counts && found->counts.n_bytes != survey->n_records * sizeof(*counts))
                find("with a count too few");
        for (uint64_t i = 0; i < survey->n_records; i++) {
                uint64_t count = counts && found->counts.n_bytes > 0 ? counts[i] : found->count;

                if (count == SURVEY_ABSENT)
                        continue;
                n_with++;
                n_numbers += count * (found->is_list ? found->step_count : 1);
        }
        if (n_with != found->n_with || n_numbers * unit != found->numbers.n_bytes)
                find("with numbers that were counted wrongly");
}

static void survey_file(const uint8_t *bytes, size_t n_bytes) {
        _cleanup_(ahead_freep) struct ahead *ahead = NULL;
        _cleanup_(closep) int fd = memfd_create("tfrecord", MFD_CLOEXEC);
        static struct survey survey;
        unsigned n_rounds = 0;
        int r;

        if (fd < 0 || pwrite(fd, bytes, n_bytes, 0) != (ssize_t)n_bytes || ahead_new(1, &ahead) < 0)
                _exit(2);
        survey = (struct survey){ 0 };
        while ((r = survey_once(&survey, ahead, fd, n_bytes)) == 2)
                if (++n_rounds > INDEX_FIELDS_MAX)
                        find("that is read again and again");
        for (uint32_t i = 0; i < survey.n_features && r == RECORDS_END; i++) {
                if (survey.features[i].form == FOUND_NUMBERS)
                        check_numbers(&survey, &survey.features[i]);
                else
                        check_places(&survey, &survey.features[i], n_bytes);
        }
        survey_fini(&survey);
}

/* What is a list of bytes in the index can be read as one; of a list of texts, as texts. */
static void check_list(const struct schema_field *field, const uint8_t *bytes, size_t n_bytes) {
        struct message_texts texts;
        struct wire text;
        int r;

        message_texts_begin(&texts, bytes, n_bytes, field->coding == CODING_STEPS);
        while ((r = message_texts_next(&texts, &text, NULL)) == 1)
                if (field->kind == FIELD_TEXTS && !looks_like_text(text.at, wire_left(&text)))
                        find("with a list of texts in which something else is");
        if (r < 0)
                find("with a list that cannot be read");
}

static void check_field(const struct source *index, uint64_t sample, uint32_t idx, const uint8_t *bytes,
                        size_t n_bytes) {
        const struct schema_field *field = &index->schema.fields[idx];
        struct extent extent;

        source_locate(index, sample, idx, &extent);
        if (extent.offset > n_bytes || extent.length > n_bytes - extent.offset)
                find("with an index that leads outside");
        if (field->is_stored && (field->coding == CODING_LIST || field->coding == CODING_STEPS) &&
            source_has(index, sample, idx))
                check_list(field, bytes + extent.offset, extent.length);
}

static void index_file(const uint8_t *bytes, size_t n_bytes) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(source_closep) struct source *index = NULL;
        _cleanup_(closep) int fd = memfd_create("index", MFD_CLOEXEC), root_fd = -1;
        struct why why = { 0 };
        char path[PATH_MAX];

        folder_write("records/x.tfrecord", bytes, n_bytes);
        folder_age("records/x.tfrecord");
        folder_age("records");
        root_fd = open(folder_path("records", path), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0 || fd < 0)
                _exit(2);
        if (format_tfrecord.build(root_fd, &(struct files){ .root = path }, NULL, NULL, &builder, &why) < 0) {
                if (!why.text[0])
                        abort();
                return;
        }
        if (index_builder_write(builder, fd, "fuzzed", &why) < 0)
                find("of which no index can be written");
        if (index_open_fd(fd, "fuzzed", NULL, &index, &why) < 0)
                find("of which no index can be opened");
        for (uint64_t i = 0; i < index->n_samples; i++)
                for (uint32_t k = 0; k < index_n_fields(index); k++)
                        check_field(index, i, k, bytes, n_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes) {
        static bool has_folder;
        size_t n_head = n_bytes > 0 && data[0] & 2 ? 12 : 0, n;
        uint8_t *bytes;

        if (n_bytes < 1)
                return 0;
        n = n_bytes - 1 + (n_head > 0 ? 16 : 0);
        bytes = calloc(1, n + 1);
        if (!bytes)
                _exit(2);
        memcpy(bytes + n_head, data + 1, n_bytes - 1);
        if (n_head > 0)
                memset(bytes, 0xff, 8); /* mended to the length of the rest */
        if (data[0] & 1)
                mend(bytes, n);
        survey_file(bytes, n);
        if (!has_folder)
                folder_make("records");
        has_folder = true;
        index_file(bytes, n);
        free(bytes);
        return 0;
}
