/* pipeline/isolation/rendering.h: a worker's orders to cells, for the sample that it is with.
 *
 * Most samples take one order: all fields of a read that are for cells, opened, and rendered where their place is known
 * before they are opened. The others take one more for each field that has to be placed first, or to wait for memory.
 *
 * Answers are checked as a stranger's: shapes against the form that was promised, sizes against shapes, times against
 * the clock. What a cell wrote into its slot is not looked at, as nothing is that lies in a slot. A cell that ends,
 * hangs or answers nonsense is replaced, and the fields are ordered again one by one; the field over which three cells
 * have ended is damage. One thread, the worker's. */
#pragma once

#include "daemon/base/stage_clock.h"
#include "daemon/pipeline/isolation/booths.h"
#include "daemon/pipeline/task.h"

/* Positive outcome: the rank has left or moved on, and nobody wants the sample. */
#define RENDERING_DROPPED 8

enum ahead_state {
        AHEAD_NONE, /* not ordered, or not done: an earlier field failed */
        AHEAD_OPENED,
        AHEAD_RENDERED,
        AHEAD_FAILED, /* rendering->error */
};

struct ahead {
        enum ahead_state state;
        struct codec_opened opened;
};

struct rendering {
        struct booths booths;
        struct stage_clock *clock;  /* of the worker: gets the times that cells took */
        struct codec_counts counts; /* since they were taken last, */
        uint64_t n_ended;           /* and cells that ended over a sample */

        /* Of the sample. */
        struct task *task;
        struct booth *booth;
        uint64_t n_tray; /* bytes of the tray that are used */
        struct ahead ahead[DLP_TENSORS_MAX];
        int error; /* of the field that is AHEAD_FAILED */
        struct why why;
        uint32_t n_ends;           /* of cells over this read of it */
        const uint8_t *last_bytes; /* what was laid into the tray last, and where */
        struct cell_place last_place;

        struct render_order order;
        union {
                struct render_answer answer;
                uint8_t packet[CELL_MESSAGE_MAX];
        };
};

/* Is this field for a cell? */
bool rendering_is_for(const struct task *task, uint32_t idx_field);

/* The fields of the task's read from task->idx_field on: orders what can be ordered together. Errors are told when the
 * field is opened that has them. 0 or RENDERING_DROPPED; -ENOMEM or -EMFILE with `why` if no cell can be had now. */
int rendering_begin(struct rendering *rendering, struct task *task, struct why *why);

/* As codec_open(); it needs no closing. */
int rendering_open(struct rendering *rendering, uint32_t idx_field, struct codec_opened *ret_opened, struct why *why);

/* As codec_render(), or, if n_kept_bytes is not 0, as codec_render_piece(), of a field that is open. `room_bytes`: from
 * `out` on. `allowed_bytes`: of scratch. */
int rendering_write(struct rendering *rendering, uint32_t idx_field, uint8_t *out, uint64_t room_bytes,
                    uint64_t n_skipped_bytes, uint64_t n_kept_bytes, uint64_t allowed_bytes, struct why *why);

/* CPU time that the cell of the last sample has taken since this was asked; a system call. */
uint64_t rendering_cpu_ns(struct rendering *rendering);

/* As codec_refuse_memory(). */
int rendering_refuse_memory(struct rendering *rendering, uint32_t idx_field, uint64_t allowed_bytes, struct why *why);
