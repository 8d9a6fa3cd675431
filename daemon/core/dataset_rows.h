/* core/dataset_rows.h: one row for each key of a dataset that is the same whatever its format is, as in
 * base/settings_rows.h. Keys of formats are rows of the formats (data/format_options.h). All change with a reload. */

/* clang-format off */
SETTING(path, TEXT, .example = "/data/photos/train", .max = PATH_MAX - 1, .unit = "path", .is_for_file = true,
        .check = check_path,
        .prose = "The absolute path of the folder, of a file, or a pattern of files; with an origin, where it is "
                 "staged to. Every dataset needs it.")
SETTING(format, TEXT, .initial = "auto", .max = 255, .check = check_format,
        .prose = "How it is read; auto: told by its files; plugin(NAME.FORMAT): as a plug-in says.")
SETTING(allow, OPTIONAL, .initial = "", .max = 4095, .unit = "groups", .is_for_file = true, .check = check_allow,
        .prose = "Groups whose members may use the dataset, such as \"vision, ml\", and join each other's jobs on it; "
                 "empty: everybody who may connect.")
SETTING(links, CHOICE, .initial = "inside", .choices = "inside follow", .is_for_file = true,
        .prose = "Symbolic links in the dataset's folder: inside refuses those that lead out of it, follow follows "
                 "them.")
SETTING(weight, NUMBER, .initial = "1", .min = 1, .max = FAIR_WEIGHT_MAX, .is_for_file = true,
        .prose = "Share of workers and reads: a job of weight 3 gets three times as much as one of weight 1.")
SETTING(annotations, OPTIONAL, .initial = "", .max = PATH_MAX - 1, .unit = "path",
        .prose = "The file with boxes and categories, such as "
                 "/data/coco/annotations/instances_train2017.json. The format needs it.")
SETTING(files, OPTIONAL, .initial = "", .max = 1023, .unit = "fields",
        .prose = "The columns that name files, as in \"image=path, mask=masks/{id}.png\".")
SETTING(raw, OPTIONAL, .initial = "", .max = 4095, .unit = "columns",
        .prose = "The columns, separated by commas, that are delivered as bytes exactly as they are in the file.")
SETTING(pattern, OPTIONAL, .initial = "", .max = 1023, .unit = "path",
        .prose = "The files that are samples, as in \"{class}/{name}.jpg\". The format needs it.")
SETTING(label, OPTIONAL, .initial = "", .max = 31, .unit = "column", .prose = "The column that is the label.")
SETTING(join, OPTIONAL, .initial = "", .max = 4095, .unit = "files",
        .prose = "Further tables whose rows belong to the samples, as in \"labels.txt(id, class_id), "
                 "classes.txt(class_id, class)\".")
SETTING(delimiter, OPTIONAL, .initial = "", .max = 15,
        .prose = "The character between cells, such as \";\", \"tab\", or \"blank\": any number of blanks and tabs; "
                 "empty: a comma, in files .tsv a tab.")
SETTING(columns, OPTIONAL, .initial = "", .max = 4095, .unit = "columns",
        .prose = "The names of the columns, separated by commas, for files whose first row does not have them.")
SETTING(skip_lines, OPTIONAL, .initial = "", .max = 15, .unit = "lines",
        .prose = "Lines before the first row of each file; empty: none.")
SETTING(block_size, OPTIONAL, .initial = "", .max = 15, .unit = "tokens",
        .prose = "Of chunks of tokens: the tokens in each sample, which is then a block; empty: samples are documents.")
SETTING(sample, OPTIONAL, .initial = "", .max = 15, .prose = "What a sample is, \"line\" or \"file\"; empty: a line.")
SETTING(dtype, OPTIONAL, .initial = "", .max = 15,
        .prose = "The type of the elements of a file without a header, as numpy.memmap() and tofile() write it: "
                 "uint16, or as numpy writes it, >f4.")
SETTING(shape, OPTIONAL, .initial = "", .max = 63, .unit = "numbers",
        .prose = "With dtype: the number of rows (-1: all) and the shape of a row, as in -1,2049; empty: -1, each "
                 "element is a row.")
SETTING(offset, OPTIONAL, .initial = "", .max = 20, .unit = "bytes",
        .prose = "With dtype: how many bytes come before the first row; empty: none.")
SETTING(sequence_length, OPTIONAL, .initial = "", .max = 20, .unit = "tokens",
        .prose = "GPT samples of this many tokens and one more; empty: samples are documents.")
SETTING(splits, OPTIONAL, .initial = "", .max = 255, .unit = "weights",
        .prose = "The weights of the parts train, valid and test, as in 969,30,1; empty: all sequences are train.")
SETTING(part, OPTIONAL, .initial = "", .max = 15,
        .prose = "Which part is served: train, valid or test; empty: train.")
SETTING(num_samples, OPTIONAL, .initial = "", .max = 20, .unit = "samples",
        .prose = "How many GPT samples are wanted at least: as many epochs are shuffled as that takes; empty: one "
                 "epoch.")
SETTING(seed, OPTIONAL, .initial = "", .max = 20, .prose = "Of the order of the GPT samples; empty: 1234.")
SETTING(blend, OPTIONAL, .initial = "", .max = 65535, .unit = "weights and prefixes",
        .prose = "Several token files mixed by weight, as in \"0.3 wiki 0.7 /data/books\".")
SETTING(count, OPTIONAL, .initial = "", .max = 20, .unit = "samples",
        .prose = "How many samples there are. The format needs it.")
