/* The settings of a dataset section, and the checks of their values. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fair_queue.h"
#include "daemon/core/settings.h"
#include "daemon/data/format_tell.h"
#include "daemon/data/scanner.h"
#include "daemon/staging/record/origin_kind.h"
#include "daemon/staging/record/record_place.h"
#include "daemon/staging/record/record_steps.h"
#include "proto/base/cleanup.h"

#define AT(field) offsetof(struct dataset_setting, field)

static int check_path(const char *text, struct why *why) {
        if (text[0] == '/')
                return 0;
        return why_set(why, -EINVAL, "\"%s\" is not allowed; write an absolute path", text);
}

static int dataset_settings_check_file(const char *text, struct why *why) {
        if (text[0] == '/')
                return 0;
        return why_set(why, -EINVAL, "\"%s\" is not allowed; write the file's absolute path", text);
}

static int check_format(const char *text, struct why *why) {
        const struct format *found;

        return strcmp(text, FORMAT_AUTO) == 0 ? 0 : format_find(text, &found, why);
}

/* Checks the text alone: only the staging program contacts the origin, the daemon never does. A password is refused,
 * because everybody can read this file and its values are shown. */
static int check_origin(const char *text, struct why *why) {
        struct url url;

        int r = url_parse(text, &url, why);

        if (r == 0 && strchr(text, ' ') && (url.scheme != URL_S3 || memchr(url.host, ' ', url.n_host)))
                return why_set(why, -EINVAL, "\"%s\" has a blank%s", text,
                               url.scheme == URL_S3 ? " in the bucket's name" : "; write it as %20");
        return r;
}

static int check_endpoint(const char *text, struct why *why) {
        if (url_is_endpoint(text))
                return 0;
        return why_set(why, -EINVAL, "\"%s\" is not an endpoint; write https://HOST or https://HOST:PORT", text);
}

static int check_allow(const char *text, struct why *why) {
        struct groups groups;
        int r = groups_parse(text, &groups, why);

        if (r < 0)
                return r;
        r = groups.n_groups > 0 ? 0 : why_set(why, -EINVAL, "names no group; leave the key out to allow everybody");
        groups_fini(&groups);
        return r;
}

