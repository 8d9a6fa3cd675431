/* lib/diagnose/origin_read.h: how an origin answers, out of the daemon's message. */
#pragma once

#include "proto/dataloader.pb-c.h"
#include "proto/origin_answers.h"

void dli_origin_read(const Dlp__Origin *message, struct dlp_origin *ret_origin);
