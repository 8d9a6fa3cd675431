/* pipeline/isolation/rendering.h: a worker's orders to cells, for the sample that it is with.
 *
 * Most samples take one order: all fields of a read that are for cells, opened, and rendered where their place is known
 * before they are opened. The others take one more for each field that has to be placed first, or to wait for memory.
 * If several samples of a job wait, their orders go with one packet, so that worker and cell take turns less often.
 *
 * Answers are checked as a stranger's: shapes against the form that was promised, sizes against shapes, times against
 * the clock. What a cell wrote into its slot is not looked at, as nothing is that lies in a slot. A cell that ends,
 * hangs or answers nonsense is replaced, and the fields are ordered again one by one; the field over which three cells
 * have ended is damage. One thread, the worker's. */
#pragma once

#include "daemon/base/stage_clock.h"
#include "daemon/pipeline/isolation/user_cells.h"
#include "daemon/pipeline/task.h"

/* Positive outcome: the rank has left or moved on, and nobody wants the sample. */
#define RENDERING_DROPPED 8

enum ordered_state {
        ORDERED_NONE, /* not ordered, or not done: an earlier field failed */
        ORDERED_OPENED,
        ORDERED_RENDERED,
        ORDERED_FAILED, /* rendering->error */
};

struct ordered_field {
        enum ordered_state state;
        struct codec_opened opened;
};

/* What was laid into the tray last, and where. */
struct laid {
        const uint8_t *bytes; /* NULL: nothing */
        struct cell_place place;
};

/* A sample whose fields have been ordered. */
struct ordered {
        struct task *task; /* NULL: none */
        struct ordered_field ahead[DLP_TENSORS_MAX];
        int error; /* of the field that is ORDERED_FAILED */
        struct why why;
        uint64_t took_ns; /* its part of the time that the worker waited, before it began with the sample */
        uint32_t n_stages;
        struct render_stage stages[N_STAGES]; /* of that */
};

struct rendering {
        struct user_cells user_cells;
        struct stage_clock *clock;  /* of the worker: gets the times that cells took */
        struct codec_counts counts; /* since they were taken last, */
        uint64_t n_ended;           /* and cells that ended over a sample */

        struct ordered ordered[RENDER_SAMPLES_MAX];
        struct ordered *now;   /* of the sample that the worker is with, */
        struct task *now_task; /* and its task */

        /* Of the packet that is being made, or was answered last. */
        struct task *task; /* that fields are added for */
        struct user_cell *user_cell;
        uint64_t n_tray;              /* bytes of the tray that are used */
        uint32_t n_ends;              /* of cells over this field */
        struct laid last, last_boxes; /* of fields, and of boxes that plans depend on */
        uint32_t n_orders;
        struct task *tasks[RENDER_SAMPLES_MAX];
        struct render_order orders[RENDER_SAMPLES_MAX], *order;
        const struct render_answer *answers[RENDER_SAMPLES_MAX];
        union {
                struct render_answers head;
                uint8_t packet[CELL_MESSAGE_MAX];
        };
        _Alignas(8) uint8_t sent[CELL_MESSAGE_MAX];
};

/* Is this field for a cell? */
bool rendering_is_for(const struct task *task, uint32_t idx_field);

/* Can the fields of this task be ordered together with those of others? */
bool rendering_may_gather(const struct task *task);

/* Orders the fields of n tasks of one user with one packet. If anything is wrong, nothing was ordered. */
void rendering_gather(struct rendering *rendering, struct task *const *tasks, uint32_t n);

/* The worker is done with all tasks of the packet, also with those that were dropped before anybody looked at their
 * answers. */
void rendering_forget(struct rendering *rendering);

/* The worker begins with the task's fields of this read, from task->idx_field on: orders what can be ordered together,
 * if that is not done yet. The error of a field is returned when that field is opened. 0 or RENDERING_DROPPED; -ENOMEM
 * with `why` if no cell can be had now. */
int rendering_begin(struct rendering *rendering, struct task *task, struct why *why);

/* As codec_open(); it needs no closing. */
int rendering_open(struct rendering *rendering, uint32_t idx_field, struct codec_opened *ret_opened, struct why *why);

/* As codec_render(), or, if n_kept_bytes is not 0, as codec_render_piece(), of a field that is open. `room_bytes`: from
 * `out` on. `allowed_bytes`: of scratch. */
int rendering_write(struct rendering *rendering, uint32_t idx_field, uint8_t *out, uint64_t room_bytes,
                    uint64_t n_skipped_bytes, uint64_t n_kept_bytes, uint64_t allowed_bytes, struct why *why);

/* Renders a field with steps of plug-ins as far as the first of these (codec_before_plugins()); the worker runs the
 * rest. The bytes lie in the tray until the next order, and the cell may still write to them. Errors as
 * rendering_write(). */
int rendering_write_before(struct rendering *rendering, uint32_t idx_field, uint64_t allowed_bytes,
                           const uint8_t **ret_bytes, struct why *why);

/* The time of the sample that passed before rendering_begin(). */
uint64_t rendering_took_ns(const struct rendering *rendering);

/* CPU time that the cell of the last sample has taken since this was asked; a system call. */
uint64_t rendering_cpu_ns(struct rendering *rendering);

/* As codec_refuse_memory(). */
int rendering_refuse_memory(struct rendering *rendering, uint32_t idx_field, uint64_t allowed_bytes, struct why *why);
