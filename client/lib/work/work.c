/* Worker processes: they take samples from the daemon, one after the other, and say when each is done. See dlclient.h,
 * and daemon/pipeline/desk/desk.h for what the daemon does. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/include/dlclient.h"
#include "client/lib/clock.h"
#include "client/lib/connection.h"
#include "client/lib/reason.h"
#include "proto/base/cleanup.h"
#include "proto/layout.h"
#include "proto/mark.h"

#define CLIENT_NAME "libdlclient (worker process)"
#define TEXT_MAX    380
#define ANSWERS_MAX 32u         /* that are kept back at most: half of the orders that a process has */
#define ANSWER_NS   200000ull   /* and for how long, if functions usually take less */
#define RUN_MAX_NS  20000000ull /* that a run may take; the rest of it is given back then */

struct form {
        uint64_t offset, stride;
        uint32_t dtype, n_dims;
        int64_t shape[DLP_DIMS_MAX]; /* -1: varies */
        int64_t most[DLP_DIMS_MAX];  /* of an output that varies: the elements of each dimension, at most */
        bool varies;
        uint64_t shape_at; /* of a whole batch whose samples vary */
};

struct step {
        char function[DLP_FUNCTION_MAX];
        char field[DLP_TENSOR_NAME_MAX], parameter[DLP_TENSOR_NAME_MAX];
        uint32_t n_fields;
        bool is_whole;
        struct form input, output;
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
        struct step steps[DLP_TENSORS_MAX];

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
        uint64_t sizes[ANSWERS_MAX * DLP_TENSORS_MAX * DLP_DIMS_MAX]; /* the same of the answers that are kept */
        uint32_t n_sizes;
};

static int check_handle(struct dlc_work *work, const char *function) {
        if (!work)
                return dli_refuse(-EINVAL, "%s: work must not be NULL", function);
        if (work->owner != getpid())
                return dli_refuse(-ECHILD, "%s: opened before a fork; only the parent can use it", function);
        return 0;
}

static int damaged(struct dlc_work *work) {
        return why_set(&work->reason, -EPROTO, "the daemon at %s sends orders that make no sense",
                       work->connection.path);
}

/* An error that answers nothing is the reason why the daemon closes the connection: what came through it was wrong. */
static int closed(struct dlc_work *work, const char *text) {
        return why_set(&work->reason, -EPROTO, "%.300s", text);
}

/* ---- opening --------------------------------------------------------------------------------------------------- */

static bool product(uint64_t n_bytes, const int64_t *shape, size_t n, uint64_t *ret_bytes) {
        for (size_t i = 0; i < n; i++)
                if (shape[i] < 0 || __builtin_mul_overflow(n_bytes, (uint64_t)shape[i], &n_bytes))
                        return false;
        *ret_bytes = n_bytes;
        return true;
}

/* The largest sample of an output has a place. */
static bool keep_most(const Dlp__Form *told, struct form *form) {
        uint64_t n_bytes;

        if (!form->varies)
                return told->n_most == 0;
        if (told->n_most != told->n_shape)
                return false;
        memcpy(form->most, told->most, told->n_most * sizeof(*told->most));
        for (size_t i = 0; i < told->n_shape; i++)
                if (form->shape[i] >= 0 && form->shape[i] != form->most[i])
                        return false;
        return product(dlp_dtype_bytes(form->dtype), form->most, form->n_dims, &n_bytes) && n_bytes <= form->stride;
}

/* Does each of its samples lie within a slot? A shape that varies is checked when it is told. */
static bool keep_form(const struct dlc_work *work, const Dlp__Form *told, struct form *form) {
        uint64_t n_bytes = 0, room, end;

        if (!told || told->n_shape >= DLP_DIMS_MAX || dlp_dtype_bytes(told->dtype) == 0)
                return false;
        *form = (struct form){
                .offset = told->offset,
                .stride = told->stride,
                .dtype = told->dtype,
                .n_dims = (uint32_t)told->n_shape,
                .shape_at = told->shape_at,
        };
        for (size_t i = 0; i < told->n_shape; i++) {
                form->shape[i] = told->shape[i];
                form->varies |= told->shape[i] < 0;
        }
        if (!form->varies &&
            (!product(dlp_dtype_bytes(form->dtype), form->shape, form->n_dims, &n_bytes) || n_bytes > form->stride))
                return false;
        return !__builtin_mul_overflow(form->stride, (uint64_t)work->batch_size, &room) &&
               !__builtin_add_overflow(form->offset, room, &end) && end <= work->slot_bytes;
}

