/* What holds up the loader's job. The daemon is asked for the counters of the job, and the verdict of dlctl diagnose is
 * made of them. Two things are known to the loader alone: that it waited for a daemon that was away, and for a dataset
 * that can be read again by now. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/diagnose/verdict.h"
#include "client/lib/loader.h"
#include "proto/private.h"

struct dli_diagnosis {
        Dlp__Reply *last;         /* the previous look; NULL: none */
        uint64_t last_ns;         /* when that was; at first: the opening */
        struct dli_counts counts; /* at that time */
        struct verdict verdict;
        uint64_t n_texts_cut, n_tokens_cut; /* of the last look that told of them */
};

void dli_diagnosis_free(struct dlc_loader *loader) {
        if (loader->diagnosis && loader->diagnosis->last)
                dlp__reply__free_unpacked(loader->diagnosis->last, NULL);
        free(loader->diagnosis);
        loader->diagnosis = NULL;
}

static int client_diagnose_ask_page(struct dlc_loader *loader, uint32_t first, Dlp__Reply **ret_reply) {
        Dlp__JobsRequest body = DLP__JOBS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        int r;

        body.own = true;
        body.first = first;
        request.body_case = DLP__REQUEST__BODY_JOBS;
        request.jobs = &body;
        r = dli_connection_call(&loader->connection, &request, DLI_ANSWER_TIMEOUT_MS, &loader->reason, ret_reply, NULL,
                                0);
        if (r == DLI_ASK_AGAIN)
                return -EREMOTEIO;
        if (r == 0 && (*ret_reply)->body_case != DLP__REPLY__BODY_JOBS) {
                dlp__reply__free_unpacked(*ret_reply, NULL);
                r = why_set(&loader->reason, -EPROTO, "the daemon at %s answered another question",
                            loader->connection.path);
        }
        return r;
}

static bool has_own(const struct dlc_loader *loader, const Dlp__JobsReply *page) {
        return page->n_jobs > 0 && strcmp(page->jobs[0]->name, loader->job) == 0;
}

/* A daemon that is older than the question answers with all jobs, a page each. */
static int client_diagnose_ask(struct dlc_loader *loader, Dlp__Reply **ret_reply) {
        uint32_t first = 0, next;
        int r = client_diagnose_ask_page(loader, first, ret_reply);

        while (r == 0 && !has_own(loader, (*ret_reply)->jobs)) {
                next = (*ret_reply)->jobs->next;
                if (next <= first)
                        break; /* page numbers must rise, or this would not end */
                dlp__reply__free_unpacked(*ret_reply, NULL);
                r = client_diagnose_ask_page(loader, first = next, ret_reply);
        }
        return r;
}

static struct look client_diagnose_look_at(const struct dlc_loader *loader, const Dlp__Reply *reply) {
        static const Dlp__Job NONE = DLP__JOB__INIT;

        if (!has_own(loader, reply->jobs))
                return (struct look){ .job = &NONE };
        return (struct look){ .job = reply->jobs->jobs[0], .node = reply->jobs->node };
}

/* Nothing comes any more: the loader has failed, and its daemon may know nothing of it. */
static void judge_failure(const struct dlc_loader *loader, struct verdict *ret_verdict) {
        Dlp__Job job = DLP__JOB__INIT;

        job.failure = (char *)(uintptr_t)loader->failure.text;
        verdict_make(NULL, &(struct look){ .job = &job }, ret_verdict);
}

static void client_diagnose_judge(struct dlc_loader *loader, Dlp__Reply *reply) {
        struct dli_diagnosis *diagnosis = loader->diagnosis;
        struct look now = client_diagnose_look_at(loader, reply), before;

        diagnosis->n_texts_cut = now.job->n_texts_cut;
        diagnosis->n_tokens_cut = now.job->n_tokens_cut;
        if (diagnosis->last)
                before = client_diagnose_look_at(loader, diagnosis->last);
        verdict_make(diagnosis->last ? &before : NULL, &now, &diagnosis->verdict);
        if (diagnosis->last)
                dlp__reply__free_unpacked(diagnosis->last, NULL);
        diagnosis->last = reply;
}

/* What was waited for, if that was for the most part something that the daemon's numbers do not show. Returns whether
 * it was a restart. */
