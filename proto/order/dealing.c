#include "proto/order/dealing.h"

#include <errno.h>
#include <string.h>

static const char *const PARTITIONS[] = {
        [DLP_PARTITION_PAD] = "pad",
        [DLP_PARTITION_DROP] = "drop",
        [DLP_PARTITION_EXACT] = "exact",
};
#define N_PARTITIONS (sizeof(PARTITIONS) / sizeof(PARTITIONS[0]))

const char *dlp_partition_name(enum dlp_partition partition) {
        return (unsigned)partition < N_PARTITIONS ? PARTITIONS[partition] : NULL;
}

int dlp_partition_from_name(const char *name, enum dlp_partition *ret_partition) {
        for (size_t i = 0; i < N_PARTITIONS; i++)
                if (strcmp(name, PARTITIONS[i]) == 0) {
                        *ret_partition = (enum dlp_partition)i;
                        return 0;
                }
        return -EINVAL;
}

uint64_t dlp_dealing_count(uint64_t n, uint32_t world, uint32_t rank, enum dlp_partition partition) {
        uint64_t each, rest;

        if (rank >= world)
                return 0;

        each = n / world;
        rest = n % world;
        switch (partition) {
        case DLP_PARTITION_PAD:
                return each + (rest > 0);
        case DLP_PARTITION_DROP:
                return each;
        case DLP_PARTITION_EXACT:
                return each + (rank < rest);
        }
        return 0;
}

bool dlp_dealing_is_alike(uint64_t a, uint64_t b, uint32_t world) {
        return (a > b ? a - b : b - a) % world == 0;
}
