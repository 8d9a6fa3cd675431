/* Several datasets of the configuration that a job is served from as one. What is open stays in a list, so that all
 * ranks of a job share it, and late ones get the versions of the parts that the first ones got. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/cleanup.h"

#define BETWEEN " + "

/* ---- names ----------------------------------------------------------------------------------------------------- */

/* The name at `at`, without the blanks around it. Returns where the next one begins, or NULL. A plus without blanks is
 * part of a name. */
static const char *cut_name(const char *at, const char **ret_name, size_t *ret_n) {
        const char *next = strstr(at, BETWEEN), *end = next ? next : at + strlen(at);

        at += strspn(at, " ");
        while (end > at && end[-1] == ' ')
                end--;
        *ret_name = at;
        *ret_n = end > at ? (size_t)(end - at) : 0;
        return next ? next + strlen(BETWEEN) : NULL;
}

bool catalog_is_joined(struct catalog *catalog, const char *text) {
        return strstr(text, BETWEEN) && !entry_find(catalog, text);
}

bool catalog_next_name(struct catalog *catalog, const char *text, const char **at, char ret_name[DLP_DATASET_MAX]) {
        const char *name;
        size_t n;

        if (!*at && !catalog_is_joined(catalog, text)) {
                snprintf(ret_name, DLP_DATASET_MAX, "%s", text);
                *at = text + strlen(text); /* nothing follows */
                return true;
        }
        if (*at && !**at)
                return false;
        *at = cut_name(*at ? *at : text, &name, &n);
        if (!*at)
                *at = text + strlen(text);
        snprintf(ret_name, DLP_DATASET_MAX, "%.*s", (int)(n < DLP_DATASET_MAX ? n : DLP_DATASET_MAX - 1), name);
        return true;
}

/* Has the text `all` of `n_all` bytes the name already? */
static bool catalog_joined_has_name(const char *all, const char *name, size_t n) {
        while (all) {
                const char *one;
                size_t n_one;

                all = cut_name(all, &one, &n_one);
                if (n_one == n && memcmp(one, name, n) == 0)
                        return true;
        }
        return false;
}

static int catalog_joined_add_name(char text[DLP_DATASET_MAX], const char *name, size_t n, struct why *why) {
        size_t n_text = strlen(text);

        if (n == 0)
                return why_set(why, -EINVAL,
                               "dataset: a name is empty; write names with a + between them, as in \"a + b\"");
        if (n >= DLP_NAME_MAX && name[0] != '/') /* a path may be longer */
                return why_set(why, -EINVAL, "dataset: \"%.*s\" is %zu bytes long, %u are allowed", (int)n, name, n,
                               DLP_NAME_MAX - 1);
        if (n_text > 0 && catalog_joined_has_name(text, name, n))
                return why_set(why, -EINVAL, "dataset: %.*s is named twice; name each dataset once", (int)n, name);
        if (n_text + strlen(BETWEEN) + n >= DLP_DATASET_MAX)
                return why_set(why, -EINVAL, "dataset: the names take more than %u bytes", DLP_DATASET_MAX - 1);
        snprintf(text + n_text, DLP_DATASET_MAX - n_text, "%s%.*s", n_text > 0 ? BETWEEN : "", (int)n, name);
        return 0;
}

int catalog_normal_text(struct catalog *catalog, const char *text, char ret_text[DLP_DATASET_MAX], struct why *why) {
        char normal[DLP_DATASET_MAX] = "";
        uint32_t n_names = 0;
        int r = 0;

        if (strlen(text) >= DLP_DATASET_MAX)
                return why_set(why, -EINVAL, "dataset: the names take more than %u bytes", DLP_DATASET_MAX - 1);
        if (!catalog_is_joined(catalog, text)) {
                snprintf(ret_text, DLP_DATASET_MAX, "%s", text);
                return 0;
        }
        while (text && r == 0) {
                const char *name;
                size_t n;

                text = cut_name(text, &name, &n);
                r = catalog_joined_add_name(normal, name, n, why);
                if (r == 0 && ++n_names > DLP_PARTS_MAX)
                        r = why_set(why, -EINVAL, "dataset: more than %u names", DLP_PARTS_MAX);
        }
        if (r == 0)
                strcpy(ret_text, normal);
        return r;
}

/* ---- what is open ---------------------------------------------------------------------------------------------- */

static void catalog_joined_drop(struct catalog *catalog, struct catalog_dataset *dataset) {
        TAILQ_REMOVE(&catalog->joined, dataset, joined);
        catalog_dataset_unref(dataset);
}

void joined_drop_unused(struct catalog *catalog) {
        struct catalog_dataset *dataset, *next;

        TAILQ_FOREACH_SAFE(dataset, &catalog->joined, joined, next)
                if (atomic_load_explicit(&dataset->refs, memory_order_acquire) == 1)
                        catalog_joined_drop(catalog, dataset);
}

void joined_fini(struct catalog *catalog) {
        struct catalog_dataset *dataset;

        while ((dataset = TAILQ_FIRST(&catalog->joined)))
                catalog_joined_drop(catalog, dataset);
}

