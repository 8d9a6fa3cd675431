/* bare_loop DIR THREADS IMAGES [auto|libjpeg [PIPELINE]]: the limit that the daemon is held against.
 *
 * Each thread opens, reads, decodes and augments files of a folder, one after the other, with the very calls that a
 * worker makes and nothing around them: no ring, no planner, no client. Prints images/s and CPU seconds per 1,000. */
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/codec/render.h"
#include "proto/base/clock.h"

#define PIPELINE     "random_resized_crop(224) hflip(0.5)"
#define FILES_MAX    1000000u
#define BUFFER_BYTES (4u << 20)

static char **files;
static uint32_t n_files, n_images;
static _Atomic uint32_t next_image;
static struct recipe *recipe;
static uint32_t height, width;
static enum decode_jpeg decode_jpeg = DECODE_JPEG_AUTO;

static int on_file(const char *path, const struct stat *status, int kind, struct FTW *ftw) {
        if (kind == FTW_F && path[ftw->base] != '.' && n_files < FILES_MAX && status->st_size < BUFFER_BYTES)
                files[n_files++] = strdup(path);
        return 0;
}

static int by_name(const void *a, const void *b) {
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void fail(const char *path, const struct why *why) {
        fprintf(stderr, "bare_loop: %s: %s\n", path, why->text);
        exit(1);
}

static size_t read_file(const char *path, uint8_t *buffer) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, buffer, BUFFER_BYTES);

        close(fd);
        return n < 0 ? 0 : (size_t)n;
}

static void *loop(void *userdata) {
        uint8_t *buffer = malloc(BUFFER_BYTES), *out = malloc((size_t)height * width * PIXEL_BYTES);
        struct workspace *workspace;
        struct geometry geometry;
        struct decoder *decoder;
        struct image_info info;
        struct why why;
        uint32_t i;

        if (!buffer || !out || decoder_new(&DECODE_LIMITS_DEFAULT, decode_jpeg, &decoder, &why) < 0 ||
            workspace_new(RESIZE_CODE_BEST, &workspace, &why) < 0)
                exit(1);
        while ((i = atomic_fetch_add(&next_image, 1)) < n_images) {
                /* A stride that visits all files, far apart, as a shuffle does. */
                const char *path = files[(uint64_t)i * 7919 % n_files];
                size_t n = read_file(path, buffer);

                if (decoder_open(decoder, buffer, n, &info, &why) < 0 ||
                    recipe_plan(recipe, info.width, info.height, 0, i / n_files, i, &geometry, &why) < 0 ||
                    render(decoder, workspace, &geometry, out, width * PIXEL_BYTES, &why) < 0)
                        fail(path, &why);
                decoder_close(decoder);
        }
        decoder_free(decoder);
        workspace_free(workspace);
        free(buffer);
        free(out);
        return userdata;
}

static double cpu_seconds(void) {
        struct rusage usage;

        getrusage(RUSAGE_SELF, &usage);
        return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
               (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
        uint32_t n_threads = argc >= 4 && argc <= 6 ? (uint32_t)atoi(argv[2]) : 0;
        const char *pipeline = argc == 6 ? argv[5] : PIPELINE;
        pthread_t threads[64];
        double cpu, seconds;
        struct why why;
        uint64_t begin;

        if (n_threads < 1 || n_threads > 64 || atoi(argv[3]) < 1) {
                fprintf(stderr, "usage: bare_loop DIR THREADS IMAGES [auto|libjpeg [PIPELINE]]\n");
                return 2;
        }
        n_images = (uint32_t)atoi(argv[3]);
        if (argc >= 5 && strcmp(argv[4], "libjpeg") == 0)
                decode_jpeg = DECODE_JPEG_LIBJPEG;
        files = calloc(FILES_MAX, sizeof(char *));
        if (!files || nftw(argv[1], on_file, 16, FTW_PHYS) < 0 || n_files == 0) {
                fprintf(stderr, "bare_loop: no files in %s\n", argv[1]);
                return 1;
        }
        qsort(files, n_files, sizeof(char *), by_name);
        if (recipe_parse(pipeline, &recipe, &why) < 0)
                fail(pipeline, &why);
        if (recipe_output(recipe, &height, &width) < 0) {
                fprintf(stderr, "bare_loop: %s: pictures of one size are wanted\n", pipeline);
                return 2;
        }

        cpu = cpu_seconds();
        begin = clock_now_ns();
        for (uint32_t i = 0; i < n_threads; i++)
                if (pthread_create(&threads[i], NULL, loop, NULL) != 0)
                        return 1;
        for (uint32_t i = 0; i < n_threads; i++)
                pthread_join(threads[i], NULL);
        seconds = (double)(clock_now_ns() - begin) / 1e9;
        printf("{\"images_per_s\": %.1f, \"cpu_s_per_1000\": %.4f}\n", n_images / seconds,
               (cpu_seconds() - cpu) / n_images * 1000);
        recipe_free(recipe);
        return 0;
}
