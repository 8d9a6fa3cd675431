/* list_index [--stats] [--format=NAME] PATH [INDEX_DIR]: what the index of a dataset says (an image folder if it is not
 * said), for comparison with others.
 *
 * Records end with NUL, since names may hold anything else: "C<TAB>class" for each class, then
 * "S<TAB>label<TAB>flags<TAB>length<TAB>path" for each sample. With --stats only times and sizes, as `name value unit`
 * lines. Without INDEX_DIR nothing is saved. Exit 1 with the reason on stderr if no index can be made or read. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/data/dataset.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"

static void list(const struct source *index) {
        char path[INDEX_PATH_SIZE];

        for (uint32_t i = 0; i < index->n_classes; i++)
                printf("C\t%s%c", source_class_name(index, i), '\0');
        for (uint64_t i = 0; i < index->n_samples; i++) {
                struct extent place;

                source_locate(index, i, 0, &place);
                source_name(index, i, path);
                printf("S\t%" PRId32 "\t%" PRIu32 "\t%" PRIu64 "\t%s%c", index_label(index, i), place.flags,
                       place.length, path, '\0');
        }
}

static void stats(const struct dataset *dataset, const struct dataset_report *report) {
        static const char *const HOW[] = { "loaded", "built", "rebuilt" };
        const struct source *index = dataset_source(dataset);
        struct rusage usage;
        uint64_t begin_ns;

        printf("%s%s %.1f ms\n", HOW[report->how], report->saved ? "" : "_unsaved", (double)report->duration_ns / 1e6);
        if (report->reason.text[0])
                printf("because %s\n", report->reason.text);
        begin_ns = clock_now_ns();
        dataset_is_current(dataset, NULL);
        printf("staleness_check %.1f ms\n", (double)(clock_now_ns() - begin_ns) / 1e6);
        printf("samples %" PRIu64 "\n", index->n_samples);
        getrusage(RUSAGE_SELF, &usage);
        printf("peak_memory %ld KiB\n", usage.ru_maxrss);
        printf("digest %s\n", index->digest);
}

int main(int argc, char **argv) {
        _cleanup_(dataset_unrefp) struct dataset *dataset = NULL;
        int only_stats = argc > 1 && strcmp(argv[1], "--stats") == 0;
        struct dataset_spec spec = { .name = "listed", .format = "imagefolder", .follows_links = true };
        struct dataset_report report;
        struct why why = { 0 };

        argv += only_stats;
        argc -= only_stats;
        if (argc > 1 && strncmp(argv[1], "--format=", 9) == 0) {
                spec.format = argv[1] + 9;
                argv++;
                argc--;
        }
        if (argc < 2 || argc > 3) {
                fprintf(stderr, "usage: list_index [--stats] [--format=NAME] PATH [INDEX_DIR]\n");
                return 2;
        }
        spec.path = argv[1];
        if (dataset_open(&spec, argc == 3 ? argv[2] : "/proc/nowhere", NULL, &dataset, &report, &why) < 0) {
                fprintf(stderr, "list_index: %s\n", why.text);
                return EXIT_FAILURE;
        }
        if (only_stats)
                stats(dataset, &report);
        else
                list(dataset_source(dataset));
        return EXIT_SUCCESS;
}
