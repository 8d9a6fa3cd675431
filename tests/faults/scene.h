/* tests/faults/scene.h: what scenarios are made of: data, a daemon on a thread, clients that look at every sample.
 *
 * A scenario runs in a process of its own, forked for one point. The scenario's own thread is exempt: nothing that it
 * calls fails, unless it says so (client scenarios). A problem is written to stderr and makes the process fail; so do a
 * leak, a descriptor that is left, and whatever the sanitizers find. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/include/dlclient.h"

#define SCENE_SAMPLES 20u /* in each dataset */

struct scene {
        const char *data; /* photos/, damaged/: PNGs and JPEGs, files/, files.tar, stream/: bytes; records/: TFRecord
                             files; shared by all processes, read only */
        char folder[80];  /* its own */
        char config[100], socket[100];

        pthread_t daemon_thread;
        pthread_t trouble_thread; /* ends it */
        bool daemon_runs, daemon_counts, trouble_ends;
        _Atomic bool daemon_ended;
        int daemon_status;
        bool client_counts;                   /* what the library calls counts */
        bool tolerates_damage;                /* samples may be substituted or skipped */
        unsigned n_epochs;                    /* a scenario's own */
        uint64_t hashes[3][2][SCENE_SAMPLES]; /* dataset, epoch, sample -> its bytes as a clean run had them; 0: none */
        unsigned n_problems;
};

struct scenario {
        const char *name;
        void (*run)(struct scene *scene);
};

extern const struct scenario SCENARIOS[];
extern const unsigned N_SCENARIOS;

/* Makes the data below `folder`, once. */
void scene_make_data(const char *folder);

void scene_problem(struct scene *scene, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes the configuration; `settings` are more of its lines, or "". */
void scene_configure(struct scene *scene, const char *settings);

/* Starts a daemon; its calls count if `counts`. Waits until it serves or has ended; returns whether it serves. */
bool scene_start(struct scene *scene, bool counts);

/* SIGTERM, and waits. Returns its exit status. */
int scene_stop(struct scene *scene);

/* Is there a line of the log that begins so? */
bool scene_said(const char *beginning);

/* Is there an error in the log with these words? */
bool scene_mentioned(const char *words);

/* Is `status` one that the manual names, and was it said why? */
void scene_check_status(struct scene *scene, int status);

/* From here on points count; the trouble ends a second after the point was reached. */
void scene_begin_trouble(struct scene *scene);

/* Nothing fails any more. */
void scene_end_trouble(struct scene *scene);

enum scene_data {
        SCENE_FILES,   /* "raw" */
        SCENE_PHOTOS,  /* decoded, cropped */
        SCENE_DAMAGED, /* the same, but number 3 and 8 are cut off */
};

struct dlc_options scene_options(struct scene *scene, enum scene_data data);

/* Opens a loader of a daemon that runs. NULL: it failed, and said why. */
struct dlc_loader *scene_open(struct scene *scene, const struct dlc_options *options, bool must_work);

/* Opens, reads `n_epochs` from `first`, checking each sample, and closes. What fails must say why; with `must_work`
 * nothing may fail. Returns whether all of it came. */
bool scene_read(struct scene *scene, enum scene_data data, uint64_t first, uint64_t n_epochs, bool must_work);

/* Is each sample of a batch what it was when nothing failed? */
void scene_check_batch(struct scene *scene, enum scene_data data, const struct dlc_batch *batch);

/* The same of an open loader: the rest of an epoch. Returns DLC_END_OF_EPOCH or what dlc_next() failed with. */
int scene_read_epoch(struct scene *scene, enum scene_data data, struct dlc_loader *loader, bool must_work);

/* Did a call of the library fail as it should: with a text? */
void scene_check_failure(struct scene *scene, const char *what, int r, const char *text, bool must_work);
