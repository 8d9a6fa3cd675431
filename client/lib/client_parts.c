/* The datasets that a loader was opened with, if there are several. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/loader.h"
#include "proto/limits.h"

void dli_parts_free(struct dlc_loader *loader) {
        for (uint32_t k = 0; k < loader->n_parts; k++) {
                free((char *)(uintptr_t)loader->parts[k].name);
                free((char *)(uintptr_t)loader->parts[k].digest);
        }
        free(loader->parts);
        loader->parts = NULL;
        loader->n_parts = 0;
}

static int client_parts_add(struct dlc_loader *loader, const Dlp__Part *part, uint64_t first) {
        struct dlc_part *kept = &loader->parts[loader->n_parts++];

        *kept = (struct dlc_part){ strdup(part->name), strdup(part->digest), first, part->n_samples };
        if (!kept->name || !kept->digest)
                return why_set(&loader->reason, -ENOMEM, "no memory for a loader");
        return 0;
}

int dli_parts_keep(struct dlc_loader *loader, const Dlp__Attached *attached) {
        uint64_t n_samples = 0;
        int r = 0;

        if (attached->n_parts == 0)
                return 0;
        loader->parts = calloc(attached->n_parts, sizeof(*loader->parts));
        if (!loader->parts)
                return why_set(&loader->reason, -ENOMEM, "no memory for a loader");
        for (size_t k = 0; k < attached->n_parts && k < DLP_PARTS_MAX && r == 0; k++) {
                r = client_parts_add(loader, attached->parts[k], n_samples);
                n_samples += attached->parts[k]->n_samples;
                if (attached->parts[k]->n_samples > DLP_SAMPLES_MAX)
                        break;
        }
        if (r == 0 && (loader->n_parts < attached->n_parts || n_samples != attached->n_samples))
                r = why_set(&loader->reason, -EPROTO,
                            "the daemon at %s sent parts of a dataset that do not add up to its %llu samples",
                            loader->connection.path, (unsigned long long)attached->n_samples);
        return r;
}

size_t dli_parts_digests(const struct dlc_loader *loader, char **ret_digests) {
        for (uint32_t k = 0; k < loader->n_parts; k++)
                ret_digests[k] = (char *)(uintptr_t)loader->parts[k].digest;
        return loader->n_parts;
}

int dlc_get_part(const struct dlc_loader *loader, uint32_t idx, struct dlc_part *ret_part, size_t size) {
        struct dlc_part part;

        if (!loader || !ret_part)
                return dli_refuse(-EINVAL, "dlc_get_part: loader and ret_part must not be NULL");
        if (idx >= (loader->n_parts > 0 ? loader->n_parts : 1))
                return dli_refuse(-ENOENT, "dlc_get_part: there are no more parts");
        part = loader->n_parts > 0 ? loader->parts[idx]
                                   : (struct dlc_part){ .name = loader->dataset,
                                                        .digest = loader->info.dataset_digest,
                                                        .n_samples = loader->info.dataset_samples };
        if (size > sizeof(part))
                memset((uint8_t *)ret_part + sizeof(part), 0, size - sizeof(part));
        memcpy(ret_part, &part, size < sizeof(part) ? size : sizeof(part));
        return 0;
}
