#include "daemon/data/orders/source_blocks.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/data/format.h"

/* The longest piece of a shard that is one block. */
static uint64_t longest_in_shard(const struct source *part) {
        const struct format *format;
        struct why unknown;

        return format_find(part->format, &format, &unknown) == 0 && !format->is_read_through ? SOURCE_BLOCK_LONG
                                                                                             : UINT64_MAX;
}

/* Finds where the blocks of one source without parts end, `first` being the number of its first sample. Returns how
 * many there are. */
static uint64_t blocks_of_part(const struct source *part, uint64_t first, uint64_t *ret_ends) {
        uint64_t n = 0, end, longest = longest_in_shard(part), most;

        for (uint64_t sample = 0; sample < part->n_samples; n++) {
                most = longest;
                if (!source_shard_end(part, sample, &end)) {
                        end = part->n_samples;
                        most = SOURCE_BLOCK_SAMPLES;
                }
                sample = end - sample > most ? sample + most : end;
                if (ret_ends)
                        ret_ends[n] = first + sample;
        }
        return n;
}

static uint64_t source_blocks_of(const struct source *source, uint64_t *ret_ends) {
        uint64_t n = 0;

        if (source->n_parts == 0)
                return blocks_of_part(source, 0, ret_ends);
        for (uint32_t k = 0; k < source->n_parts; k++)
                n += blocks_of_part(source->parts[k].source, source->parts[k].first, ret_ends ? ret_ends + n : NULL);
        return n;
}

int source_blocks_find(const struct source *source, struct budget *budget, struct dlp_blocks *ret_blocks,
                       struct why *why) {
        uint64_t n = source_blocks_of(source, NULL), n_bytes = n * sizeof(uint64_t), *ends;
        int r;

        if (n > UINT32_MAX)
                return why_set(why, -E2BIG, "order: %llu blocks; at most %u are possible", (unsigned long long)n,
                               UINT32_MAX);
        r = budget_reserve(budget, n_bytes, "the table of the blocks", why);
        if (r < 0)
                return r;
        ends = malloc(n_bytes);
        if (!ends) {
                budget_release(budget, n_bytes);
                return why_errno(why, -ENOMEM, "order: the table of the blocks");
        }
        source_blocks_of(source, ends);
        *ret_blocks = (struct dlp_blocks){ .ends = ends, .n = (uint32_t)n };
        return 0;
}

int source_blocks_digest(const struct dlp_blocks *blocks, char ret_digest[65]) {
        unsigned char digest[EVP_MAX_MD_SIZE];

        if (!EVP_Digest(blocks->ends, blocks->n * sizeof(*blocks->ends), digest, NULL, EVP_sha256(), NULL))
                return -ENOMEM;
        for (size_t i = 0; i < 32; i++)
                snprintf(ret_digest + 2 * i, 3, "%02x", digest[i]);
        return 0;
}
