/* TFRecord files: checksums, records, examples in place, and the survey over all records. The files in
 * tests/vectors/tfrecord were written by TensorFlow; the other records are made here, byte by byte. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/formats/tfrecord/crc32c.h"
#include "daemon/data/formats/tfrecord/tfrecord_survey.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"
#include "tests/support/ahead_of.h"
#include "tests/support/suite.h"

static struct why why;

/* ---- protobuf, written ------------------------------------------------------------------------------------------ */

struct message {
        uint8_t bytes[32 << 10];
        size_t n;
};

static void put_varint(struct message *message, uint64_t value) {
        for (; value >> 7; value >>= 7)
                message->bytes[message->n++] = (uint8_t)(value | 0x80);
        message->bytes[message->n++] = (uint8_t)value;
}

static void put(struct message *message, uint32_t number, const void *bytes, size_t n) {
        put_varint(message, number << 3 | WIRE_BYTES);
        put_varint(message, n);
        if (n > 0)
                memcpy(message->bytes + message->n, bytes, n);
        message->n += n;
}

static void put_message(struct message *message, uint32_t number, const struct message *inner) {
        put(message, number, inner->bytes, inner->n);
}

/* A Feature of the integers that follow, up to -1. */
static struct message ints(int first, ...) {
        struct message run = { 0 }, list = { 0 }, feature = { 0 };
        va_list values;

        va_start(values, first);
        for (int value = first; value != -1; value = va_arg(values, int))
                put_varint(&run, (uint64_t)value);
        va_end(values);
        put_message(&list, 1, &run);
        put_message(&feature, FEATURE_INTS, &list);
        return feature;
}

static struct message floats(size_t n) {
        struct message list = { 0 }, feature = { 0 };
        float values[256] = { 0 };

        for (size_t i = 0; i < n; i++)
                values[i] = (float)i / 2;
        put(&list, 1, values, n * sizeof(float));
        put_message(&feature, FEATURE_FLOATS, &list);
        return feature;
}

/* A Feature of the texts that follow, up to NULL. */
static struct message texts(const char *first, ...) {
        struct message list = { 0 }, feature = { 0 };
        va_list values;

        va_start(values, first);
        for (const char *text = first; text; text = va_arg(values, const char *))
                put(&list, 1, text, strlen(text));
        va_end(values);
        put_message(&feature, FEATURE_BYTES, &list);
        return feature;
}

static void add_entry(struct message *map, const char *name, struct message value) {
        struct message entry = { 0 };

        put(&entry, 1, name, strlen(name));
        put_message(&entry, 2, &value);
        put_message(map, 1, &entry);
}

/* ---- records, written ------------------------------------------------------------------------------------------- */

static void put_u32(struct message *file, uint32_t value) {
        memcpy(file->bytes + file->n, &value, 4);
        file->n += 4;
}

static void put_record(struct message *file, const void *bytes, size_t n) {
        uint64_t length = n;

        memcpy(file->bytes + file->n, &length, 8);
        file->n += 8;
        put_u32(file, crc32c_masked(crc32c(&length, 8)));
        memcpy(file->bytes + file->n, bytes, n);
        file->n += n;
        put_u32(file, crc32c_masked(crc32c(bytes, n)));
}

/* Reads all records. Returns their number, or the error. */
static int read_all(const uint8_t *bytes, size_t n_bytes, struct record *ret_last) {
        _cleanup_(ahead_freep) struct ahead *ahead = NULL;
        _cleanup_(closep) int fd = memfd_create("tfrecord", MFD_CLOEXEC);
        struct records records;
        int r, n = 0;

        ck_assert_int_eq(pwrite(fd, bytes, n_bytes, 0), (ssize_t)n_bytes);
        ck_assert_int_eq(ahead_new(1, &ahead), 0);
        ahead_of_begin(ahead, &(struct ahead_of){ .fd = fd, .n_bytes = n_bytes });
        records_begin(&records, ahead, n_bytes);
        why.text[0] = '\0';
        while ((r = records_next(&records, ret_last, &why)) == 0)
                n++;
        ret_last->bytes = NULL;
        ck_assert(r == RECORDS_END || why.text[0]);
        return r == RECORDS_END ? n : r;
}

