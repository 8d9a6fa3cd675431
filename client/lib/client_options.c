/* Completes the options that the caller passes. Ranges are checked here if a message could not carry the value
 * (negative numbers) or if the number of ranks and samples would overflow. The daemon checks names and pipelines. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/loader.h"
#include "proto/base/bus_id.h"
#include "proto/base/nearest.h"

/* Options of an older program are shorter: fields that it does not know keep their defaults. Those of a newer program
 * are longer: fields that we do not know must be zero. */
static int client_options_copy_options(const struct dlc_options *options, struct why *reason,
                                       struct dlc_options *ret_options) {
        const uint8_t *bytes = (const uint8_t *)options;
        size_t size = options->size;

        if (size < offsetof(struct dlc_options, batch_size) || size > 4096)
                return why_set(reason, -EINVAL,
                               "options: not initialised; begin with struct dlc_options o = DLC_OPTIONS_INIT");
        for (size_t i = sizeof(*options); i < size; i++)
                if (bytes[i] != 0)
                        return why_set(
                                reason, -EINVAL,
                                "options: the program sets one that libdlclient %s does not know; install a newer one",
                                dlc_version());
        memcpy(ret_options, options, size < sizeof(*options) ? size : sizeof(*options));
        ret_options->size = sizeof(*options);
        return 0;
}

static int client_options_check_text(const char *name, const char *text, size_t limit, struct why *reason) {
        if (text && strnlen(text, limit) == limit)
                return why_set(reason, -EINVAL, "%s: too long, at most %zu bytes are allowed: %.32s...", name,
                               limit - 1, text);
        return 0;
}

static int check_texts(const struct dlc_options *options, struct why *reason) {
        const struct {
                const char *name;
                const char *text;
                size_t limit;
        } texts[] = {
                { "dataset", options->dataset, DLP_DATASET_MAX },
                { "pipeline", options->pipeline, DLP_PIPELINE_MAX },
                { "job", options->job, DLP_NAME_MAX },
                { "partition", options->partition, DLP_NAME_MAX },
                { "dealing", options->dealing, DLP_NAME_MAX },
                { "order", options->order, DLP_NAME_MAX },
                { "on_error", options->on_error, DLP_NAME_MAX },
                { "on_restart", options->on_restart, DLP_NAME_MAX },
                { "sampler", options->sampler, DLP_SAMPLER_MAX },
                { "near_device", options->near_device, DLP_NAME_MAX },
        };
        int r;

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
                r = client_options_check_text(texts[i].name, texts[i].text, texts[i].limit, reason);
                if (r < 0)
                        return r;
        }
        if (!options->dataset || !*options->dataset)
                return why_set(reason, -EINVAL,
                               "dataset: not set; it is the name of a dataset in dataloaderd.conf "
                               "(dlctl datasets lists them), or of several: \"a + b\"");
        if (options->job && !*options->job)
                return why_set(reason, -EINVAL, "job: empty; leave it out for the run's own name");
        return 0;
}

/* A fraction below 1, or a whole number. Written so that NaN is neither of them. */
static bool is_limit(double value) {
        return value >= 0 && value <= (double)DLP_SAMPLES_MAX && (value < 1 || (double)(uint64_t)value == value);
}

static int client_options_refuse_choice(const char *option, const char *value, const char *choices,
                                        struct why *reason) {
        struct nearest nearest;

        return why_set(reason, -EINVAL, "%s: \"%s\" is not known%s; choose one of: %s", option, value,
                       nearest_in(&nearest, value, strlen(value), choices), choices);
}

/* The names that the client itself acts on; the daemon checks all other names. */
static int check_choices(const struct dlc_options *options, struct why *reason) {
        enum dlp_partition partition;
        enum dlp_dealing dealing;
        char bus_id[BUS_ID_MAX];

        if (dlp_partition_from_name(options->partition, &partition) < 0)
                return client_options_refuse_choice("partition", options->partition, "pad drop exact", reason);
        if (dlp_dealing_from_name(options->dealing, &dealing) < 0)
                return client_options_refuse_choice("dealing", options->dealing, dlp_dealings, reason);
        if (strcmp(options->on_restart, "wait") != 0 && strcmp(options->on_restart, "raise") != 0)
                return client_options_refuse_choice("on_restart", options->on_restart, "wait raise", reason);
        if (options->near_device && *options->near_device && !bus_id_read(options->near_device, bus_id))
                return why_set(reason, -EINVAL, "near_device: \"%s\" is not a PCI bus id, such as 0000:1b:00.0",
                               options->near_device);
        if (options->restart_timeout_ms < -1)
                return why_set(reason, -EINVAL,
                               "restart_timeout_ms: %d; must not be negative (-1: as long as it takes)",
                               options->restart_timeout_ms);
        if (!is_limit(options->max_errors))
                return why_set(reason, -EINVAL,
                               "max_errors: %g; a share below 1, a whole number of samples, or 0 for any "
                               "number are allowed",
                               options->max_errors);
        return 0;
}