const struct setting DATASET_SETTINGS[] = {
        { "path", SETTING_TEXT, AT(path), NULL, 0, PATH_MAX - 1, NULL, "path", true,
          "the folder, or the files of a webdataset; with an origin, where it is staged to", check_path },
        { "format", SETTING_TEXT, AT(format), "auto", 0, 255, NULL, "", true,
          "how it is read; auto: told by its content; plugin(NAME.FORMAT): as a plug-in says", check_format },
        { "annotations", SETTING_OPTIONAL, AT(annotations), "", 0, PATH_MAX - 1, NULL, "path", true,
          "coco: the file with boxes and categories" },
        { "files", SETTING_OPTIONAL, AT(files), "", 0, 1023, NULL, "fields", true,
          "jsonl, csv: the columns that name files, as in \"image=path, mask=masks/{id}.png\"" },
        { "raw", SETTING_OPTIONAL, AT(raw), "", 0, 4095, NULL, "columns", true,
          "jsonl, csv: the columns whose bytes are delivered as they are in the file" },
        { "pattern", SETTING_OPTIONAL, AT(pattern), "", 0, 1023, NULL, "path", true,
          "folder: the files that are samples, as in \"{class}/{name}.jpg\"" },
        { "label", SETTING_OPTIONAL, AT(label), "", 0, 31, NULL, "column", true,
          "jsonl, csv, folder: the column that is the label" },
        { "join", SETTING_OPTIONAL, AT(join), "", 0, 4095, NULL, "files", true,
          "csv: further tables, as in \"labels.txt(id, class)\"" },
        { "delimiter", SETTING_OPTIONAL, AT(delimiter), "", 0, 15, NULL, "", true,
          "csv: the character between cells, \"tab\" or \"blank\"; empty: a comma, in .tsv files a tab" },
        { "columns", SETTING_OPTIONAL, AT(columns), "", 0, 4095, NULL, "columns", true,
          "csv: the names of the columns, if the first row does not have them" },
        { "skip_lines", SETTING_OPTIONAL, AT(skip_lines), "", 0, 15, NULL, "lines", true,
          "csv: lines before the first row of each file; empty: none" },
        { "block_size", SETTING_OPTIONAL, AT(block_size), "", 0, 15, NULL, "tokens", true,
          "litdata: tokens in each sample, a block; empty: samples are documents" },
        { "sample", SETTING_OPTIONAL, AT(sample), "", 0, 15, NULL, "", true,
          "text: \"line\" or \"file\": what a sample is; empty: a line" },
        { "dtype", SETTING_OPTIONAL, AT(dtype), "", 0, 15, NULL, "", true,
          "npy: the type of the elements of a file without a header (a raw memory map), as in uint16 or >f4" },
        { "shape", SETTING_OPTIONAL, AT(shape), "", 0, 63, NULL, "numbers", true,
          "npy, with dtype: rows (-1: all) and the shape of a row, as in -1,2049; empty: -1" },
        { "offset", SETTING_OPTIONAL, AT(offset), "", 0, 20, NULL, "bytes", true,
          "npy, with dtype: where the first row begins; empty: 0" },
        { "sequence_length", SETTING_OPTIONAL, AT(sequence_length), "", 0, 20, NULL, "tokens", true,
          "megatron: GPT samples of this many tokens, and one more; empty: documents" },
        { "splits", SETTING_OPTIONAL, AT(splits), "", 0, 255, NULL, "weights", true,
          "megatron: weights of the parts train, valid and test, as in 969,30,1; empty: all is train" },
        { "part", SETTING_OPTIONAL, AT(part), "", 0, 15, NULL, "", true,
          "megatron: train, valid or test; empty: train" },
        { "num_samples", SETTING_OPTIONAL, AT(num_samples), "", 0, 20, NULL, "samples", true,
          "megatron: as many GPT samples at least, from as many epochs as that takes; empty: one epoch" },
        { "seed", SETTING_OPTIONAL, AT(seed), "", 0, 20, NULL, "", true,
          "megatron: of the order of GPT samples; empty: 1234" },
        { "blend", SETTING_OPTIONAL, AT(blend), "", 0, 65535, NULL, "weights and prefixes", true,
          "megatron: several files mixed by weight, as in 0.3 PREFIX 0.7 PREFIX" },
        { "count", SETTING_OPTIONAL, AT(count), "", 0, 20, NULL, "samples", true,
          "numbers: how many samples there are" },
        { "title", SETTING_OPTIONAL, AT(title), "", 0, 63, NULL, "", true,
          "numbers: what samples are called in messages; empty: sample" },
        { "merge", SETTING_OPTIONAL, AT(merge), "", 0, 65535, NULL, "paths", true,
          "webdataset: archives with further fields of the same samples, one for each archive of the path" },
        { "stream", SETTING_OPTIONAL, AT(stream), "", 0, 5, NULL, "yes or no", true,
          "webdataset: served while its shards are still being written" },
        { "field_limit", SETTING_OPTIONAL, AT(field_limit), "", 0, 20, NULL, "bytes", true,
          "a stream: the most bytes of a field; empty: 8 times the longest of the first shard, at least 16384" },
        { "spool", SETTING_OPTIONAL, AT(spool), "", 0, PATH_MAX - 1, NULL, "path", true,
          "a stream: the folder in which compressed shards are unpacked; empty: beside the indices", check_path },
        { "spool_limit", SETTING_OPTIONAL, AT(spool_limit), "", 0, 20, NULL, "bytes", true,
          "a stream: the most bytes that are unpacked; empty: 4GiB" },
        { "fields", SETTING_OPTIONAL, AT(fields), "", 0, DLP_TEXT_MAX - 1, NULL, "NAME=FIELD|FIELD, ...", true,
          "the fields of a sample, chosen and renamed; empty: all, as the format names them" },
        { "split", SETTING_OPTIONAL, AT(split), "", 0, DLP_TEXT_MAX - 1, NULL, "", true,
          "the samples that belong to the dataset; empty: all" },
        { "allow_missing", SETTING_OPTIONAL, AT(allow_missing), "", 0, 5, NULL, "yes or no", true,
          "numbered files (x-00000-of-00003) may be missing; empty: the dataset is refused then" },
        { "allow", SETTING_OPTIONAL, AT(allow), "", 0, 4095, NULL, "groups", true,
          "whose members may use the dataset and join each other's jobs on it; empty: everybody who may connect",
          check_allow },
        { "links", SETTING_CHOICE, AT(links), "inside", 0, 0, "inside follow", "", true,
          "symbolic links in the dataset's folder: inside refuses those that lead out of it, follow follows them" },
        { "weight", SETTING_NUMBER, AT(weight), "1", 1, FAIR_WEIGHT_MAX, NULL, "", true,
          "share of workers and reads: a job of weight 3 gets three times as much as one of weight 1" },
        { "origin", SETTING_OPTIONAL, AT(origin), "", 0, 4095, NULL, "URL", true,
          "where the dataset comes from; empty: it is at its path already", check_origin },
        { "origin_kind", SETTING_CHOICE, AT(origin_kind), "auto", 0, 0, "auto manifest list s3 folder archive file", "",
          true, "what the origin is; auto decides by the URL" },
        { "endpoint", SETTING_OPTIONAL, AT(endpoint), "", 0, 1023, NULL, "URL", true,
          "the object store's server; empty: that of AWS", check_endpoint },
        { "region", SETTING_TEXT, AT(region), "us-east-1", 0, 63, NULL, "", true, "of the object store" },
        { "addressing", SETTING_CHOICE, AT(addressing), "auto", 0, 0, "auto path virtual", "", true,
          "where the bucket is named: in the path or in the host's name; auto: in the path if there is an endpoint" },
        { "credentials", SETTING_OPTIONAL, AT(credentials), "", 0, PATH_MAX - 1, NULL, "path", true,
          "a file with the keys for the origin; only its owner may be able to read it", dataset_settings_check_file },
        { "ca_file", SETTING_OPTIONAL, AT(ca_file), "", 0, PATH_MAX - 1, NULL, "path", true,
          "certificates of the authorities that vouch for the origin; empty: the system's",
          dataset_settings_check_file },
        { "connections", SETTING_NUMBER, AT(connections), "16", 1, 256, NULL, "connections", true,
          "to the origin at once, from each node" },
        { "unpack", SETTING_CHOICE, AT(unpack), "auto", 0, 0, "auto yes no", "", true,
          "archives: auto unpacks an origin that is an archive, yes also archives in a list" },
        { "unpack_limit", SETTING_SIZE, AT(unpack_limit), "0", 0, UINT64_MAX, NULL, "bytes", true,
          "the most bytes unpacked from archives; 0: a hundred times their size" },
        { "prepare", SETTING_OPTIONAL, AT(prepare), "", 0, DLP_TEXT_MAX - 1, NULL, "steps", true,
          "steps that are applied to each picture once, at staging", steps_check },
        { "pack", SETTING_FLAG, AT(pack), "no", 0, 0, "yes no", "", true,
          "small files into large shards; prepare implies it" },
        { "shard_size", SETTING_SIZE, AT(shard_size), "256MiB", 1 << 20, 1ull << 40, NULL, "bytes", true,
          "approximate size of a shard" },
        { "sharing", SETTING_CHOICE, AT(sharing), "auto", 0, 0, "auto local shared", "", true,
          "local: each node has a path of its own; shared: all see the same one" },
        { "stall_timeout", SETTING_NUMBER, AT(stall_timeout), "60", 5, 86400, NULL, "seconds", true,
          "without progress after which a staging fails" },
};
const size_t N_DATASET_SETTINGS = ARRAY_SIZE(DATASET_SETTINGS);

