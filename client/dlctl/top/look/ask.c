#include "client/dlctl/top/look/ask.h"

static int ask_ask(struct control *control, Dlp__Request *request, Dlp__Reply__BodyCase body, struct glance *glance,
                   Dlp__Reply **ret_reply) {
        int r = control_ask(control, request, body, ret_reply);

        if (r == EXIT_DONE)
                glance_add(glance, *ret_reply);
        return r;
}

static int ask_ask_status(struct control *control, struct glance *glance) {
        Dlp__StatusRequest body = DLP__STATUS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;

        request.body_case = DLP__REQUEST__BODY_STATUS;
        request.status = &body;
        return ask_ask(control, &request, DLP__REPLY__BODY_STATUS, glance, &reply);
}

static int ask_ask_jobs(struct control *control, struct glance *glance) {
        Dlp__JobsRequest body = DLP__JOBS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        uint32_t next = 0;
        int r;

        request.body_case = DLP__REQUEST__BODY_JOBS;
        request.jobs = &body;
        do {
                body.first = next;
                r = ask_ask(control, &request, DLP__REPLY__BODY_JOBS, glance, &reply);
                if (r != EXIT_DONE)
                        return r;
                next = reply->jobs->next;
        } while (next > body.first && glance->n_jobs < GLANCE_JOBS_MAX); /* they must rise, or this would not end */
        return EXIT_DONE;
}

static int ask_datasets(struct control *control, struct glance *glance) {
        Dlp__DatasetsRequest body = DLP__DATASETS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        uint32_t next = 0;
        int r;

        request.body_case = DLP__REQUEST__BODY_DATASETS;
        request.datasets = &body;
        do {
                body.first = next;
                r = ask_ask(control, &request, DLP__REPLY__BODY_DATASETS, glance, &reply);
                if (r != EXIT_DONE)
                        return r;
                next = reply->datasets->next;
        } while (next > body.first && glance->n_datasets < GLANCE_DATASETS_MAX);
        return EXIT_DONE;
}

int glance_ask(struct control *control, struct glance **ret_glance) {
        struct glance *glance = glance_new();
        int r = ask_ask_status(control, glance);

        if (r == EXIT_DONE)
                r = ask_ask_jobs(control, glance);
        if (r == EXIT_DONE)
                r = ask_datasets(control, glance);
        if (r == EXIT_DONE)
                *ret_glance = glance;
        else
                glance_free(glance);
        return r;
}
