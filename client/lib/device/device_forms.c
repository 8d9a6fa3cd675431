#include "client/lib/device/device_forms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/layout.h"

#define LEVELS 256u

static bool has_operations(const Dlp__LeftForm *form) {
        return form->operations_format > 0;
}

static bool device_forms_operations_make_sense(const Dlp__LeftForm *form, bool takes_operations) {
        if (!has_operations(form))
                return form->operations_at == 0;
        return takes_operations && form->operations_format <= DLP_LEFT_OPERATIONS_FORMAT && form->operations_at > 0 &&
               form->operations_at <= (uint64_t)DLP_LEFT_PIXELS_MAX * form->n_channels &&
               form->operations_at % DLP_LEFT_ALIGN == 0;
}

static bool makes_sense(const Dlp__LeftForm *form) {
        bool is_known = form->dtype == DLP_DTYPE_UINT8 || form->dtype == DLP_DTYPE_FLOAT16 ||
                        form->dtype == DLP_DTYPE_BFLOAT16 || form->dtype == DLP_DTYPE_FLOAT32;

        return is_known && (form->n_channels == 1 || form->n_channels == 3) &&
               form->table.len == (size_t)form->n_channels * LEVELS * dlp_dtype_bytes(form->dtype) &&
               strlen(form->tensor) < DLP_TENSOR_NAME_MAX;
}

static bool device_forms_is_same(const struct dlc_left_form *kept, const Dlp__LeftForm *form) {
        return strcmp(kept->tensor, form->tensor) == 0 && kept->dtype == form->dtype &&
               kept->n_channels == form->n_channels && kept->channels_first == form->channels_first &&
               kept->operations_at == form->operations_at && kept->table_bytes == form->table.len &&
               memcmp(kept->table, form->table.data, form->table.len) == 0;
}

static int device_forms_keep(struct dli_forms *forms, const Dlp__LeftForm *form, struct why *why) {
        struct dlc_left_form *kept = &forms->items[forms->n];
        void *table = malloc(form->table.len);

        if (!table)
                return why_set(why, -ENOMEM, "no memory for a loader");
        memcpy(table, form->table.data, form->table.len);
        *kept = (struct dlc_left_form){ .tensor = strdup(form->tensor),
                                        .dtype = form->dtype,
                                        .n_channels = form->n_channels,
                                        .channels_first = form->channels_first,
                                        .table = table,
                                        .table_bytes = form->table.len,
                                        .operations_at = form->operations_at };
        forms->n++;
        return kept->tensor ? 0 : why_set(why, -ENOMEM, "no memory for a loader");
}

static int device_forms_compare(const struct dli_forms *forms, const Dlp__Attached *attached, struct why *why) {
        bool same = attached->n_left_forms == forms->n;

        for (uint32_t i = 0; i < forms->n && same; i++)
                same = device_forms_is_same(&forms->items[i], attached->left_forms[i]);
        if (same)
                return 0;
        return why_set(
                why, -EPROTO,
                "the daemon that came back leaves other steps of the pipeline to the device than the one before: "
                "open a new loader");
}

int dli_forms_keep(struct dli_forms *forms, bool takes_operations, const Dlp__Attached *attached, struct why *why) {
        int r = 0;

        if (forms->items)
                return device_forms_compare(forms, attached, why);
        if (attached->n_left_forms > DLP_LEFT_FORMS_MAX)
                return why_set(why, -EPROTO,
                               "the daemon leaves %zu pictures of a batch to the device, which is impossible",
                               attached->n_left_forms);
        forms->items = calloc(attached->n_left_forms + 1, sizeof(*forms->items)); /* not NULL: it has been kept */
        if (!forms->items)
                return why_set(why, -ENOMEM, "no memory for a loader");
        for (size_t i = 0; i < attached->n_left_forms && r == 0; i++)
                r = makes_sense(attached->left_forms[i]) &&
                                    device_forms_operations_make_sense(attached->left_forms[i], takes_operations)
                            ? device_forms_keep(forms, attached->left_forms[i], why)
                            : why_set(why, -EPROTO,
                                      "what the daemon leaves to the device for one of the pictures makes no sense");
        return r;
}

void dli_forms_free(struct dli_forms *forms) {
        for (uint32_t i = 0; i < forms->n; i++) {
                free((char *)(uintptr_t)forms->items[i].tensor);
                free((void *)(uintptr_t)forms->items[i].table);
        }
        free(forms->items);
        *forms = (struct dli_forms){ 0 };
}