SETTING(title, OPTIONAL, .initial = "", .max = 63, .prose = "What samples are called in messages; empty: sample.")
SETTING(merge, OPTIONAL, .initial = "", .max = 65535, .unit = "paths",
        .prose = "Archives with further fields of the same samples, one for each archive of the path, in the same "
                 "sequence, as in \"/e/captions-{000..127}.tar\".")
SETTING(stream, OPTIONAL, .initial = "", .max = 5, .unit = "yes or no",
        .prose = "Whether the archives are served while they are still being written; empty: no.")
SETTING(field_limit, OPTIONAL, .initial = "", .max = 20, .unit = "bytes",
        .prose = "Of a stream: the most bytes of a field; empty: 8 times the longest of the first shard, at least "
                 "16384.")
SETTING(spool, OPTIONAL, .initial = "", .max = PATH_MAX - 1, .unit = "path", .check = check_path,
        .prose = "Of a stream: the folder in which compressed shards are unpacked, an absolute path; empty: beside the "
                 "indices.")
SETTING(spool_limit, OPTIONAL, .initial = "", .max = 20, .unit = "bytes",
        .prose = "Of a stream: the most bytes that are unpacked at a time, such as 64GiB; empty: 4GiB.")
SETTING(fields, OPTIONAL, .initial = "", .max = DLP_TEXT_MAX - 1, .unit = "NAME=FIELD|FIELD, ...",
        .prose = "The fields of a sample, chosen and renamed, such as \"image=jpg|png, caption=txt\"; empty: all, as "
                 "the format names them.")
SETTING(split, OPTIONAL, .initial = "", .max = DLP_TEXT_MAX - 1,
        .prose = "The samples that belong to the dataset, such as \"train\", \"0:90%\", \"train[hash(90%:)]\" or "
                 "\"random_split(0.9,0.1; seed=0)[0]\"; empty: all.")
SETTING(allow_missing, OPTIONAL, .initial = "", .max = 5, .unit = "yes or no",
        .prose = "Whether files that are numbered, as in x-00000-of-00003, may be missing; empty: the dataset is "
                 "refused then.")
SETTING(origin, OPTIONAL, .initial = "", .max = 4095, .unit = "URL", .is_for_file = true, .check = check_origin,
        .prose = "Where the dataset comes from, such as \"https://host/birds/manifest.jsonl\", \"s3://bucket/birds\" "
                 "or \"file:///mnt/birds.tar\"; empty: it is at its path already, and the keys below have no effect.")
SETTING(origin_kind, CHOICE, .initial = "auto", .choices = "auto manifest list s3 folder archive file",
        .is_for_file = true, .prose = "What the origin is; auto: told by the URL.")
SETTING(endpoint, OPTIONAL, .initial = "", .max = 1023, .unit = "URL", .is_for_file = true, .check = check_endpoint,
        .prose = "The server of an object store other than AWS, such as \"https://minio.example:9000\".")
SETTING(region, TEXT, .initial = "us-east-1", .max = 63, .is_for_file = true,
        .prose = "The object store's region, which is part of each signature.")
SETTING(addressing, CHOICE, .initial = "auto", .choices = "auto path virtual", .is_for_file = true,
        .prose = "Where a request names the bucket: in the path, or in the host's name (virtual); auto: in the path if "
                 "there is an endpoint.")
SETTING(credentials, OPTIONAL, .initial = "", .max = PATH_MAX - 1, .unit = "path", .is_for_file = true,
        .check = check_path,
        .prose = "The absolute path of a file with the keys for the origin, which only its owner may be able to read.")
SETTING(ca_file, OPTIONAL, .initial = "", .max = PATH_MAX - 1, .unit = "path", .is_for_file = true,
        .check = check_path,
        .prose = "The absolute path of a file with the certificates of the authorities that vouch for the origin; "
                 "empty: those of the environment or of the system.")
SETTING(connections, NUMBER, .initial = "16", .min = 1, .max = 256, .unit = "connections", .is_for_file = true,
        .prose = "Connections that each node opens to the origin at once.")
SETTING(unpack, CHOICE, .initial = "auto", .choices = "auto yes no", .is_for_file = true,
        .prose = "Archives: auto unpacks an origin that is an archive, yes also archives in manifests, lists and "
                 "folders, no none.")
SETTING(unpack_limit, SIZE, .initial = "0", .max = UINT64_MAX, .unit = "bytes", .is_for_file = true,
        .prose = "The most bytes that may be unpacked from archives; 0: a hundred times their size, at least 1 GiB.")
SETTING(prepare, OPTIONAL, .initial = "", .max = DLP_TEXT_MAX - 1, .unit = "steps", .is_for_file = true,
        .check = steps_check,
        .prose = "Steps that are applied to each picture once, at staging, such as \"resize(short=256) jpeg(90)\"; or "
                 "gpu_jpeg, convert, or 'command: PROGRAM'.")
SETTING(pack, FLAG, .initial = "no", .is_for_file = true,
        .prose = "Small files are packed into large shards, which are read at the disk's speed; prepare implies it.")
SETTING(shard_size, SIZE, .initial = "256MiB", .min = 1 << 20, .max = 1ull << 40, .unit = "bytes",
        .is_for_file = true, .prose = "The approximate size of a shard.")
SETTING(sharing, CHOICE, .initial = "auto", .choices = "auto local shared", .is_for_file = true,
        .prose = "Whether each node has a path of its own (local), or all see the same one (shared).")
SETTING(stall_timeout, NUMBER, .initial = "60", .min = 5, .max = 86400, .unit = "seconds", .is_for_file = true,
        .prose = "How long a staging may be without any progress before it fails.")
#undef SETTING
