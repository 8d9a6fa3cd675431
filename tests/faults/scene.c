#include "tests/faults/scene.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spng.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/data/formats/tfrecord/crc32c.h"
#include "tests/faults/points.h"
#include "tests/support/jpegs.h"

int dataloaderd_main(int argc, char **argv);

#define TROUBLE_NS 1000000000ull

void scene_problem(struct scene *scene, const char *format, ...) {
        va_list arguments;

        scene->n_problems++;
        fprintf(stderr, "PROBLEM: ");
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fprintf(stderr, "\n");
}

static uint64_t now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void nap(unsigned ms) {
        nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 }, NULL);
}

/* ---- data ---------------------------------------------------------------------------------------------------- */

static void must(bool good, const char *what) {
        if (good)
                return;
        perror(what);
        abort();
}

/* Old: an index is not built of what changed a moment ago. */
static void make_old(const char *path) {
        struct timespec times[2] = { { .tv_sec = time(NULL) - 3600 }, { .tv_sec = time(NULL) - 3600 } };

        must(utimensat(AT_FDCWD, path, times, 0) == 0, path);
}

static void make_folder(const char *path) {
        must(mkdir(path, 0755) == 0, path);
}

static void write_file(const char *path, const void *bytes, size_t n_bytes) {
        FILE *file = fopen(path, "w");

        must(file && fwrite(bytes, 1, n_bytes, file) == n_bytes && fclose(file) == 0, path);
        make_old(path);
}

static void write_png(const char *path, uint32_t number) {
        struct spng_ihdr header = {
                .width = 24, .height = 20, .bit_depth = 8, .color_type = SPNG_COLOR_TYPE_TRUECOLOR
        };
        spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
        uint8_t pixels[24 * 20 * 3];
        size_t n_bytes;
        void *bytes;
        int error;

        for (uint32_t i = 0; i < sizeof(pixels); i++)
                pixels[i] = (uint8_t)(i * number);
        spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
        spng_set_ihdr(png, &header);
        must(spng_encode_image(png, pixels, sizeof(pixels), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE) == 0, path);
        bytes = spng_get_png_buffer(png, &n_bytes, &error);
        write_file(path, bytes, n_bytes);
        free(bytes);
        spng_ctx_free(png);
}

static void write_jpeg(const char *path, uint32_t number) {
        struct jpegs_spec spec = {
                .width = 40, .height = 30, .quality = 90, .h = 2, .v = 2, .content = JPEGS_PHOTO, .seed = number + 1
        };
        size_t n_bytes;
        uint8_t *bytes = jpegs_make(&spec, &n_bytes);

        write_file(path, bytes, n_bytes);
        free(bytes);
}

/* Plain records, in as many files as it takes for threads to read them ahead. */
static void write_records(const char *folder) {
        uint8_t bytes[116] = { 100 };
        uint32_t crc = crc32c_masked(crc32c(bytes, 8));
        char path[256];

        memcpy(bytes + 8, &crc, sizeof(crc));
        snprintf(path, sizeof(path), "%s/records", folder);
        make_folder(path);
        for (unsigned i = 0; i < 12; i++) {
                memset(bytes + 12, 0x80 + (int)i, 100);
                crc = crc32c_masked(crc32c(bytes + 12, 100));
                memcpy(bytes + 112, &crc, sizeof(crc));
                snprintf(path, sizeof(path), "%s/records/%02u.tfrecord", folder, i);
                write_file(path, bytes, sizeof(bytes));
                make_old(path);
        }
        snprintf(path, sizeof(path), "%s/records", folder);
        make_old(path);
}

/* The example of the documentation. */
static void make_plugin(const char *folder) {
        char text[600];

        snprintf(text, sizeof(text), "%s/plugins", folder);
        make_folder(text);
        snprintf(text, sizeof(text),
                 "cc -O1 -fPIC -shared -I daemon/plugin/include -o '%s/plugins/blocks.so' docs/plugins/blocks.c && "
                 "chmod 644 '%s/plugins/blocks.so'",
                 folder, folder);
        must(system(text) == 0, text);
}

