/* lib/diagnose/job_wait.h: why a job waits, as the daemon's reply says it, in a sentence. */
#pragma once

#include "proto/base/symbol.h"
#include "proto/dataloader.pb-c.h"
#include "proto/limits.h"

/* "" if it does not. Any reply is safe. Returns `buffer`. */
const char *job_wait_text(const Dlp__Job *job, char buffer[DLP_TEXT_MAX]) DLP_SYMBOL(job_wait_text);
