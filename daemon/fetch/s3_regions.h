/* fetch/s3_regions.h: the regions of buckets that lie elsewhere than the configuration says. A store tells them as it
 * refuses a request; from then on the bucket is asked for there. Any thread. */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#define S3_REGIONS_MAX      16u
#define S3_REGION_SIZE      64u
#define S3_BUCKET_NAME_SIZE 256u

struct s3_regions {
        pthread_mutex_t lock; /* a leaf; covers the rest */
        struct {
                char bucket[S3_BUCKET_NAME_SIZE];
                char region[S3_REGION_SIZE];
        } rows[S3_REGIONS_MAX];
        uint32_t n_set; /* ever: the oldest makes room */
};

void s3_regions_init(struct s3_regions *regions);
void s3_regions_fini(struct s3_regions *regions);

/* Names that do not fit are not kept. */
void s3_regions_set(struct s3_regions *regions, const char *bucket, const char *region);

/* ret_region: S3_REGION_SIZE bytes; `otherwise` if nothing was told of the bucket. */
void s3_regions_get(struct s3_regions *regions, const char *bucket, const char *otherwise, char *ret_region);
