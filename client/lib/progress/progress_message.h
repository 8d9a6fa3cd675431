/* lib/progress/progress_message.h: how far work of the daemon is, as it is told in a message. */
#pragma once

#include "proto/base/shown/progress.h"
#include "proto/dataloader.pb-c.h"

/* The message as a struct, with texts that are printable and numbers that make sense; zeroes for NULL. */
void dli_progress_take(const Dlp__Progress *message, struct dlp_progress *ret_progress);
