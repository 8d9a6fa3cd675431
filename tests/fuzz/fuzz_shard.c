/* fuzz_shard [-n ROUNDS] [-s SEED] [-r ROUND]: does a damaged shard ever lead outside of its own bytes?
 *
 * Each round takes a good shard of a few samples, changes some bytes and words of its header and table, makes the
 * checksum right again (a stranger can), and parses it. What is accepted is used: every name, path, label and range.
 * The same seed makes the same rounds; -r runs a single one. Without arguments: SMOKE_ROUNDS. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/data/shard_layout.h"
#include "tests/fuzz/damage.h"

#define SMOKE_ROUNDS 200000u
#define CLASSES_MAX  4u
#define SAMPLES_MAX  6u
#define CORPUS       8u

static struct bytes corpus[CORPUS];
static struct { uint64_t accepted, header, table; } counts;
static uint64_t seen; /* what was used, so that no read is optimised away */

/* A shard in memory, as the writer makes it. */
static struct bytes make_shard(struct random *random) {
        static const char *const CLASSES[CLASSES_MAX] = { "a", "bb", "a class of some length", "d" };
        int fd = memfd_create("shard", MFD_CLOEXEC);
        uint32_t n_classes = 1 + draw(random, CLASSES_MAX), n = draw(random, SAMPLES_MAX + 1);
        struct shard_writer *writer;
        struct bytes shard;
        char path[64];
        off_t size;

        if (fd < 0 || shard_writer_new(fd, CLASSES, n_classes, &writer, NULL) < 0)
                exit(2);
        for (uint32_t i = 0; i < n; i++) {
                uint32_t label = draw(random, n_classes), n_bytes = draw(random, 3) * draw(random, 5000);
                uint8_t *bytes = calloc(1, n_bytes + 1);

                snprintf(path, sizeof(path), "%s/%s%u.jpg", CLASSES[label], i % 2 ? "deeper/" : "", i);
                if (shard_writer_add(writer, path, (int32_t)label, bytes, n_bytes, NULL) < 0)
                        exit(2);
                free(bytes);
        }
        if (shard_writer_finish(writer, NULL) < 0)
                exit(2);
        shard_writer_free(writer);
        size = lseek(fd, 0, SEEK_END);
        shard = (struct bytes){ malloc((size_t)size), (size_t)size, (size_t)size };
        if (!shard.at || pread(fd, shard.at, shard.n, 0) != size)
                exit(2);
        close(fd);
        return shard;
}

/* A number that decides something, more often than any. */
static uint64_t draw_word(struct random *random, uint64_t was) {
        static const uint64_t WORDS[] = { 0, 1, 7, 8, 4095, 4096, 1ull << 24, 1ull << 32, 1ull << 40, INT64_MAX };

        switch (draw(random, 4)) {
        case 0:
                return WORDS[draw(random, sizeof(WORDS) / sizeof(WORDS[0]))];
        case 1:
                return UINT64_MAX - draw(random, 5000);
        case 2:
                return was + draw(random, 20) - 10;
        default:
                return was + (uint64_t)draw(random, 5) * SHARD_ALIGN - 2 * SHARD_ALIGN;
        }
}

static void damage_shard(uint8_t *bytes, size_t n_bytes, struct random *random) {
        struct shard_header header;

        memcpy(&header, bytes, sizeof(header));
        for (uint32_t n = draw(random, 4) + 1; n > 0; n--) {
                bool in_header = draw(random, 3) == 0;
                uint64_t at = in_header ? draw(random, sizeof(header))
                                        : header.table + draw(random, (uint32_t)header.table_bytes);
                uint64_t word;

                if (at >= n_bytes)
                        continue;
                if (draw(random, 2)) {
                        static const uint8_t BYTES[] = { '/', '.', '\0', 0xff };

                        bytes[at] = draw(random, 2) ? (uint8_t)draw(random, 256) : BYTES[draw(random, 4)];
                        continue;
                }
                at = at / 8 * 8;
                memcpy(&word, bytes + at, sizeof(word));
                word = draw_word(random, word);
                memcpy(bytes + at, &word, sizeof(word));
        }
}

static bool use(const struct shard *shard, const uint8_t *bytes, size_t n_bytes) {
        for (uint64_t i = 0; i < shard->header->n_classes; i++)
                seen += strlen(shard->names + shard->classes[i]);
        for (uint64_t i = 0; i < shard->header->n_samples; i++) {
                const struct shard_entry *entry = &shard->entries[i];
                const char *path = shard->names + entry->path;

                if (entry->offset > n_bytes || entry->length > n_bytes - entry->offset || path[0] == '/' ||
                    path[0] == '\0' || strstr(path, "../") || (uint64_t)entry->label >= shard->header->n_classes)
                        return false;
                for (uint64_t k = 0; k < entry->length; k++)
                        seen += bytes[entry->offset + k];
        }
        return true;
}

static bool run(uint64_t seed, uint64_t round) {
        struct random random = random_of(seed, round);
        const struct bytes *good = &corpus[draw(&random, CORPUS)];
        size_t n_bytes = draw(&random, 8) ? good->n : draw(&random, (uint32_t)good->n + 1);
        uint8_t *bytes = malloc(n_bytes ? n_bytes : 1); /* of no byte too many: ASan sees what reads on */
        struct shard_header *header = (void *)bytes;
        struct shard shard;
        bool is_good = true;

        memcpy(bytes, good->at, n_bytes);
        if (n_bytes >= SHARD_ALIGN) {
                if (n_bytes == good->n)
                        damage_shard(bytes, n_bytes, &random);
                if (draw(&random, 2))
                        header->file_bytes = n_bytes;
                if (shard_check_header(header, n_bytes, NULL) < 0)
                        counts.header++;
                else
                        header->checksum = shard_checksum(header, bytes + header->table);
        }
        if (shard_parse(bytes, n_bytes, &shard, NULL) == 0) {
                counts.accepted++;
                is_good = use(&shard, bytes, n_bytes);
        } else {
                counts.table++;
        }
        free(bytes);
        if (!is_good)
                printf("round %" PRIu64 " of seed %" PRIu64 ": what was accepted leads outside\n", round, seed);
        return is_good;
}

int main(int argc, char **argv) {
        uint64_t n = SMOKE_ROUNDS, seed = 1, first = 0;
        struct random random = random_of(7, 0);
        bool is_good = true;
        int option;

        while ((option = getopt(argc, argv, "n:s:r:")) != -1) {
                if (option == 'n')
                        n = strtoull(optarg, NULL, 10);
                else if (option == 's')
                        seed = strtoull(optarg, NULL, 10);
                else if (option == 'r')
                        first = strtoull(optarg, NULL, 10), n = 1;
                else
                        return 2;
        }
        for (uint32_t i = 0; i < CORPUS; i++)
                corpus[i] = make_shard(&random);
        for (uint64_t round = first; round < first + n && is_good; round++)
                is_good = run(seed, round);
        printf("fuzz_shard: %" PRIu64 " shards: %" PRIu64 " accepted, %" PRIu64 " refused for their header, %" PRIu64
               " in all\n",
               n, counts.accepted, counts.header, counts.table);
        for (uint32_t i = 0; i < CORPUS; i++)
                free(corpus[i].at);
        return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
