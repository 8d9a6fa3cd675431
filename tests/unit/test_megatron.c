/* Token files: their indices are checked entry by entry, and their samples, shuffles and blends are those that
 * Megatron-core itself made (tests/vectors/megatron/; tests/support/make_megatron_vectors.py wrote them). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/data/formats/megatron/gpt_samples.h"
#include "daemon/data/formats/megatron/gpt_split.h"
#include "daemon/data/formats/megatron/idx.h"
#include "daemon/data/formats/megatron/megatron_blend.h"
#include "proto/base/cleanup.h"
#include "proto/order/numpy_random.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define FOLDER    "tests/vectors/megatron"
#define FILES_MAX 3

struct file {
        struct megatron_idx idx;
        uint8_t *tokens;
        size_t n_bytes;
};

static struct why why;

/* ---- files ----------------------------------------------------------------------------------------------------- */

/* The bytes as a file, which need not be on a disk. */
static int read_bytes(const void *bytes, size_t n_bytes, uint64_t bin_bytes, struct megatron_idx *ret_idx) {
        _cleanup_(closep) int fd = memfd_create("idx", MFD_CLOEXEC);
        struct megatron_head head;
        int r;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, bytes, n_bytes), (ssize_t)n_bytes);
        why.text[0] = '\0';
        r = megatron_idx_head(fd, n_bytes, &head, &why);
        return r < 0 ? r : megatron_idx_read(fd, &head, bin_bytes, NULL, ret_idx, &why);
}

static void open_file(const char *name, struct file *file) {
        _cleanup_(freep) uint8_t *idx = NULL;
        char path[256];
        size_t n;

        snprintf(path, sizeof(path), FOLDER "/%s.idx", name);
        idx = read_whole_file(path, &n);
        snprintf(path, sizeof(path), FOLDER "/%s.bin", name);
        file->tokens = read_whole_file(path, &file->n_bytes);
        ck_assert_msg(read_bytes(idx, n, file->n_bytes, &file->idx) == 0, "%s: %s", name, why.text);
}

static void close_file(struct file *file) {
        megatron_idx_fini(&file->idx);
        free(file->tokens);
}

static int64_t token_at(const struct file *file, uint64_t sequence, uint32_t i) {
        const uint8_t *at = file->tokens + file->idx.pointers[sequence] + (uint64_t)i * file->idx.token_bytes;
        uint16_t narrow;
        int32_t wide;

        memcpy(&narrow, at, sizeof(narrow));
        if (file->idx.token_bytes == sizeof(narrow))
                return narrow;
        memcpy(&wide, at, sizeof(wide));
        return wide;
}

START_TEST(each_writer_s_file_is_told_apart) {
        static const struct {
                const char *name;
                uint32_t dtype;
                uint64_t n_sequences, n_documents;
                bool is_fairseq, has_modes;
        } KNOWN[] = {
                { "small", DLP_DTYPE_UINT16, 211, 211, false, false },
                { "wide", DLP_DTYPE_INT32, 64, 64, false, false },
                { "sentences", DLP_DTYPE_UINT16, 90, 6, false, false },
                { "pictures", DLP_DTYPE_INT32, 24, 12, false, true },
                { "fairseq", DLP_DTYPE_UINT16, 211, 0, true, false },
        };
        struct file file;

        for (size_t i = 0; i < ARRAY_SIZE(KNOWN); i++) {
                open_file(KNOWN[i].name, &file);
                ck_assert_uint_eq(file.idx.dtype, KNOWN[i].dtype);
                ck_assert_uint_eq(file.idx.n_sequences, KNOWN[i].n_sequences);
                ck_assert_uint_eq(file.idx.n_documents, KNOWN[i].n_documents);
                ck_assert_int_eq(file.idx.is_fairseq, KNOWN[i].is_fairseq);
                ck_assert_int_eq(file.idx.modes != NULL, KNOWN[i].has_modes);
                ck_assert_uint_eq(file.idx.n_tokens * file.idx.token_bytes, file.n_bytes);
                if (KNOWN[i].has_modes)
                        ck_assert(file.idx.modes[6] == 0 && file.idx.modes[7] == 1);
                close_file(&file);
        }
}
END_TEST

