#include "tests/support/staged.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary.h"

static uint64_t mix(uint64_t x) {
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        return x ^ x >> 31;
}

/* Bytes of a file from an offset (a multiple of 8) on. */
static void content(uint8_t *into, uint64_t n_bytes, uint64_t seed, uint64_t offset) {
        for (uint64_t i = 0; i < n_bytes; i += 8) {
                uint64_t word = mix(mix(seed + 1) + (offset + i) / 8);

                memcpy(into + i, &word, n_bytes - i < 8 ? n_bytes - i : 8);
        }
}

static void content_sha256(uint64_t n_bytes, uint64_t seed, uint8_t *ret_sha256) {
        uint8_t *bytes = malloc(CHUNK_BYTES);
        EVP_MD_CTX *context = EVP_MD_CTX_new();

        EVP_DigestInit_ex(context, EVP_sha256(), NULL);
        for (uint64_t offset = 0; offset < n_bytes; offset += CHUNK_BYTES) {
                uint64_t n = n_bytes - offset < CHUNK_BYTES ? n_bytes - offset : CHUNK_BYTES;

                content(bytes, n, seed, offset);
                EVP_DigestUpdate(context, bytes, n);
        }
        EVP_DigestFinal_ex(context, ret_sha256, NULL);
        EVP_MD_CTX_free(context);
        free(bytes);
}

void staged_begin(struct staged *staged) {
        char path[PATH_MAX];

        memset(staged, 0, sizeof(*staged));
        temporary_folder(staged->root, sizeof(staged->root));
        snprintf(path, sizeof(path), "%s/photos", staged->root);
        ck_assert_int_eq(place_init(&staged->place, path, &staged->why), 0);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw) {
        return remove(path);
}

static void forget_plan(struct staged *staged) {
        staged_close(staged);
        chunks_free(staged->chunks);
        plan_free(staged->plan);
        free(staged->seeds);
        staged->chunks = NULL;
        staged->plan = NULL;
        staged->seeds = NULL;
}

