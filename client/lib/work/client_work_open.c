/* A worker process connects: what the daemon says of the rank's batches is checked, and their memory is mapped. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/lib/reason.h"
#include "client/lib/work/handle.h"

#define CLIENT_NAME "libdlclient (worker process)"

int dli_work_damaged(struct dlc_work *work) {
        return why_set(&work->reason, -EPROTO, "the daemon at %s sends orders that make no sense",
                       work->connection.path);
}

bool dli_work_product(uint64_t n_bytes, const int64_t *shape, size_t n, uint64_t *ret_bytes) {
        for (size_t i = 0; i < n; i++)
                if (shape[i] < 0 || __builtin_mul_overflow(n_bytes, (uint64_t)shape[i], &n_bytes))
                        return false;
        *ret_bytes = n_bytes;
        return true;
}

/* The largest sample of an output has a place. */
static bool keep_most(const Dlp__Form *told, struct work_form *form) {
        uint64_t n_bytes;

        if (!form->varies)
                return told->n_most == 0;
        if (told->n_most != told->n_shape)
                return false;
        memcpy(form->most, told->most, told->n_most * sizeof(*told->most));
        for (size_t i = 0; i < told->n_shape; i++)
                if (form->shape[i] >= 0 && form->shape[i] != form->most[i])
                        return false;
        return dli_work_product(dlp_dtype_bytes(form->dtype), form->most, form->n_dims, &n_bytes) &&
               n_bytes <= form->stride;
}

/* Does each of its samples lie within a slot? A shape that varies is checked when it is told. */
static bool keep_form(const struct dlc_work *work, const Dlp__Form *told, struct work_form *form) {
        uint64_t n_bytes = 0, room, end;

        if (!told || told->n_shape >= DLP_DIMS_MAX || dlp_dtype_bytes(told->dtype) == 0)
                return false;
        *form = (struct work_form){
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
        if (!form->varies && (!dli_work_product(dlp_dtype_bytes(form->dtype), form->shape, form->n_dims, &n_bytes) ||
                              n_bytes > form->stride))
                return false;
        return !__builtin_mul_overflow(form->stride, (uint64_t)work->batch_size, &room) &&
               !__builtin_add_overflow(form->offset, room, &end) && end <= work->slot_bytes;
}

/* An array of all samples has no gaps; the shape of each one of a list lies beside it. */
static bool client_work_open_check_whole(const struct work_form *form) {
        uint64_t n_bytes = 0, end;

        if (form->varies)
                return form->shape_at % sizeof(int64_t) == 0 && form->stride % sizeof(int64_t) == 0 &&
                       !__builtin_add_overflow(form->shape_at, form->n_dims * sizeof(int64_t), &end) &&
                       end <= form->stride;
        return dli_work_product(dlp_dtype_bytes(form->dtype), form->shape, form->n_dims, &n_bytes) &&
               n_bytes == form->stride;
}

static int keep_whole(struct dlc_work *work, uint32_t idx_step) {
        struct work_step *step = &work->steps[idx_step];
        uint64_t room, end;

        if (!client_work_open_check_whole(&step->input) || !client_work_open_check_whole(&step->output) ||
            work->numbers_offset % sizeof(int64_t) != 0 ||
            __builtin_mul_overflow((uint64_t)work->batch_size, sizeof(int64_t), &room) ||
            __builtin_add_overflow(work->numbers_offset, room, &end) || end > work->slot_bytes)
                return dli_work_damaged(work);
        step->is_whole = true;
        if (!step->input.varies)
                return 0;
        work->lists[idx_step] = calloc(work->batch_size, sizeof(struct dlc_array));
        return work->lists[idx_step] ? 0 : why_errno(&work->reason, -ENOMEM, "dlc_work_open");
}

static int client_work_open_keep(struct dlc_work *work, const Dlp__Working *working) {
        uint64_t slots_bytes, end;
        struct work_step *first = NULL; /* of the call */
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
                return dli_work_damaged(work);
        for (size_t i = 0; i < working->n_steps; i++) {
                const Dlp__WorkStep *told = working->steps[i];
                struct work_step *step = &work->steps[i];

                if (strlen(told->function) >= sizeof(step->function) || strlen(told->field) >= sizeof(step->field) ||
                    strlen(told->parameter) >= sizeof(step->parameter) || (told->goes_on && i == 0) ||
                    !keep_form(work, told->input, &step->input) || !keep_form(work, told->output, &step->output) ||
                    !keep_most(told->output, &step->output))
                        return dli_work_damaged(work);
                strcpy(step->function, told->function);
                strcpy(step->field, told->field);
                strcpy(step->parameter, told->parameter[0] ? told->parameter : told->field);
                first = told->goes_on ? first : step;
                step->n_fields = 0;
                first->n_fields++;
                if (told->whole)
                        r = keep_whole(work, (uint32_t)i);
                else if (i > 0 && work->steps[i - 1].is_whole) /* those for samples are the first ones */
                        r = dli_work_damaged(work);
                if (r < 0)
                        return r;
        }
        work->n_steps = (uint32_t)working->n_steps;
        return 0;
}

static int client_work_open_map_file(struct dlc_work *work, int fd, uint64_t n_bytes, void **ret_base) {
        struct stat status;
        void *base;

        if (fstat(fd, &status) < 0 || (uint64_t)status.st_size < n_bytes)
                return dli_work_damaged(work);
        base = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED)
                return why_errno(&work->reason, -errno, "cannot map the memory of the rank's batches");
        *ret_base = base;
        return 0;
}

/* The page before the slots belongs to the rank: it is taken away, as a function might write there by mistake. Huge
 * pages cannot be divided. */
static int client_work_open_map(struct dlc_work *work, const int fds[2]) {
        void *base;
        int r = client_work_open_map_file(work, fds[0], work->payload_bytes, &base);

        if (r < 0)
                return r;
        work->payload = base;
        mprotect(base, work->slots_offset, PROT_NONE);
        r = client_work_open_map_file(work, fds[1], DLP_MARK_BYTES, &base);
        if (r == 0)
                work->mark = base;
        return r;
}

static int client_work_open_connect_and_ask(struct dlc_work *work, const struct dlc_work_options *options) {
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
                return r < 0 ? r : dli_work_damaged(work);
        r = reply->body_case == DLP__REPLY__BODY_WORKING ? client_work_open_keep(work, reply->working)
                                                         : dli_work_damaged(work);
        dlp__reply__free_unpacked(reply, NULL);
        if (r == 0 && !options->supervises)
                r = client_work_open_map(work, fds);
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
        r = client_work_open_connect_and_ask(work, &resolved);
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
