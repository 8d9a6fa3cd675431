#include "daemon/data/view/split.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/order/shuffle.h"

#define PARTS_MAX 16u

static const char GRAMMAR[] = "write a range such as 0:90% or 1000:, hash(0:90%), list(FILE) or "
                              "random_split(0.9,0.1; seed=0)[0]; where parts have names, also train or train[0:90%]";

static int split_refuse(const char *text, struct why *why) {
        return why_set(why, -EINVAL, "split: \"%s\" is not understood; %s", text, GRAMMAR);
}

/* No rule has a bracket right after a word. */
bool split_is_rule(const char *text) {
        size_t n = strcspn(text, ":(%[");

        return text[n] != '\0' && (text[n] != '[' || n == 0);
}

char *split_divide(char *text) {
        size_t n_name = strcspn(text, ":(%["), n = strlen(text);

        if (n_name == 0 || text[n_name] != '[' || text[n - 1] != ']' || n - n_name <= 2)
                return NULL;
        text[n_name] = text[n - 1] = '\0';
        return text + n_name + 1;
}

void split_fini(struct split *split) {
        free(split->table);
        *split = (struct split){ 0 };
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static int split_table_new(struct split *split, uint64_t n_of_source, uint64_t n) {
        split->is_wide = dlp_shuffle_element_bytes(n_of_source) == 8;
        split->table = calloc(n > 0 ? n : 1, split->is_wide ? 8 : 4);
        return split->table ? 0 : -ENOMEM;
}

static void table_set(struct split *split, uint64_t i, uint64_t sample) {
        if (split->is_wide)
                ((uint64_t *)split->table)[i] = sample;
        else
                ((uint32_t *)split->table)[i] = (uint32_t)sample;
}

/* ---- ranges ---------------------------------------------------------------------------------------------------- */

/* One end of a range: N samples, or P% of `n`. Returns what follows it, or NULL. */
static const char *read_end(const char *at, uint64_t n, uint64_t otherwise, uint64_t *ret_end) {
        char *after;
        double share;

        *ret_end = otherwise;
        if (*at < '0' || *at > '9')
                return at;
        share = strtod(at, &after); /* only digits are checked; strtod() also takes what does not begin with one */
        if (*after == '%') {
                if (!(share >= 0 && share <= 100))
                        return NULL;
                *ret_end = (uint64_t)floor((double)n * share / 100.0 + 1e-9);
                return after + 1;
        }
        *ret_end = strtoull(at, &after, 10);
        return after;
}

/* Reads "BEGIN:END" of `n`. Returns what follows it, or NULL. */
static const char *split_read_range(const char *at, uint64_t n, uint64_t *ret_begin, uint64_t *ret_end) {
        at = read_end(at, n, 0, ret_begin);
        if (!at || *at++ != ':')
                return NULL;
        return read_end(at, n, n, ret_end);
}

static int make_range(const struct source *source, const char *text, struct split *split, struct why *why) {
        uint64_t begin, end;
        const char *after = split_read_range(text, source->n_samples, &begin, &end);

        if (!after || *after)
                return split_refuse(text, why);
        if (end > source->n_samples || begin >= end)
                return why_set(why, -EINVAL, "split: \"%s\" is %" PRIu64 " to %" PRIu64 " of %" PRIu64 " samples: %s",
                               text, begin, end, source->n_samples,
                               end > source->n_samples ? "there are fewer" : "it is empty");
        split->first = begin;
        split->n_samples = end - begin;
        return 0;
}

/* ---- by hash --------------------------------------------------------------------------------------------------- */

/* Of "NAME", or of "SEED:NAME". -ENOMEM. */
static int split_hash_name(EVP_MD_CTX *context, const char *seed, const char *name, uint64_t *ret_hash) {
        char text[64 + 1 + SOURCE_NAME_SIZE];
        int n = snprintf(text, sizeof(text), "%s%s%s", seed, seed[0] ? ":" : "", name);
        uint8_t digest[EVP_MAX_MD_SIZE];

        if (!EVP_DigestInit_ex(context, EVP_sha256(), NULL) || !EVP_DigestUpdate(context, text, (size_t)n) ||
            !EVP_DigestFinal_ex(context, digest, NULL))
                return -ENOMEM;
        *ret_hash = 0;
        for (int i = 0; i < 8; i++)
                *ret_hash = *ret_hash << 8 | digest[i];
        return 0;
}

/* Shares of the hashes. 100% is beyond the last one. */
static bool split_read_shares(const char *text, double *ret_begin, double *ret_end, const char **ret_after) {
        char *after;

        *ret_begin = 0;
        *ret_end = 100;
        if (*text >= '0' && *text <= '9') {
                *ret_begin = strtod(text, &after);
                text = after;
                if (*text == '%')
                        text++;
                else if (*ret_begin != 0)
                        return false;
        }
        if (*text++ != ':')
                return false;
        if (*text >= '0' && *text <= '9') {
                *ret_end = strtod(text, &after);
                text = after;
                if (*text++ != '%')
                        return false;
        }
        *ret_after = text;
        return *ret_begin >= 0 && *ret_end <= 100 && *ret_begin < *ret_end;
}

/* "; seed=TEXT" before ")": TEXT is copied. */
static bool read_seed(const char *at, char seed[64], const char **ret_after) {
        size_t n;

        seed[0] = '\0';
        if (*at == ';') {
                at += 1 + strspn(at + 1, " ");
                if (strncmp(at, "seed=", 5) != 0)
                        return false;
                at += 5;
                n = strcspn(at, ") ");
                if (n == 0 || n >= 64)
                        return false;
                memcpy(seed, at, n);
                seed[n] = '\0';
                at += n;
        }
        if (*at != ')')
                return false;
        *ret_after = at + 1;
        return true;
}

static int choose_by_hash(const struct source *source, const char *seed, double begin, double end,
                          struct split *split) {
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        char name[SOURCE_NAME_SIZE];
        int r = context ? split_table_new(split, source->n_samples, source->n_samples) : -ENOMEM;

        for (uint64_t i = 0; i < source->n_samples && r == 0; i++) {
                uint64_t hash = 0;
                double share;

                source_name(source, i, name);
                r = split_hash_name(context, seed, name, &hash);
                share = (double)hash * 0x1p-64 * 100.0;
                if (share >= begin && (share < end || end >= 100))
                        table_set(split, split->n_samples++, i);
        }
        EVP_MD_CTX_free(context);
        return r;
}

static int make_hash(const struct source *source, const char *text, struct split *split, struct why *why) {
        const char *at = text + strlen("hash(");
        double begin, end;
        char seed[64];

        if (!split_read_shares(at, &begin, &end, &at) || !read_seed(at, seed, &at) || *at)
                return split_refuse(text, why);
        if (choose_by_hash(source, seed, begin, end, split) < 0)
                return why_set(why, -ENOMEM, "split: no memory for %" PRIu64 " samples", source->n_samples);
        return split->n_samples > 0 ? 0 : why_set(why, -EINVAL, "split: \"%s\" is empty", text);
}

/* ---- by list --------------------------------------------------------------------------------------------------- */

struct wanted {
        const char *name;
        uint64_t line;
        bool is_found;
};

static int split_by_name(const void *one, const void *other) {
        return strcmp(((const struct wanted *)one)->name, ((const struct wanted *)other)->name);
}

static int split_read_file(const struct split_root *root, const char *path, char **ret_text, struct why *why) {
        /* O_NONBLOCK: a FIFO must not block. */
        _cleanup_(closep) int fd = beneath_open_named(root->fd, root->path, path,
                                                      O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        _cleanup_(freep) char *text = NULL;
        struct stat status;
        int r;

        if (fd < 0 || fstat(fd, &status) < 0)
                return why_errno(why, -errno, "split: %s", path);
        if (!S_ISREG(status.st_mode))
                return why_set(why, -EINVAL, "split: %s is not a regular file", path);
        text = calloc(1, (size_t)status.st_size + 1);
        r = text ? indexing_read_at(fd, text, (size_t)status.st_size, 0) : -ENOMEM;
        if (r < 0)
                return why_errno(why, r, "split: %s", path);
        *ret_text = TAKE_PTR(text);
        return 0;
}

/* Its lines, sorted by name. Empty lines do not count. */
static int list_lines(char *text, struct wanted **ret_wanted, uint64_t *ret_n) {
        uint64_t n = 0, n_room = 1;
        struct wanted *wanted;
        char *rest = NULL;

        for (const char *at = text; *at; at++)
                n_room += *at == '\n';
        wanted = calloc(n_room, sizeof(*wanted));
        if (!wanted)
                return -ENOMEM;
        for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest), n++)
                wanted[n] = (struct wanted){ .name = line, .line = n };
        qsort(wanted, n, sizeof(*wanted), split_by_name);
        *ret_wanted = wanted;
        *ret_n = n;
        return 0;
}

