/* lib/loader.h: the parts of a loader, for the files of the library.
 *
 * Everything belongs to the thread that uses the loader, except what dlc_release() touches (`ring` and the rings): that
 * one call may come from any thread. All memory is allocated together with a ring; a batch needs no allocation.
 *
 *   client_open.c      opened, closed, asked about        cursor.c   which epoch and position come
 *   client_options.c   what is asked for                  client_classes.c, stats.c   what else can be known
 *   client_attach.c    from terms to a ring               client_next.c     batches taken
 *   restart.c   the daemon is gone, and comes back client_batch.c    a record as the caller sees it
 *   client_watch.c     what dlc_fd() polls                release.c  batches given back
 *   absent.c    ranks that never came              client_progress.c what the caller is told meanwhile
 *   client_diagnose.c  what holds up its job, and diagnose/, the answer of dlctl diagnose
 *   daemon/     which daemon, and which datasets
 *   device/     what is left to a caller with a device */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/include/dlclient.h"
#include "client/lib/client_ring.h"
#include "client/lib/connection.h"
#include "client/lib/daemon/daemon_find.h"
#include "client/lib/daemon/daemon_sources.h"
#include "client/lib/device/device_forms.h"
#include "client/lib/environment.h"
#include "client/lib/orders/client_columns.h"
#include "client/lib/orders/client_made.h"
#include "client/lib/progress/client_progress.h"
#include "proto/order/epoch_plan.h"
#include "proto/order/making/order_text.h"
#include "proto/order/sampler.h"

#define DLI_TICKET_MAX 64u /* bytes with NUL */

enum dli_state {
        DLI_ATTACHED,
        DLI_LOST, /* the daemon has ended; batches that it has published are still handed out */
        DLI_AWAY, /* no batch is left: the loader has left its ring, and the next batch comes from another one */
};

/* What was counted for dlc_get_stats(). */
struct dli_counts {
        uint64_t n_batches, n_samples, n_substituted, n_skipped;
        uint64_t read_ns, queued_ns, decode_ns;
        uint64_t n_waits, waited_ns, restart_ns, hold_ns, opened_ns;
};

/* The state of waiting for a restart of the daemon (restart.c). */
struct dli_restart {
        uint64_t lost_ns;     /* when the loss was noticed */
        uint64_t waited_ns;   /* when a dlc_next() began to wait for the daemon's return; 0: not yet */
        uint64_t deadline_ns; /* when to give up; the time from lost_ns to waited_ns does not count */
        uint64_t next_try_ns;
        uint64_t asked_ns; /* when the attach request was sent whose answer is not here yet; 0: none */
        uint64_t pause_ns; /* pause after the next attempt */
        struct why reason; /* why the last attempt failed */
};

struct dlc_loader {
        /* What each dlc_next() reads. */
        _Alignas(DLP_CACHE_LINE) struct dli_ring
                *_Atomic ring;               /* changed by a restart; read by any thread: dlc_release() */
        const _Atomic uint32_t *opened_here; /* on a page that a fork() clears in the child; NULL: see pid */
        uint64_t epoch;
        uint64_t step;              /* the batch of this epoch that is taken next */
        enum dli_state state;       /* of the connection */
        bool ended;                 /* the end of `epoch` has been reported */
        int failed;                 /* negative errno after which nothing can follow; its text is `failure` */
        struct dlp_epoch_plan plan; /* of `epoch`, from the position of the last seek */

