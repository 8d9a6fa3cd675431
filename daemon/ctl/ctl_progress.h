/* ctl/ctl_progress.h: how far long work is, as a message. */
#pragma once

#include "proto/base/shown/progress.h"
#include "proto/dataloader.pb-c.h"

/* Fills `message` and returns it. Its texts point into `progress`, which must outlive it. */
Dlp__Progress *tell_progress(Dlp__Progress *message, const struct dlp_progress *progress);
