/* dlctl/diagnose/diagnose_record.h: a verdict as what dlctl prints. */
#pragma once

#include "client/dlctl/diagnose/confirm.h"
#include "client/dlctl/output.h"
#include "client/lib/diagnose/verdict.h"

/* Adds the sentence, the advice and the numbers. */
void verdict_record(cJSON *record, const struct verdict *verdict);

/* Adds what was seen when it was confirmed, or was not. */
void confirmation_record(cJSON *record, const struct confirmation *confirmation);

/* Adds what a list of jobs says: rate, share waited, limit and advice, since the ranks attached. */
void verdict_brief(cJSON *record, const struct look *look);
