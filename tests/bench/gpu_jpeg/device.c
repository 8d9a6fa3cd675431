/* The device: memory, launches, time. */
#include "tests/bench/gpu_jpeg/inside.h"

#include "client/cuda/kernels/cpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_PLACES    2 /* on the device, each with a stream */
#define REPEATS_MAX 101u

extern const struct dlk_cpu_kernel pictures_kernels[];

static const char *const KERNELS[] = { "dlk_jpeg_entropy", "dlk_jpeg_blocks", "dlk_jpeg_colours", "dlk_jpeg_across",
                                       "dlk_jpeg_down" };
enum {
        N_KERNELS = sizeof(KERNELS) / sizeof(KERNELS[0])
};

struct place {
        cu_pointer block, arena, statuses;
        cu_stream stream;
        cu_event done;
};

struct gj {
        const struct driver *driver;
        cu_result (*fill)(cu_pointer to, unsigned char value, size_t n_bytes, cu_stream stream);
        cu_result (*elapsed)(float *ret_ms, cu_event begin, cu_event end);
        cu_device device;
        cu_context context;
        cu_module module;
        cu_function kernels[N_KERNELS];
        struct place places[N_PLACES];
        cu_event marks[GJ_STEPS + 1];
        struct files files;
        struct pack *packs; /* [n_packs * N_PLACES]: each for both places */
        uint32_t n_packs, side, seed;
        int is_whole;
};

static void check(const struct gj *gj, cu_result result, const char *doing) {
        struct why why;

        if (driver_refuse(gj->driver, result, doing, &why) < 0)
                gj_fail("%s", why.text);
}

static cu_pointer allocate(const struct gj *gj, size_t n_bytes) {
        cu_pointer pointer = 0;

        check(gj, gj->driver->allocate(&pointer, n_bytes), "memory on the device");
        return pointer;
}

static void enter(const struct gj *gj) {
        check(gj, gj->driver->context_push(gj->context), "entering the context");
}

static void leave(const struct gj *gj) {
        cu_context context;

        check(gj, gj->driver->context_pop(&context), "leaving the context");
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

static void find_more(struct gj *gj) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        void *fill = library ? dlsym(library, "cuMemsetD8Async") : NULL;
        void *elapsed = library ? dlsym(library, "cuEventElapsedTime") : NULL;
        void *added = library ? dlsym(library, "dlt_cuda_add_kernels") : NULL;

        if (!fill || !elapsed)
                gj_fail("the driver lacks cuMemsetD8Async or cuEventElapsedTime");
        memcpy(&gj->fill, &fill, sizeof(fill));
        memcpy(&gj->elapsed, &elapsed, sizeof(elapsed));
        if (added) { /* the tests' driver, which runs kernels as functions of the CPU */
                void (*add_kernels)(const struct dlk_cpu_kernel *kernels, uint32_t n_kernels);

                memcpy(&add_kernels, &added, sizeof(added));
                add_kernels(pictures_kernels, N_KERNELS);
        }
}

static void load(struct gj *gj, const char *path) {
        FILE *file = fopen(path, "rb");
        static uint8_t image[4 << 20];

        if (!file || fread(image, 1, sizeof(image) - 1, file) == 0)
                gj_fail("%s cannot be read", path);
        fclose(file);
        check(gj, gj->driver->module_load(&gj->module, image), "loading the kernels");
        for (int i = 0; i < N_KERNELS; i++)
                check(gj, gj->driver->module_function(&gj->kernels[i], gj->module, KERNELS[i]), KERNELS[i]);
}

static void make_places(struct gj *gj, uint32_t batch) {
        size_t block_bytes = 0, arena_bytes = 0;

        for (uint32_t i = 0; i < gj->n_packs; i++) {
                const struct pack *pack = &gj->packs[i * N_PLACES];

                block_bytes = pack->n_bytes > block_bytes ? pack->n_bytes : block_bytes;
                arena_bytes = pack->arena_bytes > arena_bytes ? pack->arena_bytes : arena_bytes;
        }
        for (int i = 0; i < N_PLACES; i++) {
                struct place *place = &gj->places[i];

                place->block = allocate(gj, block_bytes);
                place->arena = allocate(gj, arena_bytes);
                place->statuses = allocate(gj, batch * sizeof(uint32_t));
                check(gj, gj->driver->stream_create(&place->stream, CU_STREAM_NON_BLOCKING), "a stream");
                check(gj, gj->driver->event_create(&place->done, CU_EVENT_DISABLE_TIMING), "an event");
        }
        for (int i = 0; i <= GJ_STEPS; i++)
                check(gj, gj->driver->event_create(&gj->marks[i], 0), "an event");
}

