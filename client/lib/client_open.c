/* The life of a loader: opening it, asking about it, closing it. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/lib/client_clock.h"
#include "client/lib/loader.h"
#include "proto/version.h"

/* How many loaders this process has opened: the number in the default name of a job. */
static _Atomic uint64_t n_opened;

/* ---- fork ---------------------------------------------------------------------------------------------------- */

/* A page that holds 1 here; in the child of a fork() the kernel clears it to 0. So the check costs one load instead of
 * a system call for each batch. If the kernel cannot do this, the pid is compared instead. */
static void watch_fork(struct dlc_loader *loader) {
        size_t n = (size_t)sysconf(_SC_PAGESIZE);
        void *page = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        loader->pid = getpid();
        if (page == MAP_FAILED)
                return;
        loader->fork_mapping = (struct dli_mapping){ .base = page, .bytes = n };
        if (madvise(page, n, MADV_WIPEONFORK) < 0)
                return;
        atomic_store_explicit((_Atomic uint32_t *)page, 1, memory_order_relaxed);
        loader->opened_here = page;
}

int dli_loader_check(const struct dlc_loader *loader) {
        bool here = loader->opened_here ? atomic_load_explicit(loader->opened_here, memory_order_relaxed) == 1
                                        : loader->pid == getpid();

        return here ? 0 : -ECHILD;
}

int dli_loader_in_child(void) {
        return dli_refuse(
                -ECHILD,
                "this loader was opened before a fork: only the parent can use it. Open one in the child instead");
}

int dli_loader_enter(struct dlc_loader *loader, const char *name, bool may_have_failed) {
        if (!loader)
                return dli_refuse(-EINVAL, "%s: loader must not be NULL", name);
        if (dli_loader_check(loader) < 0)
                return why_set(&loader->reason, dli_loader_in_child(), "%s", dlc_last_error());
        if (loader->failed == 0 || (may_have_failed && !loader->is_detached))
                return 0;
        loader->reason = loader->failure;
        return dli_report(&loader->reason, loader->failed);
}

int dli_loader_fail(struct dlc_loader *loader, int error) {
        loader->failed = error;
        loader->failure = loader->reason;
        return error;
}

/* ---- opening and closing ------------------------------------------------------------------------------------- */

/* Opens with the job's own name, or the run's. If the opening fails, its number is given back, so that a rank that had
 * to try twice still has the same numbers as the others. */
static int open_with(struct dlc_loader *loader, struct dlc_options *options) {
        uint64_t number = atomic_fetch_add(&n_opened, 1), taken = number + 1;
        char job[DLP_NAME_MAX];
        int r = 0;

        if (!options->job) {
                r = dli_environment_job((uint32_t)options->world_size, number, &loader->reason, job);
                options->job = job;
        }
        if (r == 0)
                r = dli_attach(loader, options);
        if (r == 0)
                r = dli_watch_begin(loader);
        if (r < 0)
                atomic_compare_exchange_strong(&n_opened, &taken, number);
        return r;
}

int dlc_open(const struct dlc_options *options, struct dlc_loader **ret_loader) {
        struct dlc_options resolved;
        struct dli_launch launch;
        struct why reason = { "" };
        struct dlc_loader *loader;
        int r;

        if (!options || !ret_loader)
                return dli_refuse(-EINVAL, "dlc_open: options and ret_loader must not be NULL");
        r = dli_options_resolve(options, &reason, &resolved, &launch);
        if (r < 0)
                return dli_report(&reason, r);

        loader = aligned_alloc(DLP_CACHE_LINE, sizeof(*loader));
        if (!loader)
                return dli_refuse(-ENOMEM, "no memory for a loader");
        memset(loader, 0, sizeof(*loader));
        loader->connection.socket = loader->poll_fd = loader->timer_fd = -1;
        loader->connection.sent_fd = loader->columns.fd = -1;
        loader->daemon = DLI_DAEMON_NONE;
        loader->warning = launch.remark;
        loader->launch = launch;
        watch_fork(loader);

        r = open_with(loader, &resolved);
        if (r < 0) {
                dli_report(&loader->reason, r);
                dlc_close(loader);
                return r;
        }
        why_set(&loader->reason, 0, "%s", ""); /* the text of a wait is not an error */
        loader->counts.opened_ns = clock_now_ns();
        *ret_loader = loader;
        return 0;
}