START_TEST(both_programs_files_of_the_same_tokens_are_alike) {
        struct file one, other;

        open_file("small", &one);
        open_file("fairseq", &other);
        ck_assert_mem_eq(one.idx.lengths, other.idx.lengths, 211 * sizeof(uint32_t));
        ck_assert_mem_eq(one.idx.pointers, other.idx.pointers, 211 * sizeof(uint64_t));
        ck_assert_mem_eq(one.tokens, other.tokens, one.n_bytes);
        close_file(&one);
        close_file(&other);
}
END_TEST

/* A file of three sequences in two documents, of which each entry can be spoiled. */
struct made {
        uint8_t magic[9];
        uint64_t version;
        uint8_t code;
        uint64_t n_sequences, n_numbers;
        int32_t lengths[3];
        int64_t pointers[3];
        int64_t documents[3];
} __attribute__((packed));

#define MADE_BIN 24u

static const struct made GOOD = {
        .magic = "MMIDIDX",
        .version = 1,
        .code = 4,
        .n_sequences = 3,
        .n_numbers = 3,
        .lengths = { 1, 2, 3 },
        .pointers = { 0, 4, 12 },
        .documents = { 0, 2, 3 },
};

static void must_refuse(const struct made *made, size_t n_bytes, int error, const char *text) {
        struct megatron_idx idx = { .n_sequences = 77 };

        ck_assert_int_eq(read_bytes(made, n_bytes, MADE_BIN, &idx), error);
        ck_assert_msg(strstr(why.text, text) != NULL, "\"%s\" does not have \"%s\"", why.text, text);
        ck_assert_uint_eq(idx.n_sequences, 77);
}

START_TEST(what_is_wrong_with_an_index_is_said) {
        struct megatron_idx idx;
        struct made made = GOOD;

        ck_assert_msg(read_bytes(&made, sizeof(made), MADE_BIN, &idx) == 0, "%s", why.text);
        ck_assert(idx.n_documents == 2 && idx.n_tokens == 6 && idx.longest == 3);
        megatron_idx_fini(&idx);

        made.magic[0] = 'm';
        must_refuse(&made, sizeof(made), -EBADMSG, "does not begin as an index of tokens");
        made = GOOD, made.version = 2;
        must_refuse(&made, sizeof(made), -EBADMSG, "is of version 2");
        made = GOOD, made.code = 9;
        must_refuse(&made, sizeof(made), -EBADMSG, "unknown dtype code 9; known are 1 to 8");
        made = GOOD, made.n_sequences = 0;
        must_refuse(&made, sizeof(made), -EINVAL, "has no sequences");
        made = GOOD, made.n_sequences = UINT64_MAX / 4;
        must_refuse(&made, sizeof(made), -EBADMSG, "too few");
        made = GOOD, made.n_numbers = UINT64_MAX / 8 + 1;
        must_refuse(&made, sizeof(made), -EBADMSG, "neither Megatron's layout nor fairseq's");
        made = GOOD, made.n_numbers = 2;
        must_refuse(&made, sizeof(made), -EBADMSG, "with 3 sequences and 2 document numbers it would have 86");
        must_refuse(&GOOD, sizeof(made) - 1, -EBADMSG, "it was cut");
        must_refuse(&GOOD, 20, -EBADMSG, "does not begin as an index of tokens");
        made = GOOD, made.lengths[1] = -2;
        must_refuse(&made, sizeof(made), -EBADMSG, "sequence 1 has a negative length (-2)");
        made = GOOD, made.lengths[2] = 4;
        must_refuse(&made, sizeof(made), -EBADMSG, "sequence 2 has 4 tokens of 4 bytes from byte 12 on");
        made = GOOD, made.pointers[1] = -2147483648LL;
        must_refuse(&made, sizeof(made), -EBADMSG, "cannot count beyond 2 GiB");
        made = GOOD, made.pointers[2] = INT64_MAX;
        must_refuse(&made, sizeof(made), -EBADMSG, "sequence 2 has 3 tokens");
        made = GOOD, made.documents[0] = 1;
        must_refuse(&made, sizeof(made), -EBADMSG, "does not go from sequence 0 to sequence 3");
        made = GOOD, made.documents[2] = 4;
        must_refuse(&made, sizeof(made), -EBADMSG, "does not go from sequence 0 to sequence 3");
        made = GOOD, made.documents[1] = 4;
        must_refuse(&made, sizeof(made), -EBADMSG, "document 1 ends at sequence 3, before it begins");
}
END_TEST

