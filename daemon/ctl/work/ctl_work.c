#include "daemon/ctl/work/ctl_work.h"
#include "daemon/base/work/closer.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/codec/steps/python_step.h"
#include "daemon/collate/delivered.h"
#include "daemon/ctl/handlers.h"
#include "daemon/pipeline/desk/desk.h"
#include "daemon/ring/lent.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/order/philox.h"

#define WORDS_MAX      2048u        /* of all runs in a packet: three runs, each with a seed for each step */
#define FUNCTION_DRAWS (1ull << 63) /* the stream of draws of functions, far from those of views and parts */

/* ---- orders ---------------------------------------------------------------------------------------------------- */

struct order_message {
        Dlp__Order order;
        Dlp__OrderStep steps[DLP_TENSORS_MAX], *pointers[DLP_TENSORS_MAX];
};

/* A packet of them. Main thread. */
struct orders_message {
        struct order_message orders[DLP_ORDERS_MAX];
        Dlp__Order *pointers[DLP_ORDERS_MAX];
        uint64_t words[WORDS_MAX]; /* of runs: samples and seeds */
        uint32_t n_words;
};

/* Of a sample alone. Of a whole batch the shapes are beside the inputs. */
static bool ctl_work_input_varies(const struct field_layout *field) {
        if (field->form.is_whole)
                return false;
        for (uint32_t k = 0; field->form.input.n_bytes > 0 && k < field->form.input.n_dims; k++)
                if (field->form.input.shape[k] < 0)
                        return true;
        return false;
}

/* A function's draws follow from the seed of its part, as those of steps do. */
static uint64_t ctl_work_seed_of(const struct task *task, uint64_t position, uint32_t idx_field) {
        const struct codec *codec = program_codec(task->program, idx_field);
        const struct codec_input input = { .seed = task_seed_at(task, position, codec_draws(codec)) };

        return dlp_philox_seed(codec_seed(codec, &input), FUNCTION_DRAWS);
}

static uint64_t *ctl_work_take_words(struct orders_message *orders, uint32_t n) {
        assert(orders->n_words + n <= WORDS_MAX); /* desk_take() gives no more */
        orders->n_words += n;
        return orders->words + orders->n_words - n;
}

/* What its other samples have beside the first. Their seeds differ only where samples come several times. */
static void fill_run(struct orders_message *orders, struct order_message *message, const struct desk *desk,
                     const struct task *task) {
        uint32_t n = task->n_rows - 1;

        message->order.others = ctl_work_take_words(orders, n);
        message->order.n_others = n;
        for (uint32_t k = 0; k < n; k++)
                message->order.others[k] = task->rows[k + 1].index;
        for (uint32_t i = 0; i < desk->n_of_samples && desk->feed->job->terms.repeats; i++) {
                message->steps[i].seeds = ctl_work_take_words(orders, n);
                message->steps[i].n_seeds = n;
                for (uint32_t k = 0; k < n; k++)
                        message->steps[i].seeds[k] = ctl_work_seed_of(task, task->rows[k + 1].position, desk->steps[i]);
        }
}

static void order_fill(struct orders_message *orders, uint32_t idx, const struct desk *desk, struct task *task) {
        struct order_message *message = &orders->orders[idx];
        Dlp__Order *order = &message->order;
        uint32_t first, n;

        desk_steps_of(desk, task, &first, &n);
        dlp__order__init(order);
        orders->pointers[idx] = order;
        order->number = task->function.number;
        order->slot = task->batch->slot->idx;
        order->place = task->idx_sample;
        order->epoch = task->batch->epoch;
        order->sample = task->sample.candidate;
        if (desk_is_whole(task))
                order->n_samples = task->batch->n_kept;
        for (uint32_t i = 0; i < n; i++) {
                uint32_t idx_field = desk->steps[first + i];
                const struct field_layout *field = &desk->feed->layout.fields[idx_field];
                Dlp__OrderStep *step = &message->steps[i];

                dlp__order_step__init(step);
                step->seed = ctl_work_seed_of(task, task->sample.position, idx_field);
                if (ctl_work_input_varies(field)) {
                        step->shape = task->inputs[idx_field];
                        step->n_shape = field->form.input.n_dims;
                }
                message->pointers[i] = step;
        }
        order->steps = message->pointers;
        order->n_steps = n;
        if (task_n_samples(task) > 1)
                fill_run(orders, message, desk, task);
}