/* ---- checksums -------------------------------------------------------------------------------------------------- */

START_TEST(the_checksum_is_castagnolis) {
        uint8_t bytes[32];

        ck_assert_uint_eq(crc32c("123456789", 9), 0xe3069283u); /* as in RFC 3720 and the catalogues of checksums */
        memset(bytes, 0, 32);
        ck_assert_uint_eq(crc32c(bytes, 32), 0x8a9136aau);
        memset(bytes, 0xff, 32);
        ck_assert_uint_eq(crc32c(bytes, 32), 0x62a8ab43u);
        ck_assert_uint_eq(crc32c(bytes, 0), 0);
        ck_assert_uint_eq(crc32c_by_table("123456789", 9), 0xe3069283u);
}
END_TEST

START_TEST(the_instruction_and_the_table_agree_at_every_length_and_place) {
        static uint8_t bytes[3 * 3072 + 64];

        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t)(i * 2654435761u >> 13);
        for (size_t n = 0; n + 8 <= sizeof(bytes); n += n < 300 ? 1 : 37)
                ck_assert(crc32c(bytes + n % 8, n) == crc32c_by_table(bytes + n % 8, n));
}
END_TEST

/* ---- records ---------------------------------------------------------------------------------------------------- */

START_TEST(records_of_every_size_are_found) {
        _cleanup_(ahead_freep) struct ahead *ahead = NULL;
        _cleanup_(closep) int fd = memfd_create("tfrecord", MFD_CLOEXEC);
        static const size_t SIZES[] = { 0, 1, 5 << 20, 17, (1 << 20) - 16, 1 << 20, 3 };
        uint64_t at = 0;
        struct records records;
        struct record record;

        for (size_t i = 0; i < ARRAY_SIZE(SIZES); i++) {
                uint8_t *bytes = malloc(SIZES[i] + 16);
                uint64_t length = SIZES[i];
                uint32_t crc;

                memcpy(bytes, &length, 8);
                crc = crc32c_masked(crc32c(bytes, 8));
                memcpy(bytes + 8, &crc, 4);
                memset(bytes + 12, (int)i + 1, SIZES[i]);
                crc = crc32c_masked(crc32c(bytes + 12, SIZES[i]));
                memcpy(bytes + 12 + SIZES[i], &crc, 4);
                ck_assert_int_eq(pwrite(fd, bytes, SIZES[i] + 16, (off_t)at), (ssize_t)(SIZES[i] + 16));
                at += SIZES[i] + 16;
                free(bytes);
        }
        ck_assert_int_eq(ahead_new(AHEAD_THREADS, &ahead), 0);
        for (int round = 0; round < 2; round++) {
                uint64_t expected = 12;

                ahead_of_begin(ahead, &(struct ahead_of){ .fd = fd, .n_bytes = at });
                records_begin(&records, ahead, at);
                for (size_t i = 0; i < ARRAY_SIZE(SIZES); i++) {
                        ck_assert_msg(records_next(&records, &record, &why) == 0, "%s", why.text);
                        ck_assert_uint_eq(record.number, i);
                        ck_assert_uint_eq(record.offset, expected);
                        ck_assert_uint_eq(record.n_bytes, SIZES[i]);
                        if (SIZES[i] > 0)
                                ck_assert(record.bytes[0] == i + 1 && record.bytes[SIZES[i] - 1] == i + 1);
                        expected += SIZES[i] + 16;
                }
                ck_assert_int_eq(records_next(&records, &record, &why), RECORDS_END);
        }
}
END_TEST

