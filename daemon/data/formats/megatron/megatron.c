#include "daemon/base/machine/beneath.h"
#include "daemon/data/format.h"

/* megatron: token files as Megatron and fairseq write them, PREFIX.bin and PREFIX.idx.
 *
 * With sequence_length a sample is what Megatron-core's GPTDataset makes: sequence_length + 1 tokens, put together from
 * several sequences, in Megatron's own order. Without it a sample is a document; of files with modes (multimodal) and
 * of fairseq's a sequence. Both are computed from the index, which is held in memory: the files of others may be cut or
 * overwritten at any time. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/data/format_tell.h"
#include "daemon/data/formats/megatron/megatron_mixture.h"
#include "daemon/data/source_compare.h"
#include "proto/base/cleanup.h"
#include "proto/limits.h"

#define SEED_OTHERWISE 1234u /* as Megatron's --seed */
#define DIGEST_SIZE    65u

struct megatron {
        struct source source; /* the first member: callers have a pointer to it */
        struct prefixes prefixes;
        struct token_file *files; /* as many as there are prefixes */
        struct mixture_terms terms;
        struct mixture mixture; /* with sequence_length */
        bool has_documents;     /* without it: samples are documents, else sequences */
        bool is_mapped;
        char digest[DIGEST_SIZE];
};

static const struct source_type MEGATRON_TYPE;

static const struct megatron *megatron_of(const struct source *source) {
        return (const struct megatron *)source;
}

static void megatron_close(struct source *source) {
        struct megatron *megatron = (struct megatron *)source;

        mixture_fini(&megatron->mixture);
        for (uint32_t i = 0; i < megatron->prefixes.n && megatron->files; i++)
                token_file_fini(&megatron->files[i]);
        free(megatron->files);
        prefixes_fini(&megatron->prefixes);
        free(megatron);
}

static bool is_gpt(const struct megatron *megatron) {
        return megatron->terms.sequence_length > 0;
}

/* ---- what others see ------------------------------------------------------------------------------------------- */

static int read_terms(struct mixture_terms *terms, const struct format_options *options, struct why *why) {
        static const char *const ONLY_GPT[] = { "splits", "part", "num_samples", "seed", "blend" };

        terms->sequence_length = (uint32_t)format_option_number(options, "sequence_length", 0);
        terms->n_wanted = format_option_number(options, "num_samples", 0);
        terms->seed = (uint32_t)format_option_number(options, "seed", SEED_OTHERWISE);
        for (size_t i = 0; i < ARRAY_SIZE(ONLY_GPT) && terms->sequence_length == 0; i++)
                if (format_option(options, ONLY_GPT[i]))
                        return why_set(why, -EINVAL,
                                       "%s: is about GPT samples; set sequence_length as well, or leave %s out to get "
                                       "documents",
                                       ONLY_GPT[i], ONLY_GPT[i]);
        terms->splits = format_option(options, "splits");
        terms->part = format_option(options, "part");
        return 0;
}

static struct schema_field *megatron_add_field(struct source *source, const char *name, uint32_t dtype) {
        struct schema_field *field = &source->schema.fields[source->schema.n_fields++];

        snprintf(field->name, sizeof(field->name), "%s", name);
        field->kind = FIELD_VALUE;
        field->dtype = dtype;
        return field;
}

static int describe_gpt(struct megatron *megatron, struct why *why) {
        struct source *source = &megatron->source;
        struct schema_field *field = megatron_add_field(source, "tokens", DLP_DTYPE_INT64);
        uint32_t widest = 0;

        for (uint32_t i = 0; i < megatron->prefixes.n; i++) {
                const struct megatron_idx *index = &megatron->files[i].index;

                if (index->dtype == DLP_DTYPE_FLOAT32 || index->dtype == DLP_DTYPE_FLOAT64 ||
                    index->dtype == DLP_DTYPE_UINT64)
                        return why_set(why, -EINVAL, "%s has elements of type %s, which no GPT sample can have",
                                       megatron->files[i].bin_name, dlp_dtype_name(index->dtype));
                widest = index->token_bytes > widest ? index->token_bytes : widest;
        }
        field->is_stored = true;
        field->is_gathered = true;
        field->n_dims = 1;
        field->shape[0] = (int64_t)megatron->terms.sequence_length + 1;
        source->n_samples = megatron->mixture.n_samples;
        source->max_length = (uint64_t)field->shape[0] * widest;
        source->has_fixed_lengths = true;
        return 0;
}

