/* core/dataset_rows.h: one row for each key of a dataset that is the same whatever its format is, as in
 * base/settings_rows.h. Keys of formats are rows of the formats (data/format_options.h). All change with a reload. */

/* clang-format off */
SETTING(path, TEXT, .example = "/data/photos/train", .max = PATH_MAX - 1, .unit = "path",
        .check = check_dataset_path,
        .prose = "The absolute path of the folder, of a file, or a pattern of files; or the URL of a bucket, a hub or a "
                 "web server, such as \"s3://bucket/birds\"; with an origin, where it is staged to. Every dataset needs "
                 "it.")
SETTING(format, TEXT, .initial = "auto", .max = 255, .check = check_format,
        .prose = "How it is read; auto: told by its files; plugin(NAME.FORMAT): as a plug-in says.")
SETTING(allow, OPTIONAL, .initial = "", .max = 4095, .unit = "groups", .check = check_allow,
        .prose = "Groups whose members may use the dataset, such as \"vision, ml\", and join each other's jobs on it; "
                 "empty: everybody who may connect.")
SETTING(links, CHOICE, .initial = "inside", .choices = "inside follow",
        .prose = "Symbolic links in the dataset's folder: inside refuses those that lead out of it, follow follows "
                 "them.")
SETTING(weight, NUMBER, .initial = "1", .min = 1, .max = FAIR_WEIGHT_MAX,
        .prose = "Share of workers and reads: a job of weight 3 gets three times as much as one of weight 1.")
SETTING(origin, OPTIONAL, .initial = "", .max = 4095, .unit = "URL", .check = check_origin,
        .prose = "Where the dataset comes from, such as \"https://host/birds/x-{000..127}.tar\", \"s3://bucket/birds\", "
                 "\"hf://datasets/ORG/NAME/data/*.parquet\" or \"file:///mnt/birds.tar\"; empty: it is at its path already, "
                 "and origin_kind to stall_timeout have no effect.")
SETTING(origin_kind, CHOICE, .initial = "auto", .choices = "auto manifest list s3 gs hf folder archive file",
        .prose = "What the origin is; auto: told by the URL.")
SETTING(endpoint, OPTIONAL, .initial = "", .max = 1023, .unit = "URL", .check = check_endpoint,
        .prose = "The server of an object store other than AWS or Google, such as \"https://minio.example:9000\", or of a "
                 "hub other than huggingface.co.")
SETTING(region, OPTIONAL, .initial = "", .max = 63,
        .prose = "The object store's region; empty: that of the user's own AWS settings, else us-east-1. A bucket of AWS "
                 "in another region is asked there.")
SETTING(addressing, CHOICE, .initial = "auto", .choices = "auto path virtual",
        .prose = "Where a request names the bucket: in the path, or in the host's name (virtual); auto: in the path if "
                 "there is an endpoint.")
SETTING(credentials, OPTIONAL, .initial = "", .max = PATH_MAX - 1, .unit = "path",
        .check = setting_check_path,
        .prose = "The absolute path of a file with the keys for the origin, which only its owner may be able to read.")
SETTING(ca_file, OPTIONAL, .initial = "", .max = PATH_MAX - 1, .unit = "path",
        .check = setting_check_path,
        .prose = "The absolute path of a file with the certificates of the authorities that vouch for the origin; "
                 "empty: those of the environment or of the system.")
SETTING(mirror, OPTIONAL, .initial = "", .max = 1023, .unit = "URL", .check = check_mirror,
        .prose = "Where the path is a URL: a URL below which the same files lie, such as that of a cache of this site; it "
                 "is asked first, and the origin for what it cannot give.")
SETTING(connections, NUMBER, .initial = "0", .max = 1024, .unit = "connections",
        .prose = "Connections that each node opens to the origin at once; 0: 16 for a staging, 256 where the path is a URL.")
SETTING(unpack, CHOICE, .initial = "auto", .choices = "auto yes no",
        .prose = "Archives: auto unpacks an origin that is an archive, yes also archives in manifests, lists and "
                 "folders, no none.")
SETTING(unpack_limit, SIZE, .initial = "0", .max = UINT64_MAX, .unit = "bytes",
        .prose = "The most bytes that may be unpacked from archives; 0: a hundred times their size, at least 1 GiB.")
SETTING(prepare, OPTIONAL, .initial = "", .max = DLP_TEXT_MAX - 1, .unit = "steps",
        .check = steps_check,
        .prose = "Steps that are applied to each picture once, at staging, such as \"resize(short=256) jpeg(90)\"; or "
                 "gpu_jpeg, convert, or 'command: PROGRAM'.")
SETTING(pack, FLAG, .initial = "no",
        .prose = "Small files are packed into large shards, which are read at the disk's speed; prepare implies it.")
SETTING(shard_size, SIZE, .initial = "256MiB", .min = 1 << 20, .max = 1ull << 40, .unit = "bytes",
        .prose = "The approximate size of a shard.")
SETTING(sharing, CHOICE, .initial = "auto", .choices = "auto local shared",
        .prose = "Whether each node has a path of its own (local), or all see the same one (shared).")
SETTING(stall_timeout, NUMBER, .initial = "60", .min = 5, .max = 86400, .unit = "seconds",
        .prose = "How long a staging may be without any progress before it fails.")
#undef SETTING
