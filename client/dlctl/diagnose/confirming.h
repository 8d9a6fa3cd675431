/* dlctl/diagnose/confirming.h: a job that is served batches again, because somebody runs dlctl diagnose --confirm. What
 * it does meanwhile is not how it trains, so all that show jobs say so. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/dataloader.pb-c.h"

#define CONFIRMING_TEXT_MAX 96u

/* Writes how far that is. Returns false if the job is not in that state. */
bool confirming_text(const Dlp__Job *job, char *text, size_t size);
