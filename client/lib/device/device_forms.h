/* lib/device/device_forms.h: what the daemon leaves to a caller who finishes pictures on a device. */
#pragma once

#include "client/include/dlclient.h"
#include "proto/base/why.h"
#include "proto/dataloader.pb-c.h"
#include "proto/left.h"

struct dli_forms {
        struct dlc_left_form *items; /* owned, with their names and tables */
        uint32_t n;
};

/* Keeps what came with the answer; operations only if they were asked for. A daemon that came back must leave what the
 * first one left: what has been kept is compared then. -EPROTO if a form makes no sense or has changed; -ENOMEM. */
int dli_forms_keep(struct dli_forms *forms, bool takes_operations, const Dlp__Attached *attached, struct why *why);

/* Does one of them come with operations? */
bool dli_forms_have_operations(const struct dli_forms *forms);

/* Are the tensors of a batch whose samples have operations what was promised, and are all records within the slot, of
 * `slot_bytes`, and such that they can be done? The record's own offsets and sizes need not have been checked. */
bool dli_forms_fit(const struct dli_forms *forms, const struct dlp_slot_record *record, const uint8_t *slot,
                   uint64_t slot_bytes);

void dli_forms_free(struct dli_forms *forms);
