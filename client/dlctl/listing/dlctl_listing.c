#include "client/dlctl/listing/dlctl_listing.h"

#include <unistd.h>

#include "client/dlctl/dlctl_options.h"

/* Records that stand in a list of another record become its neighbours. */
static void set_apart(cJSON *list, const char *name) {
        for (int i = cJSON_GetArraySize(list) - 1; i >= 0; i--) {
                cJSON *inner = cJSON_DetachItemFromObjectCaseSensitive(cJSON_GetArrayItem(list, i), name);

                for (int k = 1; cJSON_GetArraySize(inner) > 0; k++) /* at the end it appends */
                        cJSON_InsertItemInArray(list, i + k, cJSON_DetachItemFromArray(inner, 0));
                cJSON_Delete(inner);
        }
}

struct pages {
        const struct listing *listing;
        cJSON *list;
};

static bool take_page(void *arg, Dlp__Reply *reply) {
        struct pages *pages = arg;

        pages->listing->add(pages->list, reply);
        dlp__reply__free_unpacked(reply, NULL);
        return true;
}

int listing_run(const struct listing *listing, struct context *context, const struct command *command, int argc,
                char **argv) {
        struct control *control;
        const char *operand, *name;
        cJSON *record, *list;
        int r;

        r = options_parse(context, command, NULL, 0, 0, argc, argv);
        if (r >= 0)
                return r;
        operand = optind < argc ? argv[optind] : NULL;
        r = control_open_dataset(context, operand, &control, &name);
        if (r != EXIT_DONE)
                return r;
        record = record_new();
        list = record_list(record, listing->name);
        r = question_ask(control, listing->question, operand ? name : "", take_page, &(struct pages){ listing, list });
        if (r == EXIT_DONE) {
                int verdict = operand && listing->check ? listing->check(list) : EXIT_DONE;

                if (listing->apart && context->format == OUTPUT_JSON)
                        set_apart(list, listing->apart);
                output_list(context->format, list, listing->columns, listing->empty);
                r = verdict;
        }
        cJSON_Delete(record);
        control_close(control);
        return r;
}
