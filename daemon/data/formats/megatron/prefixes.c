#include "daemon/data/formats/megatron/prefixes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/files/listed.h"
#include "proto/base/cleanup.h"

#define BLANKS    " \t\r\n"
#define WORDS_MAX (2 * BLEND_MAX)

void prefixes_fini(struct prefixes *prefixes) {
        free(prefixes->text);
        free(prefixes->names);
        *prefixes = (struct prefixes){ 0 };
}

static void cut_ending(char *name) {
        size_t n = strlen(name);

        if (n > 4 && (strcmp(name + n - 4, ".idx") == 0 || strcmp(name + n - 4, ".bin") == 0))
                name[n - 4] = '\0';
}

static bool prefixes_read_weight(const char *word, double *ret_weight) {
        char *end;

        *ret_weight = strtod(word, &end);
        return end != word && *end == '\0';
}

/* Megatron's rule: every second word is a number, or all words are prefixes. */
static int prefixes_take_words(struct prefixes *prefixes, char **words, uint32_t n, struct why *why) {
        bool has_weights = n % 2 == 0;
        double weight;

        for (uint32_t i = 0; i < n && has_weights; i += 2)
                has_weights = prefixes_read_weight(words[i], &weight);
        prefixes->has_weights = has_weights;
        prefixes->n = has_weights ? n / 2 : n;
        if (prefixes->n > BLEND_MAX)
                return why_set(why, -E2BIG, "blend: names %u files, at most %u are possible", prefixes->n, BLEND_MAX);
        for (uint32_t i = 0; i < prefixes->n; i++) {
                prefixes->names[i] = has_weights ? words[2 * i + 1] : words[i];
                cut_ending((char *)(uintptr_t)prefixes->names[i]);
                if (!has_weights)
                        continue;
                prefixes_read_weight(words[2 * i], &prefixes->weights[i]);
                if (!isfinite(prefixes->weights[i]) || prefixes->weights[i] <= 0)
                        return why_set(why, -EINVAL, "blend: %s, the weight of %s, is not a number above 0",
                                       words[2 * i], prefixes->names[i]);
        }
        return 0;
}

static int read_blend(struct prefixes *prefixes, const char *blend, struct why *why) {
        _cleanup_(freep) char **words = calloc(WORDS_MAX, sizeof(*words));
        char *rest = NULL, *word;
        uint32_t n = 0;

        prefixes->text = strdup(blend);
        prefixes->names = calloc(WORDS_MAX, sizeof(*prefixes->names));
        if (!words || !prefixes->text || !prefixes->names)
                return why_set(why, -ENOMEM, "blend: no memory");
        for (word = strtok_r(prefixes->text, BLANKS, &rest); word; word = strtok_r(NULL, BLANKS, &rest)) {
                if (n == WORDS_MAX)
                        return why_set(why, -E2BIG, "blend: names more than %u files", BLEND_MAX);
                words[n++] = word;
        }
        if (n == 0)
                return why_set(why, -EINVAL, "blend: names no file; write it as \"0.3 PREFIX 0.7 PREFIX\"");
        prefixes->is_blend = true;
        return prefixes_take_words(prefixes, words, n, why);
}

static bool is_idx(const char *name) {
        size_t n = strlen(name);

        return n > 4 && name[0] != '.' && strcmp(name + n - 4, ".idx") == 0;
}

static int take_listed(struct prefixes *prefixes, const struct listed *listed, struct why *why) {
        if (listed->n != 1)
                return why_set(why, -EINVAL,
                               listed->n == 0
                                       ? "has no .idx file: the path of a megatron dataset is the PREFIX of "
                                         "PREFIX.bin and PREFIX.idx"
                                       : "has several token files; name one of them by its prefix, or several in "
                                         "blend = \"0.3 PREFIX 0.7 PREFIX\"");
        prefixes->text = strdup(listed->names[0]);
        prefixes->names = calloc(1, sizeof(*prefixes->names));
        if (!prefixes->text || !prefixes->names)
                return why_set(why, -ENOMEM, "no memory");
        cut_ending(prefixes->text);
        prefixes->names[0] = prefixes->text;
        prefixes->n = 1;
        return 0;
}

int prefixes_find(struct prefixes *prefixes, int root_fd, const struct files *files, const char *blend,
                  struct why *why) {
        struct listed listed = { 0 };
        int64_t settled_ns = 0;
        int r;

        if (blend)
                return read_blend(prefixes, blend, why);
        r = listed_find(&listed, root_fd, files, is_idx, &settled_ns, why);
        if (r == 0)
                r = take_listed(prefixes, &listed, why);
        listed_fini(&listed);
        return r;
}
