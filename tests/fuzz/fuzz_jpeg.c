/* fuzz_jpeg [-n ROUNDS] [-t SECONDS] [-s SEED] [-r ROUND] [FILE...]: do our own decoder and libjpeg-turbo agree on
 * damaged files?
 *
 * Each round takes a small JPEG of any layout (or one of the files), damages it, draws a box and reads it twice: as
 * users do (our own decoder, libjpeg-turbo where that hands over) and with libjpeg-turbo alone. Both must succeed with
 * the same bytes, or fail with the same words. Now and then the whole picture is read as well, of which the box must be
 * a part. The same seed makes the same rounds; -r runs a single one.
 *
 * Without arguments: SMOKE_ROUNDS. On a difference the file is left in the current folder and the status is 1. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/decode/decode.h"
#include "proto/base/clock.h"
#include "tests/fuzz/damage.h"
#include "tests/support/layouts.h"

#define SMOKE_ROUNDS 40000u
#define VECTORS      "tests/vectors/pictures"
#define SIZES        6u     /* pictures made of each layout */
#define FILE_MAX     16384u /* bytes: small ones are many a second */
#define CORPUS_MAX   4096u

static const struct decode_limits LIMITS = { .max_pixels = 1 << 16, .max_scans = 30, .max_scratch_bytes = 4 << 20 };

static struct bytes corpus[CORPUS_MAX]; /* first those that our own decoder handles */
static size_t n_corpus, n_own;

/* What became of the files. */
static struct { uint64_t files, refused_open, refused_read, own, libjpeg, handed_over, whole, whole_refused; } counts;

/* ---- good files ---------------------------------------------------------------------------------------------- */

static void add_to_corpus(uint8_t *bytes, size_t n_bytes) {
        if (n_corpus < CORPUS_MAX && n_bytes > 0 && n_bytes <= FILE_MAX)
                corpus[n_corpus++] = (struct bytes){ bytes, n_bytes, n_bytes };
        else
                free(bytes);
}

static void add_file(const char *path) {
        uint8_t *bytes = malloc(FILE_MAX + 1);
        FILE *file = fopen(path, "r");

        if (!file) {
                fprintf(stderr, "fuzz_jpeg: %s: %s\n", path, strerror(errno));
                exit(2);
        }
        add_to_corpus(bytes, fread(bytes, 1, FILE_MAX + 1, file));
        fclose(file);
}

static int is_jpeg(const struct dirent *entry) {
        size_t n = strlen(entry->d_name);

        return n > 4 && strcmp(entry->d_name + n - 4, ".jpg") == 0;
}

static void add_vectors(void) {
        struct dirent **entries;
        int n = scandir(VECTORS, &entries, is_jpeg, alphasort);
        char path[512];

        for (int i = 0; i < n; i++) {
                snprintf(path, sizeof(path), VECTORS "/%s", entries[i]->d_name);
                add_file(path);
                free(entries[i]);
        }
        if (n >= 0)
                free(entries);
}