static int client_options_check_numbers(const struct dlc_options *options, struct why *reason) {
        if (options->batch_size < 1 || options->batch_size > (int)DLP_BATCH_MAX)
                return why_set(reason, -EINVAL, "batch_size: %d; 1 to %u samples are allowed", options->batch_size,
                               DLP_BATCH_MAX);
        if (options->world_size < 1 || options->world_size > (int)DLP_WORLD_MAX)
                return why_set(reason, -EINVAL, "world_size: %d; 1 to %u ranks are allowed", options->world_size,
                               DLP_WORLD_MAX);
        if (options->rank < 0 || options->rank >= options->world_size)
                return why_set(reason, -EINVAL, "rank: %d; 0 to %d are allowed in a world of %d", options->rank,
                               options->world_size - 1, options->world_size);
        if (options->n_slots != 0 && (options->n_slots < (int)DLP_SLOTS_MIN || options->n_slots > (int)DLP_SLOTS_MAX))
                return why_set(reason, -EINVAL, "n_slots: %d; %u to %u are allowed, or 0 for the daemon's setting",
                               options->n_slots, DLP_SLOTS_MIN, DLP_SLOTS_MAX);
        if (options->shuffle_buffer < 0 || options->shuffle_buffer > (int)DLP_BUFFER_MAX)
                return why_set(reason, -EINVAL,
                               "shuffle_buffer: %d; 1 to %u samples are allowed, or 0 for the usual %u",
                               options->shuffle_buffer, DLP_BUFFER_MAX, DLP_BUFFER_DEFAULT);
        if (options->first_epoch > DLP_EPOCH_MAX)
                return why_set(reason, -EINVAL, "first_epoch: %llu; 0 to %llu are allowed",
                               (unsigned long long)options->first_epoch, DLP_EPOCH_MAX);
        return 0;
}

int dli_options_resolve(const struct dlc_options *options, struct why *reason, struct dlc_options *ret_options,
                        struct dli_launch *ret_launch) {
        struct dlc_options resolved = DLC_OPTIONS_INIT;
        struct dli_launch launch;
        int r;

        r = client_options_copy_options(options, reason, &resolved);
        if (r < 0)
                return r;
        r = check_texts(&resolved, reason);
        if (r < 0)
                return r;
        if (resolved.rank < -1 || resolved.world_size < -1)
                return why_set(reason, -EINVAL, "%s: %d; must not be negative (-1 takes it from the environment)",
                               resolved.rank < -1 ? "rank" : "world_size",
                               resolved.rank < -1 ? resolved.rank : resolved.world_size);
        r = dli_environment_rank(resolved.rank, resolved.world_size, reason, &launch);
        if (r < 0)
                return r;
        resolved.rank = launch.rank;
        resolved.world_size = launch.world;
        r = client_options_check_numbers(&resolved, reason);
        if (r < 0)
                return r;

        if (!resolved.pipeline)
                resolved.pipeline = "raw()"; /* the step, also where a field is called so */
        if (!resolved.partition)
                resolved.partition = "pad";
        if (!resolved.dealing)
                resolved.dealing = "strided";
        if (!resolved.order)
                resolved.order = "torch";
        if (!resolved.on_error)
                resolved.on_error = "fail";
        if (!resolved.sampler)
                resolved.sampler = "";
        if (!resolved.on_restart)
                resolved.on_restart = "wait";
        r = check_choices(&resolved, reason);
        if (r < 0)
                return r;
        *ret_options = resolved;
        *ret_launch = launch;
        return 0;
}

/* The offsets of the texts in the struct. */
static const size_t TEXTS[] = {
        offsetof(struct dlc_options, dataset),     offsetof(struct dlc_options, pipeline),
        offsetof(struct dlc_options, socket),      offsetof(struct dlc_options, job),
        offsetof(struct dlc_options, partition),   offsetof(struct dlc_options, order),
        offsetof(struct dlc_options, on_error),    offsetof(struct dlc_options, on_restart),
        offsetof(struct dlc_options, dealing),     offsetof(struct dlc_options, sampler),
        offsetof(struct dlc_options, near_device),
};
#define N_TEXTS (sizeof(TEXTS) / sizeof(TEXTS[0]))

static char **client_options_text_at(struct dlc_options *options, size_t i) {
        return (char **)((uint8_t *)options + TEXTS[i]);
}

int dli_options_keep(struct dlc_options *options, const struct dlc_options *resolved) {
        bool complete = true;

        *options = *resolved;
        for (size_t i = 0; i < N_TEXTS; i++) {
                char **text = client_options_text_at(options, i);

                *text = *text ? strdup(*text) : NULL;
                complete &= *text || !*client_options_text_at((struct dlc_options *)(uintptr_t)resolved, i);
        }
        return complete ? 0 : -ENOMEM;
}

void dli_options_free(struct dlc_options *options) {
        for (size_t i = 0; i < N_TEXTS; i++)
                free(*client_options_text_at(options, i));
}