/* Takes over the references to the parts if it succeeds. */
static int catalog_joined_make(const char *text, struct catalog_dataset **parts, uint32_t n_parts,
                               struct catalog_dataset **ret_dataset, struct why *why) {
        struct dataset *datasets[DLP_PARTS_MAX];
        struct catalog_dataset *joined = calloc(1, sizeof(*joined));
        int r = joined ? 0 : -ENOMEM;

        for (uint32_t k = 0; k < n_parts; k++)
                datasets[k] = parts[k]->dataset;
        if (r == 0)
                joined->parts = calloc(n_parts, sizeof(struct catalog_dataset *));
        if (r < 0 || !joined->parts) {
                free(joined);
                return why_set(why, -ENOMEM, "no memory to join %s", text);
        }
        r = dataset_join(datasets, n_parts, text, &joined->dataset, why);
        if (r < 0) {
                free(joined->parts);
                free(joined);
                return r;
        }
        memcpy(joined->parts, parts, n_parts * sizeof(struct catalog_dataset *));
        joined->n_parts = n_parts;
        snprintf(joined->name, sizeof(joined->name), "%s", text);
        atomic_store_explicit(&joined->refs, 1, memory_order_relaxed);
        pthread_mutex_init(&joined->error_lock, NULL);
        *ret_dataset = joined;
        return 0;
}

static struct catalog_dataset *find_digest(const struct catalog *catalog, const char *text, const char *digest) {
        struct catalog_dataset *dataset;

        TAILQ_FOREACH(dataset, &catalog->joined, joined)
                if (strcmp(dataset->name, text) == 0 && strcmp(dataset_source(dataset->dataset)->digest, digest) == 0)
                        return dataset;
        return NULL;
}

static struct catalog_dataset *catalog_joined_find_parts(const struct catalog *catalog,
                                                         struct catalog_dataset *const *parts, uint32_t n_parts) {
        struct catalog_dataset *dataset;

        TAILQ_FOREACH(dataset, &catalog->joined, joined)
                if (dataset->n_parts == n_parts && memcmp(dataset->parts, parts, n_parts * sizeof(parts[0])) == 0)
                        return dataset;
        return NULL;
}

static int get_parts(struct catalog *catalog, const char *text, char *const *digests, size_t n_digests,
                     struct catalog_dataset *parts[DLP_PARTS_MAX], uint32_t *n, struct why *why) {
        char name[DLP_DATASET_MAX];
        const char *at = NULL;

        while (catalog_next_name(catalog, text, &at, name)) {
                const char *digest = *n < n_digests ? digests[*n] : NULL;
                int r = catalog_get_again(catalog, name, digest, &parts[*n], why);

                if (r < 0)
                        return r;
                ++*n;
        }
        return 0;
}

int catalog_get_joined(struct catalog *catalog, const char *text, const char *digest, char *const *digests,
                       size_t n_digests, struct catalog_dataset **ret_dataset, struct why *why) {
        struct catalog_dataset *parts[DLP_PARTS_MAX], *dataset;
        uint32_t n_parts = 0;
        int r;

        if (!catalog_is_joined(catalog, text))
                return catalog_get_again(catalog, text, digest, ret_dataset, why);
        dataset = digest && *digest ? find_digest(catalog, text, digest) : NULL;
        if (dataset) {
                *ret_dataset = catalog_dataset_ref(dataset);
                return 0;
        }
        r = get_parts(catalog, text, digests, n_digests, parts, &n_parts, why);
        dataset = r == 0 ? catalog_joined_find_parts(catalog, parts, n_parts) : NULL;
        if (r == 0 && !dataset) {
                r = catalog_joined_make(text, parts, n_parts, &dataset, why);
                if (r == 0) {
                        TAILQ_INSERT_TAIL(&catalog->joined, dataset, joined);
                        n_parts = 0; /* taken over */
                }
        }
        for (uint32_t k = 0; k < n_parts; k++)
                catalog_dataset_unref(parts[k]);
        if (r == 0)
                *ret_dataset = catalog_dataset_ref(dataset);
        return r;
}

/* ---- what is asked of the parts -------------------------------------------------------------------------------- */

struct catalog_dataset *catalog_dataset_with(struct catalog_dataset *dataset, uint64_t *sample) {
        const struct source *source;
        uint32_t k;

        if (dataset->n_parts == 0)
                return dataset;
        source = dataset_source(dataset->dataset);
        k = source_part_of(source, *sample);
        *sample -= source->parts[k].first;
        return dataset->parts[k];
}

bool catalog_dataset_is_held(struct catalog_dataset *dataset, struct why *ret_why) {
        if (dataset->n_parts == 0)
                return outage_is_held(dataset->outage, ret_why);
        for (uint32_t k = 0; k < dataset->n_parts; k++)
                if (outage_is_held(dataset->parts[k]->outage, ret_why))
                        return true;
        return false;
}

void catalog_dataset_poke(struct catalog_dataset *dataset) {
        if (dataset->n_parts == 0)
                outage_poke(dataset->outage);
        for (uint32_t k = 0; k < dataset->n_parts; k++)
                outage_poke(dataset->parts[k]->outage);
}

uint64_t catalog_dataset_n_ended(struct catalog_dataset *dataset) {
        uint64_t n = dataset->n_parts == 0 ? outage_n_ended(dataset->outage) : 0;

        for (uint32_t k = 0; k < dataset->n_parts; k++)
                n += outage_n_ended(dataset->parts[k]->outage);
        return n;
}