START_TEST(each_byte_of_a_file_that_is_changed_is_noticed) {
        struct message file = { 0 };
        struct record last;

        put_record(&file, "first", 5);
        put_record(&file, "the second", 10);
        ck_assert_int_eq(read_all(file.bytes, file.n, &last), 2);
        for (size_t i = 0; i < file.n; i++) {
                file.bytes[i] ^= 0x10;
                ck_assert_int_eq(read_all(file.bytes, file.n, &last), -EBADMSG);
                ck_assert_ptr_nonnull(strstr(why.text, i < 21 ? "record 0 at byte 0" : "record 1 at byte 21"));
                file.bytes[i] ^= 0x10;
        }
}
END_TEST

START_TEST(a_file_that_was_cut_anywhere_is_refused) {
        struct message file = { 0 };
        struct record last;

        put_record(&file, "first", 5);
        put_record(&file, "the second", 10);
        for (size_t n = 1; n < file.n; n++) {
                if (n == 21)
                        continue; /* where the second record begins */
                ck_assert_int_eq(read_all(file.bytes, n, &last), -EBADMSG);
                ck_assert_ptr_nonnull(strstr(why.text, "it was cut"));
        }
        ck_assert_int_eq(read_all(file.bytes, 21, &last), 1);
        ck_assert_int_eq(read_all(file.bytes, 0, &last), 0);
}
END_TEST

START_TEST(a_length_that_lies_takes_no_memory) {
        struct message file = { 0 };
        uint64_t length = UINT64_MAX - 15;
        struct record last;

        memcpy(file.bytes, &length, 8);
        file.n = 8;
        put_u32(&file, crc32c_masked(crc32c(&length, 8)));
        file.n += 100;
        ck_assert_int_eq(read_all(file.bytes, file.n, &last), -EBADMSG);
        ck_assert_ptr_nonnull(strstr(why.text, "was cut"));
}
END_TEST

START_TEST(a_compressed_file_is_recognised) {
        static const uint8_t GZIP[32] = "\x1f\x8b\x08\0\0\0\0\0\0\3", ZLIB[32] = "\x78\x9c\x63\x60";
        struct record last;

        ck_assert_int_eq(read_all(GZIP, sizeof(GZIP), &last), -ENOTSUP);
        ck_assert_ptr_nonnull(strstr(why.text, "gunzip"));
        ck_assert_int_eq(read_all(ZLIB, sizeof(ZLIB), &last), -ENOTSUP);
        ck_assert_ptr_nonnull(strstr(why.text, "zlib"));
}
END_TEST

/* ---- the survey ------------------------------------------------------------------------------------------------- */

static struct survey survey;
static struct message records_made[40];
static uint32_t n_made, n_again;

static struct message *new_record(void) {
        return &records_made[n_made++];
}

/* A new record, an Example of one feature. */
static void make_record(const char *name, struct message value) {
        struct message features = { 0 };

        add_entry(&features, name, value);
        put_message(new_record(), 1, &features);
}

/* A new record, a SequenceExample of one list with the steps that are given. */
static void make_list(const char *name, const struct message *steps, size_t n) {
        struct message list = { 0 }, lists = { 0 };

        for (size_t i = 0; i < n; i++)
                put_message(&list, 1, &steps[i]);
        add_entry(&lists, name, list);
        put_message(new_record(), 2, &lists);
}

static int add_made(void) {
        int r = survey_begin_shard(&survey, "a.tfrecord");

        for (uint32_t i = 0; i < n_made && r == 0; i++) {
                struct record record = {
                        .number = i, .offset = 10000 * i, .n_bytes = records_made[i].n, .bytes = records_made[i].bytes
                };

                r = survey_add(&survey, &record, &why);
        }
        return r;
}

