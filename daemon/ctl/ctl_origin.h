/* ctl/ctl_origin.h: how an origin answers, as a message. */
#pragma once

#include "proto/dataloader.pb-c.h"
#include "proto/origin_answers.h"

/* Fills `message`, which points into `origin`, and returns it. */
Dlp__Origin *tell_origin(Dlp__Origin *message, const struct dlp_origin *origin);