/* An array of all samples has no gaps; the shape of each one of a list lies beside it. */
static bool check_whole(const struct form *form) {
        uint64_t n_bytes = 0, end;

        if (form->varies)
                return form->shape_at % sizeof(int64_t) == 0 && form->stride % sizeof(int64_t) == 0 &&
                       !__builtin_add_overflow(form->shape_at, form->n_dims * sizeof(int64_t), &end) &&
                       end <= form->stride;
        return product(dlp_dtype_bytes(form->dtype), form->shape, form->n_dims, &n_bytes) && n_bytes == form->stride;
}

static int keep_whole(struct dlc_work *work, uint32_t idx_step) {
        struct step *step = &work->steps[idx_step];
        uint64_t room, end;

        if (!check_whole(&step->input) || !check_whole(&step->output) || work->numbers_offset % sizeof(int64_t) != 0 ||
            __builtin_mul_overflow((uint64_t)work->batch_size, sizeof(int64_t), &room) ||
            __builtin_add_overflow(work->numbers_offset, room, &end) || end > work->slot_bytes)
                return damaged(work);
        step->is_whole = true;
        if (!step->input.varies)
                return 0;
        work->lists[idx_step] = calloc(work->batch_size, sizeof(struct dlc_array));
        return work->lists[idx_step] ? 0 : why_errno(&work->reason, -ENOMEM, "dlc_work_open");
}

static int keep(struct dlc_work *work, const Dlp__Working *working) {
        uint64_t slots_bytes, end;
        struct step *first = NULL; /* of the call */
        int r = 0;

        work->payload_bytes = working->payload_bytes;
        work->slots_offset = working->slots_offset;
        work->slot_bytes = working->slot_bytes;
        work->n_slots = working->n_slots;
        work->batch_size = working->batch_size;
        work->numbers_offset = working->numbers_offset;
        if (working->n_steps > DLP_TENSORS_MAX ||
            __builtin_mul_overflow(work->slot_bytes, (uint64_t)work->n_slots, &slots_bytes) ||
            __builtin_add_overflow(work->slots_offset, slots_bytes, &end) || end > work->payload_bytes)
                return damaged(work);
        for (size_t i = 0; i < working->n_steps; i++) {
                const Dlp__WorkStep *told = working->steps[i];
                struct step *step = &work->steps[i];

                if (strlen(told->function) >= sizeof(step->function) || strlen(told->field) >= sizeof(step->field) ||
                    strlen(told->parameter) >= sizeof(step->parameter) || (told->goes_on && i == 0) ||
                    !keep_form(work, told->input, &step->input) || !keep_form(work, told->output, &step->output) ||
                    !keep_most(told->output, &step->output))
                        return damaged(work);
                strcpy(step->function, told->function);
                strcpy(step->field, told->field);
                strcpy(step->parameter, told->parameter[0] ? told->parameter : told->field);
                first = told->goes_on ? first : step;
                step->n_fields = 0;
                first->n_fields++;
                if (told->whole)
                        r = keep_whole(work, (uint32_t)i);
                else if (i > 0 && work->steps[i - 1].is_whole) /* those for samples are the first ones */
                        r = damaged(work);
                if (r < 0)
                        return r;
        }
        work->n_steps = (uint32_t)working->n_steps;
        return 0;
}

static int map_file(struct dlc_work *work, int fd, uint64_t n_bytes, void **ret_base) {
        struct stat status;
        void *base;

        if (fstat(fd, &status) < 0 || (uint64_t)status.st_size < n_bytes)
                return damaged(work);
        base = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                return why_errno(&work->reason, -errno, "cannot map the memory of the rank's batches");
        *ret_base = base;
        return 0;
}

/* The page before the slots belongs to the rank: it is taken away, as a function might write there by mistake. Huge
 * pages cannot be divided. */
static int map(struct dlc_work *work, const int fds[2]) {
        void *base;
        int r = map_file(work, fds[0], work->payload_bytes, &base);

        if (r < 0)
                return r;
        work->payload = base;
        mprotect(base, work->slots_offset, PROT_NONE);
        r = map_file(work, fds[1], DLP_MARK_BYTES, &base);
        if (r == 0)
                work->mark = base;
        return r;
}