void staged_end(struct staged *staged) {
        forget_plan(staged);
        nftw(staged->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void staged_plan(struct staged *staged, const struct staged_file *files, size_t n_files) {
        static const char *const URLS[] = { "http://127.0.0.1/never" };
        struct plan *begun = NULL;

        forget_plan(staged);
        for (size_t i = 0; i < n_files; i++) {
                struct plan_file file = { .path = files[i].path,
                                          .n_bytes = files[i].n_bytes,
                                          .etag = files[i].etag,
                                          .urls = URLS,
                                          .n_urls = 1,
                                          .unpack = files[i].unpack };
                uint8_t sha256[32];

                if (files[i].says_sha256) {
                        content_sha256(files[i].n_bytes, files[i].seed, sha256);
                        file.sha256 = sha256;
                }
                ck_assert_int_eq(plan_add(&begun, &file, &staged->why), 0);
        }
        ck_assert_int_eq(plan_finish(&begun, &staged->plan, &staged->why), 0);
        ck_assert_int_eq(chunks_new(staged->plan, &staged->chunks), 0);
        staged->seeds = calloc(n_files, sizeof(*staged->seeds));
        for (size_t i = 0; i < n_files; i++)
                staged->seeds[plan_find(staged->plan, files[i].path)] = files[i].seed;
}

void staged_plan_many(struct staged *staged, size_t n_files, uint64_t n_bytes_each, uint64_t seed) {
        struct staged_file *files = calloc(n_files, sizeof(*files));
        char(*paths)[64] = calloc(n_files, sizeof(*paths));

        for (size_t i = 0; i < n_files; i++) {
                snprintf(paths[i], sizeof(paths[i]), "many/%04zu/%06zu.bin", i / 100, i);
                files[i] = (struct staged_file){
                        .path = paths[i], .n_bytes = n_bytes_each, .seed = seed + i, .says_sha256 = true
                };
        }
        staged_plan(staged, files, n_files);
        free(paths);
        free(files);
}

/* Of several threads while files are checked. */
static void note_event(void *userdata, enum tree_event event, uint64_t n_bytes, const char *text) {
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        struct staged *staged = userdata;

        pthread_mutex_lock(&lock);
        staged->n_linked += event == TREE_LINKED;
        staged->n_bad += event == TREE_BAD;
        staged->n_kept_bytes += event == TREE_KEPT ? n_bytes : 0;
        if (event == TREE_BAD)
                snprintf(staged->last_bad, sizeof(staged->last_bad), "%s", text);
        pthread_mutex_unlock(&lock);
}

int staged_open_with(struct staged *staged, const struct tree_options *options) {
        struct tree_options with = *options;

        staged_close(staged);
        with.dataset = "photos";
        with.event = note_event;
        with.userdata = staged;
        staged->n_linked = staged->n_bad = staged->n_kept_bytes = 0;
        return tree_open(&staged->place, staged->plan, staged->chunks, &with, &staged->tree, &staged->why);
}

int staged_open(struct staged *staged) {
        return staged_open_with(staged, &(struct tree_options){ .lock_fd = -1 });
}

void staged_must_open(struct staged *staged) {
        int r = staged_open(staged);

        ck_assert_msg(r == 0, "%d %s", r, staged->why.text);
}

void staged_close(struct staged *staged) {
        tree_close(staged->tree);
        staged->tree = NULL;
}

void staged_chunk(const struct staged *staged, uint64_t idx_chunk, uint8_t *into) {
        struct chunk chunk = chunks_get(staged->chunks, idx_chunk);
        uint64_t n_left = chunk.n_bytes;

        for (uint32_t i = 0; i < chunk.n_files; i++) {
                uint64_t n = plan_file(staged->plan, chunk.first_file + i)->n_bytes - chunk.offset;

                n = n < n_left ? n : n_left;
                content(into, n, staged->seeds[chunk.first_file + i], chunk.offset);
                into += n;
                n_left -= n;
        }
}

uint64_t staged_fill(struct staged *staged, uint64_t end) {
        uint8_t *bytes = malloc(CHUNK_BYTES);
        uint64_t n_written = 0;

        for (uint64_t i = 0; i < end && i < chunks_count(staged->chunks); i++) {
                int r;

                if (!staged_is_missing(staged, i))
                        continue;
                staged_chunk(staged, i, bytes);
                r = tree_write(staged->tree, i, bytes, &staged->why);
                ck_assert_msg(r == 0, "%d %s", r, staged->why.text);
                n_written++;
        }
        free(bytes);
        return n_written;
}

bool staged_is_missing(const struct staged *staged, uint64_t idx_chunk) {
        return tree_missing(staged->tree)[idx_chunk / 8] >> idx_chunk % 8 & 1;
}

uint64_t staged_n_missing(const struct staged *staged) {
        uint64_t n = 0;

        for (uint64_t i = 0; i < chunks_count(staged->chunks); i++)
                n += staged_is_missing(staged, i);
        return n;
}

static void path_in(const struct staged *staged, const char *suffix, const char *path, char ret_path[PATH_MAX]) {
        char version[PLACE_VERSION_SIZE], folder[PATH_MAX];

        place_version(plan_digest(staged->plan), version);
        ck_assert_int_eq(place_file(&staged->place, version, suffix, folder), 0);
        ck_assert_int_lt(snprintf(ret_path, PATH_MAX, "%s/%s", folder, path), PATH_MAX);
}

void staged_path(const struct staged *staged, const char *path, char ret_path[PATH_MAX]) {
        path_in(staged, "", path, ret_path);
}

bool staged_is_right(const struct staged *staged, uint64_t idx_file) {
        const struct plan_file *file = plan_file(staged->plan, idx_file);
        uint8_t *should = malloc(CHUNK_BYTES), *is = malloc(CHUNK_BYTES);
        char path[PATH_MAX];
        bool right = true;
        struct stat status;
        int fd;

        path_in(staged, file->unpack ? ".spool" : "", file->path, path);
        fd = open(path, O_RDONLY | O_NOFOLLOW);
        right = fd >= 0 && fstat(fd, &status) == 0 && (uint64_t)status.st_size == file->n_bytes;
        for (uint64_t offset = 0; right && offset < file->n_bytes; offset += CHUNK_BYTES) {
                uint64_t n = file->n_bytes - offset < CHUNK_BYTES ? file->n_bytes - offset : CHUNK_BYTES;

                content(should, n, staged->seeds[idx_file], offset);
                right = pread(fd, is, n, (off_t)offset) == (ssize_t)n && memcmp(is, should, n) == 0;
        }
        if (fd >= 0)
                close(fd);
        free(should);
        free(is);
        return right;
}

void staged_check_all(const struct staged *staged) {
        for (uint64_t i = 0; i < plan_n_files(staged->plan); i++)
                ck_assert_msg(staged_is_right(staged, i), "%s", plan_file(staged->plan, i)->path);
}

void staged_damage(const struct staged *staged, const char *path, uint64_t offset) {
        char at[PATH_MAX];
        uint8_t byte;
        int fd;

        staged_path(staged, path, at);
        fd = open(at, O_RDWR);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(pread(fd, &byte, 1, (off_t)offset), 1);
        byte ^= 0x10;
        ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)offset), 1);
        close(fd);
}

int staged_publish(struct staged *staged) {
        struct stamp stamp = { .n_nodes = 1 };

        return tree_publish(staged->tree, &stamp, &staged->why);
}