/* The sequences of a document lie side by side, or there is no one place to read it from. */
static int check_document(const struct megatron_idx *index, uint64_t document, struct why *why) {
        for (uint64_t i = index->documents[document] + 1; i < index->documents[document + 1]; i++)
                if (index->pointers[i] != index->pointers[i - 1] + (uint64_t)index->lengths[i - 1] * index->token_bytes)
                        return why_set(why, -ENOTSUP,
                                       "document %" PRIu64 ": its sequences %" PRIu64 " and %" PRIu64
                                       " do not lie side by side in the .bin file; write the file again",
                                       document, i - 1, i);
        return 0;
}

/* The sequences first up to end of a sample. */
static void sequences_of(const struct megatron *megatron, uint64_t sample, uint64_t *ret_first, uint64_t *ret_end) {
        const struct megatron_idx *index = &megatron->files[0].index;

        *ret_first = megatron->has_documents ? index->documents[sample] : sample;
        *ret_end = megatron->has_documents ? index->documents[sample + 1] : sample + 1;
}

static uint64_t megatron_sample_bytes(const struct megatron *megatron, uint64_t sample, uint64_t *ret_at) {
        const struct megatron_idx *index = &megatron->files[0].index;
        uint64_t first, end;

        sequences_of(megatron, sample, &first, &end);
        *ret_at = first < end ? index->pointers[first] : 0;
        return first < end ? index->pointers[end - 1] + (uint64_t)index->lengths[end - 1] * index->token_bytes - *ret_at
                           : 0;
}

static int describe_documents(struct megatron *megatron, struct why *why) {
        const struct megatron_idx *index = &megatron->files[0].index;
        struct source *source = &megatron->source;
        struct schema_field *field = megatron_add_field(source, "tokens", index->dtype);
        uint64_t at;

        field->is_stored = true;
        field->n_dims = 1;
        field->shape[0] = -1;
        if (index->modes)
                megatron_add_field(source, "mode", DLP_DTYPE_INT8);
        megatron->has_documents = index->documents && !index->modes;
        source->n_samples = megatron->has_documents ? index->n_documents : index->n_sequences;
        if (source->n_samples == 0)
                return why_set(why, -EINVAL, "%s has no documents", megatron->files[0].idx_name);
        for (uint64_t i = 0; i < source->n_samples; i++) {
                struct why detail;
                int r = megatron->has_documents ? check_document(index, i, &detail) : 0;
                uint64_t n_bytes = megatron_sample_bytes(megatron, i, &at);

                if (r < 0)
                        return why_set(why, r, "%s: %s", megatron->files[0].idx_name, detail.text);
                source->max_length = n_bytes > source->max_length ? n_bytes : source->max_length;
        }
        return 0;
}

static void megatron_describe(struct megatron *megatron) {
        struct source *source = &megatron->source;

        megatron->is_mapped = true;
        for (uint32_t i = 0; i < megatron->prefixes.n; i++) {
                const struct token_file *file = &megatron->files[i];
                uint64_t n = strlen(file->bin_name) + sizeof(":18446744073709551615") - 1;

                source->total_bytes += file->index.n_tokens * file->index.token_bytes;
                source->max_name_bytes = n > source->max_name_bytes ? n : source->max_name_bytes;
                megatron->is_mapped = megatron->is_mapped && file->map;
        }
        source->max_span = source->max_length;
        source->n_shards = megatron->prefixes.n;
}

/* ---- the digest ------------------------------------------------------------------------------------------------ */

static int digest_text(EVP_MD_CTX *context, const char *text) {
        return EVP_DigestUpdate(context, text, strlen(text) + 1);
}

/* What decides which tokens sample i has; of the tokens themselves only the mark of their file. */
static int digest_terms(const struct megatron *megatron, EVP_MD_CTX *context) {
        const struct mixture_terms *terms = &megatron->terms;
        char text[128];

        snprintf(text, sizeof(text), "megatron %" PRIu32 " %" PRIu64 " %" PRIu32, terms->sequence_length,
                 terms->n_wanted, terms->seed);
        return digest_text(context, text) && digest_text(context, terms->splits ? terms->splits : "") &&
               digest_text(context, terms->part ? terms->part : "");
}

