/* pipeline/isolation/isolation.h: decoders in processes of their own: `isolation = process`.
 *
 * A worker still takes samples, asks collation for places, judges failures and counts batches down. But it does not
 * call code that interprets strangers' bytes (codec_interprets()): it sends the field as an order to a cell
 * (base/cell/cell.h) and waits for the answer. The cell has the slots of the feed mapped and renders into them.
 *
 * A cell is for one user and one worker. It has the slots of that user's feeds, their pipelines, and the bytes of the
 * sample that it is with, which the worker copies for it: read buffers are shared by all users, so no cell sees them.
 * Files above TASK_BUFFER_BYTES are read into memory of the feed, which its cells map. */
#pragma once

#include <sys/types.h>

#include "daemon/base/budget.h"
#include "daemon/base/cell/cell.h"
#include "daemon/codec/cell/render_messages.h"
#include "daemon/codec/programs/programs.h"
#include "daemon/ring/batch_ring.h"

#define ISOLATION_CELL_BYTES (4ull << 20) /* of a cell beside its scratch: the libraries' data, its heap, its tray */

struct isolation_options {
        struct cells *cells; /* all that the daemon has */
        uint64_t timeout_ns; /* how long a cell may take for a sample */
        struct decode_limits limits;
        enum decode_jpeg decode_jpeg;
        uint64_t most_bytes; /* of scratch that a sample may ever borrow */
};

struct isolation {
        struct cells *cells;
        struct render_setup setup; /* without own_bytes, which differ from worker to worker */
        uint64_t timeout_ns;
        _Atomic uint64_t n_told; /* ends that were logged */
};

/* Starts one cell and ends it, to know that the kernel lets cells be confined. -ENOSYS with what to do. */
int isolation_init(struct isolation *isolation, const struct isolation_options *options, struct why *why);

/* Starts a cell that decodes, if it does not run. -ENOSYS: it cannot be confined, or it ended; else as cell_start(). */
int isolation_start(struct isolation *isolation, const struct render_setup *setup, struct cell *cell, struct why *why);

/* ---- a feed ---------------------------------------------------------------------------------------------------- */

/* What the cells of a feed's user get of it. */
struct isolated_feed {
        struct isolation *isolation;
        const uint8_t *slots_base; /* where the daemon has `slots` */
        struct cell_memory slots;
        uint32_t n_programs;
        struct cell_memory programs[]; /* by the part of the dataset */
};

/* Returns 0, with NULL if nothing of these programs is for cells. The ring and the programs outlive it. -ENOMEM,
 * -EMFILE. */
int isolated_feed_new(struct isolation *isolation, const struct ring *ring, const struct programs *programs,
                      struct isolated_feed **ret_isolated, struct why *why);

/* No order for it is under way. Takes NULL. */
void isolated_feed_free(struct isolated_feed *isolated);
