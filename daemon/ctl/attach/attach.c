/* The request of an attach: what has to be waited for, what can be refused at once, and joining the job. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/work/closer.h"
#include "daemon/ctl/attach/attach.h"
#include "daemon/ctl/ctl_sources.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/users/access.h"
#include "daemon/ctl/users/user_quota.h"
#include "daemon/ring/numa.h"
#include "proto/base/bus_id.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

void attach_free(void *userdata) {
        struct attach *attach = userdata;

        if (attach->wish)
                dlp__attach__free_unpacked(attach->wish, NULL);
        if (attach->columns_fd >= 0)
                closer_close(attach->columns_fd, attach->user);
        sampling_unref(attach->sampling);
        at_hand_fini(&attach->tokenizers);
        if (!attach->feed) { /* otherwise the feed owns them now */
                job_unref(attach->options.job);
                catalog_dataset_unref(attach->options.dataset);
                programs_free(attach->options.programs);
                if (attach->options.wake_socket >= 0)
                        close(attach->options.wake_socket);
        }
        free(attach);
}

/* The version that the rank's job is served from, if the job exists or existed until the daemon restarted: a new
 * version of the dataset is only for new jobs. */
static const char *digest_of_job(const struct job *job, const Dlp__Attach *wish) {
        return job && strcmp(job->terms.dataset, wish->dataset) == 0 ? job->terms.digest : wish->digest;
}

static int read_device(const Dlp__Attach *wish, char ret_bus_id[BUS_ID_MAX], struct why *why) {
        ret_bus_id[0] = '\0';
        if (!wish->near_device[0] || bus_id_read(wish->near_device, ret_bus_id))
                return 0;
        return why_set(why, -EINVAL, "near_device: \"%s\" is not a PCI bus id, such as 0000:1b:00.0",
                       text_is_printable(wish->near_device) ? wish->near_device : "?");
}

/* Batches are written once here, and read once by the client: by its device, if it has one. */
static int node_near(const struct session *session, const char *bus_id) {
        int node = bus_id[0] ? numa_node_of_device("/sys", bus_id) : -1;

        return node >= 0 ? node : numa_node_of_process(session->peer.pid);
}

/* Checks everything that can be refused without waiting. What it acquires is kept in attach->options and the
 * session. */