static int megatron_digest_file(const struct megatron *megatron, uint32_t i, EVP_MD_CTX *context) {
        const struct megatron_idx *index = &megatron->files[i].index;
        char text[128];

        snprintf(text, sizeof(text), "%s %a %" PRIu64 " %" PRIu64, dlp_dtype_name(index->dtype),
                 megatron->prefixes.has_weights ? megatron->prefixes.weights[i] : 0.0, index->n_sequences,
                 megatron->files[i].bin_bytes);
        return digest_text(context, text) &&
               EVP_DigestUpdate(context, &megatron->files[i].mark, sizeof(megatron->files[i].mark)) &&
               EVP_DigestUpdate(context, index->lengths, index->n_sequences * sizeof(*index->lengths)) &&
               EVP_DigestUpdate(context, index->pointers, index->n_sequences * sizeof(*index->pointers)) &&
               (!index->documents ||
                EVP_DigestUpdate(context, index->documents, (index->n_documents + 1) * sizeof(*index->documents)));
}

static int megatron_make_digest(struct megatron *megatron, struct why *why) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        int is_fine = context && EVP_DigestInit_ex(context, EVP_sha256(), NULL) && digest_terms(megatron, context);

        for (uint32_t i = 0; i < megatron->prefixes.n && is_fine; i++)
                is_fine = megatron_digest_file(megatron, i, context);
        is_fine = is_fine && EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        if (!is_fine)
                return why_set(why, -ENOMEM, "its digest could not be made");
        for (size_t i = 0; i < (DIGEST_SIZE - 1) / 2; i++)
                snprintf(megatron->digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static int open_files(struct megatron *megatron, int root_fd, const struct index_watch *watch, struct budget *budget,
                      struct why *why) {
        uint64_t n_sequences = 0;
        int64_t settled_ns = 0;

        megatron->files = calloc(megatron->prefixes.n, sizeof(*megatron->files));
        if (!megatron->files)
                return why_set(why, -ENOMEM, "no memory for %u files", megatron->prefixes.n);
        for (uint32_t i = 0; i < megatron->prefixes.n; i++) {
                int r = token_file_open(&megatron->files[i], root_fd, megatron->prefixes.names[i],
                                        watch ? watch->cancel : NULL, budget, &settled_ns, why);

                if (r < 0)
                        return r;
                n_sequences += megatron->files[i].index.n_sequences;
                if (watch && watch->progress)
                        watch->progress(watch->userdata, n_sequences);
        }
        return 0;
}

static int megatron_fill(struct megatron *megatron, int root_fd, const struct files *files,
                         const struct format_options *options, const struct index_watch *watch, struct budget *budget,
                         struct why *why) {
        int r = read_terms(&megatron->terms, options, why);

        if (r == 0)
                r = prefixes_find(&megatron->prefixes, root_fd, files, format_option(options, "blend"), why);
        if (r == 0)
                r = open_files(megatron, root_fd, watch, budget, why);
        if (r == 0 && is_gpt(megatron))
                r = mixture_make(&megatron->mixture, &megatron->terms, &megatron->prefixes, megatron->files,
                                 watch ? watch->cancel : NULL, budget, why);
        if (r == 0)
                r = is_gpt(megatron) ? describe_gpt(megatron, why) : describe_documents(megatron, why);
        if (r < 0)
                return r;
        megatron_describe(megatron);
        return megatron_make_digest(megatron, why);
}

static int megatron_open(int root_fd, const struct files *files, const struct format_options *options,
                         const struct index_watch *watch, struct budget *budget, struct source **ret_source,
                         struct why *why) {
        _cleanup_(source_closep) struct source *source = NULL;
        struct megatron *megatron = calloc(1, sizeof(*megatron));
        struct why detail;
        int r;

        if (!megatron)
                return why_set(why, -ENOMEM, "%s: no memory to open it", files->root);
        source = &megatron->source;
        source->type = &MEGATRON_TYPE;
        source->format = format_megatron.name;
        source->digest = megatron->digest;
        r = megatron_fill(megatron, root_fd, files, options, watch, budget, &detail);
        if (r < 0)
                return why_set(why, r, "%s: %s", files->root, detail.text);
        megatron->terms.splits = megatron->terms.part = NULL; /* of the options, which do not outlive this call */
        *ret_source = TAKE_PTR(source);
        return 0;
}

/* ---- asked for each sample ------------------------------------------------------------------------------------- */

static void extent_of(const struct megatron *megatron, uint32_t idx_file, uint64_t at, uint64_t n_bytes,
                      struct extent *ret_extent) {
        *ret_extent = (struct extent){
                .dir = "",
                .name = megatron->files[idx_file].bin_name,
                .file = idx_file,
                .offset = at,
                .length = n_bytes,
                .shard = megatron->files[idx_file].bin_name,
                .idx_shard = idx_file,
        };
}

/* Of a GPT sample the place of its first token, and the bytes of all. */
static void megatron_locate(const struct source *source, uint64_t sample, uint32_t field, struct extent *ret_extent) {
        const struct megatron *megatron = megatron_of(source);
        uint64_t at, n_bytes, number;
        struct gpt_piece piece;
        uint32_t idx_file = 0;

        (void)field;
        if (is_gpt(megatron)) {
                const struct token_file *file;

                idx_file = mixture_file(&megatron->mixture, sample, &number);
                file = &megatron->files[idx_file];
                gpt_first_piece(&megatron->mixture.files[idx_file], number, &piece);
                at = file->index.pointers[piece.sequence] + (uint64_t)piece.offset * file->index.token_bytes;
                n_bytes = ((uint64_t)megatron->terms.sequence_length + 1) * file->index.token_bytes;
        } else {
                n_bytes = megatron_sample_bytes(megatron, sample, &at);
        }
        extent_of(megatron, idx_file, at, n_bytes, ret_extent);
}

/* Where next_piece() is: in a run of tokens, of which the last ones may not be mapped. */
struct run_place {
        struct gpt_piece run;
        uint64_t n_done; /* bytes of it */
};

_Static_assert(sizeof(struct run_place) <= sizeof(((struct source_piece *)NULL)->cursor), "the cursor fits");

static bool megatron_next_piece(const struct source *source, uint64_t sample, uint32_t field,
                                struct source_piece *piece) {
        const struct megatron *megatron = megatron_of(source);
        uint64_t number, at, n_bytes;
        uint32_t idx_file = mixture_file(&megatron->mixture, sample, &number);
        const struct gpt_samples *samples = &megatron->mixture.files[idx_file];
        const struct megatron_idx *index = &megatron->files[idx_file].index;
        struct run_place cursor;

        (void)field;
        memcpy(&cursor, piece->cursor, sizeof(cursor));
        if (piece->number == 1) {
                gpt_first_piece(samples, number, &cursor.run);
                cursor.n_done = 0;
        } else if (cursor.n_done == (uint64_t)cursor.run.n_tokens * index->token_bytes) {
                if (!gpt_next_piece(samples, &cursor.run))
                        return false;
                cursor.n_done = 0;
        }
        at = index->pointers[cursor.run.sequence] + (uint64_t)cursor.run.offset * index->token_bytes + cursor.n_done;
        n_bytes = (uint64_t)cursor.run.n_tokens * index->token_bytes - cursor.n_done;
        piece->bytes = token_file_bytes(&megatron->files[idx_file], at, n_bytes, &piece->n_bytes);
        piece->bytes = megatron->is_mapped ? piece->bytes : NULL;
        piece->offset = at;
        piece->n_before = cursor.run.n_before + cursor.n_done / index->token_bytes;
        piece->dtype = index->dtype;
        cursor.n_done += piece->n_bytes;
        memcpy(piece->cursor, &cursor, sizeof(cursor));
        return true;
}

#define PIECES_AHEAD 4u /* of a sample: documents are shorter than a sample, but not much */

/* First the place in the list of sequences, then what the index says about those. */
static void megatron_prefetch(const struct source *source, uint64_t sample, bool is_near) {
        const struct megatron *megatron = megatron_of(source);
        const struct gpt_samples *samples;
        const struct megatron_idx *index;
        uint64_t number, at;
        uint32_t idx_file;

        if (!is_gpt(megatron))
                return;
        idx_file = mixture_file(&megatron->mixture, sample, &number);
        samples = &megatron->mixture.files[idx_file];
        index = &megatron->files[idx_file].index;
        at = gpt_first_at(samples, number);
        if (!is_near) {
                __builtin_prefetch(&samples->sequences[at]);
                return;
        }
        for (uint64_t i = at; i < at + PIECES_AHEAD && i < samples->n_sequences; i++) {
                __builtin_prefetch(&index->lengths[samples->sequences[i]]);
                __builtin_prefetch(&index->pointers[samples->sequences[i]]);
        }
}

static bool megatron_rows_were_there(const struct source *source, uint32_t field) {
        const struct megatron *megatron = megatron_of(source);

        (void)field;
        for (uint32_t i = 0; i < megatron->prefixes.n; i++)
                if (!token_file_was_there(&megatron->files[i]))
                        return false;
        return true;
}

static void megatron_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        (void)field; /* the only value is the mode */
        memcpy(ret_value, &megatron_of(source)->files[0].index.modes[sample], 1);
}

