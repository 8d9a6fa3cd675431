/* many_index ROOT INDEX_DIR NAME SAMPLES: an index of as many samples as one likes over the files of a small folder.
 *
 * For measuring what a large dataset costs without its files: sample i is file i modulo the number of files, with that
 * file's label. Orders, tables and the index are as large as they would be; what many directories and files that are
 * not cached would add is not there. A daemon whose index_dir this is and whose dataset NAME is the folder takes it as
 * its own. One that is there with this number of samples stays, if the folder has not changed since. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/dataset.h"
#include "daemon/data/index/index_builder.h"
#include "proto/base/cleanup.h"

#define FORMAT "imagefolder"

/* A file of the folder as a row of the new index. */
struct entry {
        struct index_row row;
        int32_t label;
};

/* A directory is added when its first file comes: an index lists files folder by folder. */
static int dir_of(struct index_builder *builder, int root_fd, const char *path, uint32_t *ret_dir) {
        struct stat status;

        if (fstatat(root_fd, path[0] ? path : ".", &status, 0) < 0)
                return -errno;
        return index_builder_add_dir(builder, path, &status, ret_dir);
}

static int add_files(struct index_builder *builder, const struct dataset *dataset, struct entry *entries) {
        const struct source *index = dataset_source(dataset);
        const char *open_dir = NULL;
        uint32_t dir = 0;
        int r;

        for (uint64_t i = 0; i < index->n_samples; i++) {
                struct extent place;

                source_locate(index, i, 0, &place);
                if (!open_dir || strcmp(open_dir, place.dir) != 0) {
                        r = dir_of(builder, dataset_root_fd(dataset), place.dir, &dir);
                        if (r < 0)
                                return r;
                        open_dir = place.dir;
                }
                entries[i].row = (struct index_row){ .length = place.length };
                entries[i].label = index_label(index, i);
                r = index_builder_add_file(builder, dir, place.name, place.flags, &entries[i].row.file);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int fill(struct index_builder *builder, const struct dataset *dataset, uint64_t n_samples) {
        const struct source *index = dataset_source(dataset);
        uint64_t n_files = index->n_samples;
        _cleanup_(freep) struct entry *entries = calloc(n_files, sizeof(*entries));
        uint32_t root;
        int r;

        if (!entries)
                return -ENOMEM;
        r = dir_of(builder, dataset_root_fd(dataset), "", &root);
        for (uint32_t i = 0; r >= 0 && i < index->n_classes; i++)
                r = index_builder_add_class(builder, source_class_name(index, i));
        if (r >= 0)
                r = add_files(builder, dataset, entries);
        for (uint64_t i = 0; r >= 0 && i < n_samples; i++)
                r = index_builder_add_sample(builder, &entries[i % n_files].row, entries[i % n_files].label);
        return r;
}

/* Is what lies there what is asked for? */
static bool is_there(const char *path, const struct dataset *dataset, uint64_t n_samples) {
        _cleanup_(source_closep) struct source *index = NULL;

        return index_open(path, NULL, &index, NULL) >= 0 && index->n_samples == n_samples &&
               source_is_current(index, dataset_root_fd(dataset), NULL) == 0;
}

static int write_index(const char *path, const struct dataset *dataset, uint64_t n_samples, struct why *why) {
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(closep) int fd = -1;
        int r;

        r = index_builder_new(FORMAT, 1, &builder);
        if (r >= 0)
                r = fill(builder, dataset, n_samples);
        if (r < 0)
                return why_errno(why, r, "no index can be made");
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0)
                return why_errno(why, -errno, "%s", path);
        r = index_builder_write(builder, fd, path, why);
        if (r < 0)
                unlink(path);
        return r;
}

int main(int argc, char **argv) {
        struct dataset_spec spec = { .format = FORMAT };
        _cleanup_(dataset_unrefp) struct dataset *dataset = NULL;
        uint64_t n_samples = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;
        struct why why = { 0 };
        char path[PATH_MAX];

        if (n_samples == 0) {
                fprintf(stderr, "usage: many_index ROOT INDEX_DIR NAME SAMPLES\n");
                return 2;
        }
        spec.path = argv[1];
        spec.name = argv[3];
        if ((mkdir(argv[2], 0755) < 0 && errno != EEXIST) || dataset_index_path(argv[2], spec.name, path, &why) < 0 ||
            dataset_open(&spec, "/proc/nowhere", NULL, &dataset, NULL, &why) < 0) {
                fprintf(stderr, "many_index: %s\n", why.text[0] ? why.text : strerror(errno));
                return EXIT_FAILURE;
        }
        if (dataset_source(dataset)->n_samples == 0) {
                fprintf(stderr, "many_index: no samples in %s\n", spec.path);
                return EXIT_FAILURE;
        }
        if (!is_there(path, dataset, n_samples) && write_index(path, dataset, n_samples, &why) < 0) {
                fprintf(stderr, "many_index: %s\n", why.text);
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