void scene_make_data(const char *folder) {
        static const char *const DATA[] = { "files", "photos", "damaged" };
        char path[256], bytes[600];

        make_folder(folder);
        for (unsigned data = 0; data < 3; data++) {
                snprintf(path, sizeof(path), "%s/%s", folder, DATA[data]);
                make_folder(path);
                for (uint32_t i = 0; i < SCENE_SAMPLES; i++) {
                        if (i % (SCENE_SAMPLES / 2) == 0) {
                                snprintf(path, sizeof(path), "%s/%s/%u", folder, DATA[data], i * 2 / SCENE_SAMPLES);
                                make_folder(path);
                        }
                        snprintf(path, sizeof(path), "%s/%s/%u/%03u.%s", folder, DATA[data], i * 2 / SCENE_SAMPLES, i,
                                 i % 2 ? "png" : "jpg");
                        if (data == 0)
                                write_file(
                                        path, bytes,
                                        (size_t)snprintf(bytes, sizeof(bytes), "<sample %u>%*s", i, (int)(i * 17), ""));
                        else if (i % 2)
                                write_png(path, i);
                        else
                                write_jpeg(path, i);
                }
                for (unsigned i = 0; i < 2; i++) {
                        snprintf(path, sizeof(path), "%s/%s/%u", folder, DATA[data], i);
                        make_old(path);
                }
                snprintf(path, sizeof(path), "%s/%s", folder, DATA[data]);
                make_old(path);
        }
        write_records(folder);
        snprintf(path, sizeof(path), "tar -C '%s/files' -cf '%s/files.tar' .", folder, folder);
        must(system(path) == 0, path);
        snprintf(path, sizeof(path),
                 "cd '%s' && mkdir stream && cp files.tar stream/a.tar && gzip -c files.tar >stream/b.tar.gz && "
                 "touch stream/_SUCCESS",
                 folder);
        must(system(path) == 0, path);
        make_plugin(folder);
}

/* ---- the daemon ---------------------------------------------------------------------------------------------- */

void scene_configure(struct scene *scene, const char *settings) {
        char next[sizeof(scene->config) + 8];
        FILE *file;

        snprintf(scene->config, sizeof(scene->config), "%s/conf", scene->folder);
        snprintf(scene->socket, sizeof(scene->socket), "%s/s", scene->folder);
        snprintf(next, sizeof(next), "%s.next", scene->config);
        file = fopen(next, "w");
        must(file != NULL, next);
        fprintf(file,
                "socket = \"%s\"\nindex_dir = \"%s/index\"\nworkers = 2\nread_depth = 16\nmemory_limit = 256MiB\n%s\n"
                "dataset \"files\" { path = \"%s/files\" }\ndataset \"photos\" { path = \"%s/photos\" }\n"
                "dataset \"damaged\" { path = \"%s/damaged\" }\n",
                scene->socket, scene->folder, settings, scene->data, scene->data, scene->data);
        fclose(file);
        must(rename(next, scene->config) == 0, next); /* a reload may be under way */
}

static void *run_daemon(void *userdata) {
        struct scene *scene = userdata;
        char name[] = "dataloaderd", option[] = "-c", *arguments[] = { name, option, scene->config, NULL };

        points_exempt = !scene->daemon_counts;
        optind = 0;
        scene->daemon_status = dataloaderd_main(3, arguments);
        atomic_store(&scene->daemon_ended, true);
        return NULL;
}

/* How many lines of the log begin so, have these words in them, and say more than a word or two. */
static unsigned n_lines(const char *beginning, const char *words) {
        char line[4096];
        FILE *file = fopen("/proc/self/fd/2", "r");
        unsigned n = 0;

        while (file && fgets(line, sizeof(line), file))
                n += strncmp(line, beginning, strlen(beginning)) == 0 && strstr(line, words) && strlen(line) > 20;
        if (file)
                fclose(file);
        return n;
}

bool scene_said(const char *beginning) {
        return n_lines(beginning, "") > 0;
}

bool scene_mentioned(const char *words) {
        return n_lines("error", words) > 0;
}

