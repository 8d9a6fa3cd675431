/* lib/work/handle.h: a worker process's connection, and what it works on. Private to this folder. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/include/dlclient.h"
#include "client/lib/connection.h"
#include "proto/layout.h"
#include "proto/mark.h"

#define WORK_ANSWERS_MAX 32u /* that are kept back at most: half of the orders that a process has */

struct work_form {
        uint64_t offset, stride;
        uint32_t dtype, n_dims;
        int64_t shape[DLP_DIMS_MAX]; /* -1: varies */
        int64_t most[DLP_DIMS_MAX];  /* of an output that varies: the elements of each dimension, at most */
        bool varies;
        uint64_t shape_at; /* of a whole batch whose samples vary */
};

struct work_step {
        char function[DLP_FUNCTION_MAX];
        char field[DLP_TENSOR_NAME_MAX], parameter[DLP_TENSOR_NAME_MAX];
        uint32_t n_fields;
        bool is_whole;
        struct work_form input, output;
};

struct dlc_work {
        struct dli_connection connection;
        struct why reason;
        pid_t owner;
        bool supervises;
        struct dlp_mark *mark;
        uint8_t *payload;
        uint64_t payload_bytes, slots_offset, slot_bytes;
        uint32_t n_slots, batch_size;
        uint64_t numbers_offset;
        uint32_t n_steps;
        struct work_step steps[DLP_TENSORS_MAX];

        Dlp__Reply *orders; /* those that came last; NULL: all have been taken */
        size_t next;        /* of them: the one that is worked on, or its next sample */
        size_t idx_sample;  /* of its run: the next one */
        bool is_at_work;    /* `order` is not answered yet */
        bool is_run;        /* nor are those of `run` */
        uint64_t run_ns;    /* since when its order is worked on */
        uint64_t took_ns;   /* that functions took since the last answer */
        uint64_t begun_ns;  /* since when */
        uint32_t n_kept;    /* answers that the daemon does not have: the last is `answered` */
        uint64_t answered;
        uint64_t usual_ns; /* that functions take for a sample, smoothed */
        uint64_t kept_ns;  /* since when the first of them is kept */
        struct dlc_order order;
        struct dlc_work_step told[DLP_TENSORS_MAX];
        struct dlc_array
                *lists[DLP_TENSORS_MAX]; /* batch_size, where samples vary before a function of whole batches */
        const struct dlc_array *told_lists[DLP_TENSORS_MAX];
        struct dlc_run run;
        uint64_t samples[DLP_RUN_MAX];
        uint64_t *seeds; /* DLP_RUN_MAX for each step */
        uint64_t input_strides[DLP_TENSORS_MAX], output_strides[DLP_TENSORS_MAX];
        int64_t delivered[DLP_TENSORS_MAX][DLP_DIMS_MAX]; /* shapes of what `order` delivers, where it varies */
        uint64_t sizes[WORK_ANSWERS_MAX * DLP_TENSORS_MAX * DLP_DIMS_MAX]; /* the same of the answers that are kept */
        uint32_t n_sizes;
};

/* "The daemon sends orders that make no sense": -EPROTO. */
int dli_work_damaged(struct dlc_work *work);

/* n_bytes times all n dimensions; false: one is negative, or it is more than 64 bits hold. */
bool dli_work_product(uint64_t n_bytes, const int64_t *shape, size_t n, uint64_t *ret_bytes);

/* The next sample of the order, work->idx_sample, is the one to work on, or its whole batch: work->order. -EPROTO: it
 * does not lie in the slots. */
int dli_work_fill(struct dlc_work *work, const Dlp__Order *told);

/* The samples of the order from there on: work->run, after dli_work_fill(). */
void dli_work_fill_run(struct dlc_work *work, const Dlp__Order *told);
