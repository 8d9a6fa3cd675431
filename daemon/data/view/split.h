/* data/view/split.h: which samples of a source belong to a dataset.
 *
 *      10:90%, :1000, 90%:               a range; each end is a number of samples or a share of all, rounded down
 *      hash(0:90%), hash(0:90%; seed=7)  by name: a sample stays in its part when others come or go. Its share is the
 *                                        first 8 bytes (big-endian) of the SHA-256 of its name over 2^64; with a seed,
 *                                        of "SEED:NAME"
 *      list(FILE)                        the samples whose names are the lines of the file, in this order
 *      random_split(0.9,0.1; seed=0)[1]  a part of torch.utils.data.random_split with a generator of this seed, in its
 *                                        order; lengths may also be whole numbers
 *
 * A format may have parts with names of its own; NAME[RULE] is a rule for one of them: train[0:90%]. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/source.h"
#include "proto/base/why.h"

/* The sample number i is `first` + i, or entry i of the table. */
struct split {
        uint64_t n_samples;
        uint64_t first;
        void *table;       /* n_samples entries; NULL: a range */
        bool is_wide;      /* entries have 8 bytes, else 4 */
        bool is_ascending; /* with a table: its samples are in the sequence in which the source has them */
};

/* Is it a rule, and not a name, nor a name with a rule? */
bool split_is_rule(const char *text);

/* Divides "NAME[RULE]" into the two texts. Returns the rule, or NULL, and changes nothing, if it is anything else. */
char *split_divide(char *text);

/* The file that such a text names (list), else "". */
void split_file(const char *text, char ret_path[PATH_MAX]);

/* The dataset's folder, which says how a list's links are followed (base/machine/beneath.h). */
struct split_root {
        int fd;
        const char *path;
};

/* Finds the samples. Blocks: for hash and list as long as it takes to look at all names. -EINVAL with `why` for a text
 * that is wrong, a range beyond the end, an empty part, or a name that no sample has; -ENOMEM; the errors of open(). */
int split_make(const struct source *source, const char *text, const struct split_root *root, struct split *ret_split,
               struct why *why);

void split_fini(struct split *split);

static inline uint64_t split_sample(const struct split *split, uint64_t sample) {
        if (!split->table)
                return split->first + sample;
        return split->is_wide ? ((const uint64_t *)split->table)[sample] : ((const uint32_t *)split->table)[sample];
}
