#include "daemon/data/format.h"

/* numbers: samples that have nothing but their number, the field "index". Whoever uses them knows what each is: a
 * function of the trainer's, which makes the sample of its number (python(NAME) in a pipeline, from_dataset() in
 * Python). Nothing is read, and memory does not grow with their number; the path is a folder that exists, such as "/".
 */

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/source_compare.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/limits.h"

#define FIELD       "index"
#define TITLE_MAX   64u /* bytes with NUL */
#define DIGEST_SIZE 65u

struct numbers {
        struct source source; /* the first member: callers have a pointer to it */
        char title[TITLE_MAX];
        char digest[DIGEST_SIZE];
};

static const struct source_type NUMBERS_TYPE;

static void numbers_close(struct source *source) {
        free(source);
}

/* There is no file that could have changed. */
static int numbers_compare(const struct source *source, int root_fd, enum source_compare compare, struct why *why) {
        (void)source;
        (void)root_fd;
        (void)compare;
        (void)why;
        return 0;
}

static void numbers_value(const struct source *source, uint64_t sample, uint32_t field, void *ret_value) {
        int64_t number = (int64_t)sample;

        (void)source;
        (void)field;
        memcpy(ret_value, &number, sizeof(number));
}

static size_t numbers_name(const struct source *source, uint64_t sample, char *ret_name) {
        const struct numbers *numbers = (const struct numbers *)source;

        return (size_t)snprintf(ret_name, SOURCE_NAME_SIZE, "%s[%" PRIu64 "]", numbers->title, sample);
}

/* Covers how many there are, and what they are called: more is not known of them here. */
static int numbers_make_digest(struct numbers *numbers, struct why *why) {
        unsigned char digest[EVP_MAX_MD_SIZE];
        char text[TITLE_MAX + 32];
        int n = snprintf(text, sizeof(text), "numbers %" PRIu64 " %s", numbers->source.n_samples, numbers->title);

        if (!EVP_Digest(text, (size_t)n, digest, NULL, EVP_sha256(), NULL))
                return why_set(why, -ENOMEM, "its digest could not be made");
        for (size_t i = 0; i < (DIGEST_SIZE - 1) / 2; i++)
                snprintf(numbers->digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}

static int numbers_read_options(const struct format_options *options, struct numbers *numbers, struct why *why) {
        const char *title = format_option(options, "title");

        if (!format_option(options, "count"))
                return why_set(why, -EINVAL, "count is missing: how many samples there are");
        snprintf(numbers->title, sizeof(numbers->title), "%s", title ? title : "sample");
        numbers->source.n_samples = format_option_number(options, "count", 0);
        return 0;
}

static int numbers_open(int root_fd, const struct files *files, const struct format_options *options,
                        const struct index_watch *watch, struct budget *budget, struct source **ret_source,
                        struct why *why) {
        _cleanup_(source_closep) struct source *source = NULL;
        struct numbers *numbers = calloc(1, sizeof(*numbers));
        struct why detail;
        int r;

        (void)root_fd;
        (void)watch;
        (void)budget;
        if (!numbers)
                return why_set(why, -ENOMEM, "%s: no memory to open it", files->root);
        source = &numbers->source;
        source->type = &NUMBERS_TYPE;
        source->format = format_numbers.name;
        source->digest = numbers->digest;
        source->has_fixed_lengths = true;
        source->max_name_bytes = TITLE_MAX + 22;
        source->schema = (struct schema){ 1, { { .name = FIELD, .kind = FIELD_VALUE, .dtype = DLP_DTYPE_INT64 } } };
        r = numbers_read_options(options, numbers, &detail);
        if (r == 0)
                r = numbers_make_digest(numbers, &detail);
        if (r < 0)
                return why_set(why, r, "%s: %s", files->root, detail.text);
        *ret_source = TAKE_PTR(source);
        return 0;
}

static const struct source_type NUMBERS_TYPE = {
        .close = numbers_close,
        .compare = numbers_compare,
        .value = numbers_value,
        .name = numbers_name,
};

static int check_title(const char *text, struct why *why) {
        return text_is_name(text) ? 0 : why_set(why, -EINVAL, "UTF-8 without control characters is allowed");
}

static const struct setting OPTIONS[] = {
        { .name = "count",
          .kind = SETTING_NUMBER,
          .min = 1,
          .max = DLP_SAMPLES_MAX,
          .unit = "samples",
          .prose = "How many samples there are. The format needs it." },
        { .name = "title",
          .kind = SETTING_OPTIONAL,
          .max = TITLE_MAX - 1,
          .check = check_title,
          .prose = "What samples are called in messages; empty: sample." },
        { 0 },
};

const struct format format_numbers = {
        .name = "numbers",
        .doc = "No files: sample i is the number i, its field `index`, int64, of which a function of the trainer's "
               "makes the rest (the step `python` of a pipeline). `count` says how many there are; the path is any "
               "folder, such as `/`. In Python, `dlclient.from_dataset()` uses it.",
        .example = "path = \"/\" format = \"numbers\" count = 50000",
        .is_object = true,
        .options = OPTIONS,
        .open = numbers_open,
};
