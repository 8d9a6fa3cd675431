#include "daemon/store/plan/plan_names.h"

/* A set of hashes with a random key, so that nobody can choose names that collide. Among 100 million names two collide
 * by accident once in four thousand archives: that archive would be refused (a plan looks at the paths themselves). */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "daemon/store/plan/plan.h"
#include "proto/base/cleanup.h"

#define SLOTS_MIN 1024u /* a power of two */

#define FOLDER_BIT 1u /* of a hash: it is a folder's name */

struct plan_names {
        uint64_t *slots; /* 0: free */
        uint64_t n_slots, n_used;
        uint64_t seed;
        char parent[PLAN_FOLD_SIZE]; /* folded; the folders of it are in the set. Most files lie where the last one did
                                      */
};

int plan_names_new(struct plan_names **ret_names) {
        _cleanup_(plan_names_freep) struct plan_names *names = calloc(1, sizeof(*names));

        if (!names)
                return -ENOMEM;
        names->n_slots = SLOTS_MIN;
        names->slots = calloc(names->n_slots, sizeof(*names->slots));
        if (!names->slots)
                return -ENOMEM;
        if (getrandom(&names->seed, sizeof(names->seed), GRND_NONBLOCK) != sizeof(names->seed))
                names->seed = (uint64_t)(uintptr_t)names; /* before the kernel has any: still nobody's guess */
        *ret_names = TAKE_PTR(names);
        return 0;
}

void plan_names_free(struct plan_names *names) {
        if (!names)
                return;
        free(names->slots);
        free(names);
}

uint64_t plan_names_n(const struct plan_names *names) {
        return names->n_used;
}

void plan_names_freep(struct plan_names **names) {
        plan_names_free(*names);
}

/* Where the name is, or would be: at most half of the slots are used, so there is a free one. */
static uint64_t *plan_names_slot_of(uint64_t *slots, uint64_t n_slots, uint64_t hash) {
        uint64_t i = (hash >> 1) & (n_slots - 1);

        while (slots[i] && (slots[i] | FOLDER_BIT) != (hash | FOLDER_BIT))
                i = (i + 1) & (n_slots - 1);
        return &slots[i];
}

static int plan_names_grow(struct plan_names *names) {
        uint64_t n_slots = 2 * names->n_slots;
        uint64_t *slots = calloc(n_slots, sizeof(*slots));

        if (!slots)
                return -ENOMEM;
        for (uint64_t i = 0; i < names->n_slots; i++)
                if (names->slots[i])
                        *plan_names_slot_of(slots, n_slots, names->slots[i]) = names->slots[i];
        free(names->slots);
        names->slots = slots;
        names->n_slots = n_slots;
        return 0;
}

/* Adds a name unless it is there. Returns 0 and what it was before: 0 if it is new, else its hash with the bit that
 * says what it is. */
static int plan_names_add(struct plan_names *names, const char *folded, size_t n, bool is_folder,
                          uint64_t *ret_before) {
        uint64_t hash = XXH3_64bits_withSeed(folded, n, names->seed) & ~(uint64_t)FOLDER_BIT;
        uint64_t *slot;

        if (2 * names->n_used >= names->n_slots) {
                int r = plan_names_grow(names);

                if (r < 0)
                        return r;
        }
        if (hash == 0)
                hash = 2;
        slot = plan_names_slot_of(names->slots, names->n_slots, hash);
        *ret_before = *slot;
        if (*slot == 0) {
                *slot = hash | (is_folder ? FOLDER_BIT : 0);
                names->n_used++;
        }
        return 0;
}

static int take_folders(struct plan_names *names, const char *path, const char *folded, size_t n_parent,
                        struct why *why) {
        uint64_t before;
        int r;

        if (strncmp(folded, names->parent, n_parent) == 0 && names->parent[n_parent] == '\0')
                return 0;
        for (size_t i = 0; i <= n_parent; i++) {
                if (folded[i] != '/')
                        continue;
                r = plan_names_add(names, folded, i, true, &before);
                if (r < 0)
                        return r;
                if (before && !(before & FOLDER_BIT))
                        return why_set(why, -EINVAL, "\"%s\" lies in a folder whose name a file or link has", path);
        }
        memcpy(names->parent, folded, n_parent);
        names->parent[n_parent] = '\0';
        return 0;
}

int plan_names_take(struct plan_names *names, const char *path, struct why *why) {
        char folded[PLAN_FOLD_SIZE];
        size_t n = plan_path_fold(path, folded);
        const char *slash = strrchr(folded, '/');
        uint64_t before;
        int r = 0;

        if (slash)
                r = take_folders(names, path, folded, (size_t)(slash - folded), why);
        if (r == 0)
                r = plan_names_add(names, folded, n, false, &before);
        if (r == 0 && before)
                return why_set(why, -EINVAL,
                               before & FOLDER_BIT ? "\"%s\" has the name of a folder"
                                                   : "\"%s\" has the name of an earlier entry, or differs from it in "
                                                     "case alone",
                               path);
        return r == -ENOMEM ? why_set(why, r, "no memory for the names of all files") : r;
}