struct gj *gj_open(const char *image, const char *const *paths, uint32_t n_paths, uint32_t n_batches, uint32_t batch,
                   uint32_t side, int is_whole, uint32_t seed) {
        struct gj *gj = calloc(1, sizeof(*gj));
        struct why why;

        if (!gj || n_batches == 0 || batch == 0)
                gj_fail("no memory, or nothing to do");
        *gj = (struct gj){ .n_packs = n_batches, .side = side, .seed = seed, .is_whole = is_whole };
        if (driver_find(&gj->driver, &why) < 0)
                gj_fail("%s", why.text);
        find_more(gj);
        check(gj, gj->driver->device_get(&gj->device, 0), "opening the device");
        check(gj, gj->driver->context_retain(&gj->context, gj->device), "opening the device");
        enter(gj);
        load(gj, image);
        files_read(&gj->files, paths, n_paths);
        gj->packs = calloc((size_t)n_batches * N_PLACES, sizeof(*gj->packs));
        for (uint32_t i = 0; gj->packs && i < n_batches * N_PLACES; i++)
                pack_make(&gj->packs[i], &gj->files, i / N_PLACES, batch, side, is_whole, seed);
        make_places(gj, batch);
        for (uint32_t i = 0; i < n_batches * N_PLACES; i++) {
                struct pack *pack = &gj->packs[i];

                pack_place(pack, gj->places[i % N_PLACES].block, gj->places[i % N_PLACES].arena);
                check(gj, gj->driver->host_register(pack->bytes, pack->n_bytes_max, CU_HOST_REGISTER_PORTABLE),
                      "registering memory");
        }
        leave(gj);
        return gj;
}

void gj_close(struct gj *gj) {
        enter(gj);
        for (int i = 0; i < N_PLACES; i++) {
                gj->driver->stream_synchronize(gj->places[i].stream);
                gj->driver->event_destroy(gj->places[i].done);
                gj->driver->stream_destroy(gj->places[i].stream);
                gj->driver->release(gj->places[i].block);
                gj->driver->release(gj->places[i].arena);
                gj->driver->release(gj->places[i].statuses);
        }
        for (int i = 0; i <= GJ_STEPS; i++)
                gj->driver->event_destroy(gj->marks[i]);
        for (uint32_t i = 0; i < gj->n_packs * N_PLACES; i++) {
                gj->driver->host_unregister(gj->packs[i].bytes);
                pack_free(&gj->packs[i]);
        }
        gj->driver->module_unload(gj->module);
        leave(gj);
        gj->driver->context_release(gj->device);
        files_free(&gj->files);
        free(gj->packs);
        free(gj);
}

double gj_upload_bytes(const struct gj *gj) {
        double n_bytes = 0;

        for (uint32_t i = 0; i < gj->n_packs; i++)
                n_bytes += (double)gj->packs[i * N_PLACES].n_bytes;
        return n_bytes / gj->n_packs;
}

/* ---- a batch -------------------------------------------------------------------------------------------------------
 */

static void mark(const struct gj *gj, const struct place *place, enum gj_step step, int is_timed) {
        if (is_timed)
                check(gj, gj->driver->event_record(gj->marks[step], place->stream), "timing");
}

/* Queues all steps of a batch. */
static void queue(const struct gj *gj, const struct pack *pack, const struct place *place, int is_timed) {
        struct dlk_jpeg params = { (const struct dlk_jpeg_picture *)place->block, (uint32_t *)place->statuses };
        uint32_t side = gj->side;
        uint32_t n_most[N_KERNELS] = { pack->n_rows_most, pack->n_blocks_most, pack->n_pixels_most, pack->n_across_most,
                                       side * side };
        void *parameters[] = { &params };

        mark(gj, place, GJ_UPLOAD, is_timed);
        check(gj, gj->driver->copy_in(place->block, pack->bytes, pack->n_bytes, place->stream), "copying a batch");
        mark(gj, place, GJ_CLEAR, is_timed);
        check(gj, gj->fill(place->arena, 0, pack->clear_bytes, place->stream), "clearing coefficients");
        check(gj, gj->fill(place->statuses, 0, pack->n * sizeof(uint32_t), place->stream), "clearing statuses");
        for (uint32_t i = 0; i < N_KERNELS; i++) {
                uint32_t threads = i == 0 ? 32 : DLK_JPEG_THREADS;

                mark(gj, place, (enum gj_step)(GJ_ENTROPY + i), is_timed);
                check(gj,
                      gj->driver->launch(gj->kernels[i], (n_most[i] + threads - 1) / threads, pack->n, 1, threads, 1, 1,
                                         0, place->stream, parameters, NULL),
                      KERNELS[i]);
        }
        mark(gj, place, GJ_STEPS, is_timed);
}

