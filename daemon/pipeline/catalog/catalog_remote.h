/* pipeline/catalog/catalog_remote.h: a dataset that lies elsewhere, in the cache of this node (store/cache/cache.h). */
#pragma once

#include <limits.h>

#include "daemon/data/dataset.h"
#include "daemon/store/cache/cache.h"

/* What the configuration says of how to speak to an origin, as in struct cached_terms; "" or NULL: nothing. */
enum remote_text {
        REMOTE_ENDPOINT,
        REMOTE_REGION,
        REMOTE_ADDRESSING,
        REMOTE_CREDENTIALS,
        REMOTE_CA_FILE,
        REMOTE_MIRROR,
        N_REMOTE_TEXTS
};

struct catalog_dataset;

/* One dataset's use of an origin. */
struct remote {
        _Atomic uint32_t refs; /* the catalog's, and its dataset's, which may outlive it */
        struct cached *cached;
        struct indexing_origin origin; /* what its dataset_spec has */
        const char *folder;            /* of the dataset, once it is open: what a sample's path begins in */
        bool is_arriving;              /* a file is not read to its end before others are */
        pthread_mutex_t lock;          /* a leaf; guards why */
        struct why why;                /* of the first read that failed since it was last taken; "" : none */
};

/* Asks the origin what it has. `watch` may be NULL. Blocks. As cached_open(). */
int remote_open(struct cache *cache, const struct cached_terms *terms, const struct index_watch *watch,
                struct remote **ret_remote, struct why *why);

/* The index that lies beside the data (CACHE_INDEX_NAME), once all of it is here; "": there is none, or it cannot be
 * had. Blocks. */
void remote_fetch_index(struct remote *remote, const atomic_bool *cancel, char ret_path[PATH_MAX]);

void remote_unref(struct remote *remote); /* NULL is fine */

/* How the origin answers; of a joined dataset that of the first part that has one. False: it lies here. */
bool remote_report(const struct catalog_dataset *dataset, struct dlp_origin *ret_origin);

/* Why reads have failed: replaces what `why` says, which knows the error alone. */
void remote_explain(struct remote *remote, struct why *why);