static bool judge_waits(const struct dlc_loader *loader, struct verdict *verdict) {
        const struct dli_counts *old = &loader->diagnosis->counts, *now = &loader->counts;
        double waited = (double)(now->waited_ns - old->waited_ns), hold = (double)(now->hold_ns - old->hold_ns);
        double restart = (double)(now->restart_ns - old->restart_ns);
        double passed = (double)(clock_now_ns() - loader->diagnosis->last_ns), share = passed > 0 ? waited / passed : 0;
        Dlp__Job job = DLP__JOB__INIT;

        if (share < VERDICT_MODERATE_WAIT || verdict->limit == VERDICT_OUTAGE || verdict->limit == VERDICT_ENDED)
                return false;
        if (hold <= waited / 2 && restart <= waited / 2)
                return false;
        verdict->wait_share = share < 1 ? share : 1;
        verdict->bound = share < VERDICT_HIGH_WAIT ? VERDICT_MODERATELY : VERDICT_HIGHLY;
        verdict->seconds = passed / 1e9;
        verdict->predicted = 0;
        if (restart > waited / 2)
                return true;
        verdict->limit = VERDICT_OUTAGE;
        verdict_say(&job, verdict);
        snprintf(verdict->sentence, sizeof(verdict->sentence),
                 "on hold: its dataset could not be read for %.3g s, and can be again", hold / 1e9);
        return false;
}

static void say_restart(const char *socket, struct verdict *verdict, bool is_away) {
        char log[DLP_PRIVATE_PATH_MAX];

        if (is_away)
                snprintf(verdict->sentence, sizeof(verdict->sentence),
                         "the daemon is away: no batch is prepared before its return");
        else
                snprintf(verdict->sentence, sizeof(verdict->sentence),
                         "%s input-bound: the trainer waits for %.0f %% of the time: for a restart of the daemon",
                         verdict_bound_name(verdict->bound), verdict->wait_share * 100);
        snprintf(verdict->advice, sizeof(verdict->advice), "look into the daemon's log (%s)",
                 dlp_private_log(socket, log) ? log : "journalctl -u dataloaderd");
}

static void client_diagnose_tell(const struct dli_diagnosis *diagnosis, bool is_restart,
                                 struct dlc_diagnosis *ret_diagnosis, size_t size) {
        const struct verdict *verdict = &diagnosis->verdict;
        struct dlc_diagnosis told = { .limit = is_restart ? "restart" : verdict_limit_name(verdict->limit),
                                      .input_bound = verdict_bound_name(verdict->bound),
                                      .verdict = verdict->sentence,
                                      .advice = verdict->advice,
                                      .seconds = verdict->seconds,
                                      .wait_share = verdict->wait_share,
                                      .samples_per_second = verdict->rate,
                                      .predicted_samples_per_second = verdict->predicted,
                                      .tokens_per_second = verdict->tokens,
                                      .n_texts_cut = diagnosis->n_texts_cut,
                                      .n_tokens_cut = diagnosis->n_tokens_cut };

        if (size > sizeof(told)) /* a newer program: the fields that we do not know stay 0 */
                memset((uint8_t *)ret_diagnosis + sizeof(told), 0, size - sizeof(told));
        memcpy(ret_diagnosis, &told, size < sizeof(told) ? size : sizeof(told));
}

/* Returns 1 if the daemon is away. */
static int client_diagnose_look(struct dlc_loader *loader) {
        struct verdict *verdict = &loader->diagnosis->verdict;
        Dlp__Reply *reply;
        int r = 0;

        if (loader->failed) {
                judge_failure(loader, verdict);
                return 0;
        }
        if (loader->state == DLI_ATTACHED) {
                r = client_diagnose_ask(loader, &reply);
                if (r == 0) {
                        client_diagnose_judge(loader, reply);
                        return 0;
                }
                if (r == -ECONNRESET) /* dlc_next() says what follows from that */
                        r = dli_restart_is_waited_for(loader) ? dli_restart_lost(loader, r) : 0;
        }
        if (r == 0)
                *verdict = (struct verdict){ .rank = -1 };
        return r < 0 ? r : 1;
}

int dlc_diagnose(struct dlc_loader *loader, struct dlc_diagnosis *ret_diagnosis, size_t size) {
        struct dli_diagnosis *diagnosis;
        bool is_restart;
        int r = dli_loader_enter(loader, "dlc_diagnose", true);

        if (r < 0)
                return r;
        if (!ret_diagnosis)
                return dli_report(&loader->reason,
                                  why_set(&loader->reason, -EINVAL, "dlc_diagnose: ret_diagnosis must not be NULL"));
        if (!loader->diagnosis)
                loader->diagnosis = calloc(1, sizeof(*loader->diagnosis));
        diagnosis = loader->diagnosis;
        if (!diagnosis)
                return dli_report(&loader->reason, why_set(&loader->reason, -ENOMEM, "dlc_diagnose: no memory"));
        if (diagnosis->last_ns == 0)
                diagnosis->last_ns = loader->counts.opened_ns;
        r = client_diagnose_look(loader);
        if (r < 0)
                return dli_report(&loader->reason, r);
        is_restart = judge_waits(loader, &diagnosis->verdict) || r > 0;
        if (is_restart)
                say_restart(loader->connection.path, &diagnosis->verdict, r > 0);
        diagnosis->counts = loader->counts;
        diagnosis->last_ns = clock_now_ns();
        client_diagnose_tell(diagnosis, is_restart, ret_diagnosis, size);
        return 0;
}
