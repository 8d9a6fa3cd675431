#include "daemon/fetch/s3_regions.h"

#include <stdio.h>
#include <string.h>

void s3_regions_init(struct s3_regions *regions) {
        *regions = (struct s3_regions){ 0 };
        pthread_mutex_init(&regions->lock, NULL);
}

void s3_regions_fini(struct s3_regions *regions) {
        pthread_mutex_destroy(&regions->lock);
}

/* Under the lock. */
static int s3_regions_find(const struct s3_regions *regions, const char *bucket) {
        for (int i = 0; i < (int)S3_REGIONS_MAX; i++)
                if (*bucket && strcmp(regions->rows[i].bucket, bucket) == 0)
                        return i;
        return -1;
}

void s3_regions_set(struct s3_regions *regions, const char *bucket, const char *region) {
        int i;

        if (strlen(bucket) >= S3_BUCKET_NAME_SIZE || strlen(region) >= S3_REGION_SIZE)
                return;
        pthread_mutex_lock(&regions->lock);
        i = s3_regions_find(regions, bucket);
        if (i < 0)
                i = (int)(regions->n_set++ % S3_REGIONS_MAX);
        strcpy(regions->rows[i].bucket, bucket);
        strcpy(regions->rows[i].region, region);
        pthread_mutex_unlock(&regions->lock);
}

void s3_regions_get(struct s3_regions *regions, const char *bucket, const char *otherwise, char *ret_region) {
        int i;

        pthread_mutex_lock(&regions->lock);
        i = s3_regions_find(regions, bucket);
        snprintf(ret_region, S3_REGION_SIZE, "%s", i >= 0 ? regions->rows[i].region : otherwise);
        pthread_mutex_unlock(&regions->lock);
}