static int find_lines(const struct source *source, const char *path, struct wanted *wanted, uint64_t n,
                      struct split *split, struct why *why) {
        char name[SOURCE_NAME_SIZE];

        for (uint64_t i = 1; i < n; i++)
                if (split_by_name(&wanted[i - 1], &wanted[i]) == 0)
                        return why_set(why, -EINVAL, "split: %s names \"%s\" twice", path, wanted[i].name);
        for (uint64_t i = 0; i < source->n_samples; i++) {
                struct wanted key = { .name = name }, *found;

                source_name(source, i, name);
                found = bsearch(&key, wanted, n, sizeof(*wanted), split_by_name);
                if (found && !found->is_found) {
                        found->is_found = true;
                        table_set(split, found->line, i);
                }
        }
        for (uint64_t i = 0; i < n; i++)
                if (!wanted[i].is_found)
                        return why_set(why, -EINVAL,
                                       "split: %s names \"%s\", but no sample has this name; dlctl look shows "
                                       "the names",
                                       path, wanted[i].name);
        split->n_samples = n;
        return n > 0 ? 0 : why_set(why, -EINVAL, "split: %s names no sample", path);
}

void split_file(const char *text, char ret_path[PATH_MAX]) {
        size_t n = strlen(text), n_before = strlen("list(");

        ret_path[0] = '\0';
        if (strncmp(text, "list(/", n_before + 1) == 0 && text[n - 1] == ')' && n - n_before <= PATH_MAX)
                snprintf(ret_path, n - n_before, "%s", text + n_before);
}

