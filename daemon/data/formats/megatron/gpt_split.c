#include "daemon/data/formats/megatron/gpt_split.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/megatron/megatron_blend.h"
#include "proto/base/cleanup.h"

static const char *const PARTS[] = { "train", "valid", "test" };

static int gpt_split_find_part(const char *name, size_t *ret_part, struct why *why) {
        for (size_t i = 0; i < ARRAY_SIZE(PARTS); i++)
                if (!name || strcmp(name, PARTS[i]) == 0) {
                        *ret_part = i;
                        return 0;
                }
        return why_set(why, -EINVAL, "the unknown part \"%s\"; choose one of: train, valid, test", name);
}

/* Digits and dots: anything else that strtod() takes is not a weight. */
static const char *gpt_split_read_weight(const char *text, double *ret_weight) {
        size_t n = strspn(text, "0123456789.");
        char *end;

        *ret_weight = strtod(text, &end);
        return n > 0 && end == text + n && isfinite(*ret_weight) ? end : NULL;
}

static int read_weights(const char *splits, double weights[ARRAY_SIZE(PARTS)], struct why *why) {
        const char *at = splits;
        double sum = 0;

        for (size_t n = 0; at; n++) {
                at += strspn(at, " ");
                at = n < ARRAY_SIZE(PARTS) ? gpt_split_read_weight(at, &weights[n]) : NULL;
                sum += at ? weights[n] : 0;
                at = at ? at + strspn(at, " ") : NULL;
                if (at && *at == '\0' && sum > 0)
                        return 0;
                at = at && *at == ',' ? at + 1 : NULL;
        }
        return why_set(why, -EINVAL,
                       "splits = \"%s\" is not up to three weights, of the parts train, valid and test, as in "
                       "\"969,30,1\"",
                       splits);
}

/* Sums and products as Python makes them: rounded half to even, in its sequence. */
int gpt_split(const char *splits, const char *part, uint64_t n_sequences, uint64_t *ret_first, uint64_t *ret_n,
              struct why *why) {
        double weights[ARRAY_SIZE(PARTS)] = { 0 }, begin = 0, end;
        uint64_t first, last;
        size_t wanted = 0;
        int r = gpt_split_find_part(part, &wanted, why);

        if (r == 0)
                r = read_weights(splits ? splits : "1", weights, why);
        if (r < 0)
                return r;
        blend_normalize(weights, ARRAY_SIZE(PARTS));
        for (size_t i = 0; i < wanted; i++)
                begin += weights[i];
        end = begin + weights[wanted];
        first = (uint64_t)nearbyint(begin * (double)n_sequences);
        last = (uint64_t)nearbyint(end * (double)n_sequences);
        if (last > n_sequences)
                last = n_sequences;
        if (last <= first)
                return why_set(why, -EINVAL, "the part %s of splits = \"%s\" has none of its %" PRIu64 " sequences",
                               PARTS[wanted], splits ? splits : "1", n_sequences);
        *ret_first = first;
        *ret_n = last - first;
        return 0;
}