        struct dli_counts counts;
        bool is_wait_counted;       /* for the batch that comes next */
        uint32_t turn;              /* number of seeks so far: batches of an earlier turn do not count for the cursor */
        uint64_t prepared_until;    /* the daemon prepares no epoch from this one on, unless a seek asks for it */
        struct dlc_options options; /* resolved; texts are owned */
        struct dli_connection connection;
        struct dli_daemon daemon;   /* at the other end of it */
        struct dli_sources sources; /* what `dataset` says */
        struct dli_restart restart;
        int poll_fd;  /* epoll: the descriptor of dlc_fd() */
        int timer_fd; /* ticks while the daemon is away; -1: none */
        struct dli_mapping fork_mapping;
        bool is_detached;
        pid_t pid; /* of the process that opened it; used only if the kernel cannot clear a page */
        struct why reason;
        struct why failure;
        char hold[DLP_TEXT_MAX];  /* text that dlc_hold() returns */
        uint64_t hold_told_ns;    /* when on_progress was last told of a hold */
        struct why warning;       /* not reported yet; "" */
        struct why told;          /* the last reported one: the text of dlc_warning() */
        struct dli_launch launch; /* as found at the opening; n_local is 0 after the check of the ranks */
        uint64_t told_text_ns;    /* when on_progress was last told what is waited for, */
        uint64_t told_wait_ns;    /* and on_wait; */
        uint64_t asked_ns;        /* and when the daemon was last asked for it */
        bool answers_waits;       /* the daemon knows this question */
        bool is_stream;           /* its dataset has no end yet, or had none when it was opened */
        bool is_made;             /* a sampler makes the order: a batch's record says how long its epoch is */
        bool deals_batches;       /* and what ranks are dealt are whole batches */
        bool has_units;           /* or rows of a batch with several samples each */
        struct dli_columns columns;
        struct dlp_blocks blocks;         /* owned, if the order goes by them; n = 0: not asked for yet */
        char blocks_digest[65];           /* for info; "": there are none */
        char order[DLP_ORDER_CHOICE_MAX]; /* for info */
        struct dli_made made; /* from dlc_epoch_length() to dlc_epoch_order(); samples NULL: there is none */
        bool has_ended;       /* an epoch has ended at least once */
        struct dlc_info info;
        char *digest, *pipeline, *job, *sampler, *dataset; /* owned: info points to these */
        char ticket[DLI_TICKET_MAX];                       /* of the ring, for info */
        struct dlc_part *parts;                            /* owned, with their texts; NULL: one dataset */
        uint32_t n_parts;
        struct dli_forms forms;
        char **classes; /* owned, n_classes of them; NULL until dlc_classes() fetches them */
        uint64_t n_classes;
        bool has_classes;
        char **names; /* owned, n_names of them: what dlc_sample_names() returned last */
        uint32_t n_names;
        struct dli_diagnosis *diagnosis; /* owned; NULL until dlc_diagnose() */
};

/* The ring that the loader takes from; for the thread that uses the loader. */
static inline struct dli_ring *dli_ring_of(const struct dlc_loader *loader) {
        return atomic_load_explicit(&loader->ring, memory_order_relaxed);
}

/* Can this process use the loader? 0, or -ECHILD after a fork. Any thread. */
int dli_loader_check(const struct dlc_loader *loader);
int dli_loader_in_child(void); /* -ECHILD, reported */

/* Called at the start of public function `name`: checks that there is a loader, that this process opened it, and that
 * it has not failed. `may_have_failed`: for calls that are still allowed on a failed loader, as long as it was not
 * detached. Reports the text. */
int dli_loader_enter(struct dlc_loader *loader, const char *name, bool may_have_failed);

/* Nothing can follow: from now on every call reports what the loader's reason says now. Returns `error`. */
int dli_loader_fail(struct dlc_loader *loader, int error);

/* ---- client_options.c -----------------------------------------------------------------------------------------------
 */

/* Copies the caller's options over the defaults, whatever the version of the caller's struct, and checks what a message
 * could not carry; the daemon checks the rest. Rank and world are filled in, from `ret_launch` if they were not set.
 * -EINVAL with the option's name. */
int dli_options_resolve(const struct dlc_options *options, struct why *reason, struct dlc_options *ret_options,
                        struct dli_launch *ret_launch);

/* Replaces the caller's texts by copies; the job's name is already set. -ENOMEM. */
int dli_options_keep(struct dlc_options *options, const struct dlc_options *resolved);
void dli_options_free(struct dlc_options *options);

/* ---- client_attach.c ------------------------------------------------------------------------------------------------
 */

#define DLI_N_DESCRIPTORS 3

/* The descriptors that arrive with an attach's answer. */
struct dli_descriptors {
        int fd[DLI_N_DESCRIPTORS];
};

/* For _cleanup_. */
void dli_descriptors_close(struct dli_descriptors *descriptors);

/* Connects, asks for a ring and maps it. `options` is resolved, its job is set. */
int dli_attach(struct dlc_loader *loader, const struct dlc_options *options);

/* Its two halves, for a restart: one sends the request to continue at the loader's cursor; the other makes the answer
 * the loader's ring. */
int dli_attach_ask(struct dlc_loader *loader);
int dli_attach_take_over(struct dlc_loader *loader, const Dlp__Reply *reply, struct dli_descriptors *descriptors);

/* ---- client_parts.c -------------------------------------------------------------------------------------------------
 */

/* Keeps what the daemon says of the parts of the dataset. -ENOMEM; -EPROTO if their samples do not add up. */
int dli_parts_keep(struct dlc_loader *loader, const Dlp__Attached *attached);
void dli_parts_free(struct dlc_loader *loader);

/* Their digests, for an attach: `ret_digests` has room for DLP_PARTS_MAX, and lends texts. Returns how many. */
size_t dli_parts_digests(const struct dlc_loader *loader, char **ret_digests);

/* ---- restart.c ----------------------------------------------------------------------------------------------- */

