/* lib/client_ring.h: the memory of one attachment, and who still needs it.
 *
 * A loader takes batches from one ring. The rings of earlier daemons follow in a list, for batches that the caller
 * still holds. A ring counts its users: the loader while it takes from the ring, and each lease. The last user unmaps
 * the memory. The leases stay until the loader is closed: so their addresses are never used for another batch, and any
 * thread finds a batch by its address without a lock. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/include/dlclient.h"
#include "client/lib/reason.h"
#include "proto/layout.h"

/* A piece of memory that is shared with the daemon. */
struct dli_mapping {
        void *base;     /* NULL: not mapped */
        uint64_t bytes; /* the whole file, not more: access after its end raises SIGBUS */
};

void dli_unmap(struct dli_mapping *mapping);

/* The place of one batch. The public struct comes first: a pointer to it is a pointer to its lease. */
struct dli_lease {
        _Alignas(DLP_CACHE_LINE) struct dlc_batch batch;
        _Atomic uint64_t sequence; /* in its ring; relaxed: a release reads it before it gives the slot back */
        uint64_t position;         /* global, where the batch begins */
        uint32_t turn;             /* the loader's turn when the batch was handed out */
        _Atomic uint32_t held;     /* 1: the caller has it. Cleared by an exchange, so that it is released only once */
        struct dlc_tensor tensors[DLP_TENSORS_MAX];
};

/* Handing out a batch writes two cache lines and its tensors: one more line costs a fifth of the call's time when the
 * caches are cold, as they are after a training step. */
_Static_assert(offsetof(struct dli_lease, tensors) == 2 * DLP_CACHE_LINE, "a lease begins with two full lines");

#define DLI_HOLD  0x10000u /* above all leases and the loader */
#define DLI_HOLDS 0x7fffu  /* at most */

struct dli_ring {
        /* What each dlc_next() reads. */
        const struct dlp_control *control; /* read-only mapping */
        struct dlp_client_page *page;      /* head of the payload */
        const void *slots;                 /* which follow it; kept when they are unmapped, as their name */
        struct dli_lease *leases;          /* n_slots */
        int64_t *served;                   /* n_slots columns of batch_size, for batches with substitutes */
        uint32_t n_slots;
        uint64_t sequence; /* of the batch that is taken next */
        uint64_t n_before; /* batches that the loader took from older rings */
        uint64_t stream;   /* since the last seek: batches of other streams are leftovers from before it */

        /* Any thread: dlc_release(). Callers that hold the memory as such count DLI_HOLD each. */
        _Alignas(DLP_CACHE_LINE) _Atomic uint32_t n_users;
        int release_event; /* eventfd, any thread */
        struct dli_mapping control_mapping;
        struct dli_mapping payload_mapping;
        struct dli_ring *older; /* NULL: this was the first ring */
        char *memory;           /* for people: what memory the daemon obtained */
};

/* What the daemon says about a ring, and the descriptors that it sent. */
struct dli_offer {
        uint64_t control_bytes, payload_bytes;
        uint32_t n_slots, batch_size;
        const char *memory;
        int control_fd, payload_fd;
        int *release_event; /* owned by the ring after success */
};

/* Maps the offered ring; nothing in the offer is trusted before it was compared with the files' true sizes. The new
 * ring has one user, the loader. -EPROTONOSUPPORT with the memory's layout version in *ret_layout_version. */
int dli_ring_new(const struct dli_offer *offer, struct why *reason, struct dli_ring **ret_ring,
                 uint32_t *ret_layout_version);

/* Removes one user; the last one unmaps the memory. Any thread. */
void dli_ring_leave(struct dli_ring *ring);

/* Adds a user that holds the memory as such, and removes it as dli_ring_leave() does. -EMFILE: too many do. -EINVAL: no
 * ring of these has this memory, or nobody holds it. Any thread. */
int dli_ring_hold(struct dli_ring *ring);
int dli_rings_let(struct dli_ring *ring, const void *slots);

/* Frees this ring and all older ones, even if they still have users. `is_here`: false in the child of a fork, where
 * their memory is not mapped and something else may be in its place. */
void dli_rings_free(struct dli_ring *ring, bool is_here);

/* Finds the lease of a batch that the caller passes in, and its ring, among this ring and all older ones. NULL if the
 * address is not one of ours: it is compared before it is dereferenced. Any thread. */
struct dli_lease *dli_rings_find(struct dli_ring *ring, const struct dlc_batch *batch, struct dli_ring **ret_ring);

/* Tells the daemon that a slot is free. The caller is one of the ring's users. Any thread. */
void dli_ring_give_back(struct dli_ring *ring, uint64_t sequence, uint32_t idx_slot);