/* Orders for `n` samples, a run may be over that. May close the session. */
static void send_orders(struct desk *desk, struct seat *seat, uint32_t n) {
        static struct orders_message message; /* main thread only */
        struct session *session = seat->userdata;
        Dlp__Orders orders = DLP__ORDERS__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;
        uint32_t n_samples = 0;
        struct task *task;

        message.n_words = 0;
        while (n_samples < n && (task = desk_take(desk, seat))) {
                n_samples += task_n_samples(task);
                order_fill(&message, (uint32_t)orders.n_orders++, desk, task);
        }
        if (orders.n_orders == 0)
                return;
        orders.orders = message.pointers;
        reply.body_case = DLP__REPLY__BODY_ORDERS;
        reply.orders = &orders;
        session_reply(session, &reply, NULL, 0);
        if (session->seat)
                session->seat->n_sent = session->seat->n_dealt;
}

/* A process that does not read is closed while it is dealt to, and that deals again: then the loop that runs goes on.
 * Else the stack would grow with each of many processes that do not read. */
static void ctl_work_deal(struct desk *desk) {
        struct seat *seat;
        uint32_t n;

        if (desk->is_dealing)
                return;
        desk_end_late(desk);
        desk->is_dealing = true;
        while ((seat = desk_next_seat(desk, &n)))
                send_orders(desk, seat, n);
        desk->is_dealing = false;
}

void work_deal(struct session *rank) {
        if (rank->feed && rank->feed->desk)
                ctl_work_deal(rank->feed->desk);
}

/* ---- attaching ------------------------------------------------------------------------------------------------- */

/* Takes the same time whatever the ticket is. */
static bool is_ticket(const char *ticket, const char *wanted) {
        unsigned differ = strlen(ticket) != DESK_TICKET_MAX - 1;

        for (size_t i = 0; !differ && i < DESK_TICKET_MAX - 1; i++)
                differ |= (unsigned)(ticket[i] ^ wanted[i]);
        return differ == 0;
}

static struct session *find_rank(const struct session *session, const char *ticket) {
        struct session *rank;

        TAILQ_FOREACH(rank, &session->server->sessions, entry)
                if (!rank->closed && rank->feed && rank->feed->desk && rank->peer.uid == session->peer.uid &&
                    is_ticket(ticket, rank->feed->desk->ticket))
                        return rank;
        return NULL;
}

struct told_step {
        Dlp__WorkStep step, *pointer;
        Dlp__Form input, output;
};

static void tell_form(Dlp__Form *form, uint64_t offset, uint64_t stride, uint32_t dtype, uint32_t n_dims,
                      const int64_t *shape) {
        dlp__form__init(form);
        form->offset = offset;
        form->stride = stride;
        form->dtype = dtype;
        form->shape = (int64_t *)(uintptr_t)shape;
        form->n_shape = n_dims;
}

static void tell_step(struct told_step *told, const struct feed *feed, uint32_t idx_field) {
        const struct python_step *python = program_python(programs_first(feed->programs), idx_field);
        const struct field_layout *field = &feed->layout.fields[idx_field];
        const struct field_form *form = &field->form;

        dlp__work_step__init(&told->step);
        told->step.function = (char *)(uintptr_t)python->function;
        told->step.parameter = (char *)(uintptr_t)python->parameter;
        told->step.goes_on = python->goes_on;
        told->step.whole = python->is_whole;
        told->step.field = (char *)(uintptr_t)form->name;
        if (form->result.n_bytes > 0)
                tell_form(&told->output, field->result_offset, field->result_bytes, form->result.dtype,
                          form->result.n_dims, form->result.shape);
        else
                tell_form(&told->output, field->offset, field->sample_bytes, form->dtype, form->n_dims, form->shape);
        if (delivered_varies(form)) {
                told->output.most = (int64_t *)(uintptr_t)form->result.most;
                told->output.n_most = form->result.n_dims;
        }
        if (form->input.n_bytes > 0)
                tell_form(&told->input, field->input_offset, field->input_bytes, form->input.dtype, form->input.n_dims,
                          form->input.shape);
        else
                told->input = told->output;
        told->input.shape_at = field->input_shape_at;
        told->step.input = &told->input;
        told->step.output = &told->output;
        told->pointer = &told->step;
}