/* The connection has ended and has given a reason. Is it a case in which the loader waits for the daemon's return? */
bool dli_restart_is_waited_for(const struct dlc_loader *loader);

/* The connection has ended with this error and connection.farewell. Returns 0 if the loader will wait for the daemon:
 * its state has then changed. Otherwise returns `error`, which is final; the reason is in the loader. */
int dli_restart_lost(struct dlc_loader *loader, int error);

/* The same for a seek; the next request asks for the place that is set afterwards. */
void dli_restart_move(struct dlc_loader *loader);

/* Leaves the ring and waits for the daemon's return until the deadline. Returns 0 once attached again; -EAGAIN
 * (timeout_ms is 0), -ETIMEDOUT, -EINTR; or a final error. */
int dli_restart_wait(struct dlc_loader *loader, int timeout_ms, uint64_t deadline_ns);

/* Asks the daemon what an attached rank may ask: `ask` does it once and returns 0 or a negative errno. If the daemon is
 * away, waits for it, as dlc_next() does. This gives up the batches that the old daemon left in the ring: the new
 * daemon makes them again, because the client keeps the cursor. */
int dli_restart_ask(struct dlc_loader *loader, int (*ask)(struct dlc_loader *loader, void *userdata), void *userdata);

/* ---- client_watch.c -------------------------------------------------------------------------------------------------
 */

/* One descriptor for event loops. It covers the daemon's socket, or a clock while there is no daemon. */
int dli_watch_begin(struct dlc_loader *loader);
void dli_watch_end(struct dlc_loader *loader);
int dli_watch_socket(struct dlc_loader *loader);
void dli_watch_no_socket(struct dlc_loader *loader); /* call it before the socket is closed */
void dli_watch_clock(struct dlc_loader *loader, bool on);
void dli_watch_clock_read(struct dlc_loader *loader); /* otherwise it would stay readable */

/* ---- client_batch.c -------------------------------------------------------------------------------------------------
 */

/* Describes the published slot `idx_slot` to the caller, in the slot's lease. -EPROTO if its record makes no sense. */
int dli_batch_fill(struct dlc_loader *loader, struct dli_ring *ring, uint32_t idx_slot,
                   const struct dlp_slot_record *record);

/* ---- cursor.c ------------------------------------------------------------------------------------------------ */

/* The terms of the loader's epochs: whose length is DLP_UNKNOWN if a sampler makes the order, or if its dataset is a
 * stream that has not ended. */
struct dlp_epoch_terms dli_epoch_terms(const struct dlc_loader *loader);

/* A record has said how long the current epoch is. Returns false if that makes no sense. */
bool dli_cursor_learn_units(struct dlc_loader *loader, uint64_t n_units);

/* Sets the cursor to the epoch's batches from `position` on, at most the number of the dataset's samples. */
void dli_cursor_set(struct dlc_loader *loader, uint64_t epoch, uint64_t position);

/* While the length of the dataset, a stream, is not known: looks whether the daemon has said that it has ended. Returns
 * whether it is known now. */
bool dli_cursor_learn(struct dlc_loader *loader);

/* Moves on to the epoch after the current one. 0 or a negative errno (if the daemon has to be asked). */
int dli_cursor_advance(struct dlc_loader *loader);

/* ---- client_classes.c -----------------------------------------------------------------------------------------------
 */

void dli_classes_free(struct dlc_loader *loader);

/* ---- client_samples.c -----------------------------------------------------------------------------------------------
 */

void dli_samples_free(struct dlc_loader *loader);

/* Asks the daemon for a column of the sampler, a number for each sample of the dataset. On success the caller frees
 * *ret_values (malloc), to which the column refers, as it does to the wish's name. -EINVAL: the daemon cannot tell it.
 */
int dli_samples_column(struct dlc_loader *loader, const struct dlp_column_wish *wish, struct dlp_column *ret_column,
                       void **ret_values);

/* Asks the daemon for the loader's blocks, unless they are there; nothing if its order does not go by them. */
int dli_samples_blocks(struct dlc_loader *loader);

/* ---- client_order.c -------------------------------------------------------------------------------------------------
 */

/* Of the epoch's order. Where it goes by blocks, they are those of dli_samples_blocks(). */
struct dlp_sampler_terms dli_sampler_terms(const struct dlc_loader *loader, uint64_t epoch);

/* The order that the options name; torch's, if it is not known, which the daemon refuses. */
struct dlp_order_choice dli_order_choice(const struct dlc_options *options);

/* ---- stats.c -------------------------------------------------------------------------------------------------- */

/* What dlc_hold() returns for a loader that is attached. */
const char *dli_hold(struct dlc_loader *loader);

/* ---- client_diagnose.c ----------------------------------------------------------------------------------------------
 */

void dli_diagnosis_free(struct dlc_loader *loader);
