/* tests/support/stand_in.h: plays the daemon's part for tests of the client library.
 *
 * A thread listens on a socket of its own and serves each connection from a thread: it answers attach and seek, makes a
 * ring with proto/ring.h, and fills it in the order that was asked for. The data carry their identity: sample i of
 * epoch e has the label i * STAND_IN_EPOCHS + e, and each of its pixels is the low byte of that number plus the pixel's
 * place. It can be told to misbehave, to die, and to come back. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/dataloader.pb-c.h"
#include "proto/layout.h"

#define STAND_IN_EPOCHS     1000
#define STAND_IN_PIXELS     12  /* bytes a sample, shape [3, 4] */
#define STAND_IN_READY_STEP 256 /* bytes */
#define STAND_IN_ROW        40  /* bytes from one sample's pixels to the next: there is padding */

/* How it behaves; zero is well. Set before stand_in_start() or stand_in_revive(), except for what is atomic. */
struct stand_in_manners {
        uint64_t n_samples;         /* in the dataset */
        uint32_t n_slots;           /* unless the client says */
        uint32_t protocol;          /* 0: the right one */
        uint32_t layout_version;    /* 0: the right one */
        uint32_t n_retries;         /* attach attempts that are answered with "ask again" */
        uint32_t refuse_code;       /* attach is refused with this errno, */
        uint32_t n_refusals;        /* how often; 0: always */
        uint32_t answer_after_ms;   /* attach is answered so late */
        const char *digest;         /* of the dataset; NULL: "c0ffee" */
        const char *const *classes; /* names, */
        uint32_t n_classes;         /* how many, */
        uint32_t page_classes;      /* how many a page; 0: all */
        Dlp__Job *const *jobs;      /* a page each, as before a rank could ask for its own, */
        uint32_t n_jobs;            /* how many */
        uint64_t fail_at;           /* sequence whose batch says that the job has failed; 0: never */
        uint64_t close_at;          /* sequence before which the connection is closed; 0: never */
        const char *farewell;       /* said before that, */
        uint32_t farewell_code;     /* with this errno; 0: EPROTO */
        uint32_t skip_each;         /* each so-many-th sample (by index) is left out; 0: none */
        uint32_t substitute_each;   /* each so-many-th sample (by index) is replaced by its successor; 0: none */
        uint32_t pause_us;          /* before each batch */
        uint32_t false_slot;        /* publishes everything as lying in this slot; 0: the truth */
        const uint8_t
                *ready; /* pixels of a whole batch of RGB pictures, ready_side a side, that each batch is; or NULL */
        uint32_t ready_side;
        uint32_t ready_kinds; /* batch i begins i % ready_kinds * STAND_IN_READY_STEP bytes later in `ready`; 0: all
                                 alike */
        bool ready_stays;     /* pixels are copied into a slot the first time only, so that a batch costs nothing */
        bool ragged;
        bool bad_classes;   /* the pages do not add up */
        bool unsealed;      /* hands out memory that could shrink */
        bool short_payload; /* whose file is shorter than promised */
        bool silent;        /* never answers */

        Dlp__LeftForm *const *forms; /* what it leaves to a client that asks for it, */
        uint32_t n_forms;            /* how many */
        bool leave_forms;            /* did the last attach ask for it? */
        char near_device[32];        /* what it named */
        uint32_t leave_operations;   /* and for these, up to which format? */

        const Dlp__Progress *progress; /* goes with "ask again", and answers a wait; NULL: none */
        bool answers_waits;            /* says that it knows that question */
        _Atomic uint64_t n_waits;      /* of them, counted */
        void (*spoil)(struct dlp_control *control, struct dlp_slot_record *record,
                      uint32_t idx_slot); /* before publishing */

        _Atomic uint64_t n_seeks; /* counted */
        _Atomic uint64_t n_wakes;
        _Atomic uint64_t n_clients;                                 /* connected now */
        _Atomic bool hold;                                          /* publish nothing as long as this is set */
        char job[DLP_NAME_MAX];                                     /* of the last attach, */
        uint64_t first_epoch, first_position, first_step, n_epochs; /* and where that was to begin, */
        double max_errors;                                          /* and how many damaged samples it tolerates */
        _Atomic uint64_t n_attached;                                /* counted, when the answer is sent */
};

struct stand_in;

/* Begins to listen. The path is stand_in_path(); `manners` stays the caller's and must live until the stop. */
struct stand_in *stand_in_start(struct stand_in_manners *manners);
const char *stand_in_path(const struct stand_in *stand_in);

/* Closes all connections, as a daemon that dies would. */
void stand_in_kill(struct stand_in *stand_in);

/* Listens again at the same path, after stand_in_kill(). */
void stand_in_revive(struct stand_in *stand_in);
void stand_in_stop(struct stand_in *stand_in);

/* What sample `index` of `epoch` holds. */
int64_t stand_in_label(int64_t index, uint64_t epoch);
uint8_t stand_in_pixel(int64_t index, uint64_t epoch, uint32_t idx_pixel);

/* Which sample rank `rank` of `world` gets as number `step` after position `base` of an epoch, without shuffling. */
int64_t stand_in_index(uint64_t n_samples, uint32_t world, uint32_t rank, uint64_t base, uint64_t step);