static size_t megatron_name(const struct source *source, uint64_t sample, char *ret_name) {
        const struct megatron *megatron = megatron_of(source);
        uint64_t number = sample;
        uint32_t idx_file = is_gpt(megatron) ? mixture_file(&megatron->mixture, sample, &number) : 0;

        return (size_t)snprintf(ret_name, SOURCE_NAME_SIZE, "%.3900s:%" PRIu64, megatron->files[idx_file].bin_name,
                                number);
}

static int megatron_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        const struct megatron *megatron = megatron_of(source);
        int r = 0;

        for (uint32_t i = 0; i < megatron->prefixes.n && r == 0; i++) {
                const struct token_file *file = &megatron->files[i];

                r = source_compare_file(root_fd, file->idx_name, &file->idx, compare, why);
                if (r == 0)
                        r = source_compare_file(root_fd, file->bin_name, &file->bin, compare, why);
        }
        return r;
}

static const struct source_type MEGATRON_TYPE = {
        .close = megatron_close,
        .compare = megatron_compare,
        .locate = megatron_locate,
        .next_piece = megatron_next_piece,
        .prefetch = megatron_prefetch,
        .rows_were_there = megatron_rows_were_there,
        .value = megatron_value,
        .name = megatron_name,
};

/* ---- for auto ---------------------------------------------------------------------------------------------------- */