/* Surveys the records that were made. */
static int run_survey(void) {
        int r;

        survey = (struct survey){ 0 };
        why.text[0] = '\0';
        for (n_again = 0; (r = add_made()) == SURVEY_AGAIN; n_again++)
                ck_assert_uint_lt(n_again, INDEX_FIELDS_MAX + 1);
        if (r == 0)
                r = survey_finish(&survey);
        else
                ck_assert(why.text[0]);
        n_made = 0;
        memset(records_made, 0, sizeof(records_made));
        return r;
}

static const struct found_feature *the_only_one(void) {
        int r = run_survey();

        ck_assert_msg(r == 0, "%s", why.text);
        ck_assert_uint_eq(survey.n_features, 1);
        return &survey.features[0];
}

START_TEST(one_number_in_each_record_is_a_scalar) {
        const struct found_feature *found;

        for (int i = 0; i < 5; i++)
                make_record("x", ints(i * 300, -1));
        found = the_only_one();
        ck_assert_str_eq(found->name, "x");
        ck_assert_int_eq(found->form, FOUND_NUMBERS);
        ck_assert(found->count == 1 && !found->is_varying && found->counts.n_bytes == 0);
        ck_assert_uint_eq(found->numbers.n_bytes, 5 * 8);
        for (int64_t i = 0; i < 5; i++)
                ck_assert_int_eq(((const int64_t *)(const void *)found->numbers.bytes)[i], i * 300);
        survey_fini(&survey);
}
END_TEST

START_TEST(numbers_may_differ_or_be_missing_in_any_record) {
        const uint32_t expected[] = { SURVEY_ABSENT, 2, 2, 0, SURVEY_ABSENT, 1, SURVEY_ABSENT };
        const struct found_feature *found;

        make_record("y", (struct message){ 0 }); /* a Feature without any list is a missing one */
        make_record("y", ints(1, 2, -1));
        make_record("y", ints(3, 4, -1));
        make_record("y", ints(-1));
        make_record("y", (struct message){ 0 });
        make_record("y", ints(5, -1));
        make_record("y", (struct message){ 0 });
        found = the_only_one();
        ck_assert(found->is_varying);
        ck_assert_uint_eq(found->n_with, 4);
        ck_assert_uint_eq(found->counts.n_bytes, sizeof(expected));
        ck_assert_mem_eq(found->counts.bytes, expected, sizeof(expected));
        ck_assert_uint_eq(found->numbers.n_bytes, 5 * 8);
        survey_fini(&survey);
}
END_TEST

START_TEST(numbers_that_are_not_packed_are_the_same_numbers) {
        struct message list = { 0 }, feature = { 0 };
        const struct found_feature *found;
        const int64_t *numbers;

        put_varint(&list, 1 << 3 | WIRE_VARINT);
        put_varint(&list, UINT64_MAX); /* -1: ten bytes */
        put(&list, 1, "\x05\x80\x01", 3);
        put_varint(&list, 1 << 3 | WIRE_VARINT);
        put_varint(&list, 7);
        put_message(&feature, FEATURE_INTS, &list);
        make_record("x", feature);
        found = the_only_one();
        ck_assert_uint_eq(found->count, 4);
        numbers = (const void *)found->numbers.bytes;
        ck_assert(numbers[0] == -1 && numbers[1] == 5 && numbers[2] == 128 && numbers[3] == 7);
        survey_fini(&survey);
}
END_TEST

START_TEST(many_numbers_stay_in_the_file) {
        const struct found_feature *found;
        const struct found_place *places;

        make_record("x", floats(2));
        make_record("x", floats(SURVEY_FEW + 1));
        found = the_only_one();
        ck_assert_uint_eq(n_again, 1);
        ck_assert_int_eq(found->form, FOUND_RUN);
        ck_assert(found->is_varying && found->numbers.n_bytes == 0);
        places = (const void *)found->places.bytes;
        ck_assert_uint_eq(places[0].n_bytes, 8);
        ck_assert_uint_eq(places[1].n_bytes, 4 * (SURVEY_FEW + 1));
        ck_assert_uint_gt(places[1].offset, 10000);
        survey_fini(&survey);
}
END_TEST