/* Do URL and kind match? The target of a file: URL is not checked: it may be on another machine's disk, and a check
 * might hang. */
static int dataset_settings_check_kind(const struct dataset_setting *dataset, struct why *why) {
        bool is_local = strncmp(dataset->origin, "file:", 5) == 0;
        struct why reason;
        const char *kind;
        int r;

        if (is_local && strcmp(dataset->origin_kind, "auto") == 0)
                return 0;
        r = origin_kind(dataset->origin, dataset->origin_kind, &kind, &reason);
        return r < 0 ? why_set(why, r, "origin_kind: %s", reason.text) : 0;
}

/* Those that are set, as one text for the data floor, which knows which format takes which. */
static int gather_options(struct dataset_setting *dataset, struct why *why) {
        struct format_options parsed;
        const struct format *format;
        char *text = NULL;
        bool is_stream;
        size_t size;
        FILE *stream = open_memstream(&text, &size);
        int r;

        if (!stream)
                return why_errno(why, -ENOMEM, "options");
        for (size_t i = 0; i < N_DATASET_SETTINGS; i++) {
                const struct setting *row = &DATASET_SETTINGS[i];
                const char *value = *(char *const *)(const void *)((const char *)dataset + row->offset);

                if (row->kind == SETTING_OPTIONAL && value[0] && format_option_is_known(row->name))
                        fprintf(stream, "%s=%s\n", row->name, value);
        }
        if (fclose(stream) != 0) {
                free(text);
                return why_errno(why, -ENOMEM, "options");
        }
        dataset->options = text;
        if (strcmp(dataset->format, FORMAT_AUTO) == 0)
                return 0;
        r = format_find(dataset->format, &format, why);
        if (r == 0)
                r = format_options_parse(text, format, &parsed, why);
        if (r < 0)
                return r;
        r = format_options_stream(&parsed, &is_stream, why);
        format_options_fini(&parsed);
        return r;
}