START_TEST(an_older_file_s_double_is_told_by_the_size_of_its_tokens) {
        struct megatron_idx idx;
        struct made made = GOOD;

        made.code = 7;
        ck_assert_int_eq(read_bytes(&made, sizeof(made), 24, &idx), 0);
        ck_assert_uint_eq(idx.dtype, DLP_DTYPE_FLOAT32);
        megatron_idx_fini(&idx);
        made.pointers[1] = 8, made.pointers[2] = 24;
        ck_assert_int_eq(read_bytes(&made, sizeof(made), 48, &idx), 0);
        ck_assert_uint_eq(idx.dtype, DLP_DTYPE_FLOAT64);
        megatron_idx_fini(&idx);
}
END_TEST

START_TEST(reading_an_index_can_be_cancelled) {
        _cleanup_(closep) int fd = open(FOLDER "/small.idx", O_RDONLY | O_CLOEXEC);
        struct megatron_head head;
        struct megatron_idx idx;
        atomic_bool cancel = true;
        struct stat status;

        ck_assert(fd >= 0 && fstat(fd, &status) == 0);
        ck_assert_int_eq(megatron_idx_head(fd, (uint64_t)status.st_size, &head, &why), 0);
        ck_assert_int_eq(megatron_idx_read(fd, &head, UINT64_MAX, &cancel, &idx, &why), -ECANCELED);
}
END_TEST

static bool is_it(int root_fd, const char *name) {
        const struct files files = { .root = FOLDER, .names = &name, .n_names = name ? 1 : 0 };

        return format_megatron.is_it(root_fd, &files);
}

START_TEST(auto_knows_a_token_file_by_its_index) {
        _cleanup_(closep) int fd = open(FOLDER, O_PATH | O_DIRECTORY | O_CLOEXEC);

        ck_assert_int_ge(fd, 0);
        ck_assert(is_it(fd, "small.idx"));
        ck_assert(is_it(fd, "fairseq.bin"));
        ck_assert(!is_it(fd, "gpt.jsonl"));
        ck_assert(!is_it(fd, NULL)); /* the folder: which of its files? */
}
END_TEST

