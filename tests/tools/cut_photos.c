/* cut_photos [--baseline] OUT_DIR N_PHOTOS N_CLASSES SOURCE...: a training set out of a few large pictures.
 *
 * Cuts N_PHOTOS pieces of about 500 x 375 pixels (60 to 110 KB, like ImageNet's) from the SOURCE pictures and writes
 * them as OUT_DIR/class_00/class_00_00000.jpg and so on. Each class has a source, or a strip of one, for its own, so
 * that there is something to learn. Sources without detail are not photographs and are left out, unless all are like
 * that; smooth places of the others (skies, blurred backgrounds) get grain, as a camera would have given them at that
 * size, or their files would be far too small. Most photos are 4:2:0, some 4:4:4, grey, progressive or upright, as in
 * real sets; with --baseline none is progressive. Everything is drawn from a counter: the same call gives the same
 * files, whatever the number of threads. The folder appears under its name when it is whole. */
#include "daemon/augment/resize/resample.h"
#include "daemon/decode/decode.h"
#include "proto/base/cleanup.h"
#include "proto/order/philox.h"
#include "tests/support/pixels.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jpeglib.h>

#define SOURCES_MAX     64u
#define PHOTOS_MAX      1000000u
#define CLASSES_MAX     1000u
#define THREADS_MAX     64u
#define LONG_SIDE       500u
#define PHOTO_BYTES_MAX ((size_t)LONG_SIDE * LONG_SIDE * PIXEL_BYTES)
#define SCALE_MAX       4.0 /* source pixels a photo pixel: more would be slow and show no new detail */
#define BYTES_MIN       60000u
#define BYTES_MAX       110000u
#define QUALITY_MIN     60
#define GRAIN_MAX       64     /* of grain(); 16 is a deviation of 6 of 255 */
#define PROBES          9u     /* pieces of a source that are encoded to see whether it has detail */
#define PROBE_BYTES_MIN 15000u /* at quality 92, more than half of them */
#define ENCODINGS_MAX   6u     /* of one photo, in search of the quality or the grain that gives the size */

struct source {
        const char *path;
        uint8_t *pixels;
        uint32_t width, height;
        unsigned n_detailed; /* of its probes */
};

struct cutter {
        char folder[4096]; /* where to, until all is there */
        struct source sources[SOURCES_MAX];
        unsigned n_sources, n_photos, n_classes;
        bool is_baseline; /* none is progressive */
        atomic_uint next_source, next_photo, n_done;
        atomic_bool failed; /* one thread has said why */
};

/* What is drawn for a photo. */
struct photo {
        unsigned idx, idx_class;
        const struct source *source;
        struct box crop;
        uint32_t width, height;
        bool flip, grey, progressive, full_colour;
        int quality;
};

static int complain(struct cutter *cutter, const char *what, const char *why) {
        if (!atomic_exchange(&cutter->failed, true))
                fprintf(stderr, "\ncut_photos: %s: %s\n", what, why);
        return -1;
}

/* ---- sources ------------------------------------------------------------------------------------------------- */

static uint8_t *read_file(const char *path, size_t *ret_n_bytes) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        _cleanup_(freep) uint8_t *bytes = NULL;
        struct stat status;
        size_t n = 0;

        if (fd < 0 || fstat(fd, &status) < 0)
                return NULL;
        bytes = malloc((size_t)status.st_size + 1);
        while (bytes && n < (size_t)status.st_size) {
                ssize_t got = read(fd, bytes + n, (size_t)status.st_size - n);

                if (got <= 0)
                        return NULL;
                n += (size_t)got;
        }
        *ret_n_bytes = n;
        return TAKE_PTR(bytes);
}

