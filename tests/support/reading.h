/* tests/support/reading.h: a folder of files that know themselves, and a reader on it.
 *
 * Every byte of a test file is a function of (file's number, offset), so a read that mixes up files, places or lengths
 * is seen. Completions come in on the reader's threads and are collected here; whoever waits for them waits ten seconds
 * at most, then the test ends. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/io/reader.h"

#define READING_BUFFER_BYTES 131072u
#define READING_DEPTH        16u /* and as many registered buffers */

struct reading {
        char root[64];
        int dir_fd;
        uint8_t *buffers; /* READING_DEPTH of READING_BUFFER_BYTES */
        struct reader *reader;

        pthread_mutex_t lock; /* covers n_done; also what hands over a request's result to the test */
        pthread_cond_t came;
        uint32_t n_done;
};

/* Makes the folder and the buffers; no reader yet. */
void reading_init(struct reading *reading);

/* Stops the reader if there is one (it must stop in time), removes the folder with all that is in it. */
void reading_fini(struct reading *reading);

/* Options for this folder; the test may change them before it starts the reader. */
struct reader_options reading_options(struct reading *reading, const char *backend);

/* Starts it; the test ends if that fails. */
void reading_start(struct reading *reading, const struct reader_options *options);

/* Has this build and this machine an io_uring? If not, says once on stdout that its tests are skipped. */
bool reading_has_uring(void);

/* "io_uring" for 0, "threads" for 1; NULL (skip it) for an io_uring that is not available. */
const char *reading_backend(int i);

/* The byte at `offset` of file `number`. */
uint8_t file_byte(uint32_t number, uint64_t offset);
void file_name(char name[32], uint32_t number);

/* Writes the file anew with `length` of its bytes, in one step (rename). */
void file_write(struct reading *reading, uint32_t number, uint64_t length);
bool file_is(const uint8_t *bytes, uint32_t number, uint64_t offset, uint64_t length);

/* A request's userdata: its reading. Counts it as done. */
void reading_done(struct read_request *request);

/* How many were, until now. */
uint32_t reading_n_done(struct reading *reading);

/* Waits until `n` requests in all were done since the start. */
void reading_wait(struct reading *reading, uint32_t n);

/* Submits one and waits for it. The others must be done by then. Returns its result. */
int reading_read(struct reading *reading, struct read_request *request);

/* A request for file `path` with this length into buffer `idx`. */
struct read_request reading_request(struct reading *reading, const char *path, uint64_t length, uint32_t idx);

/* Open descriptors of this process, and files that lie in its rings' file tables. */
unsigned count_descriptors(void);
unsigned count_ring_files(void);
