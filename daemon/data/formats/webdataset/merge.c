#include "daemon/data/formats/webdataset/merge.h"

/* Writers keep the sequence of keys, so the next key of the other archive is looked for at the next sample of the base;
 * only where it is not there, in a sorted list of all. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/formats/webdataset/tar.h"
#include "daemon/data/index/indexing_sort.h"
#include "proto/base/cleanup.h"

struct key {
        const char *text;
        uint64_t sample; /* within its archive */
};

static int by_text(const void *one, const void *other) {
        return strcmp(((const struct key *)one)->text, ((const struct key *)other)->text);
}

static int sort_by_text(const void *one, const void *other, void *unused) {
        (void)unused;
        return by_text(one, other);
}

static const char *merge_key_of(const struct found_shard *shard, uint64_t sample) {
        const uint64_t *keys = (const uint64_t *)(const void *)shard->walk->keys.bytes + shard->first_key;

        /* One of two archives may have been made by `tar -C DIR .`. */
        return tar_plain_name((const char *)shard->walk->names.bytes + keys[sample]);
}

/* The keys of an archive, sorted: *ret_keys points into `memory`. A key that comes twice is an error, since it does not
 * say which sample is meant. */
static int sort_keys(const struct merge_pair *pair, const struct found_shard *shard, const char *name,
                     struct growing *memory, const struct key **ret_keys, struct why *why) {
        struct key *keys;
        int r;

        if (growing_reserve(memory, (shard->n_keys + 1) * sizeof(*keys)) < 0)
                return why_set(why, -ENOMEM, "%s/%s: no memory for its keys", pair->root, name);
        keys = (void *)memory->bytes;
        for (uint64_t i = 0; i < shard->n_keys; i++)
                keys[i] = (struct key){ .text = merge_key_of(shard, i), .sample = i };
        r = indexing_sort(keys, shard->n_keys, sizeof(*keys), sort_by_text, NULL);
        if (r < 0)
                return why_errno(why, r, "%s/%s: its keys", pair->root, name);
        for (uint64_t i = 1; i < shard->n_keys; i++)
                if (strcmp(keys[i - 1].text, keys[i].text) == 0)
                        return why_set(why, -EBADMSG,
                                       "%s/%s: has the key \"%s\" twice, not in one place; archives can be merged "
                                       "only if each key says one sample",
                                       pair->root, name, keys[i].text);
        *ret_keys = keys;
        return 0;
}

/* The number of the first member of each sample of the other archive: *ret_firsts points into `memory`. */
static int find_members(const struct merge_pair *pair, struct growing *memory, const uint64_t **ret_firsts,
                        struct why *why) {
        const struct found_member *members =
                (const struct found_member *)(const void *)pair->other->walk->members.bytes + pair->other->first_member;
        uint64_t *firsts;

        if (growing_append(memory, NULL, (pair->other->n_keys + 1) * sizeof(*firsts)) < 0)
                return why_set(why, -ENOMEM, "%s/%s: no memory for its keys", pair->root, pair->other_name);
        firsts = (void *)memory->bytes;
        for (uint64_t i = pair->other->n_members; i > 0; i--)
                firsts[members[i - 1].idx_sample] = i - 1;
        *ret_firsts = firsts;
        return 0;
}

int merge_match(const struct merge_pair *pair, uint64_t *first_members, struct why *why) {
        _cleanup_(growing_fini) struct growing base = { 0 }, other = { 0 }, members = { 0 };
        const struct key *of_base = NULL, *of_other = NULL;
        const uint64_t *firsts = NULL;
        uint64_t next = 0;
        int r = sort_keys(pair, pair->base, pair->base_name, &base, &of_base, why);

        if (r == 0)
                r = sort_keys(pair, pair->other, pair->other_name, &other, &of_other, why);
        if (r == 0)
                r = find_members(pair, &members, &firsts, why);
        if (r < 0)
                return r;
        for (uint64_t i = 0; i < pair->base->n_keys; i++)
                first_members[i] = MERGE_NOTHING;
        for (uint64_t i = 0; i < pair->other->n_keys; i++, next++) {
                const struct key wanted = { .text = merge_key_of(pair->other, i) }, *found;

                if (next >= pair->base->n_keys || strcmp(merge_key_of(pair->base, next), wanted.text) != 0) {
                        found = bsearch(&wanted, of_base, pair->base->n_keys, sizeof(*of_base), by_text);
                        if (!found)
                                return why_set(why, -EBADMSG,
                                               "%s/%s: has the key \"%s\", which %s does not have; merged "
                                               "archives have fields of the same samples, archive by archive",
                                               pair->root, pair->other_name, wanted.text, pair->base_name);
                        next = found->sample;
                }
                first_members[next] = firsts[i];
        }
        return 0;
}