bool scene_start(struct scene *scene, bool counts) {
        static unsigned n_started;

        scene->daemon_counts = counts;
        scene->daemon_runs = true;
        atomic_store(&scene->daemon_ended, false);
        if (pthread_create(&scene->daemon_thread, NULL, run_daemon, scene) != 0)
                abort();
        while (!atomic_load(&scene->daemon_ended)) {
                if (n_lines("info     core: dataloaderd ", "") > n_started) {
                        n_started++;
                        return true;
                }
                nap(2);
        }
        return false;
}

int scene_stop(struct scene *scene) {
        if (!scene->daemon_runs)
                return scene->daemon_status;
        if (!atomic_load(&scene->daemon_ended))
                kill(getpid(), SIGTERM);
        pthread_join(scene->daemon_thread, NULL);
        scene->daemon_runs = false;
        return scene->daemon_status;
}

void scene_check_status(struct scene *scene, int status) {
        static const int NAMED[] = { 0, 69, 71, 78 };
        bool known = false;

        for (size_t i = 0; i < sizeof(NAMED) / sizeof(NAMED[0]); i++)
                known |= status == NAMED[i];
        if (!known)
                scene_problem(scene, "the daemon ended with %d, which its manual does not name", status);
        if (status != 0 && n_lines("error", "") == 0)
                scene_problem(scene, "the daemon ended with %d and did not say why", status);
}

/* ---- trouble ------------------------------------------------------------------------------------------------- */

static void *end_trouble_later(void *userdata) {
        while (atomic_load(&points->armed)) {
                uint64_t hit_ns = atomic_load(&points->hit_ns);

                if (hit_ns && now_ns() > hit_ns + TROUBLE_NS)
                        points_disarm();
                nap(10);
        }
        return NULL;
}

void scene_begin_trouble(struct scene *scene) {
        points_arm();
        scene->trouble_ends = points->from_then_on &&
                              pthread_create(&scene->trouble_thread, NULL, end_trouble_later, NULL) == 0;
}

void scene_end_trouble(struct scene *scene) {
        points_disarm();
        if (scene->trouble_ends)
                pthread_join(scene->trouble_thread, NULL);
        scene->trouble_ends = false;
}

/* ---- clients ------------------------------------------------------------------------------------------------- */

struct dlc_options scene_options(struct scene *scene, enum scene_data data) {
        static unsigned number;
        static char job[32];
        struct dlc_options options = DLC_OPTIONS_INIT;

        snprintf(job, sizeof(job), "job%u", number++);
        options.job = job;
        options.socket = scene->socket;
        options.dataset = data == SCENE_FILES ? "files" : "photos";
        options.pipeline = data == SCENE_FILES ? "raw" : "random_resized_crop(12) hflip(0.5)";
        options.batch_size = 6;
        options.rank = 0;
        options.world_size = 1;
        options.n_epochs = 2;
        options.open_timeout_ms = 20000;
        options.restart_timeout_ms = 20000;
        return options;
}

struct dlc_loader *scene_open(struct scene *scene, const struct dlc_options *options, bool must_work) {
        struct dlc_loader *loader;
        int r = dlc_open(options, &loader);

        if (r < 0)
                scene_check_failure(scene, "open", r, dlc_last_error(), must_work);
        return r < 0 ? NULL : loader;
}

void scene_check_failure(struct scene *scene, const char *what, int r, const char *text, bool must_work) {
        if (must_work)
                scene_problem(scene, "%s: %d: %s", what, r, text);
        else if (!points_hit())
                scene_problem(scene, "%s failed before anything did: %d: %s", what, r, text);
        else if (r >= 0 || strlen(text) < 8)
                scene_problem(scene, "%s: %d without a sentence: \"%s\"", what, r, text);
        else
                fprintf(stderr, "client: %s: %d: %s\n", what, r, text);
}

static uint64_t hash_of(const uint8_t *bytes, uint64_t n_bytes) {
        uint64_t hash = 0xcbf29ce484222325;

        for (uint64_t i = 0; i < n_bytes; i++)
                hash = (hash ^ bytes[i]) * 0x100000001b3;
        return hash | 1;
}