uint32_t gj_check(struct gj *gj) {
        uint32_t n_wrong = 0;

        enter(gj);
        for (uint32_t i = 0; i < gj->n_packs * N_PLACES; i++) {
                const struct pack *pack = &gj->packs[i];
                const struct place *place = &gj->places[i % N_PLACES];
                uint8_t *arena = malloc(pack->arena_bytes);
                uint32_t *statuses = calloc(pack->n, sizeof(*statuses));

                if (!arena || !statuses)
                        gj_fail("no memory");
                queue(gj, pack, place, 0);
                check(gj, gj->driver->copy_out(arena, place->arena, pack->arena_bytes, place->stream), "copying back");
                check(gj, gj->driver->copy_out(statuses, place->statuses, pack->n * sizeof(*statuses), place->stream),
                      "copying back");
                check(gj, gj->driver->stream_synchronize(place->stream), "decoding a batch");
                for (uint32_t k = 0; k < pack->n; k++)
                        n_wrong += statuses[k] != DLK_JPEG_GOOD ||
                                   pack_differs(pack, k, &gj->files, i / N_PLACES, gj->side, gj->is_whole, gj->seed,
                                                arena);
                free(arena);
                free(statuses);
        }
        leave(gj);
        return n_wrong;
}

static int compare(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

void gj_time(struct gj *gj, uint32_t repeats, double us[GJ_STEPS]) {
        static double all[GJ_STEPS][REPEATS_MAX];
        const struct place *place = &gj->places[0];

        if (repeats == 0 || repeats > REPEATS_MAX)
                gj_fail("repeats: 1 to %u", REPEATS_MAX);
        enter(gj);
        for (uint32_t i = 0; i < repeats + 2; i++) { /* two to get warm */
                queue(gj, &gj->packs[i % gj->n_packs * N_PLACES], place, 1);
                check(gj, gj->driver->event_synchronize(gj->marks[GJ_STEPS]), "timing");
                for (int k = 0; k < GJ_STEPS && i >= 2; k++) {
                        float ms = 0;

                        check(gj, gj->elapsed(&ms, gj->marks[k], gj->marks[k + 1]), "timing");
                        all[k][i - 2] = ms * 1000.0;
                }
        }
        leave(gj);
        for (int k = 0; k < GJ_STEPS; k++) {
                qsort(all[k], repeats, sizeof(double), compare);
                us[k] = all[k][repeats / 2];
        }
}

static double now(void) {
        struct timespec time;

        clock_gettime(CLOCK_MONOTONIC, &time);
        return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void wait_until(double when) {
        double left = when - now();
        struct timespec time = { (time_t)left, (long)((left - (double)(time_t)left) * 1e9) };

        if (left > 0)
                nanosleep(&time, NULL);
}

double gj_run(struct gj *gj, double seconds, double pace) {
        double begin = now(), end = begin + seconds;
        uint64_t n_pictures = 0;

        enter(gj);
        for (uint64_t i = 0; now() < end; i++) {
                const struct place *place = &gj->places[i % N_PLACES];
                const struct pack *pack = &gj->packs[i / N_PLACES % gj->n_packs * N_PLACES + i % N_PLACES];

                if (i >= N_PLACES)
                        check(gj, gj->driver->event_synchronize(place->done), "decoding a batch");
                if (pace > 0)
                        wait_until(begin + (double)n_pictures / pace);
                queue(gj, pack, place, 0);
                check(gj, gj->driver->event_record(place->done, place->stream), "decoding a batch");
                n_pictures += pack->n;
        }
        for (int i = 0; i < N_PLACES; i++)
                check(gj, gj->driver->stream_synchronize(gj->places[i].stream), "decoding a batch");
        end = now();
        leave(gj);
        return (double)n_pictures / (end - begin);
}
