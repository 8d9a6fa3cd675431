#include "client/dlctl/diagnose/jobs_seen.h"

#include <stdlib.h>
#include <string.h>

static int jobs_seen_ask_page(struct control *control, uint32_t first, Dlp__Reply **ret_reply) {
        Dlp__JobsRequest body = DLP__JOBS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;

        body.first = first;
        request.body_case = DLP__REQUEST__BODY_JOBS;
        request.jobs = &body;
        return control_ask(control, &request, DLP__REPLY__BODY_JOBS, ret_reply);
}

int jobs_seen_add(struct jobs_seen *jobs, Dlp__Reply *page) {
        Dlp__Reply **more = realloc(jobs->pages, (jobs->n_pages + 1) * sizeof(*more));

        if (!more) {
                dlp__reply__free_unpacked(page, NULL);
                return fail(EXIT_REFUSED, "no memory");
        }
        jobs->pages = more;
        jobs->pages[jobs->n_pages++] = page;
        return EXIT_DONE;
}

int jobs_seen_ask(struct control *control, struct jobs_seen *ret_jobs) {
        uint32_t first = 0, next = 0;
        Dlp__Reply *page;
        int r;

        *ret_jobs = (struct jobs_seen){ 0 };
        do {
                first = next;
                r = jobs_seen_ask_page(control, first, &page);
                if (r == EXIT_DONE) {
                        next = page->jobs->next;
                        r = jobs_seen_add(ret_jobs, page);
                }
        } while (r == EXIT_DONE && next > first); /* page numbers must rise, or this would not end */
        if (r != EXIT_DONE)
                jobs_seen_free(ret_jobs);
        return r;
}

void jobs_seen_free(struct jobs_seen *jobs) {
        for (size_t i = 0; i < jobs->n_pages; i++)
                dlp__reply__free_unpacked(jobs->pages[i], NULL);
        free(jobs->pages);
        *jobs = (struct jobs_seen){ 0 };
}

size_t jobs_seen_count(const struct jobs_seen *jobs) {
        size_t n = 0;

        for (size_t i = 0; i < jobs->n_pages; i++)
                n += jobs->pages[i]->jobs->n_jobs;
        return n;
}

struct look jobs_seen_at(const struct jobs_seen *jobs, size_t idx) {
        const Dlp__JobsReply *page;
        size_t i = 0;

        while (idx >= jobs->pages[i]->jobs->n_jobs)
                idx -= jobs->pages[i++]->jobs->n_jobs;
        page = jobs->pages[i]->jobs;
        return (struct look){ page->jobs[idx], page->node };
}

bool jobs_seen_find(const struct jobs_seen *jobs, const Dlp__Job *job, struct look *ret_look) {
        for (size_t i = 0, n = jobs_seen_count(jobs); i < n; i++) {
                *ret_look = jobs_seen_at(jobs, i);
                if (strcmp(ret_look->job->name, job->name) == 0 && strcmp(ret_look->job->user, job->user) == 0)
                        return true;
        }
        return false;
}