static void make_corpus(void) {
        struct random random = random_of(1, 0);

        for (size_t i = 0; i < N_JPEG_LAYOUTS; i++)
                for (unsigned k = 0; k < SIZES; k++) {
                        uint32_t width = 1 + draw(&random, k ? 56 : 6), height = 1 + draw(&random, k > 1 ? 56 : 6);
                        size_t n_bytes;
                        uint8_t *bytes = jpeg_make(&JPEG_LAYOUTS[i], width, height, k, &n_bytes);

                        add_to_corpus(bytes, n_bytes);
                }
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

/* One decoder, and what it said. */
struct reader {
        const char *name;
        struct decoder *decoder;
        struct image_info info;
        int result;
        struct why why;
        uint8_t *pixels; /* of the box, packed; LIMITS.max_pixels of them fit */
        struct box box;
        uint32_t n_rows;
};

static int on_begin(void *userdata, struct why *why) {
        ((struct reader *)userdata)->n_rows = 0;
        return 0;
}

static int on_take(void *userdata, const struct view *rows, struct why *why) {
        struct reader *reader = userdata;
        size_t n_row = (size_t)reader->box.width * PIXEL_BYTES;

        if (rows->width != reader->box.width || rows->height == 0 ||
            rows->height > reader->box.height - reader->n_rows) {
                fprintf(stderr, "fuzz_jpeg: a band of %u x %u at row %u of a box of %u x %u\n", rows->width,
                        rows->height, reader->n_rows, reader->box.width, reader->box.height);
                abort();
        }
        for (uint32_t y = 0; y < rows->height; y++)
                memcpy(reader->pixels + n_row * reader->n_rows++, rows->pixels + y * rows->stride, n_row);
        return 0;
}

static struct reader reader_make(const char *name, enum decode_jpeg jpeg) {
        struct reader reader = { .name = name, .pixels = malloc(LIMITS.max_pixels * PIXEL_BYTES) };

        if (!reader.pixels || decoder_new(&LIMITS, jpeg, &reader.decoder, NULL) < 0)
                exit(2);
        return reader;
}

static void reader_open(struct reader *reader, const struct bytes *file) {
        reader->why.text[0] = '\0';
        reader->result = decoder_open(reader->decoder, file->at, file->n, &reader->info, &reader->why);
}

static void reader_read(struct reader *reader, const struct box *box) {
        struct row_sink sink = { on_begin, on_take, reader };

        reader->box = *box;
        reader->n_rows = 0;
        reader->result = decoder_read_rows(reader->decoder, box, &sink, &reader->why);
        if (reader->result == 0 && reader->n_rows != box->height) {
                reader->result = 1;
                snprintf(reader->why.text, sizeof(reader->why.text), "%u rows of %u", reader->n_rows, box->height);
        }
}

/* Those that our own decoder handles come first: they are drawn more often. */
static void sort_corpus(struct reader *reader) {
        for (size_t i = 0; i < n_corpus; i++) {
                struct bytes file = corpus[i];

                reader_open(reader, &file);
                if (reader->result < 0)
                        continue;
                reader_read(reader, &(struct box){ 0, 0, reader->info.width, reader->info.height });
                if (reader->result < 0 || decoder_decoded_by(reader->decoder) != DECODED_BY_BASELINE)
                        continue;
                corpus[i] = corpus[n_own];
                corpus[n_own++] = file;
        }
}

/* ---- one round ----------------------------------------------------------------------------------------------- */

static bool differ(const char *what, const struct reader *a, const struct reader *b) {
        printf("%s differ: %s %d (%s), %s %d (%s)\n", what, a->name, a->result, a->why.text, b->name, b->result,
               b->why.text);
        return false;
}

static struct box draw_box(struct random *random, const struct image_info *info) {
        struct box box = { draw(random, 4) ? draw(random, info->width) : 0,
                           draw(random, 4) ? draw(random, info->height) : 0, 0, 0 };

        box.width = draw(random, 3) ? 1 + draw(random, info->width - box.x) : info->width - box.x;
        box.height = draw(random, 3) ? 1 + draw(random, info->height - box.y) : info->height - box.y;
        return box;
}

static bool is_part(const struct reader *part, const struct reader *whole) {
        size_t n_row = (size_t)part->box.width * PIXEL_BYTES;

        for (uint32_t y = 0; y < part->box.height; y++)
                if (memcmp(part->pixels + y * n_row,
                           whole->pixels + ((size_t)(part->box.y + y) * whole->box.width + part->box.x) * PIXEL_BYTES,
                           n_row) != 0)
                        return false;
        return true;
}

/* A part may be good where the whole is not, if it ends before the last pixel. */
static bool compare_with_whole(const struct reader *part, struct reader *whole, const struct bytes *file) {
        struct box box = { 0, 0, part->info.width, part->info.height };
        bool reaches_end = part->box.x + part->box.width == part->info.width &&
                           part->box.y + part->box.height == part->info.height;

        reader_open(whole, file);
        if (whole->result == 0)
                reader_read(whole, &box);
        counts.whole++;
        if (whole->result < 0) {
                counts.whole_refused++;
                return part->result < 0 || !reaches_end || differ("box and whole", part, whole);
        }
        if (part->result < 0 || !is_part(part, whole))
                return differ("box and whole", part, whole);
        return true;
}

static void count(const struct reader *own) {
        if (own->result < 0)
                counts.refused_read++;
        else if (decoder_decoded_by(own->decoder) == DECODED_BY_BASELINE)
                counts.own++;
        else if (decoder_decoded_by(own->decoder) == DECODED_BY_LIBJPEG)
                counts.libjpeg++;
        if (own->result == 0 && decoder_handed_over(own->decoder))
                counts.handed_over++;
}

/* False: they differ. */
static bool compare(struct reader *own, struct reader *libjpeg, struct reader *whole, const struct bytes *file,
                    struct random *random) {
        struct box box;

        counts.files++;
        reader_open(own, file);
        reader_open(libjpeg, file);
        if (own->result != libjpeg->result || strcmp(own->why.text, libjpeg->why.text) != 0)
                return differ("headers", own, libjpeg);
        if (own->result < 0) {
                counts.refused_open++;
                return true;
        }
        if (own->info.width != libjpeg->info.width || own->info.height != libjpeg->info.height)
                return differ("sizes", own, libjpeg);

        box = draw_box(random, &own->info);
        reader_read(own, &box);
        reader_read(libjpeg, &box);
        count(own);
        if (own->result != libjpeg->result || strcmp(own->why.text, libjpeg->why.text) != 0)
                return differ("results", own, libjpeg);
        if (own->result == 0 && memcmp(own->pixels, libjpeg->pixels, (size_t)box.width * box.height * PIXEL_BYTES) != 0)
                return differ("pixels", own, libjpeg);
        return draw(random, 4) > 0 || compare_with_whole(libjpeg, whole, file);
}

/* Each file in memory of its own, so that a sanitizer sees what reads past its end. */
static struct bytes make_file(struct random *random) {
        static uint8_t room[2 * FILE_MAX];
        const struct bytes *good = &corpus[draw(random, (uint32_t)(n_own && draw(random, 4) ? n_own : n_corpus))];
        const struct bytes *other = &corpus[draw(random, (uint32_t)n_corpus)];
        struct bytes file = { room, good->n, sizeof(room) };

        memcpy(room, good->at, good->n);
        damage(&file, other, random);
        file.at = malloc(file.n ? file.n : 1);
        memcpy(file.at, room, file.n);
        return file;
}

static void leave_file(const struct bytes *file, uint64_t seed, uint64_t round) {
        char path[64];
        FILE *out;

        snprintf(path, sizeof(path), "fuzz-%" PRIu64 "-%" PRIu64 ".jpg", seed, round);
        out = fopen(path, "w");
        if (out) {
                fwrite(file->at, 1, file->n, out);
                fclose(out);
        }
        printf("seed %" PRIu64 ", round %" PRIu64 ": %s\n", seed, round, path);
}

static bool run_round(uint64_t seed, uint64_t round, struct reader readers[3]) {
        struct random random = random_of(seed, round);
        struct bytes file = make_file(&random);
        bool good = compare(&readers[0], &readers[1], &readers[2], &file, &random);

        if (!good) {
                printf("box %u,%u %ux%u of %u x %u\n", readers[1].box.x, readers[1].box.y, readers[1].box.width,
                       readers[1].box.height, readers[1].info.width, readers[1].info.height);
                leave_file(&file, seed, round);
        }
        free(file.at);
        return good;
}

/* ---- the program --------------------------------------------------------------------------------------------- */

static void print_counts(uint64_t seed, double seconds) {
        printf("seed %" PRIu64 ": %" PRIu64 " files (%.0f/s), none differs: %" PRIu64 " by our own decoder, %" PRIu64
               " by libjpeg-turbo (%" PRIu64 " handed over half-way), %" PRIu64 " refused by their header, %" PRIu64
               " while reading; %" PRIu64 " boxes compared with the whole (%" PRIu64 " refused)\n",
               seed, counts.files, (double)counts.files / seconds, counts.own, counts.libjpeg, counts.handed_over,
               counts.refused_open, counts.refused_read, counts.whole, counts.whole_refused);
}

int main(int argc, char **argv) {
        uint64_t n_rounds = SMOKE_ROUNDS, seed = 1, first = 0, begin_ns = clock_now_ns(), limit_ns = UINT64_MAX;
        struct reader readers[3];
        bool good = true;
        int option;

        while ((option = getopt(argc, argv, "n:t:s:r:")) != -1) {
                uint64_t number = option == '?' ? 0 : strtoull(optarg, NULL, 10);

                if (option == 'n')
                        n_rounds = number;
                else if (option == 't')
                        limit_ns = number * 1000000000u, n_rounds = UINT64_MAX;
                else if (option == 's')
                        seed = number;
                else if (option == 'r')
                        first = number, n_rounds = 1;
                else
                        return 2;
        }
        make_corpus();
        add_vectors();
        for (int i = optind; i < argc; i++)
                add_file(argv[i]);

        readers[0] = reader_make("as users do", DECODE_JPEG_AUTO);
        readers[1] = reader_make("libjpeg-turbo", DECODE_JPEG_LIBJPEG);
        readers[2] = reader_make("the whole", DECODE_JPEG_LIBJPEG);
        sort_corpus(&readers[0]);
        for (uint64_t round = first; good && round - first < n_rounds; round++) {
                good = run_round(seed, round, readers);
                if (round % 256 == 0 && clock_now_ns() - begin_ns > limit_ns)
                        break;
        }
        if (good)
                print_counts(seed, (double)(clock_now_ns() - begin_ns) / 1e9);

        for (size_t i = 0; i < 3; i++) {
                decoder_free(readers[i].decoder);
                free(readers[i].pixels);
        }
        for (size_t i = 0; i < n_corpus; i++)
                free(corpus[i].at);
        return good ? 0 : 1;
}
