/* pack_folder IN OUT [SHARD_BYTES]: an image folder as a folder of shards, for tests and measurements.
 *
 * Samples are packed as they are. OUT is made; a shard is full when it holds SHARD_BYTES (256 MiB) of samples. What is
 * not a regular file is packed as nothing. Prints `samples shards digest` of what was packed. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/dataset.h"
#include "daemon/data/formats/shard.h"
#include "proto/base/cleanup.h"

struct packing {
        const struct dataset *dataset;
        int out_fd;
        uint64_t shard_bytes;
        const char **classes;
        struct shard_writer *writer; /* NULL: none is begun */
        int fd;
        uint64_t n_in_shard, n_shards;
        uint8_t *bytes;
        struct why why;
};

static int begin_shard(struct packing *packing) {
        char name[32];

        shard_name(packing->n_shards, name);
        packing->fd = openat(packing->out_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (packing->fd < 0)
                return why_errno(&packing->why, -errno, "%s", name);
        packing->n_in_shard = 0;
        packing->n_shards++;
        return shard_writer_new(packing->fd, packing->classes, dataset_source(packing->dataset)->n_classes,
                                &packing->writer, &packing->why);
}

static int end_shard(struct packing *packing) {
        int r = packing->writer ? shard_writer_finish(packing->writer, &packing->why) : 0;

        shard_writer_free(TAKE_PTR(packing->writer));
        closep(&packing->fd);
        packing->fd = -1;
        return r;
}

static int read_sample(struct packing *packing, const struct extent *place, const char *path) {
        _cleanup_(closep) int fd = -1;
        uint64_t n = 0;

        if (place->length == 0)
                return 0;
        fd = openat(dataset_root_fd(packing->dataset), path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && n < place->length) {
                ssize_t r = read(fd, packing->bytes + n, place->length - n);

                if (r <= 0)
                        return why_set(&packing->why, -EIO, "%s: it is shorter than the index says", path);
                n += (uint64_t)r;
        }
        return fd < 0 ? why_errno(&packing->why, -errno, "%s", path) : 0;
}

static int pack_sample(struct packing *packing, uint64_t sample) {
        const struct source *index = dataset_source(packing->dataset);
        char path[INDEX_PATH_SIZE];
        struct extent place;
        int r = 0;

        source_locate(index, sample, 0, &place);
        source_name(index, sample, path);
        if (packing->writer && packing->n_in_shard >= packing->shard_bytes)
                r = end_shard(packing);
        if (r == 0 && !packing->writer)
                r = begin_shard(packing);
        if (r == 0)
                r = read_sample(packing, &place, path);
        if (r == 0)
                r = shard_writer_add(packing->writer, path, index_label(index, sample), packing->bytes, place.length,
                                     &packing->why);
        packing->n_in_shard += place.length;
        return r;
}

static int pack(struct packing *packing) {
        const struct source *index = dataset_source(packing->dataset);
        int r = 0;

        packing->bytes = malloc(index->max_length + 1);
        packing->classes = calloc(index->n_classes + 1, sizeof(char *));
        if (!packing->bytes || !packing->classes)
                return why_set(&packing->why, -ENOMEM, "no memory");
        for (uint32_t i = 0; i < index->n_classes; i++)
                packing->classes[i] = source_class_name(index, i);
        for (uint64_t i = 0; i < index->n_samples && r == 0; i++)
                r = pack_sample(packing, i);
        if (r == 0)
                return end_shard(packing);
        end_shard(packing);
        return r;
}

int main(int argc, char **argv) {
        _cleanup_(dataset_unrefp) struct dataset *dataset = NULL;
        struct packing packing = { .fd = -1, .out_fd = -1, .shard_bytes = 256u << 20 };
        struct dataset_spec spec = { .name = "packing", .format = "imagefolder" };
        int r;

        if (argc < 3 || argc > 4) {
                fprintf(stderr, "usage: pack_folder IN OUT [SHARD_BYTES]\n");
                return 2;
        }
        if (argc == 4)
                packing.shard_bytes = strtoull(argv[3], NULL, 10);
        spec.path = argv[1];
        r = dataset_open(&spec, "/proc/nowhere", NULL, &dataset, NULL, &packing.why);
        if (r == 0 && mkdir(argv[2], 0755) < 0 && errno != EEXIST)
                r = why_errno(&packing.why, -errno, "%s", argv[2]);
        if (r == 0) {
                packing.dataset = dataset;
                packing.out_fd = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = packing.out_fd < 0 ? why_errno(&packing.why, -errno, "%s", argv[2]) : pack(&packing);
        }
        if (r == 0)
                printf("%" PRIu64 " %" PRIu64 " %s\n", dataset_source(dataset)->n_samples, packing.n_shards,
                       dataset_source(dataset)->digest);
        else
                fprintf(stderr, "pack_folder: %s\n", packing.why.text);
        free(packing.bytes);
        free(packing.classes);
        closep(&packing.out_fd);
        return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