static void ctl_work_tell(struct session *session, uint64_t id, const struct feed *feed, const int fds[2]) {
        const struct desk *desk = feed->desk;
        const struct dlp_control *control = feed->ring->control;
        struct told_step told[DLP_TENSORS_MAX];
        Dlp__WorkStep *pointers[DLP_TENSORS_MAX];
        Dlp__Working working = DLP__WORKING__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;

        for (uint32_t i = 0; i < desk->n_steps; i++) {
                tell_step(&told[i], feed, desk->steps[i]);
                pointers[i] = &told[i].step;
        }
        working.steps = pointers;
        working.n_steps = desk->n_steps;
        working.payload_bytes = feed->ring->payload_segment.n_bytes;
        working.slots_offset = control->slots_offset;
        working.slot_bytes = control->slot_bytes;
        working.n_slots = control->n_slots;
        working.batch_size = control->batch_size;
        working.numbers_offset = feed->layout.numbers_offset;
        reply.id = id;
        reply.body_case = DLP__REPLY__BODY_WORKING;
        reply.working = &working;
        session_reply(session, &reply, fds, fds[0] >= 0 ? 2 : 0);
}

/* The page cannot be made shorter by the process: the daemon reads it later. */
static int make_mark(int *ret_fd, const struct dlp_mark **ret_mark, struct why *why) {
        _cleanup_(closep) int fd = memfd_create("dataloaderd-mark", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        void *page = MAP_FAILED;

        if (fd >= 0 && ftruncate(fd, DLP_MARK_BYTES) == 0 &&
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
                page = mmap(NULL, DLP_MARK_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        if (page == MAP_FAILED)
                return why_errno(why, -errno, "work: a page for a worker process");
        *ret_mark = page;
        *ret_fd = take_fd(&fd);
        return 0;
}

static void ctl_work_seat_free(struct seat *seat) {
        if (seat->mark)
                munmap((void *)(uintptr_t)seat->mark, DLP_MARK_BYTES);
        free(seat);
}

/* The rank's memory is opened anew, as for the trainer: so it is known who holds it. */
static int ctl_work_lend(const struct feed *feed, struct seat *seat, int ret_fds[2], struct why *why) {
        int fd, r;

        if (seat->supervises)
                return 0;
        r = make_mark(&ret_fds[1], &seat->mark, why);
        if (r < 0)
                return r;
        fd = lent_open(feed->ring->payload_segment.fd, O_RDWR, why);
        ret_fds[0] = fd;
        return fd < 0 ? fd : 0;
}

static void close_both(const int fds[2]) {
        for (int i = 0; i < 2; i++)
                if (fds[i] >= 0)
                        close(fds[i]);
}

static uint64_t ctl_work_limit_of(const Dlp__Work *work) {
        if (work->limit_ms == 0)
                return LIMIT_NS;
        return work->limit_ms < 0 || work->limit_ms > INT32_MAX ? 0 : (uint64_t)work->limit_ms * 1000000u;
}

void handle_work(struct session *session, const Dlp__Request *request) {
        const Dlp__Work *work = request->work;
        struct session *rank = find_rank(session, work->ticket);
        int fds[2] = { -1, -1 }, r;
        struct seat *seat;
        struct why why;

        if (session->state != SESSION_OPEN) {
                session_refuse(session, request->id, -EISCONN,
                               "work: this connection is used already; open another one");
                return;
        }
        if (!rank) {
                session_refuse(session, request->id, -ENOENT,
                               "work: no rank of this user has the ticket: its loader was closed, or the daemon has "
                               "started anew");
                return;
        }
        if (desk_has_batches(rank->feed->desk) && !work->supervises && !work->takes_batches) {
                session_refuse(session, request->id, -EPROTONOSUPPORT,
                               "work: a function of this rank gets whole batches (batch=true), and the libdlclient of "
                               "this worker process is too old for that: install the version of the daemon's");
                return;
        }
        if (work->supervises && rank->feed->desk->supervisor) {
                session_refuse(session, request->id, -EADDRINUSE,
                               "work: another process supervises the worker processes of this rank");
                return;
        }
        seat = calloc(1, sizeof(*seat));
        if (!seat) {
                session_refuse(session, request->id, -ENOMEM, "work: out of memory");
                return;
        }
        seat->userdata = session;
        seat->worker = work->worker;
        seat->supervises = work->supervises;
        seat->takes_runs = work->takes_runs;
        seat->pid = session->peer.pid;
        seat->limit_ns = ctl_work_limit_of(work);
        r = ctl_work_lend(rank->feed, seat, fds, &why);
        if (r < 0) {
                close_both(fds);
                ctl_work_seat_free(seat);
                session_refuse(session, request->id, r, why.text);
                return;
        }
        session->seat = seat;
        session->state = SESSION_WORKING;
        closer_refuse_descriptors(session->fd);
        desk_sit(rank->feed->desk, seat);
        log_debug("ctl", "worker process connected job=%s rank=%u pid=%d", rank->job->name, rank->feed->rank,
                  session->peer.pid);
        ctl_work_tell(session, request->id, rank->feed, fds); /* may close the session */
        close_both(fds);
        work_deal(rank);
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* What a process says is put into messages and files. */
static const char *printable(const char *text, char copy[DESK_TEXT_MAX]) {
        snprintf(copy, DESK_TEXT_MAX, "%s", text);
        text_make_printable(copy);
        return copy;
}

static uint32_t n_sizes(const struct desk *desk) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < desk->n_steps; i++)
                n += delivered_n_sizes(&desk->feed->layout.fields[desk->steps[i]].form);
        return n;
}

static void note_sizes(const struct desk *desk, struct task *task, const uint64_t *sizes) {
        for (uint32_t i = 0; i < desk->n_steps; i++) {
                const struct field_form *form = &desk->feed->layout.fields[desk->steps[i]].form;

                delivered_shape(form, sizes, task->results[desk->steps[i]]);
                sizes += delivered_n_sizes(form);
        }
}

/* How large is what functions delivered for the samples that are done? A worker thread checks it. False: there are not
 * as many sizes as there must be. */
static bool take_sizes(const struct seat *seat, const Dlp__Worked *worked) {
        uint32_t n_done = desk_n_answered(seat, worked->number), n = n_sizes(seat->desk);
        size_t at = 0;

        n_done -= n_done > 0 && worked->failed;
        for (uint32_t i = 0; i < n_done && n > 0; i++) {
                if (desk_is_whole(seat->dealt[i])) /* what is delivered of a whole batch has one shape */
                        continue;
                if (at + n > worked->n_sizes)
                        return false;
                note_sizes(seat->desk, seat->dealt[i], worked->sizes + at);
                at += n;
        }
        return at == worked->n_sizes;
}

void handle_worked(struct session *session, const Dlp__Request *request) {
        const Dlp__Worked *worked = request->worked;
        char text[DESK_TEXT_MAX];
        struct desk *desk;

        if (!session->seat) {
                session_close(session, "it answered an order that it was not given");
                return;
        }
        desk = session->seat->desk;
        if (desk && !take_sizes(session->seat, worked)) {
                session_close(session, "its answer does not say the sizes of what was delivered");
                return;
        }
        if (desk_answer(session->seat, worked->number, worked->took_ns,
                        worked->failed ? printable(worked->text, text) : NULL) < 0)
                session_close(session, desk ? "it answered an order that it was not given" : NULL);
        if (desk)
                ctl_work_deal(desk);
}

void handle_work_ended(struct session *session, const Dlp__Request *request) {
        const Dlp__WorkEnded *ended = request->work_ended;
        struct desk *desk = session->seat ? session->seat->desk : NULL;
        char text[DESK_TEXT_MAX];
        struct seat *seat;

        if (!session->seat || !session->seat->supervises) {
                session_close(session, "it supervises no worker processes");
                return;
        }
        if (!desk)
                return;
        if (ended->is_last) {
                desk_give_up(desk, printable(ended->text, text));
        } else {
                seat = desk_find_seat(desk, ended->worker);
                if (seat) /* its end has not been seen yet, or a child of it has its socket */
                        session_process_ended(seat->userdata);
                desk_note_end(desk, ended->worker, ended->is_innocent ? NULL : printable(ended->text, text));
        }
        ctl_work_deal(desk);
}

/* ---- the end --------------------------------------------------------------------------------------------------- */

void work_session_ends(struct session *session, const char *reason) {
        struct desk *desk;

        if (!session->seat)
                return;
        if (reason)
                printable(reason, session->seat->closed);
        desk = session->seat->desk;
        desk_leave(session->seat);
        ctl_work_seat_free(session->seat);
        session->seat = NULL;
        if (desk)
                ctl_work_deal(desk);
}

/* Their seats have no desk any more, so closing their sessions is not taken for the death of a process. */
void work_rank_has_left(struct server *server) {
        struct session *session, *next;

        TAILQ_FOREACH_SAFE(session, &server->sessions, entry, next)
                if (session->seat && !session->seat->desk)
                        session_close(session, NULL);
}