/* ---- orders ---------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const int64_t *numbers, uint64_t n) {
        return fnv1a(numbers, n * sizeof(*numbers));
}

static int64_t *numbers_of(uint64_t n) {
        int64_t *numbers = malloc((n + 1) * sizeof(*numbers));

        ck_assert_ptr_nonnull(numbers);
        return numbers;
}

START_TEST(a_shuffle_is_numpy_s_whole_or_in_parts) {
        struct dlp_torch_random random;
        struct vectors vectors;

        vectors_open(&vectors, "megatron/shuffle.jsonl");
        while (vectors_next(&vectors)) {
                uint64_t n = vector_u64(vectors.text, "n"), part = _i == 0 ? n : (uint64_t)_i;
                uint32_t *table = malloc(n * sizeof(*table));
                int64_t *numbers = numbers_of(n);

                ck_assert_ptr_nonnull(table);
                for (uint64_t i = 0; i < n; i++)
                        table[i] = (uint32_t)i;
                dlp_numpy_seed(&random, (uint32_t)vector_u64(vectors.text, "seed"));
                for (uint64_t end = n; end > 0; end = end > part ? end - part : 0)
                        dlp_numpy_shuffle(&random, table, end > part ? end - part : 0, end);
                for (uint64_t i = 0; i < n; i++)
                        numbers[i] = table[i];
                ck_assert_uint_eq(hash_of(numbers, n), vector_hex(vector_string(vectors.line, "fnv")));
                free(numbers);
                free(table);
        }
}
END_TEST

static void check_blend(const struct vectors *vectors, const struct blend *blend) {
        int64_t *numbers = numbers_of(blend->n_samples);

        ck_assert_uint_eq(blend->n_samples, vector_u64(vectors->text, "size"));
        for (uint64_t i = 0; i < blend->n_samples; i++)
                numbers[i] = blend->files[i];
        ck_assert_uint_eq(hash_of(numbers, blend->n_samples), vector_hex(vector_string(vectors->line, "files")));
        for (uint64_t i = 0; i < blend->n_samples; i++)
                numbers[i] = blend->samples[i];
        ck_assert_uint_eq(hash_of(numbers, blend->n_samples), vector_hex(vector_string(vectors->line, "samples")));
        free(numbers);
}

START_TEST(a_blend_is_megatron_s) {
        struct vectors vectors;

        vectors_open(&vectors, "megatron/blend.jsonl");
        while (vectors_next(&vectors)) {
                bool has_weights = vector_has(vectors.line, "weights");
                uint64_t sizes[BLEND_MAX], size = vector_u64(vectors.text, "size");
                double weights[BLEND_MAX];
                struct blend blend;
                size_t n;
                const cJSON *list = vector_array(vectors.line, has_weights ? "weights" : "sizes", &n), *item;

                for (size_t i = 0; i < n; i++) {
                        item = cJSON_GetArrayItem(list, (int)i);
                        weights[i] = item->valuedouble;
                        sizes[i] = has_weights ? size : (uint64_t)item->valuedouble;
                }
                if (has_weights) {
                        blend_normalize(weights, (uint32_t)n);
                        ck_assert(weights[n - 1] == strtod(vector_string(vectors.line, "last_weight"), NULL));
                        blend_normalize(weights, (uint32_t)n);
                }
                ck_assert_int_eq(blend_make(has_weights ? weights : NULL, sizes, (uint32_t)n, size, NULL, &blend, &why),
                                 0);
                check_blend(&vectors, &blend);
                blend_fini(&blend);
        }
}
END_TEST

START_TEST(a_blend_that_takes_too_much_of_a_file_is_refused) {
        const double weights[] = { 0.5, 0.5 };
        const uint64_t sizes[] = { 50, 49 };
        atomic_bool cancel = true;
        struct blend blend;

        ck_assert_int_eq(blend_make(weights, sizes, 2, 100, NULL, &blend, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "takes 50 samples of file 1, which makes 49"));
        ck_assert_int_eq(blend_make(weights, sizes, 2, 100, &cancel, &blend, &why), -ECANCELED);
}
END_TEST

START_TEST(a_part_has_the_sequences_that_megatron_gives_it) {
        static const struct {
                const char *splits, *part;
                uint64_t n, first, n_part;
        } KNOWN[] = {
                { NULL, NULL, 10, 0, 10 },
                { "969,30,1", "train", 1000, 0, 969 },
                { "969,30,1", "valid", 1000, 969, 30 },
                { "969,30,1", "test", 1000, 999, 1 },
                { "1, 1", "train", 5, 0, 2 }, /* 2.5 is rounded to the even number, */
                { "1, 1", "valid", 5, 2, 3 },
                { "1,1", "train", 7, 0, 4 }, /* and so is 3.5 */
                { "0.5,.5,0", "valid", 8, 4, 4 },
        };
        static const char *const BAD[] = { "", "a", "1,", "1,2,3,4", "0,0", "1;2", "1.2.3", "-1,2", "1e5", "inf" };
        uint64_t first, n;

        for (size_t i = 0; i < ARRAY_SIZE(KNOWN); i++) {
                ck_assert_msg(gpt_split(KNOWN[i].splits, KNOWN[i].part, KNOWN[i].n, &first, &n, &why) == 0, "%s",
                              why.text);
                ck_assert_uint_eq(first, KNOWN[i].first);
                ck_assert_uint_eq(n, KNOWN[i].n_part);
        }
        for (size_t i = 0; i < ARRAY_SIZE(BAD); i++)
                ck_assert_msg(gpt_split(BAD[i], NULL, 10, &first, &n, &why) == -EINVAL, "%s", BAD[i]);
        ck_assert_int_eq(gpt_split("1,1,0", "test", 10, &first, &n, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "the part test of splits = \"1,1,0\" has none of its 10 sequences"));
        ck_assert_int_eq(gpt_split("1", "validation", 10, &first, &n, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "choose one of: train, valid, test"));
}
END_TEST