static int load_source(struct cutter *cutter, struct source *source) {
        _cleanup_(decoder_freep) struct decoder *decoder = NULL;
        _cleanup_(freep) uint8_t *bytes = NULL;
        struct image_info info;
        struct why why = {};
        size_t n_bytes;

        bytes = read_file(source->path, &n_bytes);
        if (!bytes)
                return complain(cutter, source->path, strerror(errno));
        if (decoder_new(&DECODE_LIMITS_DEFAULT, DECODE_JPEG_AUTO, &decoder, &why) < 0 ||
            decoder_open(decoder, bytes, n_bytes, &info, &why) < 0)
                return complain(cutter, source->path, why.text);
        if (info.width < LONG_SIDE || info.height < LONG_SIDE)
                return complain(cutter, source->path, "smaller than 500 x 500 pixels");

        source->pixels = malloc((size_t)info.width * info.height * PIXEL_BYTES);
        if (!source->pixels)
                return complain(cutter, source->path, strerror(ENOMEM));
        if (decoder_read_into(decoder, source->pixels, (size_t)info.width * PIXEL_BYTES, &why) < 0)
                return complain(cutter, source->path, why.text);
        source->width = info.width;
        source->height = info.height;
        return 0;
}

/* ---- what a photo shows -------------------------------------------------------------------------------------- */

/* Where in its class's strip of its source, how large, how encoded. */
static void draw_photo(const struct cutter *cutter, unsigned idx, struct photo *ret_photo) {
        static const uint32_t short_sides[] = { 375, 375, 333, 400 };
        unsigned idx_class = idx % cutter->n_classes, idx_source = idx_class % cutter->n_sources;
        unsigned idx_strip = idx_class / cutter->n_sources;
        unsigned n_strips = (cutter->n_classes - idx_source + cutter->n_sources - 1) / cutter->n_sources;
        const struct source *source = &cutter->sources[idx_source];
        uint32_t n_strip = source->width / n_strips, strip = idx_strip * n_strip;
        struct photo photo = { .idx = idx, .idx_class = idx_class, .source = source };
        struct dlp_philox philox;
        uint32_t short_side;
        double scale, scale_max;

        dlp_philox_init(&philox, 2004, 0, idx, 0);
        short_side = short_sides[dlp_philox_below(&philox, 4)];
        photo.width = LONG_SIDE;
        photo.height = short_side;
        if (dlp_philox_below(&philox, 5) == 0) { /* upright */
                photo.width = short_side;
                photo.height = LONG_SIDE;
        }
        photo.flip = dlp_philox_below(&philox, 2);
        photo.full_colour = dlp_philox_below(&philox, 10) == 0;
        photo.progressive = dlp_philox_below(&philox, 16) == 0 && !cutter->is_baseline;
        photo.grey = dlp_philox_below(&philox, 25) == 0;
        photo.quality = 90 + (int)dlp_philox_below(&philox, 7);

        if (n_strip < photo.width) { /* many classes for a narrow source: strips overlap */
                n_strip = photo.width;
                strip = strip + n_strip > source->width ? source->width - n_strip : strip;
        }
        scale_max = (double)n_strip / photo.width;
        if ((double)source->height / photo.height < scale_max)
                scale_max = (double)source->height / photo.height;
        if (scale_max > SCALE_MAX)
                scale_max = SCALE_MAX;
        scale = 1 + (scale_max - 1) * dlp_philox_f64(&philox);
        photo.crop.width = (uint32_t)(photo.width * scale);
        photo.crop.height = (uint32_t)(photo.height * scale);
        photo.crop.x = strip + dlp_philox_below(&philox, n_strip - photo.crop.width + 1);
        photo.crop.y = dlp_philox_below(&philox, source->height - photo.crop.height + 1);
        *ret_photo = photo;
}

static int cut(struct resizer *resizer, const struct photo *photo, uint8_t *pixels, struct why *why) {
        const struct source *source = photo->source;
        size_t stride = (size_t)source->width * PIXEL_BYTES;
        struct view view = {
                .pixels = source->pixels + photo->crop.y * stride + (size_t)photo->crop.x * PIXEL_BYTES,
                .stride = stride,
                .width = photo->crop.width,
                .height = photo->crop.height,
        };
        struct resize_job job = {
                .width = photo->width,
                .height = photo->height,
                .window = { .width = photo->width, .height = photo->height },
                .filter = RESIZE_BICUBIC,
                .flip = photo->flip,
        };

        return resizer_run(resizer, &view, &job, pixels, (size_t)photo->width * PIXEL_BYTES, why);
}

/* ---- encoding ------------------------------------------------------------------------------------------------ */