static void check_sample(struct scene *scene, enum scene_data data, const struct dlc_batch *batch, uint32_t i) {
        const struct dlc_tensor *tensor = &batch->tensors[0];
        const uint8_t *bytes = tensor->data;
        int64_t index = batch->indices[i];
        uint64_t n_bytes = 12 * 12 * 3, hash, *known;

        if (index < 0 || index >= SCENE_SAMPLES || batch->epoch > 1) {
                scene_problem(scene, "sample %lld of epoch %llu", (long long)index, (unsigned long long)batch->epoch);
                return;
        }
        if (tensor->places) {
                bytes += tensor->places[i].offset;
                n_bytes = tensor->places[i].n_bytes;
        } else {
                bytes += (int64_t)i * tensor->strides[0];
        }
        known = &scene->hashes[data][batch->epoch][index];
        hash = hash_of(bytes, n_bytes);
        if (*known && *known != hash && !(batch->substitutes && batch->substitutes[i] >= 0))
                scene_problem(scene, "sample %lld of epoch %llu has other bytes than before", (long long)index,
                              (unsigned long long)batch->epoch);
        *known = hash;
        if (((const int64_t *)batch->tensors[1].data)[i] != index * 2 / SCENE_SAMPLES)
                scene_problem(scene, "sample %lld has a wrong label", (long long)index);
        if ((batch->n_substituted || batch->n_skipped) && !scene->tolerates_damage)
                scene_problem(scene, "nothing is damaged, and a sample was substituted or skipped");
}

void scene_check_batch(struct scene *scene, enum scene_data data, const struct dlc_batch *batch) {
        for (uint32_t i = 0; i < batch->n_samples; i++)
                check_sample(scene, data, batch, i);
}

/* Calls of the library: what they call counts in the scenarios about the client. */
static int next(const struct scene *scene, struct dlc_loader *loader, const struct dlc_batch **ret_batch) {
        int r;

        points_exempt = !scene->client_counts;
        r = dlc_next(loader, 20000, ret_batch);
        points_exempt = true;
        return r;
}

static int release(const struct scene *scene, struct dlc_loader *loader, const struct dlc_batch *batch) {
        int r;

        points_exempt = !scene->client_counts;
        r = dlc_release(loader, batch);
        points_exempt = true;
        return r;
}

static int open_loader(const struct scene *scene, const struct dlc_options *options, struct dlc_loader **ret_loader) {
        int r;

        points_exempt = !scene->client_counts;
        r = dlc_open(options, ret_loader);
        points_exempt = true;
        return r;
}

int scene_read_epoch(struct scene *scene, enum scene_data data, struct dlc_loader *loader, bool must_work) {
        const struct dlc_batch *batch;
        int r;

        while ((r = next(scene, loader, &batch)) == 0 || r == -EINTR) {
                if (r == -EINTR)
                        continue;
                scene_check_batch(scene, data, batch);
                r = release(scene, loader, batch);
                if (r < 0)
                        scene_check_failure(scene, "release", r, dlc_last_error(), must_work);
        }
        if (r < 0)
                scene_check_failure(scene, "next", r, dlc_error(loader), must_work);
        return r;
}

bool scene_read(struct scene *scene, enum scene_data data, uint64_t first, uint64_t n_epochs, bool must_work) {
        struct dlc_options options = scene_options(scene, data);
        struct dlc_loader *loader;
        struct dlc_stats stats;
        int r;

        options.first_epoch = first;
        r = open_loader(scene, &options, &loader);
        if (r == -EIO && must_work) /* a dataset that could not be opened says so once, and tries again */
                r = open_loader(scene, &options, &loader);
        if (r < 0) {
                scene_check_failure(scene, "open", r, dlc_last_error(), must_work);
                return false;
        }
        for (uint64_t i = 0; i < n_epochs; i++)
                if ((r = scene_read_epoch(scene, data, loader, must_work)) < 0)
                        break;
        dlc_get_stats(loader, &stats, sizeof(stats));
        if (r == DLC_END_OF_EPOCH && stats.n_samples != n_epochs * SCENE_SAMPLES)
                scene_problem(scene, "%llu samples came, not %llu", (unsigned long long)stats.n_samples,
                              (unsigned long long)(n_epochs * SCENE_SAMPLES));
        points_exempt = !scene->client_counts;
        dlc_close(loader);
        points_exempt = true;
        return r == DLC_END_OF_EPOCH;
}
