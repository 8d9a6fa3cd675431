/* Worker processes: they take samples from the daemon, one after the other, and say when each is done. See dlclient.h,
 * and daemon/pipeline/desk/desk.h for what the daemon does. */

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/lib/client_clock.h"
#include "client/lib/reason.h"
#include "client/lib/work/handle.h"
#include "proto/base/clock.h"

#define TEXT_MAX   380
#define ANSWER_NS  200000ull   /* for how long answers are kept back, if functions usually take less */
#define RUN_MAX_NS 20000000ull /* that a run may take; the rest of it is given back then */

static int client_work_check_handle(struct dlc_work *work, const char *function) {
        if (!work)
                return dli_refuse(-EINVAL, "%s: work must not be NULL", function);
        if (work->owner != getpid())
                return dli_refuse(-ECHILD, "%s: opened before a fork; only the parent can use it", function);
        return 0;
}

/* An error that answers nothing is the reason why the daemon closes the connection: what came through it was wrong. */
static int closed(struct dlc_work *work, const char *text) {
        return why_set(&work->reason, -EPROTO, "%.300s", text);
}

/* ---- answers --------------------------------------------------------------------------------------------------- */

/* What is sent is text of at most TEXT_MAX bytes, cut between two characters. */
static void client_work_cut(const char *text, char ret_text[TEXT_MAX + 1]) {
        size_t n = strnlen(text, TEXT_MAX);

        if (text[n] != '\0')
                while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
                        n--;
        memcpy(ret_text, text, n);
        ret_text[n] = '\0';
}

/* Answers `number`, and all orders before it. */
static int client_work_answer(struct dlc_work *work, uint64_t number, const char *error) {
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Worked body = DLP__WORKED__INIT;
        char text[TEXT_MAX + 1];
        int r;

        body.number = number;
        body.failed = error != NULL;
        body.took_ns = work->took_ns;
        if (error) {
                client_work_cut(error, text);
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
        return work->n_kept > 0 ? client_work_answer(work, work->answered, NULL) : 0;
}

/* ---- orders ---------------------------------------------------------------------------------------------------- */

static int client_work_gone(struct dlc_work *work) {
        return why_set(&work->reason, -ECONNRESET, "the rank has left, or the daemon at %s has ended",
                       work->connection.path);
}

/* Takes in one packet. 0, or -EAGAIN if there is none. */
static int client_work_receive(struct dlc_work *work) {
        struct dli_connection *connection = &work->connection;
        ssize_t n = dlp_frame_receive(connection->socket, connection->packet, DLP_PACKET_MAX, NULL, 0, NULL,
                                      MSG_DONTWAIT);
        Dlp__Reply *reply;

        if (n == -EAGAIN || n == -EINTR)
                return -EAGAIN;
        if (n <= 0)
                return client_work_gone(work);
        reply = dlp__reply__unpack(NULL, (size_t)n, connection->packet);
        if (reply && reply->body_case == DLP__REPLY__BODY_ORDERS) {
                work->orders = reply;
                work->next = work->idx_sample = 0;
                return 0;
        }
        if (!reply)
                return dli_work_damaged(work);
        n = reply->error && reply->error->code == EPROTO ? closed(work, reply->error->text) : client_work_gone(work);
        dlp__reply__free_unpacked(reply, NULL);
        return (int)n;
}

static int wait_for_orders(struct dlc_work *work, int timeout_ms) {
        uint64_t deadline_ns = dli_deadline(timeout_ms);
        int r;

        for (;;) {
                r = client_work_receive(work);
                if (r == 0 && work->orders->orders->n_orders == 0)
                        return dli_work_damaged(work);
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
static int client_work_begin(struct dlc_work *work, const char *function, const void *output, int timeout_ms) {
        int r = client_work_check_handle(work, function);

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
                r = dli_work_fill(work, work->orders->orders->orders[work->next]);
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
        int r = client_work_begin(work, "dlc_work_next", ret_order, timeout_ms);

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
        return work->orders && work->n_kept < WORK_ANSWERS_MAX && work->usual_ns < ANSWER_NS &&
               now_ns - work->kept_ns < ANSWER_NS;
}

bool dlc_work_varies(const struct dlc_work *work, uint32_t idx_step, uint32_t dim) {
        return work && idx_step < work->n_steps && dim < work->steps[idx_step].output.n_dims &&
               work->steps[idx_step].output.shape[dim] < 0;
}

int dlc_work_deliver(struct dlc_work *work, uint32_t idx_step, const int64_t *shape) {
        int r = client_work_check_handle(work, "dlc_work_deliver");
        const struct work_form *form;

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
        r = client_work_answer(work, work->answered, error);
        return r < 0 ? dli_report(&work->reason, r) : 0;
}

int dlc_work_done(struct dlc_work *work, const char *error) {
        int r = client_work_check_handle(work, "dlc_work_done");

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

int dlc_work_next_run(struct dlc_work *work, int timeout_ms, const struct dlc_run **ret_run) {
        int r = client_work_begin(work, "dlc_work_next_run", ret_run, timeout_ms);

        if (r < 0)
                return r;
        dli_work_fill_run(work, work->orders->orders->orders[work->next]);
        work->is_run = true;
        *ret_run = &work->run;
        return 0;
}

int dlc_work_run_done(struct dlc_work *work, uint32_t n_done, const char *error) {
        uint32_t n = n_done + (error != NULL);
        int r = client_work_check_handle(work, "dlc_work_run_done");

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
        int r = client_work_check_handle(work, "dlc_work_ended");

        if (r < 0)
                return r;
        if ((!text && is_last) || !work->supervises)
                return dli_refuse(-EINVAL, "dlc_work_ended: %s",
                                  work->supervises ? "the last one needs a text" : "this process does not supervise");
        if (text) {
                client_work_cut(text, copy);
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
