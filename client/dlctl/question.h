/* dlctl/question.h: what dlctl asks in pages. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/frame.h"

struct control;

enum question {
        ASK_STATUS,
        ASK_JOBS,
        ASK_DATASETS,
        ASK_ERRORS,
        N_QUESTIONS,
};

/* A request, and the body that it points to. */
struct question_request {
        Dlp__Request request;
        Dlp__StatusRequest status;
        Dlp__JobsRequest jobs;
        Dlp__DatasetsRequest datasets;
        Dlp__ErrorsRequest errors;
};

/* The question for the page that begins with `first`; of this dataset alone, if it is not "". Texts stay the caller's.
 */
void question_fill(enum question question, uint64_t first, const char *dataset, struct question_request *ret_request);

/* What a reply to it holds. */
Dlp__Reply__BodyCase question_body(enum question question);

/* Where the page after this one begins; 0: it was the last. Numbers of pages must rise, or asking would not end. */
uint64_t question_next(const Dlp__Reply *reply, uint64_t first);

/* Asks for all pages, and waits for them. `take` gets each reply, and frees it; it returns false if that was enough.
 * Returns an exit code; an error has been printed. */
int question_ask(struct control *control, enum question question, const char *dataset,
                 bool (*take)(void *arg, Dlp__Reply *reply), void *arg);