static int connect_and_ask(struct dlc_work *work, const struct dlc_work_options *options) {
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Work body = DLP__WORK__INIT;
        int fds[2] = { -1, -1 }, r;
        Dlp__Reply *reply;

        r = dli_connection_open(&work->connection, options->socket, CLIENT_NAME, &work->reason);
        if (r < 0)
                return r;
        body.ticket = (char *)(uintptr_t)options->ticket;
        body.worker = options->worker;
        body.supervises = options->supervises;
        body.limit_ms = options->limit_ms;
        body.takes_runs = body.takes_batches = true;
        request.body_case = DLP__REQUEST__BODY_WORK;
        request.work = &body;
        r = dli_connection_call(&work->connection, &request, options->timeout_ms, &work->reason, &reply, fds,
                                options->supervises ? 0 : 2);
        if (r != 0)
                return r < 0 ? r : damaged(work);
        r = reply->body_case == DLP__REPLY__BODY_WORKING ? keep(work, reply->working) : damaged(work);
        dlp__reply__free_unpacked(reply, NULL);
        if (r == 0 && !options->supervises)
                r = map(work, fds);
        for (int i = 0; i < 2; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
        return r;
}

int dlc_work_open(const struct dlc_work_options *options, struct dlc_work **ret_work) {
        struct dlc_work_options resolved = DLC_WORK_OPTIONS_INIT;
        struct dlc_work *work;
        struct why reason;
        int r;

        if (!options || !ret_work)
                return dli_refuse(-EINVAL, "dlc_work_open: options and ret_work must not be NULL");
        if (options->size < offsetof(struct dlc_work_options, worker))
                return dli_refuse(-EINVAL, "dlc_work_open: options are not initialised; begin with struct "
                                           "dlc_work_options o = DLC_WORK_OPTIONS_INIT");
        memcpy(&resolved, options, options->size < sizeof(resolved) ? options->size : sizeof(resolved));
        if (!resolved.ticket || !*resolved.ticket || strlen(resolved.ticket) > DLP_NAME_MAX)
                return dli_refuse(-EINVAL,
                                  "dlc_work_open: ticket: not that of a loader whose pipeline names functions");
        work = calloc(1, sizeof(*work));
        if (!work)
                return dli_refuse(-ENOMEM, "dlc_work_open: out of memory");
        work->owner = getpid();
        work->supervises = resolved.supervises;
        work->connection.socket = -1;
        r = connect_and_ask(work, &resolved);
        if (r == 0)
                work->seeds = calloc(DLP_RUN_MAX * (work->n_steps + 1), sizeof(*work->seeds));
        if (r == 0 && !work->seeds)
                r = why_set(&work->reason, -ENOMEM, "dlc_work_open: out of memory");
        if (r < 0) {
                reason = work->reason;
                dlc_work_close(work);
                return dli_report(&reason, r);
        }
        *ret_work = work;
        return 0;
}

void dlc_work_close(struct dlc_work *work) {
        if (!work)
                return;
        if (work->orders)
                dlp__reply__free_unpacked(work->orders, NULL);
        if (work->payload)
                munmap(work->payload, work->payload_bytes);
        if (work->mark)
                munmap(work->mark, DLP_MARK_BYTES);
        free(work->seeds);
        for (uint32_t i = 0; i < DLP_TENSORS_MAX; i++)
                free(work->lists[i]);
        dli_connection_close(&work->connection);
        free(work);
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* What is sent is text of at most TEXT_MAX bytes, cut between two characters. */
static void cut(const char *text, char ret_text[TEXT_MAX + 1]) {
        size_t n = strnlen(text, TEXT_MAX);

        if (text[n] != '\0')
                while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
                        n--;
        memcpy(ret_text, text, n);
        ret_text[n] = '\0';
}

/* Answers `number`, and all orders before it. */
static int answer(struct dlc_work *work, uint64_t number, const char *error) {
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Worked body = DLP__WORKED__INIT;
        char text[TEXT_MAX + 1];
        int r;

        body.number = number;
        body.failed = error != NULL;
        body.took_ns = work->took_ns;
        if (error) {
                cut(error, text);
                body.text = text;
        }
        body.sizes = work->sizes;
        body.n_sizes = work->n_sizes;
        request.body_case = DLP__REQUEST__BODY_WORKED;
        request.worked = &body;
        work->n_kept = work->n_sizes = 0;
        work->took_ns = 0;
        r = dli_connection_send(&work->connection, &request, &work->reason);
        return r < 0 && work->connection.farewell_code == EPROTO ? closed(work, work->connection.farewell.text) : r;
}

/* The daemon has what was kept back. */
static int answer_kept(struct dlc_work *work) {
        return work->n_kept > 0 ? answer(work, work->answered, NULL) : 0;
}

/* ---- orders ---------------------------------------------------------------------------------------------------- */

static int gone(struct dlc_work *work) {
        return why_set(&work->reason, -ECONNRESET, "the rank has left, or the daemon at %s has ended",
                       work->connection.path);
}

/* Takes in one packet. 0, or -EAGAIN if there is none. */
static int receive(struct dlc_work *work) {
        struct dli_connection *connection = &work->connection;
        ssize_t n = dlp_frame_receive(connection->socket, connection->packet, DLP_PACKET_MAX, NULL, 0, NULL,
                                      MSG_DONTWAIT);
        Dlp__Reply *reply;

        if (n == -EAGAIN || n == -EINTR)
                return -EAGAIN;
        if (n <= 0)
                return gone(work);
        reply = dlp__reply__unpack(NULL, (size_t)n, connection->packet);
        if (reply && reply->body_case == DLP__REPLY__BODY_ORDERS) {
                work->orders = reply;
                work->next = work->idx_sample = 0;
                return 0;
        }
        if (!reply)
                return damaged(work);
        n = reply->error && reply->error->code == EPROTO ? closed(work, reply->error->text) : gone(work);
        dlp__reply__free_unpacked(reply, NULL);
        return (int)n;
}

static void fill_array(const struct form *form, uint8_t *slot, uint64_t place, struct dlc_array *array) {
        array->data = slot + form->offset + form->stride * place;
        array->dtype = form->dtype;
        array->n_dims = form->n_dims;
        memcpy(array->shape, form->shape, sizeof(array->shape));
}

static bool fill_input(const struct form *form, const Dlp__OrderStep *told, uint8_t *slot, uint64_t place,
                       struct dlc_array *array) {
        uint64_t n_bytes;

        fill_array(form, slot, place, array);
        if (!form->varies)
                return true;
        if (told->n_shape != form->n_dims)
                return false;
        memcpy(array->shape, told->shape, form->n_dims * sizeof(*told->shape));
        return product(dlp_dtype_bytes(form->dtype), told->shape, told->n_shape, &n_bytes) && n_bytes <= form->stride;
}

/* Do all samples of the order lie in the slot, and has each what it needs? */
static bool is_sound(const struct dlc_work *work, const Dlp__Order *told) {
        if (told->slot >= work->n_slots || told->place >= work->batch_size || told->n_others >= DLP_RUN_MAX ||
            told->n_others >= work->batch_size - told->place || told->n_samples > work->batch_size ||
            (told->n_samples > 0 && told->n_others > 0))
                return false;
        for (size_t i = 0; i < told->n_steps && i < work->n_steps; i++)
                if ((told->steps[i]->n_seeds != 0 && told->steps[i]->n_seeds != told->n_others) ||
                    (told->n_others > 0 && work->steps[i].output.varies)) /* each sample has sizes of its own */
                        return false;
        return true;
}

static uint64_t seed_of(const Dlp__OrderStep *told, size_t idx_sample) {
        return idx_sample == 0 || told->n_seeds == 0 ? told->seed : told->seeds[idx_sample - 1];
}

/* If it varies it is as large as it may be, unless dlc_work_deliver() says something else. */
static void fill_output(const struct form *form, uint8_t *slot, uint64_t place, struct dlc_array *array,
                        int64_t *ret_delivered) {
        fill_array(form, slot, place, array);
        if (!form->varies)
                return;
        memcpy(array->shape, form->most, sizeof(array->shape));
        memcpy(ret_delivered, form->most, sizeof(form->most));
}

static void fill_whole(const struct form *form, uint8_t *slot, uint32_t n_samples, struct dlc_array *array) {
        array->data = slot + form->offset;
        array->dtype = form->dtype;
        array->n_dims = form->n_dims + 1;
        array->shape[0] = n_samples;
        memcpy(array->shape + 1, form->shape, form->n_dims * sizeof(*form->shape));
}

/* Other processes of the rank may write to the shapes, so they are checked as they are used. */
static bool fill_list(const struct form *form, uint8_t *slot, uint32_t n_samples, struct dlc_array *arrays) {
        for (uint32_t i = 0; i < n_samples; i++) {
                uint8_t *sample = slot + form->offset + form->stride * i;
                uint64_t n_bytes;

                arrays[i] = (struct dlc_array){ .data = sample, .dtype = form->dtype, .n_dims = form->n_dims };
                memcpy(arrays[i].shape, sample + form->shape_at, form->n_dims * sizeof(*arrays[i].shape));
                if (!product(dlp_dtype_bytes(form->dtype), arrays[i].shape, form->n_dims, &n_bytes) ||
                    n_bytes > form->shape_at)
                        return false;
        }
        return true;
}

/* Step `idx_step` of the rank's is step k of the order. */
static bool fill_step(struct dlc_work *work, uint32_t idx_step, const Dlp__Order *told, uint32_t k) {
        uint8_t *slot = work->payload + work->slots_offset + work->slot_bytes * told->slot;
        const struct step *step = &work->steps[idx_step];
        struct dlc_work_step *order = &work->told[k];
        size_t idx = work->idx_sample;

        order->function = step->function;
        order->field = step->field;
        order->parameter = step->parameter;
        order->n_fields = step->n_fields;
        order->seed = seed_of(told->steps[k], idx);
        work->input_strides[k] = step->input.stride;
        work->output_strides[k] = step->output.stride;
        if (told->n_samples == 0) { /* those for samples are the first of the rank's: k is idx_step */
                fill_output(&step->output, slot, told->place + idx, &order->output, work->delivered[k]);
                return fill_input(&step->input, told->steps[k], slot, told->place + idx, &order->input);
        }
        fill_whole(&step->input, slot, told->n_samples, &order->input);
        fill_whole(&step->output, slot, told->n_samples, &order->output);
        work->told_lists[k] = work->lists[idx_step];
        return !step->input.varies || fill_list(&step->input, slot, told->n_samples, work->lists[idx_step]);
}

/* The next sample of the order is the one to work on, or its whole batch. */
static int fill(struct dlc_work *work, const Dlp__Order *told) {
        size_t idx = work->idx_sample;
        uint32_t k = 0;

        if (!is_sound(work, told))
                return damaged(work);
        for (uint32_t i = 0; i < work->n_steps; i++) {
                if (work->steps[i].is_whole != (told->n_samples > 0))
                        continue;
                if (k == told->n_steps || !fill_step(work, i, told, k))
                        return damaged(work);
                k++;
        }
        if (k != told->n_steps)
                return damaged(work);
        work->order = (struct dlc_order){ .number = told->number + idx,
                                          .epoch = told->epoch,
                                          .sample = idx == 0 ? told->sample : told->others[idx - 1],
                                          .n_steps = k,
                                          .steps = work->told,
                                          .n_samples = told->n_samples };
        if (told->n_samples > 0) {
                work->order.samples = (const int64_t *)(const void *)(work->payload + work->slots_offset +
                                                                      work->slot_bytes * told->slot +
                                                                      work->numbers_offset);
                work->order.lists = work->told_lists;
        }
        return 0;
}

static int wait_for_orders(struct dlc_work *work, int timeout_ms) {
        uint64_t deadline_ns = dli_deadline(timeout_ms);
        int r;

        for (;;) {
                r = receive(work);
                if (r == 0 && work->orders->orders->n_orders == 0)
                        return damaged(work);
                if (r != -EAGAIN)
                        return r;
                r = timeout_ms == 0 ? 0 : dli_connection_wait(&work->connection, deadline_ns);
                if (r == 0)
                        return why_set(&work->reason, -ETIMEDOUT, "no sample within %d ms", timeout_ms);
                if (r < 0)
                        return why_set(&work->reason, r, "interrupted while waiting for a sample");
        }
}

/* Waits for a sample, and fills in its order. */
static int begin(struct dlc_work *work, const char *function, const void *output, int timeout_ms) {
        int r = check_handle(work, function);

        if (r < 0)
                return r;
        if (!output || work->supervises || work->is_at_work)
                return dli_refuse(-EINVAL, "%s: %s", function,
                                  !output            ? "where the result is to go must not be NULL"
                                  : work->supervises ? "this process supervises and gets no samples"
                                                     : "answer the sample before with dlc_work_done() first");
        if (!work->orders)
                r = answer_kept(work);
        if (r == 0 && !work->orders)
                r = wait_for_orders(work, timeout_ms);
        if (r == 0)
                r = fill(work, work->orders->orders->orders[work->next]);
        if (r < 0)
                return dli_report(&work->reason, r);
        work->is_at_work = true;
        work->begun_ns = clock_now_ns();
        if (work->idx_sample == 0)
                work->run_ns = work->begun_ns;
        /* The release keeps what was done with earlier samples before it; the fence, what will be done after it. */
        atomic_store_explicit(&work->mark->begun, work->order.number, memory_order_release);
        atomic_thread_fence(memory_order_seq_cst);
        return 0;
}

/* So many of the samples of the order are done, from where it stands, and it is over if `is_last`. */
static void pass(struct dlc_work *work, size_t n, bool is_last) {
        work->idx_sample += n;
        if (!is_last && work->idx_sample <= work->orders->orders->orders[work->next]->n_others)
                return;
        work->idx_sample = 0;
        if (++work->next < work->orders->orders->n_orders)
                return;
        dlp__reply__free_unpacked(work->orders, NULL);
        work->orders = NULL;
}

int dlc_work_next(struct dlc_work *work, int timeout_ms, const struct dlc_order **ret_order) {
        int r = begin(work, "dlc_work_next", ret_order, timeout_ms);

        if (r < 0)
                return r;
        work->is_run = false;
        *ret_order = &work->order;
        return 0;
}

/* An answer is kept back while the next order is there and takes little time: several of them are one message. */
static bool may_keep(struct dlc_work *work, uint64_t now_ns, uint32_t n_samples) {
        uint64_t took_ns = (now_ns - work->begun_ns) / n_samples;

        work->usual_ns = work->usual_ns == 0 ? took_ns : (3 * work->usual_ns + took_ns) / 4;
        if (work->n_kept == 0)
                work->kept_ns = now_ns;
        work->n_kept += n_samples;
        return work->orders && work->n_kept < ANSWERS_MAX && work->usual_ns < ANSWER_NS &&
               now_ns - work->kept_ns < ANSWER_NS;
}

bool dlc_work_varies(const struct dlc_work *work, uint32_t idx_step, uint32_t dim) {
        return work && idx_step < work->n_steps && dim < work->steps[idx_step].output.n_dims &&
               work->steps[idx_step].output.shape[dim] < 0;
}

int dlc_work_deliver(struct dlc_work *work, uint32_t idx_step, const int64_t *shape) {
        int r = check_handle(work, "dlc_work_deliver");
        const struct form *form;

        if (r < 0)
                return r;
        if (!shape || !work->is_at_work || idx_step >= work->n_steps)
                return dli_refuse(-EINVAL, "dlc_work_deliver: %s",
                                  !shape             ? "shape must not be NULL"
                                  : work->is_at_work ? "the sample has no step of this number"
                                                     : "there is no sample that is not answered yet");
        form = &work->steps[idx_step].output;
        for (uint32_t k = 0; k < form->n_dims; k++) {
                int64_t most = form->varies ? form->most[k] : form->shape[k];

                if (shape[k] < 0 || shape[k] > most || (form->shape[k] >= 0 && shape[k] != most))
                        return dli_refuse(
                                -EINVAL, "dlc_work_deliver: field %s: dimension %u has %lld elements; %s%lld %s",
                                work->steps[idx_step].field, k, (long long)shape[k], form->shape[k] < 0 ? "0 to " : "",
                                (long long)most, form->shape[k] < 0 ? "are allowed" : "are declared");
        }
        memcpy(work->delivered[idx_step], shape, form->n_dims * sizeof(*shape));
        return 0;
}

/* They are sent with the answer. */
static void keep_sizes(struct dlc_work *work) {
        for (uint32_t i = 0; i < work->n_steps && work->order.n_samples == 0; i++)
                for (uint32_t k = 0; k < work->steps[i].output.n_dims; k++)
                        if (work->steps[i].output.shape[k] < 0)
                                work->sizes[work->n_sizes++] = (uint64_t)work->delivered[i][k];
}

/* `n` samples are done; with `error`, the last of them is not. */
static int done(struct dlc_work *work, uint32_t n, const char *error) {
        uint64_t now_ns = clock_now_ns();
        bool is_inside = work->idx_sample + n <= work->orders->orders->orders[work->next]->n_others, is_slow;
        int r;

        /* The answer to a sample inside a run gives back the rest of it. */
        is_slow = now_ns - work->run_ns > RUN_MAX_NS || work->is_run;
        work->took_ns += now_ns - work->begun_ns;
        work->is_at_work = work->is_run = false;
        work->answered = work->order.number + n - 1;
        if (!error)
                keep_sizes(work);
        pass(work, n, error || is_slow);
        if (!error && is_inside && !is_slow)
                return 0;
        if (!error && may_keep(work, now_ns, n) && !is_inside)
                return 0;
        r = answer(work, work->answered, error);
        return r < 0 ? dli_report(&work->reason, r) : 0;
}

int dlc_work_done(struct dlc_work *work, const char *error) {
        int r = check_handle(work, "dlc_work_done");

        if (r < 0)
                return r;
        if (!work->is_at_work || work->is_run)
                return dli_refuse(-EINVAL, "dlc_work_done: %s",
                                  work->is_run ? "what dlc_work_next_run() returned is answered with "
                                                 "dlc_work_run_done()"
                                               : "there is no sample that is not answered yet");
        return done(work, 1, error);
}

/* ---- runs ------------------------------------------------------------------------------------------------------ */

static void fill_run(struct dlc_work *work, const Dlp__Order *told) {
        uint32_t n = (uint32_t)(told->n_others + 1 - work->idx_sample);

        for (uint32_t k = 0; k < n; k++) {
                work->samples[k] = work->idx_sample + k == 0 ? told->sample : told->others[work->idx_sample + k - 1];
                for (uint32_t i = 0; i < work->order.n_steps; i++)
                        work->seeds[k * work->order.n_steps + i] = seed_of(told->steps[i], work->idx_sample + k);
        }
        work->run = (struct dlc_run){ .first = &work->order,
                                      .n_samples = n,
                                      .samples = work->samples,
                                      .seeds = work->seeds,
                                      .input_strides = work->input_strides,
                                      .output_strides = work->output_strides,
                                      .begun = (uint64_t *)&work->mark->begun };
}

int dlc_work_next_run(struct dlc_work *work, int timeout_ms, const struct dlc_run **ret_run) {
        int r = begin(work, "dlc_work_next_run", ret_run, timeout_ms);

        if (r < 0)
                return r;
        fill_run(work, work->orders->orders->orders[work->next]);
        work->is_run = true;
        *ret_run = &work->run;
        return 0;
}

int dlc_work_run_done(struct dlc_work *work, uint32_t n_done, const char *error) {
        uint32_t n = n_done + (error != NULL);
        int r = check_handle(work, "dlc_work_run_done");

        if (r < 0)
                return r;
        if (!work->is_at_work || !work->is_run)
                return dli_refuse(-EINVAL, "dlc_work_run_done: there is no run that is not answered yet");
        if (n == 0 || n > work->run.n_samples)
                return dli_refuse(-EINVAL,
                                  "dlc_work_run_done: n_done: %u, and the run has %u samples; one or more "
                                  "must be done, or fail",
                                  n_done, work->run.n_samples);
        return done(work, n, error);
}

int dlc_work_ended(struct dlc_work *work, uint64_t worker, const char *text, bool is_last) {
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__WorkEnded body = DLP__WORK_ENDED__INIT;
        char copy[TEXT_MAX + 1];
        int r = check_handle(work, "dlc_work_ended");

        if (r < 0)
                return r;
        if ((!text && is_last) || !work->supervises)
                return dli_refuse(-EINVAL, "dlc_work_ended: %s",
                                  work->supervises ? "the last one needs a text" : "this process does not supervise");
        if (text) {
                cut(text, copy);
                body.text = copy;
        }
        body.worker = worker;
        body.is_last = is_last;
        body.is_innocent = !text;
        request.body_case = DLP__REQUEST__BODY_WORK_ENDED;
        request.work_ended = &body;
        r = dli_connection_send(&work->connection, &request, &work->reason);
        return r < 0 ? dli_report(&work->reason, r) : 0;
}