/* ---- samples --------------------------------------------------------------------------------------------------- */

struct line {
        uint32_t n_files;
        struct file files[FILES_MAX];
        struct gpt_samples samples[FILES_MAX];
        double weights[FILES_MAX];
        bool has_weights;
        uint64_t n_wanted; /* 0: not said */
};

static void make_samples(const struct vectors *vectors, struct line *line, uint32_t i) {
        struct gpt_terms terms = {
                .sequence_length = (uint32_t)vector_u64(vectors->text, "sequence_length"),
                .n_wanted = line->n_files == 1 ? line->n_wanted : 0,
                .seed = (uint32_t)vector_u64(vectors->text, "seed"),
                .lengths = line->files[i].idx.lengths,
        };
        struct gpt_size size;

        if (line->has_weights)
                terms.n_wanted = blend_share_made(line->n_wanted, line->weights[i]);
        ck_assert_int_eq(gpt_split(vector_string(vectors->line, "splits"), vector_string(vectors->line, "part"),
                                   line->files[i].idx.n_sequences, &terms.first, &terms.n, &why),
                         0);
        ck_assert_int_eq(gpt_samples_size(&terms, &size, &why), 0);
        ck_assert_int_eq(gpt_samples_make(&terms, &size, &line->samples[i], &why), 0);
        ck_assert_uint_eq(line->samples[i].n_samples, size.n_samples);
}

static uint64_t read_sample(const struct file *file, const struct gpt_samples *samples, uint64_t sample,
                            int64_t *ret_tokens) {
        struct gpt_piece piece;
        uint64_t n = 0;

        gpt_first_piece(samples, sample, &piece);
        do {
                ck_assert(piece.n_before == n && piece.n_tokens > 0);
                for (uint32_t i = 0; i < piece.n_tokens; i++)
                        ret_tokens[n++] = token_at(file, piece.sequence, piece.offset + i);
        } while (gpt_next_piece(samples, &piece));
        ck_assert(n == samples->sample_tokens);
        return n;
}

/* The blend of a line; without one, the file's own samples in their sequence. */
static struct blend blend_of(struct line *line) {
        uint64_t sizes[FILES_MAX], n = 0;
        struct blend blend = { 0 };

        for (uint32_t i = 0; i < line->n_files; i++) {
                sizes[i] = line->samples[i].n_samples;
                n += line->has_weights ? blend_share(line->n_wanted, line->weights[i]) : sizes[i];
                line->weights[i] = line->has_weights ? line->weights[i] : (double)sizes[i];
        }
        if (!line->has_weights && line->n_wanted > 0 && line->n_files > 1)
                n = n < line->n_wanted ? n : line->n_wanted;
        blend_normalize(line->weights, line->n_files);
        ck_assert_int_eq(blend_make(line->has_weights || (line->n_files > 1 && line->n_wanted) ? line->weights : NULL,
                                    sizes, line->n_files, n, NULL, &blend, &why),
                         0);
        return blend;
}

static void open_line(const struct vectors *vectors, struct line *line) {
        const cJSON *prefixes, *weights = NULL;
        size_t n, n_weights;

        *line = (struct line){ .has_weights = vector_has(vectors->line, "weights") };
        line->n_wanted = vector_has(vectors->line, "num_samples") ? vector_u64(vectors->text, "num_samples") : 0;
        prefixes = vector_array(vectors->line, "prefixes", &n);
        if (line->has_weights)
                weights = vector_array(vectors->line, "weights", &n_weights);
        line->n_files = (uint32_t)n;
        for (uint32_t i = 0; i < line->n_files && line->has_weights; i++)
                line->weights[i] = cJSON_GetArrayItem(weights, (int)i)->valuedouble;
        if (line->has_weights)
                blend_normalize(line->weights, line->n_files);
        for (uint32_t i = 0; i < line->n_files; i++) {
                open_file(cJSON_GetArrayItem(prefixes, (int)i)->valuestring, &line->files[i]);
                make_samples(vectors, line, i);
        }
}

