#include "proto/order/dealing.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const DEALINGS[] = {
        [DLP_DEALING_STRIDED] = "strided",
        [DLP_DEALING_CHUNK] = "chunk",
        [DLP_DEALING_BATCH] = "batch",
};
#define N_DEALINGS (sizeof(DEALINGS) / sizeof(DEALINGS[0]))

const char dlp_dealings[] = "strided chunk batch"; /* names as in DEALINGS */

static const char *const PARTITIONS[] = {
        [DLP_PARTITION_PAD] = "pad",
        [DLP_PARTITION_DROP] = "drop",
        [DLP_PARTITION_EXACT] = "exact",
};
#define N_PARTITIONS (sizeof(PARTITIONS) / sizeof(PARTITIONS[0]))

static int dealing_find(const char *const *names, size_t n_names, const char *name) {
        for (size_t i = 0; i < n_names; i++)
                if (strcmp(name, names[i]) == 0)
                        return (int)i;
        return -EINVAL;
}

const char *dlp_dealing_name(enum dlp_dealing dealing) {
        return (unsigned)dealing < N_DEALINGS ? DEALINGS[dealing] : NULL;
}

const char *dlp_partition_name(enum dlp_partition partition) {
        return (unsigned)partition < N_PARTITIONS ? PARTITIONS[partition] : NULL;
}

int dlp_dealing_from_name(const char *name, enum dlp_dealing *ret_dealing) {
        int i = dealing_find(DEALINGS, N_DEALINGS, name);

        if (i < 0)
                return i;
        *ret_dealing = (enum dlp_dealing)i;
        return 0;
}

int dlp_partition_from_name(const char *name, enum dlp_partition *ret_partition) {
        int i = dealing_find(PARTITIONS, N_PARTITIONS, name);

        if (i < 0)
                return i;
        *ret_partition = (enum dlp_partition)i;
        return 0;
}

/* How many of `rest` positions, less than a round, are in the block of this rank. */
static uint64_t dealing_part_of(uint64_t rest, uint32_t rank, uint32_t block) {
        uint64_t begin = (uint64_t)rank * block;

        if (rest <= begin)
                return 0;
        return rest - begin < block ? rest - begin : block;
}

uint64_t dlp_dealing_count(uint64_t n, uint32_t world, uint32_t rank, uint32_t block, enum dlp_partition partition) {
        uint64_t round = (uint64_t)world * block, each, rest;

        if (rank >= world)
                return 0;

        each = n / round * block;
        rest = n % round;
        switch (partition) {
        case DLP_PARTITION_PAD:
                return each + (rest > 0 ? block : 0);
        case DLP_PARTITION_DROP:
                return each;
        case DLP_PARTITION_EXACT:
                return each + dealing_part_of(rest, rank, block);
        }
        return 0;
}

bool dlp_dealing_is_alike(uint64_t a, uint64_t b, uint32_t world, uint32_t block) {
        return (a > b ? a - b : b - a) % ((uint64_t)world * block) == 0;
}