int dataset_setting_complete(struct dataset_setting *dataset, struct why *why) {
        struct place place;
        struct why reason;
        int r;

        if (!dataset->path)
                return why_set(why, -EINVAL, "path: is missing; write an absolute path");
        r = settings_fill(DATASET_SETTINGS, N_DATASET_SETTINGS, dataset, why);
        if (r == 0)
                r = gather_options(dataset, why);
        if (r == 0)
                r = groups_parse(dataset->allow, &dataset->groups, why);
        if (r < 0 || !*dataset->origin)
                return r;
        if (strncmp(dataset->format, SCANNER_PREFIX, strlen(SCANNER_PREFIX)) == 0)
                return why_set(why, -EINVAL,
                               "format: a dataset with an origin is indexed where it is staged, and a plug-in's format "
                               "by the daemon; leave out origin, or stage the files by other means");
        if (dataset->stream[0] && dataset->stream[0] != 'n')
                return why_set(why, -EINVAL,
                               "stream: a dataset with an origin is served when it is complete; leave out "
                               "stream or origin");
        if (dataset->merge[0])
                return why_set(why, -EINVAL,
                               "merge: a dataset with an origin is a folder, and with merge the path names archives; "
                               "leave out merge or origin");
        r = place_init(&place, dataset->path, &reason);
        return r < 0 ? why_set(why, r, "path: %s", reason.text) : dataset_settings_check_kind(dataset, why);
}

void dataset_setting_fini(struct dataset_setting *dataset) {
        free(dataset->name);
        free(dataset->options);
        settings_free_texts(DATASET_SETTINGS, N_DATASET_SETTINGS, dataset);
        groups_fini(&dataset->groups);
        *dataset = (struct dataset_setting){ 0 };
}
