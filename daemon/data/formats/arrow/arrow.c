#include "daemon/data/format.h"

/* arrow: Arrow files, as save_to_disk() of "datasets" writes them, or any others. A row is a sample, a column is a
 * field. */

#include "daemon/data/formats/arrow/arrow_fill.h"
#include "daemon/data/formats/arrow/arrow_survey.h"
#include "daemon/data/formats/arrow/host.h"
#include "proto/base/cleanup.h"

static int build(struct arrow_pass *pass, const char *split, const char *fields, struct index_builder **ret_builder) {
        int r = arrow_pass_open(pass, split, fields);

        if (r == 0)
                r = arrow_survey(pass);
        return r < 0 ? r : arrow_fill(pass, ret_builder);
}

static int arrow_build(int root_fd, const struct files *files, const struct format_options *options,
                       const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(arrow_pass_fini) struct arrow_pass pass = {
                .root_fd = root_fd, .files = files, .watch = watch, .refusals = format_refusals(options), .why = why
        };

        return build(&pass, format_option(options, "split"), format_option(options, "fields"), ret_builder);
}

int arrow_host_build(const struct arrow_host *host, int root_fd, const struct files *files,
                     const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(arrow_pass_fini) struct arrow_pass pass = {
                .root_fd = root_fd, .files = files, .watch = watch, .refusals = host->refusals, .why = why, .host = host
        };

        return build(&pass, NULL, host->fields, ret_builder);
}

static const struct setting OPTIONS[] = {
        OPTION_FIELDS,
        OPTION_SPLIT,
        { 0 },
};

const struct format FORMAT_ARROW = {
        .name = "arrow",
        .takes_files = true,
        .options = OPTIONS,
        .is_it = arrow_folder_is_it,
        .build = arrow_build,
};
