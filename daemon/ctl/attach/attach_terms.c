/* The terms of an attach: what all ranks of a job must agree on. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/ctl/attach/attach.h"
#include "daemon/data/growth.h"
#include "proto/base/nearest.h"
#include "proto/base/text.h"

static int terms_check_name(const char *field, const char *value, size_t max, struct why *why) {
        size_t n = strlen(value);

        if (n == 0)
                return why_set(why, -EINVAL, "%s: is empty; a name of 1 to %u bytes is needed", field,
                               DLP_NAME_MAX - 1);
        if (n >= max)
                return why_set(why, -EINVAL, "%s: is %zu bytes long, %zu are allowed", field, n, max - 1);
        if (!text_is_name(value))
                return why_set(why, -EINVAL, "%s: \"%s\" has control characters or is not UTF-8", field, value);
        return 0;
}

static int terms_check_number(const char *field, uint64_t value, uint64_t min, uint64_t max, struct why *why) {
        if (value >= min && value <= max)
                return 0;
        return why_set(why, -EINVAL, "%s: %llu is out of range; %llu to %llu are allowed", field,
                       (unsigned long long)value, (unsigned long long)min, (unsigned long long)max);
}

static int terms_check_numbers(const Dlp__Attach *wish, struct why *why) {
        int r;

        r = terms_check_number("world_size", wish->world, 1, DLP_WORLD_MAX, why);
        if (r < 0)
                return r;
        if (wish->rank >= wish->world)
                return why_set(why, -EINVAL, "rank: %u is out of range; with world_size %u, 0 to %u are allowed",
                               wish->rank, wish->world, wish->world - 1);
        r = terms_check_number("batch_size", wish->batch_size, 1, DLP_BATCH_MAX, why);
        if (r < 0)
                return r;
        if (wish->n_slots > 0) {
                r = terms_check_number("slots", wish->n_slots, DLP_SLOTS_MIN, DLP_SLOTS_MAX, why);
                if (r < 0)
                        return r;
        }
        return terms_check_number("first_epoch", wish->first_epoch, 0, DLP_EPOCH_MAX, why);
}

static int terms_refuse_choice(const char *option, const char *value, const char *choices, struct why *why) {
        struct nearest nearest;

        return why_set(why, -EINVAL, "%s: \"%s\" is not known%s; choose one of: %s", option, value,
                       nearest_in(&nearest, value, strlen(value), choices), choices);
}

int attach_read_terms(const Dlp__Attach *wish, struct job_terms *terms, struct why *why) {
        struct dlp_order_choice order;
        int r;

        /* One name has been compared with those of the configuration, and the names of several with the limit. */
        r = terms_check_name("dataset", wish->dataset,
                             strstr(wish->dataset, " + ") || wish->dataset[0] == '/' ? DLP_DATASET_MAX : DLP_NAME_MAX,
                             why);
        if (r == 0)
                r = terms_check_name("job", wish->job, DLP_NAME_MAX, why);
        if (r == 0)
                r = terms_check_numbers(wish, why);
        if (r < 0)
                return r;
        if (wish->dealing[0] && dlp_dealing_from_name(wish->dealing, &terms->dealing) < 0)
                return terms_refuse_choice("dealing", wish->dealing, dlp_dealings, why);
        if (dlp_partition_from_name(wish->partition, &terms->partition) < 0)
                return terms_refuse_choice("partition", wish->partition, "pad drop exact", why);
        if (on_error_from_name(wish->on_error, &terms->on_error) < 0)
                return terms_refuse_choice("on_error", wish->on_error, "fail substitute skip", why);
        r = dlp_order_choice_read(wish->order, &order, why);
        if (r < 0)
                return r;
        r = max_errors_check(wish->max_errors, why);
        if (r < 0)
                return r;
        if (wish->max_errors > 0 && terms->on_error == ON_ERROR_FAIL)
                return why_set(why, -EINVAL,
                               "max_errors: with on_error \"fail\" the first damaged sample ends the job; ask for "
                               "\"substitute\" or \"skip\"");
        if (strlen(wish->pipeline) >= DLP_PIPELINE_MAX)
                return why_set(why, -EINVAL, "pipeline: is longer than %u bytes", DLP_PIPELINE_MAX - 1);

        snprintf(terms->dataset, sizeof(terms->dataset), "%s", wish->dataset);
        terms->world = wish->world;
        terms->batch_size = wish->batch_size;
        terms->seed = wish->seed;
        terms->order = order.kind;
        terms->window = order.window;
        terms->draws = wish->draws;
        terms->shuffle_buffer = wish->shuffle_buffer;
        terms->max_errors = wish->max_errors + 0.0; /* turns -0 into 0 */
        terms->shuffle = wish->shuffle;
        terms->drop_last = wish->drop_last;
        return 0;
}

/* A sampler, the filling of packs, and a share of all samples ask what is known of all of them. */
bool attach_is_in_blocks(const Dlp__Attach *wish) {
        struct dlp_order_choice order;
        struct why why;

        return wish->shuffle && !wish->sampler[0] && !(wish->max_errors > 0 && wish->max_errors < 1) &&
               !strstr(wish->pipeline, "pack(") && dlp_order_choice_read(wish->order, &order, &why) == 0 &&
               order.kind == DLP_ORDER_BLOCKS;
}

int attach_settle_order(struct job_terms *terms, const struct source *source, struct why *why) {
        bool has_buffer, has_blocks = source->growth && growth_blocks(source->growth);

        if (source->growth && !has_blocks && terms->shuffle &&
            (terms->order == DLP_ORDER_TDPERM || terms->order == DLP_ORDER_BLOCKS))
                return why_set(why, -EINVAL,
                               "order: \"%s\" needs to know how many %s there are, and %s is a "
                               "stream; leave it out: a stream has a shuffle buffer",
                               dlp_order_kind_name(terms->order),
                               terms->order == DLP_ORDER_BLOCKS ? "shards" : "samples", terms->dataset);
        if (source->growth && !has_blocks) {
                terms->order = DLP_ORDER_BUFFER; /* "torch" is what clients send who ask for nothing */
                terms->window = 0;
        }
        if (source->growth && terms->max_errors > 0 && terms->max_errors < 1)
                return why_set(why, -EINVAL,
                               "max_errors: %g is a share of a number that is not known, as %s is a "
                               "stream; give a number of samples",
                               terms->max_errors, terms->dataset);
        has_buffer = terms->shuffle && terms->order == DLP_ORDER_BUFFER;
        if (terms->shuffle_buffer > 0 && terms->shuffle && !has_buffer)
                return why_set(why, -EINVAL,
                               "shuffle_buffer: is for streams, and for the order \"buffer\"; the order "
                               "\"%s\" has none",
                               dlp_order_kind_name(terms->order));
        if (terms->shuffle_buffer > DLP_BUFFER_MAX)
                return why_set(why, -EINVAL,
                               "shuffle_buffer: %u is out of range; 1 to %u samples are allowed, or 0 for "
                               "the usual %u",
                               terms->shuffle_buffer, DLP_BUFFER_MAX, DLP_BUFFER_DEFAULT);
        if (!has_buffer)
                terms->shuffle_buffer = 0;
        else if (terms->shuffle_buffer == 0)
                terms->shuffle_buffer = DLP_BUFFER_DEFAULT;
        return 0;
}