START_TEST(bytes_are_told_by_all_values) {
        static const struct {
                const char *values[2];
                bool is_picture, is_sound, is_text;
        } CASES[] = {
                { { "\xff\xd8\xff\xe0", "\x89PNG\r\n\x1a\n" }, true, false, false },
                { { "\xff\xd8\xff\xe0", "text" }, false, false, false },
                { { "RIFF\1\1\1\1WAVE", "\xff\xfb\x90\xc4" }, false, true, false },
                { { "RIFF\1\1\1\1WAVE", "\xff\xfb\xff\xc4" }, false, false, false },
                { { "RIFF\1\1\1\1WAVE", "OggS\xff" }, false, true, false },
                { { "fLaC\xff", "ID3\xff" }, false, true, false },
                { { "text", "gr\xc3\xbc\xc3\x9f" }, false, false, true },
                { { "text", "latin \xfc" }, false, false, false },
                { { "", "text" }, false, false, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
                const struct found_feature *found;

                make_record("b", texts(CASES[i].values[0], NULL));
                make_record("b", texts(CASES[i].values[1], NULL));
                found = the_only_one();
                ck_assert_int_eq(found->form, FOUND_VALUE);
                ck_assert_int_eq(found->is_not_picture, !CASES[i].is_picture);
                ck_assert_int_eq(found->is_not_sound, !CASES[i].is_sound);
                ck_assert_int_eq(found->is_not_text, !CASES[i].is_text);
                survey_fini(&survey);
        }
}
END_TEST

START_TEST(several_bytes_values_are_stored_as_their_list) {
        const struct found_feature *found;
        const struct found_place *places;

        make_record("b", texts("one", NULL));
        make_record("b", texts("two", "three", NULL));
        make_record("b", texts(NULL));
        found = the_only_one();
        ck_assert_int_eq(found->form, FOUND_MESSAGE);
        places = (const void *)found->places.bytes;
        ck_assert_uint_eq(places[0].n_bytes, 5); /* 0a 03 o n e */
        ck_assert_uint_eq(places[1].n_bytes, 5 + 7);
        ck_assert_uint_eq(places[2].n_bytes, 0);
        ck_assert_uint_eq(places[2].offset / 10000, 2);
        survey_fini(&survey);
}
END_TEST

/* A feature is a list of texts if all of its values are text, also those of other records. */
START_TEST(several_bytes_values_are_told_by_all_of_them) {
        static const struct {
                const char *values[3];
                bool is_text;
        } CASES[] = {
                { { "one", "gr\xc3\xbc\xc3\x9f", "" }, true },
                { { "one", "two", "latin \xfc" }, false },
                { { "one", "latin \xfc", "two" }, false },
                { { "latin \xfc", "two", "three" }, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
                make_record("b", texts(CASES[i].values[0], NULL));
                make_record("b", texts(CASES[i].values[1], CASES[i].values[2], NULL));
                ck_assert_int_eq(the_only_one()->is_not_text, !CASES[i].is_text);
                survey_fini(&survey);
        }
}
END_TEST

START_TEST(steps_are_told_by_all_of_their_values) {
        struct message words[] = { texts("one", NULL), texts("", NULL) };
        struct message latin[] = { texts("one", NULL), texts("latin \xfc", NULL) };
        struct message two[] = { texts("one", NULL), texts("two", "three", NULL) };
        struct message none[] = { texts("one", NULL), texts(NULL) };
        const struct {
                const struct message *steps;
                bool is_text, is_single;
        } CASES[] = { { words, true, true }, { latin, false, true }, { two, true, false }, { none, true, false } };

        for (size_t i = 0; i < ARRAY_SIZE(CASES); i++) {
                const struct found_feature *found;

                make_list("l", CASES[i].steps, 2);
                make_list("l", words, 0);
                make_list("l", words, 1);
                found = the_only_one();
                ck_assert_int_eq(found->form, FOUND_MESSAGE);
                ck_assert_int_eq(found->is_not_text, !CASES[i].is_text);
                ck_assert_int_eq(found->is_not_single, !CASES[i].is_single);
                survey_fini(&survey);
        }
}
END_TEST

START_TEST(of_a_feature_that_comes_twice_the_last_one_counts) {
        struct message features = { 0 };
        const struct found_feature *found;

        add_entry(&features, "x", ints(1, -1));
        add_entry(&features, "x", ints(2, -1));
        put_message(new_record(), 1, &features);
        make_record("x", ints(3, -1));
        found = the_only_one();
        ck_assert_uint_eq(found->n_with, 2);
        ck_assert_uint_eq(found->numbers.n_bytes, 16);
        ck_assert_int_eq(*(const int64_t *)(const void *)found->numbers.bytes, 2);
        survey_fini(&survey);
}
END_TEST

START_TEST(steps_of_the_same_length_are_numbers_and_others_stay_a_message) {
        struct message even[] = { ints(1, 2, -1), ints(3, 4, -1), ints(5, 6, -1) };
        struct message uneven[] = { ints(1, 2, -1), ints(3, -1) };
        const struct found_feature *found;

        make_list("l", even, 3);
        make_list("l", even, 1);
        make_list("l", even, 0);
        found = the_only_one();
        ck_assert_int_eq(found->form, FOUND_NUMBERS);
        ck_assert(found->is_list && found->is_varying && found->step_count == 2);
        ck_assert_uint_eq(found->numbers.n_bytes, 8 * 8);
        ck_assert_uint_eq(found->n_with, 3);
        survey_fini(&survey);
        make_list("l", even, 3);
        make_list("l", uneven, 2);
        found = the_only_one();
        ck_assert_int_eq(found->form, FOUND_MESSAGE);
        ck_assert_uint_eq(n_again, 1);
        ck_assert_uint_eq(found->places.n_bytes, 2 * sizeof(struct found_place));
        survey_fini(&survey);
}
END_TEST

START_TEST(a_feature_of_two_types_is_refused_with_both_records) {
        make_record("x", ints(1, -1));
        make_record("y", ints(1, -1));
        make_record("x", floats(1));
        ck_assert_int_eq(run_survey(), -ENOTSUP);
        ck_assert_str_eq(why.text,
                         "feature x holds floats, but in record 0 of a.tfrecord it holds integers: a field has "
                         "one type");
        survey_fini(&survey);
}
END_TEST

START_TEST(records_that_are_not_examples_are_delivered_whole) {
        const struct found_feature *found;

        put_varint(new_record(), 'H');
        records_made[0].n = 0; /* an empty record decides nothing */
        strcpy((char *)new_record()->bytes, "Hello");
        records_made[1].n = 5;
        make_record("x", ints(1, -1));
        found = the_only_one();
        ck_assert_str_eq(found->name, "record");
        ck_assert_int_eq(found->form, FOUND_VALUE);
        ck_assert_uint_eq(found->places.n_bytes, 3 * sizeof(struct found_place));
        survey_fini(&survey);
}
END_TEST

START_TEST(after_an_example_every_record_must_be_one) {
        make_record("x", ints(1, -1));
        strcpy((char *)new_record()->bytes, "Hello");
        records_made[1].n = 5;
        ck_assert_int_eq(run_survey(), -EBADMSG);
        ck_assert_ptr_nonnull(strstr(why.text, "tf.train.Example"));
        survey_fini(&survey);
}
END_TEST

START_TEST(what_no_field_can_be_is_refused) {
        char name[SCHEMA_NAME_MAX + 1] = "";
        struct message features = { 0 };

        for (unsigned i = 0; i <= INDEX_FIELDS_MAX; i++) {
                snprintf(name, sizeof(name), "f%u", i);
                add_entry(&features, name, ints(1, -1));
        }
        put_message(new_record(), 1, &features);
        ck_assert_int_eq(run_survey(), -E2BIG);
        survey_fini(&survey);
}
END_TEST

START_TEST(every_cut_of_an_example_is_refused_or_an_example) {
        struct message features = { 0 }, whole = { 0 };

        add_entry(&features, "x", ints(1, 300, 70000, -1));
        add_entry(&features, "y", floats(3));
        add_entry(&features, "z", texts("abc", NULL));
        put_message(&whole, 1, &features);
        for (size_t n = 1; n < whole.n; n++) {
                make_record("x", ints(1, -1));
                memcpy(new_record()->bytes, whole.bytes, n);
                records_made[1].n = n;
                ck_assert_int_eq(run_survey(), -EBADMSG);
                survey_fini(&survey);
        }
}
END_TEST

/* ---- TensorFlow's own files -------------------------------------------------------------------------------------- */

static void add_file(struct ahead *ahead, const char *path, int *r) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct records records;
        struct record record;
        struct stat status;

        ck_assert_msg(fd >= 0 && fstat(fd, &status) == 0, "%s", path);
        ahead_of_begin(ahead, &(struct ahead_of){ .fd = fd, .n_bytes = (uint64_t)status.st_size });
        records_begin(&records, ahead, (uint64_t)status.st_size);
        *r = survey_begin_shard(&survey, path);
        while (*r == 0 && (*r = records_next(&records, &record, &why)) == 0)
                *r = survey_add(&survey, &record, &why);
}

static void survey_set(const char *name) {
        _cleanup_(ahead_freep) struct ahead *ahead = NULL;
        char path[128];
        int r;

        survey = (struct survey){ 0 };
        ck_assert_int_eq(ahead_new(AHEAD_THREADS, &ahead), 0);
        do {
                r = RECORDS_END;
                for (int i = 0; i < 2 && r == RECORDS_END; i++) {
                        snprintf(path, sizeof(path), "tests/vectors/tfrecord/%s/%s.tfrecord-%05d-of-00002", name, name,
                                 i);
                        why.text[0] = '\0';
                        add_file(ahead, path, &r);
                        if (r == SURVEY_AGAIN && survey.n_records == 0)
                                r = -EAGAIN;
                }
        } while (r == -EAGAIN);
        ck_assert_msg(r == RECORDS_END && survey_finish(&survey) == 0, "%s", why.text);
}

static void expect(uint32_t idx, const char *name, enum found_form form, uint64_t n_with) {
        ck_assert_uint_lt(idx, survey.n_features);
        ck_assert_str_eq(survey.features[idx].name, name);
        ck_assert_int_eq(survey.features[idx].form, form);
        ck_assert_uint_eq(survey.features[idx].n_with, n_with);
}

START_TEST(tensorflows_examples_are_understood) {
        survey_set("photos");
        ck_assert_uint_eq(survey.n_records, 7);
        expect(0, "caption", FOUND_VALUE, 6);
        expect(1, "digest", FOUND_VALUE, 7);
        expect(2, "empty", FOUND_NUMBERS, 7);
        expect(3, "image/class/label", FOUND_NUMBERS, 7);
        expect(4, "image/encoded", FOUND_VALUE, 7);
        expect(5, "image/filename", FOUND_VALUE, 7);
        expect(6, "image/object/bbox/xmin", FOUND_NUMBERS, 7);
        expect(7, "image/object/class/label", FOUND_NUMBERS, 7);
        expect(8, "score", FOUND_NUMBERS, 7);
        expect(9, "whitened", FOUND_NUMBERS, 7);
        ck_assert(!survey.features[4].is_not_picture && !survey.features[5].is_not_text);
        ck_assert(survey.features[1].is_not_text && survey.features[1].is_not_picture);
        ck_assert(survey.features[6].is_varying && survey.features[9].count == 3 && !survey.features[9].is_varying);
        survey_fini(&survey);
        survey_set("tokens");
        expect(0, "input_ids", FOUND_RUN, 5);
        expect(1, "segments", FOUND_RUN, 5);
        expect(2, "weights", FOUND_RUN, 5);
        survey_fini(&survey);
}
END_TEST

START_TEST(tensorflows_sequences_and_plain_records_are_understood) {
        survey_set("sequences");
        expect(0, "class", FOUND_NUMBERS, 5);
        expect(1, "fixed", FOUND_NUMBERS, 5);
        expect(2, "frame", FOUND_MESSAGE, 5);
        expect(3, "label", FOUND_NUMBERS, 5);
        expect(4, "motion", FOUND_NUMBERS, 5);
        expect(5, "name", FOUND_VALUE, 5);
        expect(6, "phrases", FOUND_MESSAGE, 5);
        expect(7, "uneven", FOUND_MESSAGE, 5);
        expect(8, "words", FOUND_MESSAGE, 5);
        ck_assert(survey.features[2].is_not_text && survey.features[6].is_not_single);
        ck_assert(!survey.features[8].is_not_text && !survey.features[8].is_not_single);
        ck_assert(survey.features[1].step_count == 2 && survey.features[1].count == 2);
        survey_fini(&survey);
        survey_set("lines");
        expect(0, "record", FOUND_VALUE, 6);
        ck_assert(!survey.features[0].is_not_text);
        survey_fini(&survey);
}
END_TEST

START_TEST(text_is_told_from_bytes) {
        static const struct {
                const char *bytes;
                size_t n;
                bool is_text;
        } CASES[] = {
                { "", 0, true },
                { "plain text of more than eight", 29, true },
                { "nul\0", 4, false },
                { "eight by\0", 9, false },
                { "12345678"
                  "90123\0005",
                  16, false },
                { "\xe4\xb8\xad\xe6\x96\x87 and \xf0\x9f\x98\x80", 15, true },
                { "cut \xe4\xb8", 6, false },
                { "surrogate \xed\xa0\x80", 13, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(CASES); i++)
                ck_assert_msg(looks_like_text((const uint8_t *)CASES[i].bytes, CASES[i].n) == CASES[i].is_text,
                              "case %zu", i);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "checksums", the_checksum_is_castagnolis },
                { "checksums", the_instruction_and_the_table_agree_at_every_length_and_place },
                { "records", records_of_every_size_are_found },
                { "records", each_byte_of_a_file_that_is_changed_is_noticed },
                { "records", a_file_that_was_cut_anywhere_is_refused },
                { "records", a_length_that_lies_takes_no_memory },
                { "records", a_compressed_file_is_recognised },
                { "survey", one_number_in_each_record_is_a_scalar },
                { "survey", numbers_may_differ_or_be_missing_in_any_record },
                { "survey", numbers_that_are_not_packed_are_the_same_numbers },
                { "survey", many_numbers_stay_in_the_file },
                { "survey", bytes_are_told_by_all_values },
                { "survey", several_bytes_values_are_stored_as_their_list },
                { "survey", several_bytes_values_are_told_by_all_of_them },
                { "survey", steps_are_told_by_all_of_their_values },
                { "survey", of_a_feature_that_comes_twice_the_last_one_counts },
                { "survey", steps_of_the_same_length_are_numbers_and_others_stay_a_message },
                { "survey", a_feature_of_two_types_is_refused_with_both_records },
                { "survey", records_that_are_not_examples_are_delivered_whole },
                { "survey", after_an_example_every_record_must_be_one },
                { "survey", what_no_field_can_be_is_refused },
                { "survey", every_cut_of_an_example_is_refused_or_an_example },
                { "files", tensorflows_examples_are_understood },
                { "files", tensorflows_sequences_and_plain_records_are_understood },
                { "files", text_is_told_from_bytes },
        };

        return suite_run("tfrecord", rows, sizeof(rows) / sizeof(rows[0]));
}
