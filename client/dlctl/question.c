#include "client/dlctl/question.h"

#include "client/dlctl/control.h"

void question_fill(enum question question, uint64_t first, const char *dataset, struct question_request *ret_request) {
        char *name = (char *)(uintptr_t)dataset;

        dlp__request__init(&ret_request->request);
        switch (question) {
        case ASK_STATUS:
                dlp__status_request__init(&ret_request->status);
                ret_request->request.body_case = DLP__REQUEST__BODY_STATUS;
                ret_request->request.status = &ret_request->status;
                break;
        case ASK_JOBS:
                dlp__jobs_request__init(&ret_request->jobs);
                ret_request->jobs.first = (uint32_t)first;
                ret_request->request.body_case = DLP__REQUEST__BODY_JOBS;
                ret_request->request.jobs = &ret_request->jobs;
                break;
        case ASK_DATASETS:
                dlp__datasets_request__init(&ret_request->datasets);
                ret_request->datasets.first = (uint32_t)first;
                ret_request->datasets.name = name;
                ret_request->request.body_case = DLP__REQUEST__BODY_DATASETS;
                ret_request->request.datasets = &ret_request->datasets;
                break;
        default:
                dlp__errors_request__init(&ret_request->errors);
                ret_request->errors.first = first;
                ret_request->errors.dataset = name;
                ret_request->request.body_case = DLP__REQUEST__BODY_ERRORS;
                ret_request->request.errors = &ret_request->errors;
                break;
        }
}

Dlp__Reply__BodyCase question_body(enum question question) {
        static const Dlp__Reply__BodyCase BODIES[N_QUESTIONS] = { [ASK_STATUS] = DLP__REPLY__BODY_STATUS,
                                                                  [ASK_JOBS] = DLP__REPLY__BODY_JOBS,
                                                                  [ASK_DATASETS] = DLP__REPLY__BODY_DATASETS,
                                                                  [ASK_ERRORS] = DLP__REPLY__BODY_ERRORS };

        return BODIES[question];
}

uint64_t question_next(const Dlp__Reply *reply, uint64_t first) {
        uint64_t next = reply->body_case == DLP__REPLY__BODY_JOBS       ? reply->jobs->next
                        : reply->body_case == DLP__REPLY__BODY_DATASETS ? reply->datasets->next
                        : reply->body_case == DLP__REPLY__BODY_ERRORS   ? reply->errors->next
                                                                        : 0;

        return next > first ? next : 0;
}

int question_ask(struct control *control, enum question question, const char *dataset,
                 bool (*take)(void *arg, Dlp__Reply *reply), void *arg) {
        struct question_request request;
        uint64_t first = 0, next;
        Dlp__Reply *reply;
        int r;

        do {
                question_fill(question, first, dataset, &request);
                r = control_ask(control, &request.request, question_body(question), &reply);
                if (r != EXIT_DONE)
                        return r;
                next = question_next(reply, first);
                first = take(arg, reply) ? next : 0;
        } while (first > 0);
        return EXIT_DONE;
}