START_TEST(samples_are_those_of_megatron_s_own_datasets) {
        struct vectors vectors;
        uint32_t n_lines = 0;

        vectors_open(&vectors, "megatron/gpt.jsonl");
        while (vectors_next(&vectors)) {
                struct line line;
                struct blend blend;
                int64_t *tokens;
                uint64_t n = 0;

                open_line(&vectors, &line);
                blend = blend_of(&line);
                ck_assert_uint_eq(blend.n_samples, vector_u64(vectors.text, "n_samples"));
                tokens = numbers_of(blend.n_samples * line.samples[0].sample_tokens);
                for (uint64_t i = 0; i < blend.n_samples; i++)
                        n += read_sample(&line.files[blend.files[i]], &line.samples[blend.files[i]], blend.samples[i],
                                         tokens + n);
                ck_assert_msg(hash_of(tokens, n) == vector_hex(vector_string(vectors.line, "fnv")), "%s", vectors.text);
                free(tokens);
                blend_fini(&blend);
                for (uint32_t i = 0; i < line.n_files; i++) {
                        gpt_samples_fini(&line.samples[i]);
                        close_file(&line.files[i]);
                }
                n_lines++;
        }
        ck_assert_uint_eq(n_lines, 18);
}
END_TEST

START_TEST(what_makes_no_samples_or_too_many_is_refused) {
        uint32_t lengths[] = { 0, 5, 0, 4, 0 };
        struct gpt_terms terms = { .sequence_length = 9, .n = 5, .lengths = lengths };
        struct gpt_samples samples;
        atomic_bool cancel = true;
        struct gpt_size size;

        ck_assert_int_eq(gpt_samples_size(&terms, &size, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "has 9 tokens in the 5 sequences that are used, a sample takes 10"));
        terms.n = 1;
        ck_assert_int_eq(gpt_samples_size(&terms, &size, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "have no tokens"));
        terms.n = 5, terms.n_wanted = 1ull << 32;
        ck_assert_int_eq(gpt_samples_size(&terms, &size, &why), -EFBIG);
        terms.n_wanted = 1u << 31;
        ck_assert_int_eq(gpt_samples_size(&terms, &size, &why), -EFBIG);
        terms.n_wanted = 10, terms.cancel = &cancel;
        ck_assert_int_eq(gpt_samples_size(&terms, &size, &why), 0);
        ck_assert_int_eq(gpt_samples_make(&terms, &size, &samples, &why), -ECANCELED);
        terms.cancel = NULL;
        ck_assert_int_eq(gpt_samples_make(&terms, &size, &samples, &why), 0); /* empty sequences are passed over */
        for (uint64_t i = 0; i < samples.n_samples; i++) {
                struct gpt_piece piece;
                uint32_t n = 0;

                gpt_first_piece(&samples, i, &piece);
                do {
                        ck_assert_uint_le(piece.offset + piece.n_tokens, lengths[piece.sequence]);
                        n += piece.n_tokens;
                } while (gpt_next_piece(&samples, &piece));
                ck_assert_uint_eq(n, 10);
        }
        gpt_samples_fini(&samples);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "index", each_writer_s_file_is_told_apart, 0 },
                { "index", both_programs_files_of_the_same_tokens_are_alike, 0 },
                { "index", what_is_wrong_with_an_index_is_said, 0 },
                { "index", an_older_file_s_double_is_told_by_the_size_of_its_tokens, 0 },
                { "index", reading_an_index_can_be_cancelled, 0 },
                { "index", auto_knows_a_token_file_by_its_index, 0 },
                { "orders", a_shuffle_is_numpy_s_whole_or_in_parts, 3 },
                { "orders", a_blend_is_megatron_s, 0 },
                { "orders", a_blend_that_takes_too_much_of_a_file_is_refused, 0 },
                { "orders", a_part_has_the_sequences_that_megatron_gives_it, 0 },
                { "samples", samples_are_those_of_megatron_s_own_datasets, 0 },
                { "samples", what_makes_no_samples_or_too_many_is_refused, 0 },
        };

        return suite_run("megatron", rows, ARRAY_SIZE(rows));
}