static int split_make_list(const struct source *source, const char *text, const struct split_root *root,
                           struct split *split, struct why *why) {
        _cleanup_(freep) struct wanted *wanted = NULL;
        _cleanup_(freep) char *lines = NULL;
        char path[PATH_MAX];
        uint64_t n;
        int r;

        split_file(text, path);
        if (!path[0])
                return split_refuse(text, why);
        r = split_read_file(root, path, &lines, why);
        if (r < 0)
                return r;
        if (list_lines(lines, &wanted, &n) < 0 || split_table_new(split, source->n_samples, n) < 0)
                return why_set(why, -ENOMEM, "split: no memory for %s", path);
        return find_lines(source, path, wanted, n, split, why);
}

/* ---- random_split ---------------------------------------------------------------------------------------------- */

struct parts {
        uint32_t n;
        double values[PARTS_MAX];
        bool are_shares; /* with a dot, or 1 */
};

static const char *split_read_parts(const char *at, struct parts *parts) {
        double sum = 0;

        do {
                char *after;

                if (parts->n == PARTS_MAX || ((*at < '0' || *at > '9') && *at != '.'))
                        return NULL;
                parts->values[parts->n] = strtod(at, &after);
                sum += parts->values[parts->n++];
                at = after + strspn(after, " ");
        } while (*at == ',' && (at += 1 + strspn(at + 1, " ")));
        parts->are_shares = sum <= 1 && sum > 1 - 1e-9; /* as torch decides it */
        return at;
}

