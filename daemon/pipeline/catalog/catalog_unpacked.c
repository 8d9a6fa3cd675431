/* Datasets of compressed files: the cache unpacks them, and what it has made is opened in their place. */
#include <errno.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/cpus.h"
#include "daemon/pipeline/catalog/catalog_private.h"
#include "proto/base/cleanup.h"

/* Whether links may lead out of it is a property of the descriptor. */
int unpacked_find(const struct dataset_spec *spec, struct files *ret_files, int *ret_fd, struct why *why) {
        int r = files_find(spec->path, NULL, spec->follows_links, ret_files, why);

        if (r < 0)
                return r;
        *ret_fd = beneath_root(ret_files->root, spec->follows_links, why);
        if (*ret_fd < 0)
                files_fini(ret_files);
        return *ret_fd < 0 ? *ret_fd : 0;
}

bool unpacked_is_due(const struct opening *opening, const struct dataset_spec *spec) {
        struct files files = { 0 };
        bool is_due = false;

        if (opening->version[0] || catalog_is_stream(opening->entry) ||
            files_find(spec->path, NULL, spec->follows_links, &files, NULL) < 0)
                return false; /* opening it says why */
        for (size_t i = 0; i < files.n_names && !files.is_pipe && files.n_merged == 0; i++)
                is_due = is_due || unpacked_is_compressed(files.names[i]);
        files_fini(&files);
        return is_due;
}

struct unpacked_terms unpacked_terms_of(const struct opening *opening, const struct files *files, int root_fd,
                                        const struct index_watch *watch) {
        struct cpus cpus;

        cpus_find(&cpus);
        return (struct unpacked_terms){ .root = files->root,
                                        .root_fd = root_fd,
                                        .names = files->names,
                                        .n_names = files->n_names,
                                        .cached = opening->remote ? opening->remote->cached : NULL,
                                        .n_threads = cpus_n_threads(&cpus),
                                        .cancel = watch->cancel,
                                        .part = watch->part,
                                        .userdata = watch->userdata };
}

int opening_unpack(struct opening *opening, struct dataset_spec *spec, const struct index_watch *watch) {
        _cleanup_(closep) int root_fd = -1;
        struct files files = { 0 };
        struct unpacked_terms terms;
        struct why found = opening->why;
        int r = unpacked_find(spec, &files, &root_fd, &opening->why);

        if (r < 0)
                return r;
        terms = unpacked_terms_of(opening, &files, root_fd, watch);
        r = cache_unpacked_open(opening->entry->catalog->cache, &terms, &opening->unpacked, &opening->why);
        files_fini(&files);
        if (r == -ENOENT && files.n_names == 0) { /* it is packed in a way of its format: what that said stands */
                opening->why = found;
                r = -ENOTSUP;
        }
        if (r < 0)
                return r;
        spec->path = unpacked_path(opening->unpacked);
        spec->origin = NULL;
        return 0;
}

void opening_drop_unpacked(struct opening *opening) {
        unpacked_unref(TAKE_PTR(opening->unpacked));
}