static int attach_prepare(struct attach *attach, const Dlp__Attach *wish, struct why *why) {
        struct session *session = attach->session;
        struct server *server = session->server;
        const struct codec_named named = { .tokenizers = &attach->tokenizers, .plugins = server->options.plugins };
        struct household *household = NULL;
        struct user *user;
        struct job_terms terms = { 0 };
        struct job *job;
        const struct source *source;
        char bus_id[BUS_ID_MAX];
        uint32_t pid = session->peer.pid > 0 ? (uint32_t)session->peer.pid : wish->pid;
        int r;

        if (session->state != SESSION_OPEN)
                return why_set(why, -EISCONN, "attach: this connection is attached already; open another one");
        if (server->draining)
                return why_set(why, -ESHUTDOWN, "attach: the daemon is stopping");
        r = attach_read_terms(wish, &terms, why);
        if (r == 0)
                r = read_device(wish, bus_id, why);
        if (r < 0)
                return r;
        r = access_find_datasets(session, wish->dataset, why);
        if (r < 0)
                return r;
        job = access_find_job(session, wish->job, wish->dataset);
        r = attach_is_in_blocks(wish)
                    ? catalog_get_blocks(server->options.catalog, wish->dataset, &attach->options.dataset, why)
                    : -ENOTSUP;
        if (r == -ENOTSUP)
                r = catalog_get_joined(server->options.catalog, wish->dataset, digest_of_job(job, wish),
                                       wish->part_digests, wish->n_part_digests, &attach->options.dataset, why);
        if (r < 0)
                return r;
        source = dataset_source(attach->options.dataset->dataset);
        r = programs_parse(wish->pipeline, source, &named, &attach->options.programs, why);
        if (r < 0)
                return r;
        if (wish->leave_forms)
                programs_leave_forms(attach->options.programs, wish->leave_operations >= DLP_LEFT_OPERATIONS_FORMAT);
        snprintf(terms.pipeline, sizeof(terms.pipeline), "%s", program_text(programs_first(attach->options.programs)));
        snprintf(terms.digest, sizeof(terms.digest), "%s", source->digest);
        terms.n_samples = source->n_samples;
        r = attach_settle_order(&terms, source, why);
        if (r == 0)
                r = attach_settle_sampling(attach, wish, source, &terms, why);
        if (r < 0)
                return r;

        attach->options.first = (struct cursor){ .epoch = wish->first_epoch,
                                                 .position = wish->first_position,
                                                 .step = wish->first_step };
        r = cursor_check(&attach->options.first, &terms, wish->rank, source->n_samples, why);
        if (r < 0)
                return r;

        attach->options.wake_socket = fcntl(session->fd, F_DUPFD_CLOEXEC, 0);
        if (attach->options.wake_socket < 0)
                return why_errno(why, -errno, "attach");
        r = quota_descriptor(session, attach->options.wake_socket, why);
        if (r == 0 && !job)
                r = quota_job(session, why);
        if (r < 0)
                return r;
        r = quota_user(session, &user, &attach->options.budget);
        if (r == 0 && !job)
                household = household_get(user, process_job_group(&session->process));
        if (r < 0 || (!job && !household))
                return why_errno(why, -ENOMEM, "attach");
        r = job_join(&server->jobs, job, household, wish->job, &terms,
                     terms.is_made || attach->sampling->wants_blocks ? attach->sampling : NULL, wish->rank, pid,
                     &session->job, &session->member, why);
        if (r < 0)
                return r;
        session->member->process = session->process;
        attach_weigh_job(server, session->job);
        if (wish->digest[0]) /* it had begun before the daemon restarted, and goes on where it was */
                job_move(session->job, session->member, &attach->options.first);
        else
                r = job_place(session->job, session->member, &attach->options.first, why);
        if (r < 0) {
                attach_leave_job(session);
                return r;
        }
        attach->options.job = job_ref(session->job);
        attach->options.rank = wish->rank;
        attach->options.n_epochs = wish->n_epochs;
        attach->options.n_slots = wish->n_slots ? wish->n_slots : (uint32_t)server->options.settings->slots;
        attach->options.numa_node = node_near(session, bus_id);
        attach->options.is_unwanted = &session->is_unwanted;
        return 0;
}

/* How far the first of its datasets is that cannot be served yet. */
static bool find_progress(struct catalog *catalog, const char *text, struct dlp_progress *ret_progress) {
        char name[DLP_DATASET_MAX];
        const char *at = NULL;

        while (catalog_next_name(catalog, text, &at, name)) {
                struct catalog_entry *entry = catalog_find(catalog, name, NULL);

                if (entry && entry->state != CATALOG_READY && catalog_progress(entry, ret_progress))
                        return true;
        }
        return false;
}

/* The dataset's folder has been checked, or a tokenizer been read: the request can begin. */
static void attach_begin(struct attach *attach) {
        const Dlp__Attach *wish = attach->wish;
        struct session *session = attach->session;
        uint64_t id = attach->id;
        struct dlp_progress progress;
        bool is_known = false;
        struct why why;
        int r = attach_prepare(attach, wish, &why);

        if (r == 0) {
                session_listen(session, false);
                session->state = SESSION_ATTACHING;
                r = attach_make_ring(attach);
                if (r == 0)
                        return;
                session->state = SESSION_OPEN;
                session_listen(session, true);
                attach_leave_job(session);
                why_errno(&why, r, "attach");
        }
        if (r == -EAGAIN && at_hand_lacks(&attach->tokenizers)) {
                catalog_dataset_unref(TAKE_PTR(attach->options.dataset));
                r = attach_read_tokenizer(attach, attach_begin);
                if (r == 0)
                        return;
                why_errno(&why, r, "attach");
        }
        if (r == -EAGAIN)
                is_known = find_progress(session->server->options.catalog, wish->dataset, &progress);
        attach_free(attach);
        if (r == -EAGAIN)
                session_refuse_for_now(session, id, r, why.text, is_known ? &progress : NULL);
        else
                session_refuse(session, id, r, why.text);
}