static int megatron_is_it(int root_fd, const struct files *files) {
        struct prefixes prefixes = { 0 };
        struct megatron_head head;
        struct stat status;
        int r = prefixes_find(&prefixes, root_fd, files, NULL, NULL);

        if (r == 0) {
                char name[PATH_MAX];
                _cleanup_(closep) int fd = -1;

                snprintf(name, sizeof(name), "%s.idx", prefixes.names[0]);
                fd = beneath_open(root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
                if (fd < 0 || fstat(fd, &status) < 0)
                        r = -errno;
                else if (S_ISREG(status.st_mode) &&
                         (r = megatron_idx_head(fd, (uint64_t)status.st_size, &head, NULL)) == 0)
                        r = 1;
        }
        prefixes_fini(&prefixes);
        return r < 0 ? format_cannot_tell(r) : r;
}

static const struct setting OPTIONS[] = {
        { .name = "sequence_length",
          .kind = SETTING_NUMBER,
          .min = 1,
          .max = 1u << 24,
          .unit = "tokens",
          .prose = "GPT samples of this many tokens and one more; empty: samples are documents." },
        { .name = "splits",
          .kind = SETTING_OPTIONAL,
          .max = 255,
          .prose = "The weights of the parts train, valid and test, as in 969,30,1; empty: all sequences are train." },
        { .name = "part",
          .kind = SETTING_CHOICE,
          .choices = "train valid test",
          .prose = "Which part is served: train, valid or test; empty: train." },
        { .name = "num_samples",
          .kind = SETTING_NUMBER,
          .min = 1,
          .max = UINT32_MAX - 1,
          .unit = "samples",
          .prose = "How many GPT samples are wanted at least: as many epochs are shuffled as that takes; empty: one "
                   "epoch." },
        { .name = "seed",
          .kind = SETTING_NUMBER,
          .max = UINT32_MAX,
          .prose = "Of the order of the GPT samples; empty: 1234." },
        { .name = "blend",
          .kind = SETTING_OPTIONAL,
          .max = 65535,
          .prose = "Several token files mixed by weight, as in \"0.3 wiki 0.7 /data/books\"." },
        { 0 },
};

const struct format format_megatron = {
        .name = "megatron",
        .doc = "A token file of Megatron or fairseq, `PREFIX.bin` and `PREFIX.idx`; the path is the PREFIX, one of "
               "the two files, or a folder with one token file. With `sequence_length` = N, sample i is what sample "
               "i of Megatron-core's GPTDataset is, token for token; without it a sample is a document.",
        .example = "path = \"/data/corpus\" sequence_length = 2048 splits = \"969,30,1\"",
        .takes_files = true,
        .options = OPTIONS,
        .is_it = megatron_is_it,
        .open = megatron_open,
};