/* Whatever libjpeg does not like ends the program: its input is our own pixels. `*bytes` is grown by the library. */
static void encode(const struct photo *photo, const uint8_t *pixels, int quality, unsigned char **bytes,
                   unsigned long *n_bytes) {
        struct jpeg_compress_struct jpeg;
        struct jpeg_error_mgr errors;

        jpeg.err = jpeg_std_error(&errors);
        jpeg_create_compress(&jpeg);
        jpeg_mem_dest(&jpeg, bytes, n_bytes);
        jpeg.image_width = photo->width;
        jpeg.image_height = photo->height;
        jpeg.input_components = 3;
        jpeg.in_color_space = JCS_RGB;
        jpeg_set_defaults(&jpeg);
        jpeg_set_quality(&jpeg, quality, TRUE);
        if (photo->grey)
                jpeg_set_colorspace(&jpeg, JCS_GRAYSCALE);
        else if (photo->full_colour)
                jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;
        if (photo->progressive)
                jpeg_simple_progression(&jpeg);

        jpeg_start_compress(&jpeg, TRUE);
        while (jpeg.next_scanline < jpeg.image_height) {
                JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)jpeg.next_scanline * photo->width * PIXEL_BYTES);

                jpeg_write_scanlines(&jpeg, &row, 1);
        }
        jpeg_finish_compress(&jpeg);
        jpeg_destroy_compress(&jpeg);
}

static bool fits(unsigned long n_bytes) {
        return n_bytes >= BYTES_MIN && n_bytes <= BYTES_MAX;
}