/* How many samples each part has: shares rounded down, and what is left over goes to the first ones, one each. */
static bool count_parts(const struct parts *parts, uint64_t n_samples, uint64_t lengths[PARTS_MAX]) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < parts->n; i++) {
                if (!parts->are_shares && !(parts->values[i] <= (double)n_samples))
                        return false;
                lengths[i] = (uint64_t)floor(parts->are_shares ? (double)n_samples * parts->values[i]
                                                               : parts->values[i]);
                sum += lengths[i];
        }
        for (uint32_t i = 0; parts->are_shares && sum < n_samples; i = (i + 1) % parts->n, sum++)
                lengths[i]++;
        return sum == n_samples;
}

/* The whole permutation is made, and the part kept. */
static int shuffle_part(uint64_t n_samples, uint64_t seed, uint64_t begin, uint64_t n, struct split *split) {
        _cleanup_(freep) struct dlp_torch_random *random = malloc(sizeof(*random));
        size_t size = dlp_shuffle_element_bytes(n_samples);
        _cleanup_(freep) uint8_t *table = calloc(n_samples, size);
        struct dlp_shuffle shuffle;

        if (!random || !table || split_table_new(split, n_samples, n) < 0)
                return -ENOMEM;
        dlp_torch_seed(random, seed);
        dlp_shuffle_init(&shuffle, random, table, n_samples, DLP_TORCH_2_7);
        while (dlp_shuffle_advance(&shuffle, n_samples + 1) < n_samples)
                continue;
        memcpy(split->table, table + begin * size, n * size);
        split->n_samples = n;
        return 0;
}

static int make_random(const struct source *source, const char *text, struct split *split, struct why *why) {
        uint64_t lengths[PARTS_MAX] = { 0 }, begin = 0, idx, seed;
        struct parts parts = { 0 };
        const char *at = split_read_parts(text + strlen("random_split("), &parts);
        char seed_text[64], *end;

        if (!at || !read_seed(at, seed_text, &at) || !seed_text[0] || *at != '[')
                return split_refuse(text, why);
        seed = strtoull(seed_text, &end, 10);
        idx = *end ? PARTS_MAX : strtoull(at + 1, &end, 10);
        if (idx >= parts.n || strcmp(end, "]") != 0)
                return split_refuse(text, why);
        if (!count_parts(&parts, source->n_samples, lengths))
                return why_set(why, -EINVAL,
                               "split: the parts of \"%s\" are neither shares with the sum 1 nor lengths with the "
                               "sum %" PRIu64,
                               text, source->n_samples);
        for (uint64_t i = 0; i < idx; i++)
                begin += lengths[i];
        if (lengths[idx] == 0)
                return why_set(why, -EINVAL, "split: \"%s\" is empty", text);
        if (shuffle_part(source->n_samples, seed, begin, lengths[idx], split) < 0)
                return why_set(why, -ENOMEM, "split: no memory for %" PRIu64 " samples", source->n_samples);
        return 0;
}

static bool split_ascends(const struct split *split) {
        for (uint64_t i = 1; i < split->n_samples; i++)
                if (split_sample(split, i - 1) >= split_sample(split, i))
                        return false;
        return true;
}

int split_make(const struct source *source, const char *text, const struct split_root *root, struct split *ret_split,
               struct why *why) {
        struct split split = { 0 };
        int r;

        if (strncmp(text, "hash(", 5) == 0)
                r = make_hash(source, text, &split, why);
        else if (strncmp(text, "list(", 5) == 0)
                r = split_make_list(source, text, root, &split, why);
        else if (strncmp(text, "random_split(", 13) == 0)
                r = make_random(source, text, &split, why);
        else
                r = make_range(source, text, &split, why);
        if (r < 0) {
                split_fini(&split);
                return r;
        }
        split.is_ascending = split.table && split_ascends(&split);
        *ret_split = split;
        return 0;
}
