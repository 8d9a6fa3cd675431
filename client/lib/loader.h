/* lib/loader.h: what a loader is made of, for the files of the library.
 *
 * Everything belongs to the thread that uses the loader, but for what dlc_release() touches (written at the fields):
 * that one call may come from any thread. All memory is obtained in dlc_open(); a batch costs none. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/include/dlclient.h"
#include "client/lib/connection.h"
#include "proto/layout.h"

/* A piece of memory that is shared with the daemon. */
struct dli_mapping {
        void *base;     /* NULL: not mapped */
        uint64_t bytes; /* all of the file, not more: behind its end would be SIGBUS */
};

/* The place of one batch. The public struct comes first: a pointer to it is a pointer to its lease. */
struct dli_lease {
        struct dlc_batch batch;
        uint64_t sequence;
        _Atomic uint32_t held; /* 1: the caller has it. Taken by exchange, so that it is released once only */
        struct dlc_tensor tensors[DLP_TENSORS_MAX];
};

struct dlc_loader {
        /* What each dlc_next() looks at. */
        const struct dlp_control *control;   /* read-only mapping */
        struct dlp_client_page *page;        /* head of the payload */
        struct dli_lease *leases;            /* n_slots */
        const _Atomic uint32_t *opened_here; /* in a page of its own that a fork() clears; NULL: see pid */
        uint64_t sequence;                   /* that is taken next */
        uint64_t stream;                     /* of the last seek: batches of others are left over from before it */
        uint64_t epoch;
        uint64_t step;      /* batch of this epoch that is taken next */
        uint64_t n_batches; /* of this rank, an epoch */
        bool ended;         /* the end of `epoch` has been told */
        int failed;         /* negative errno once nothing can follow; its text is `failure` */

        _Alignas(DLP_CACHE_LINE) _Atomic uint32_t n_held; /* any thread: dlc_release() */
        int release_event;                                /* eventfd, any thread */

        uint64_t prepared_until; /* the daemon makes no epoch from this one on, unless asked by a seek */
        struct dli_connection connection;
        struct dli_mapping control_mapping;
        struct dli_mapping payload_mapping;
        struct dli_mapping fork_mapping;
        pid_t pid; /* of who opened it; looked at only if the kernel cannot clear a page */
        struct dli_reason reason;
        struct dli_reason failure;
        struct dlc_info info;
        char *texts[4]; /* owned: what info points to */
};

/* Can this process use the loader? 0, or -ECHILD after a fork. Any thread. */
int dli_loader_check(const struct dlc_loader *loader);
int dli_loader_in_child(struct dli_reason *reason);

/* Nothing can follow: the loader says what its reason says from now on. Returns `error`. */
int dli_loader_fail(struct dlc_loader *loader, int error);

/* ---- options.c ----------------------------------------------------------------------------------------------- */

/* Copies the caller's options, whatever version its struct has, over the defaults, and checks all that could not be
 * said in a message; the daemon checks the rest. Rank and world are filled in. -EINVAL with the option's name. */
int dli_options_resolve(const struct dlc_options *options, struct dli_reason *reason, struct dlc_options *ret_options);

/* ---- attach.c ------------------------------------------------------------------------------------------------ */

/* Connects, asks for a ring and maps it, filling in the loader's first half. `options` is resolved, its job is set. */
int dli_attach(struct dlc_loader *loader, const struct dlc_options *options);
void dli_detach(struct dlc_loader *loader);

/* ---- batch.c ------------------------------------------------------------------------------------------------- */

/* Describes the published slot `idx_slot` to the caller, in the slot's lease. -EPROTO if its record makes no sense. */
int dli_batch_fill(struct dlc_loader *loader, uint32_t idx_slot, const struct dlp_slot_record *record);

/* ---- epoch.c ------------------------------------------------------------------------------------------------- */

/* Moves on to the epoch after the current one. 0 or a negative errno (if the daemon has to be asked). */
int dli_epoch_advance(struct dlc_loader *loader);