static uint8_t clip(int value) {
        return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Adds noise to the brightness of each pixel: triangular, up to 15 * strength / 16 either way. */
static void grain(const struct photo *photo, const uint8_t *pixels, int strength, uint8_t *out) {
        size_t n_pixels = (size_t)photo->width * photo->height;
        struct dlp_philox philox;
        uint32_t word = 0;

        dlp_philox_init(&philox, 2004, 0, photo->idx, 1);
        for (size_t i = 0; i < n_pixels; i++, word >>= 8) {
                int noise;

                if (i % 4 == 0)
                        word = dlp_philox_u32(&philox);
                noise = ((int)(word & 15) + (int)(word >> 4 & 15) - 15) * strength / 16;
                for (unsigned c = 0; c < PIXEL_BYTES; c++)
                        out[i * PIXEL_BYTES + c] = clip(pixels[i * PIXEL_BYTES + c] + noise);
        }
}

/* Encodes until the size fits: with less quality if it is too large, else with more grain. `grained` is room for the
 * photo's pixels. The caller frees the bytes. */
static void encode_to_size(const struct photo *photo, const uint8_t *pixels, uint8_t *grained,
                           unsigned char **ret_bytes, unsigned long *ret_n_bytes) {
        int quality = photo->quality, strength = 0, weakest = 0, strongest = GRAIN_MAX;

        *ret_bytes = NULL;
        for (unsigned i = 0; i < ENCODINGS_MAX; i++) {
                free(*ret_bytes);
                *ret_bytes = NULL;
                *ret_n_bytes = 0;
                if (strength > 0)
                        grain(photo, pixels, strength, grained);
                encode(photo, strength > 0 ? grained : pixels, quality, ret_bytes, ret_n_bytes);
                if (fits(*ret_n_bytes))
                        return;

                if (*ret_n_bytes < BYTES_MIN)
                        weakest = strength;
                else if (strength == 0)
                        quality = quality - 6 > QUALITY_MIN ? quality - 6 : QUALITY_MIN;
                else
                        strongest = strength;
                if (weakest > 0 || *ret_n_bytes < BYTES_MIN)
                        strength = weakest == 0 ? 12 : (weakest + strongest + 1) / 2;
        }
}

static int write_photo(struct cutter *cutter, const struct photo *photo, const unsigned char *bytes, size_t n_bytes) {
        char path[sizeof(cutter->folder) + 64];
        _cleanup_(closep) int fd = -1;

        snprintf(path, sizeof(path), "%s/class_%02u/class_%02u_%05u.jpg", cutter->folder, photo->idx_class,
                 photo->idx_class, photo->idx);
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
                return complain(cutter, path, strerror(errno));
        for (size_t at = 0; at < n_bytes;) {
                ssize_t n = write(fd, bytes + at, n_bytes - at);

                if (n < 0)
                        return complain(cutter, path, strerror(errno));
                at += (size_t)n;
        }
        return 0;
}

static int make_photo(struct cutter *cutter, struct resizer *resizer, unsigned idx, uint8_t *pixels, uint8_t *grained) {
        _cleanup_(freep) unsigned char *bytes = NULL;
        unsigned long n_bytes;
        struct photo photo;
        struct why why = {};

        draw_photo(cutter, idx, &photo);
        if (cut(resizer, &photo, pixels, &why) < 0)
                return complain(cutter, photo.source->path, why.text);
        encode_to_size(&photo, pixels, grained, &bytes, &n_bytes);
        return write_photo(cutter, &photo, bytes, n_bytes);
}

/* Encodes a few pieces of a source, as if it were the only one. */
static int probe_source(struct cutter *cutter, struct source *source) {
        struct cutter alone = { .sources = { *source }, .n_sources = 1, .n_classes = 1 };
        _cleanup_(resizer_freep) struct resizer *resizer = NULL;
        _cleanup_(freep) uint8_t *pixels = malloc(PHOTO_BYTES_MAX);
        struct why why = {};

        if (!pixels || resizer_new(RESIZE_CODE_BEST, &resizer, &why) < 0)
                return complain(cutter, "cannot start", pixels ? why.text : strerror(ENOMEM));
        for (unsigned i = 0; i < PROBES; i++) {
                _cleanup_(freep) unsigned char *bytes = NULL;
                unsigned long n_bytes = 0;
                struct photo photo;

                draw_photo(&alone, i, &photo);
                if (cut(resizer, &photo, pixels, &why) < 0)
                        return complain(cutter, source->path, why.text);
                encode(&photo, pixels, 92, &bytes, &n_bytes);
                source->n_detailed += n_bytes >= PROBE_BYTES_MIN;
        }
        return 0;
}

/* Moves the sources with detail to the front and counts only them. */
static void choose_sources(struct cutter *cutter) {
        unsigned n_kept = 0;

        for (unsigned i = 0; i < cutter->n_sources; i++)
                if (cutter->sources[i].n_detailed > PROBES / 2) {
                        struct source kept = cutter->sources[i];

                        cutter->sources[i] = cutter->sources[n_kept];
                        cutter->sources[n_kept++] = kept;
                }
        for (unsigned i = n_kept; n_kept > 0 && i < cutter->n_sources; i++)
                fprintf(stderr, "cut_photos: %s: too smooth, left out\n", basename(cutter->sources[i].path));
        if (n_kept > 0)
                cutter->n_sources = n_kept;
}

/* ---- threads ------------------------------------------------------------------------------------------------- */

static void *load_sources(void *opaque) {
        struct cutter *cutter = opaque;
        unsigned idx;

        while (!cutter->failed && (idx = atomic_fetch_add(&cutter->next_source, 1)) < cutter->n_sources)
                if (load_source(cutter, &cutter->sources[idx]) == 0)
                        probe_source(cutter, &cutter->sources[idx]);
        return NULL;
}

static void *make_photos(void *opaque) {
        struct cutter *cutter = opaque;
        _cleanup_(resizer_freep) struct resizer *resizer = NULL;
        _cleanup_(freep) uint8_t *pixels = malloc(PHOTO_BYTES_MAX), *grained = malloc(PHOTO_BYTES_MAX);
        struct why why = {};
        unsigned idx;

        if (!pixels || !grained || resizer_new(RESIZE_CODE_BEST, &resizer, &why) < 0) {
                complain(cutter, "cannot start", pixels && grained ? why.text : strerror(ENOMEM));
                return NULL;
        }
        while (!cutter->failed && (idx = atomic_fetch_add(&cutter->next_photo, 1)) < cutter->n_photos) {
                make_photo(cutter, resizer, idx, pixels, grained);
                atomic_fetch_add(&cutter->n_done, 1);
        }
        return NULL;
}

static void show_progress(struct cutter *cutter) {
        while (!cutter->failed && cutter->n_done < cutter->n_photos) {
                fprintf(stderr, "\rcutting photos: %u of %u", cutter->n_done, cutter->n_photos);
                usleep(200 * 1000);
        }
        if (!cutter->failed)
                fprintf(stderr, "\rcutting photos: %u of %u\n", cutter->n_done, cutter->n_photos);
}

/* Runs `work` on every CPU and waits. */
static int run_threads(struct cutter *cutter, void *(*work)(void *), bool with_progress) {
        long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
        unsigned n_threads = n_cpus < 1 ? 1 : n_cpus > (long)THREADS_MAX ? THREADS_MAX : (unsigned)n_cpus;
        pthread_t threads[THREADS_MAX];
        unsigned n_started = 0;

        while (n_started < n_threads && pthread_create(&threads[n_started], NULL, work, cutter) == 0)
                n_started++;
        if (n_started == 0)
                complain(cutter, "cannot start a thread", strerror(errno));
        if (with_progress && isatty(STDERR_FILENO))
                show_progress(cutter);
        for (unsigned i = 0; i < n_started; i++)
                pthread_join(threads[i], NULL);
        return cutter->failed ? -1 : 0;
}

/* ---- folders ------------------------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *where) {
        (void)status;
        (void)type;
        (void)where;
        return remove(path);
}

/* Makes the folder of an unfinished set, after what an interrupted run may have left there. */
static int make_folders(struct cutter *cutter) {
        nftw(cutter->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        if (mkdir(cutter->folder, 0755) < 0)
                return complain(cutter, cutter->folder, strerror(errno));
        for (unsigned i = 0; i < cutter->n_classes; i++) {
                char path[sizeof(cutter->folder) + 32];

                snprintf(path, sizeof(path), "%s/class_%02u", cutter->folder, i);
                if (mkdir(path, 0755) < 0)
                        return complain(cutter, path, strerror(errno));
        }
        return 0;
}

static bool read_count(const char *text, unsigned max, unsigned *ret_count) {
        char *end;
        unsigned long count = strtoul(text, &end, 10);

        if (end == text || *end || count < 1 || count > max)
                return false;
        *ret_count = (unsigned)count;
        return true;
}

static int read_options(int argc, char **argv, struct cutter *cutter) {
        if (argc < 5 || argc - 4 > (int)SOURCES_MAX || !read_count(argv[2], PHOTOS_MAX, &cutter->n_photos) ||
            !read_count(argv[3], CLASSES_MAX, &cutter->n_classes) || strlen(argv[1]) > sizeof(cutter->folder) - 8) {
                fprintf(stderr,
                        "usage: cut_photos [--baseline] OUT_DIR N_PHOTOS N_CLASSES SOURCE...\n"
                        "       1 to %u photos, 1 to %u classes, 1 to %u JPEG, PNG or WebP files\n",
                        PHOTOS_MAX, CLASSES_MAX, SOURCES_MAX);
                return -1;
        }
        snprintf(cutter->folder, sizeof(cutter->folder), "%s.part", argv[1]);
        for (int i = 4; i < argc; i++)
                cutter->sources[cutter->n_sources++].path = argv[i];
        return 0;
}

int main(int argc, char **argv) {
        static struct cutter cutter;
        unsigned n_sources;
        int r;

        if (argc > 1 && strcmp(argv[1], "--baseline") == 0) {
                cutter.is_baseline = true;
                argc--;
                argv++;
        }
        if (read_options(argc, argv, &cutter) < 0)
                return 64;
        if (access(argv[1], F_OK) == 0) {
                fprintf(stderr, "cut_photos: %s: is there already; remove it first\n", argv[1]);
                return EXIT_FAILURE;
        }

        n_sources = cutter.n_sources;
        r = run_threads(&cutter, load_sources, false);
        if (r == 0)
                choose_sources(&cutter);
        if (r == 0)
                r = make_folders(&cutter);
        if (r == 0)
                r = run_threads(&cutter, make_photos, true);
        if (r == 0 && rename(cutter.folder, argv[1]) < 0)
                r = complain(&cutter, argv[1], strerror(errno));
        for (unsigned i = 0; i < n_sources; i++)
                free(cutter.sources[i].pixels);
        return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
