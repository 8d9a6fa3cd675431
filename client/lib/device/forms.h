/* lib/device/forms.h: what the daemon leaves to a caller who finishes pictures on a device. */
#pragma once

#include "client/include/dlclient.h"
#include "proto/base/why.h"
#include "proto/dataloader.pb-c.h"

struct dli_forms {
        struct dlc_left_form *items; /* owned, with their names and tables */
        uint32_t n;
};

/* Keeps what came with the answer. A daemon that came back must leave what the first one left: what has been kept is
 * compared then. -EPROTO if a form makes no sense or has changed; -ENOMEM. */
int dli_forms_keep(struct dli_forms *forms, const Dlp__Attached *attached, struct why *why);

void dli_forms_free(struct dli_forms *forms);
