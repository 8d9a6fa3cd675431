/* What of a batch's samples is left to the caller, checked before the caller sees it: the device follows it. */
#include <math.h>
#include <string.h>

#include "client/lib/device/device_forms.h"

/* The public record is the contract's. */
_Static_assert(sizeof(struct dlc_left_operations) == sizeof(struct dlp_left_operations), "handed out as they are");
_Static_assert((int)DLC_LEFT_OPERATIONS_MAX == (int)DLP_LEFT_OPERATIONS_MAX, "as many");
_Static_assert((int)DLC_LEFT_BRIGHTNESS == (int)DLP_LEFT_BRIGHTNESS && (int)DLC_LEFT_HUE == (int)DLP_LEFT_HUE &&
                       (int)DLC_LEFT_GRAYSCALE == (int)DLP_LEFT_GRAYSCALE,
               "the same kinds");

bool dli_forms_have_operations(const struct dli_forms *forms) {
        for (uint32_t i = 0; i < forms->n; i++)
                if (forms->items[i].operations_at > 0)
                        return true;
        return false;
}

static const struct dlp_tensor_record *find_tensor(const struct dlp_slot_record *record, const char *name) {
        for (uint32_t i = 0; i < record->n_tensors && i < DLP_TENSORS_MAX; i++)
                if (strncmp(record->tensors[i].name, name, DLP_TENSOR_NAME_MAX) == 0)
                        return &record->tensors[i];
        return NULL;
}

/* Is it uint8 [n, height, width, channels] whose pixels follow one another, and each sample's record them? */
static bool is_as_promised(const struct dlc_left_form *form, const struct dlp_tensor_record *tensor,
                           uint64_t slot_bytes) {
        const int64_t *shape = tensor->shape, *strides = tensor->strides;
        int64_t n_channels = form->n_channels;

        if (tensor->dtype != DLP_DTYPE_UINT8 || tensor->layout != DLP_DENSE || tensor->n_dims != 4)
                return false;
        if (shape[1] < 1 || shape[2] < 1 || shape[1] > DLP_LEFT_PIXELS_MAX || shape[2] > DLP_LEFT_PIXELS_MAX ||
            shape[1] * shape[2] > DLP_LEFT_PIXELS_MAX || shape[3] != n_channels)
                return false;
        if (strides[3] != 1 || strides[2] != n_channels || strides[1] != shape[2] * n_channels)
                return false;
        if ((uint64_t)(shape[1] * strides[1]) > form->operations_at || strides[0] < 0 ||
            strides[0] % DLP_LEFT_ALIGN != 0 ||
            (uint64_t)strides[0] < form->operations_at + sizeof(struct dlp_left_operations))
                return false;
        return tensor->offset % DLP_LEFT_ALIGN == 0 && tensor->offset <= slot_bytes && shape[0] >= 1 &&
               (uint64_t)shape[0] <= (slot_bytes - tensor->offset) / (uint64_t)strides[0];
}

static bool operation_makes_sense(const struct dlp_left_operation *operation) {
        if (operation->kind < DLP_LEFT_BRIGHTNESS || operation->kind > DLP_LEFT_GRAYSCALE ||
            !isfinite(operation->amount))
                return false;
        if (operation->kind == DLP_LEFT_HUE)
                return operation->amount >= -0.5f && operation->amount <= 0.5f;
        return operation->amount >= 0;
}

static bool operations_make_sense(const struct dlp_left_operations *left) {
        if (left->flips > (DLP_LEFT_MIRRORED | DLP_LEFT_UPSIDE_DOWN) || left->n_operations > DLP_LEFT_OPERATIONS_MAX)
                return false;
        for (uint32_t i = 0; i < left->n_operations; i++)
                if (!operation_makes_sense(&left->operations[i]))
                        return false;
        for (uint32_t i = 0; i < DLP_LEFT_OPERATIONS_MAX; i++)
                if (left->scratch[i] != 0)
                        return false;
        return true;
}

static bool form_fits(const struct dlc_left_form *form, const struct dlp_slot_record *record, const uint8_t *slot,
                      uint64_t slot_bytes) {
        const struct dlp_tensor_record *tensor = find_tensor(record, form->tensor);

        if (!tensor || !is_as_promised(form, tensor, slot_bytes))
                return false;
        for (int64_t i = 0; i < tensor->shape[0]; i++) {
                struct dlp_left_operations left; /* copied: a daemon could change it between two looks */

                memcpy(&left, slot + tensor->offset + i * tensor->strides[0] + form->operations_at, sizeof(left));
                if (!operations_make_sense(&left))
                        return false;
        }
        return true;
}

bool dli_forms_fit(const struct dli_forms *forms, const struct dlp_slot_record *record, const uint8_t *slot,
                   uint64_t slot_bytes) {
        for (uint32_t i = 0; i < forms->n; i++)
                if (forms->items[i].operations_at > 0 && !form_fits(&forms->items[i], record, slot, slot_bytes))
                        return false;
        return true;
}
