/* Files that cannot lie beside each other. Every file's folded path goes into a hash table; who finds his place taken,
 * or a file where he needs a folder, has a clash. 16 to 32 bytes a file while it lasts, some 200 ns. */

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "daemon/staging/plan/private.h"
#include "proto/base/cleanup.h"

struct table {
        const struct plan *plan;
        uint64_t *slots; /* index of a file + 1 in the lower 40 bits, bits of the hash above; 0: free */
        uint64_t mask;
        uint64_t seed; /* drawn, so that nobody can choose paths that all fall into one place */
};

#define IDX_BITS 40u
#define IDX_MASK ((1ull << IDX_BITS) - 1)

_Static_assert(PLAN_FILES_MAX < IDX_MASK, "an index and the mark that a slot is taken fit");

static int table_init(struct table *table, const struct plan *plan) {
        uint64_t n_slots = 16;

        while (n_slots < 2 * plan->n_files)
                n_slots *= 2;
        if (getrandom(&table->seed, sizeof(table->seed), GRND_NONBLOCK) != sizeof(table->seed))
                table->seed = (uint64_t)(uintptr_t)table; /* a machine that has just booted: less, but something */
        table->plan = plan;
        table->mask = n_slots - 1;
        table->slots = calloc(n_slots, sizeof(*table->slots));
        return table->slots ? 0 : -ENOMEM;
}

/* The file of this folded path, or NULL and the slot where it would be. */
static const struct plan_file *find(const struct table *table, const char *folded, size_t n, uint64_t *ret_slot,
                                    uint64_t *ret_hash) {
        uint64_t hash = XXH3_64bits_withSeed(folded, n, table->seed);
        uint64_t slot = hash & table->mask;
        char other[PLAN_FOLD_SIZE];

        for (; table->slots[slot]; slot = (slot + 1) & table->mask) {
                const struct plan_file *file = &table->plan->files[(table->slots[slot] & IDX_MASK) - 1];

                if ((table->slots[slot] ^ hash) >> IDX_BITS)
                        continue;
                if (plan_path_fold(file->path, other) == n && memcmp(other, folded, n) == 0)
                        return file;
        }
        *ret_slot = slot;
        *ret_hash = hash;
        return NULL;
}

static int add_all(struct table *table, struct why *why) {
        char folded[PLAN_FOLD_SIZE];

        for (uint64_t i = 0; i < table->plan->n_files; i++) {
                const char *path = table->plan->files[i].path;
                uint64_t slot = 0, hash = 0;
                size_t n = plan_path_fold(path, folded);
                const struct plan_file *other = find(table, folded, n, &slot, &hash);

                if (other && strcmp(other->path, path) == 0)
                        return why_set(why, -EINVAL, "path \"%.*s\" is listed twice", 2 * PLAN_QUOTE_MAX, path);
                if (other)
                        return why_set(why, -EINVAL,
                                       "paths \"%.*s\" and \"%.*s\" differ in case alone; some file systems would make "
                                       "one file of them: rename one",
                                       PLAN_QUOTE_MAX, other->path, PLAN_QUOTE_MAX, path);
                table->slots[slot] = (hash & ~IDX_MASK) | (i + 1);
        }
        return 0;
}

/* Is there a file where a folder of this path must be? Neighbours share folders, so what the path has in common with
 * the one before was looked at already. */
static int check_folders(const struct table *table, const char *path, const char *before, struct why *why) {
        char folded[PLAN_FOLD_SIZE], folder[PATH_MAX];
        size_t n_common = 0;

        while (path[n_common] && path[n_common] == before[n_common])
                n_common++;
        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                size_t n = (size_t)(slash - path);
                const struct plan_file *file;
                uint64_t slot, hash;

                if (n < n_common)
                        continue;
                memcpy(folder, path, n);
                folder[n] = '\0';
                file = find(table, folded, plan_path_fold(folder, folded), &slot, &hash);
                if (file)
                        return why_set(why, -EINVAL, "path \"%.*s\" is a file, but \"%.*s\" needs a folder there",
                                       PLAN_QUOTE_MAX, file->path, PLAN_QUOTE_MAX, path);
        }
        return 0;
}

int plan_check_clashes(const struct plan *plan, struct why *why) {
        _cleanup_(freep) uint64_t *slots = NULL;
        struct table table;
        int r = table_init(&table, plan);

        if (r < 0)
                return r;
        slots = table.slots;
        r = add_all(&table, why);
        for (uint64_t i = 0; i < plan->n_files && r == 0; i++)
                r = check_folders(&table, plan->files[i].path, i ? plan->files[i - 1].path : "", why);
        return r;
}