void dlc_close(struct dlc_loader *loader) {
        if (!loader)
                return;
        dli_connection_close(&loader->connection);
        dli_start_end(&loader->daemon.start);
        dli_sources_free(&loader->sources);
        dli_watch_end(loader);
        dli_rings_free(dli_ring_of(loader), dli_loader_check(loader) == 0);
        dli_unmap(&loader->fork_mapping);
        dli_classes_free(loader);
        dli_samples_free(loader);
        dli_diagnosis_free(loader);
        free(loader->made.samples);
        free((uint64_t *)(uintptr_t)loader->blocks.ends);
        dli_columns_free(&loader->columns);
        dli_options_free(&loader->options);
        free(loader->digest);
        dli_parts_free(loader);
        dli_forms_free(&loader->forms);
        free(loader->pipeline);
        free(loader->job);
        free(loader->sampler);
        free(loader->dataset);
        free(loader);
}

void dlc_detach(struct dlc_loader *loader) {
        if (!loader || dli_loader_check(loader) < 0 || loader->is_detached)
                return;
        dli_watch_no_socket(loader);
        dli_watch_clock(loader, false);
        dli_connection_close(&loader->connection);
        if (loader->state != DLI_AWAY)
                dli_ring_leave(dli_ring_of(loader));
        loader->state = DLI_AWAY;
        loader->is_detached = true;
        loader->info.is_waiting = 0;
        why_set(&loader->reason, 0, "this loader was detached: its batches can be read and released, no more");
        dli_loader_fail(loader, -ESHUTDOWN);
}

/* ---- information about a loader ------------------------------------------------------------------------------ */

const struct dlc_info *dlc_get_info(const struct dlc_loader *loader) {
        return loader ? &loader->info : NULL;
}

int dlc_get_left_form(const struct dlc_loader *loader, uint32_t idx, struct dlc_left_form *ret_form, size_t size) {
        const struct dlc_left_form *form;

        if (!loader || !ret_form)
                return dli_refuse(-EINVAL, "dlc_get_left_form: loader and ret_form must not be NULL");
        if (idx >= loader->forms.n)
                return -ENOENT;
        form = &loader->forms.items[idx];
        if (form->operations_at > 0 && size <= offsetof(struct dlc_left_form, operations_at)) /* would be lost */
                return dli_refuse(-EINVAL,
                                  "dlc_get_left_form: operations are left to a caller who knows nothing of them: "
                                  "leave_operations was set by a newer program than the one that asks");
        if (size > sizeof(*form))
                memset((uint8_t *)ret_form + sizeof(*form), 0, size - sizeof(*form));
        memcpy(ret_form, form, size < sizeof(*form) ? size : sizeof(*form));
        return 0;
}

uint64_t dlc_epoch_batches(const struct dlc_loader *loader) {
        return loader ? loader->info.epoch_batches : 0;
}

uint64_t dlc_epoch_samples(const struct dlc_loader *loader) {
        return loader ? loader->info.epoch_samples : 0;
}

uint64_t dlc_dataset_samples(const struct dlc_loader *loader) {
        return loader ? loader->info.dataset_samples : 0;
}

const char *dlc_dataset_digest(const struct dlc_loader *loader) {
        return loader ? loader->info.dataset_digest : NULL;
}

int dlc_fd(const struct dlc_loader *loader) {
        if (!loader)
                return dli_refuse(-EINVAL, "dlc_fd: loader must not be NULL");
        if (dli_loader_check(loader) < 0)
                return dli_loader_in_child();
        if (loader->is_detached)
                return dli_report(&loader->failure, -ESHUTDOWN);
        return loader->poll_fd;
}

int dlc_get_launch(struct dlc_launch *ret_launch, size_t size) {
        static _Thread_local char run[DLP_NAME_MAX];
        static _Thread_local struct why remark;
        struct dlc_launch launch = { .run = run, .remark = remark.text };
        struct dli_launch found;
        struct why reason;
        int r;

        if (!ret_launch)
                return dli_refuse(-EINVAL, "dlc_get_launch: ret_launch must not be NULL");
        r = dli_environment_rank(-1, -1, &reason, &found);
        if (r < 0)
                return dli_report(&reason, r);
        dli_environment_run(run, sizeof(run));
        remark = found.remark;
        launch.rank = found.rank;
        launch.world_size = found.world;
        launch.launcher = found.launcher;
        if (size > sizeof(launch))
                memset((uint8_t *)ret_launch + sizeof(launch), 0, size - sizeof(launch));
        memcpy(ret_launch, &launch, size < sizeof(launch) ? size : sizeof(launch));
        return 0;
}

const char *dlc_error(const struct dlc_loader *loader) {
        return loader ? loader->reason.text : "";
}

const char *dlc_dtype_name(uint32_t dtype) {
        return dlp_dtype_name(dtype);
}

size_t dlc_dtype_bytes(uint32_t dtype) {
        return dlp_dtype_bytes(dtype);
}

const char *dlc_version(void) {
        return DLP_FULL_VERSION;
}