/* The folders of its datasets are checked one after the other. */
static void attach_check(struct attach *attach) {
        struct session *session = attach->session;
        struct catalog *catalog = session->server->options.catalog;
        char name[DLP_DATASET_MAX];

        while (session->state == SESSION_OPEN && catalog_next_name(catalog, attach->wish->dataset, &attach->at, name))
                if (catalog_check(catalog, name, &attach->waiter) == 1) {
                        session_listen(session, false);
                        session->state = SESSION_ATTACHING;
                        return;
                }
        attach_begin(attach);
}

bool attach_goes_on(struct attach *attach) {
        struct session *session = attach->session;

        session->state = SESSION_OPEN;
        if (!session->closed) {
                session_listen(session, true);
                return true;
        }
        session_give_back(session);
        attach_free(attach);
        return false;
}

/* The check of a folder has ended, or takes too long. */
static void attach_checked(struct catalog_waiter *waiter, bool late) {
        struct attach *attach = (struct attach *)((uint8_t *)waiter - offsetof(struct attach, waiter));
        struct session *session = attach->session;
        struct server *server = session->server;
        uint64_t id = attach->id;
        struct why why;

        if (!attach_goes_on(attach))
                return;
        if (!late) {
                session_asks(session);
                attach_check(attach);
                session_asked(server);
                return;
        }
        why_set(&why, 0, "dataset %s: its folder does not answer (a dead mount?); asking again", attach->wish->dataset);
        attach_free(attach);
        session_refuse_for_now(session, id, -EAGAIN, why.text, NULL);
}

/* Jobs are compared by the text that names their datasets. */
static int normalize(struct catalog *catalog, Dlp__Attach *wish, const char *names, struct why *why) {
        char text[DLP_DATASET_MAX], *copy;
        int r = catalog_normal_text(catalog, names, text, why);

        if (r < 0 || strcmp(text, wish->dataset) == 0)
                return r;
        copy = strdup(text);
        if (!copy)
                return why_set(why, -ENOMEM, "attach: out of memory");
        if (wish->dataset != protobuf_c_empty_string)
                free(wish->dataset);
        wish->dataset = copy;
        return 0;
}

/* Its paths have been found. */
static void attach_found(void *userdata, int result, const char *text, const struct why *found_why) {
        struct attach *attach = userdata;
        struct session *session = attach->session;
        uint64_t id = attach->id;
        struct why why = *found_why;

        if (result == 0)
                result = normalize(session->server->options.catalog, attach->wish, text, &why);
        if (result == 0) {
                attach_check(attach);
                return;
        }
        attach_free(attach);
        if (result != -ECANCELED)
                session_refuse(session, id, result, why.text);
}

/* Begins with what has to be waited for. Returns 0, and the attach goes on by itself; or an errno. */
static int attach_start(struct attach *attach, struct why *why) {
        struct session *session = attach->session;
        Dlp__Attach *wish = attach->wish;
        int r;

        if (wish->n_sources > 0 && session->state == SESSION_OPEN)
                return sources_find(session, wish->sources, wish->n_sources, attach_is_in_blocks(wish), attach_found,
                                    attach, why);
        r = normalize(session->server->options.catalog, wish, wish->dataset, why);
        if (r == 0)
                attach_check(attach);
        return r;
}

static Dlp__Attach *attach_copy_of(const Dlp__Attach *wish) {
        size_t n = dlp__attach__get_packed_size(wish);
        uint8_t *bytes = malloc(n ? n : 1);
        Dlp__Attach *copy = NULL;

        if (bytes)
                copy = dlp__attach__unpack(NULL, dlp__attach__pack(wish, bytes), bytes);
        free(bytes);
        return copy;
}

void handle_attach(struct session *session, const Dlp__Request *request) {
        struct attach *attach = calloc(1, sizeof(*attach));
        struct why why;
        int r;

        if (attach)
                attach->wish = attach_copy_of(request->attach);
        if (!attach || !attach->wish) {
                free(attach);
                session_refuse(session, request->id, -ENOMEM, "attach: out of memory");
                return;
        }
        session->takes_replays = request->attach->takes_replays;
        attach->session = session;
        attach->user = session->peer.uid;
        attach->id = request->id;
        attach->pipeline = session->server->options.pipeline;
        attach->options.wake_socket = -1;
        attach->columns_fd = take_fd(&session->sent_fd);
        attach->waiter.done = attach_checked;
        r = attach_start(attach, &why);
        if (r < 0) {
                attach_free(attach);
                session_refuse(session, request->id, r, why.text);
        }
}
