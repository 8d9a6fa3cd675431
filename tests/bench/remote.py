"""Datasets that lie on a web server, read cold, beside the same files here and beside other libraries. Called by run.py.

The server is nginx on the loopback, each answer 30 ms late (its echo module: no root is needed, and no module of the kernel); it
uses the same CPUs. The data are the suite's photos, and texts; all of it in memory, the cache, too. In turns, medians of 3; each
turn has a new daemon and an empty cache.

    remote_KIND_first           ms from making the loader to its first batch, the daemon started, sizes asked for and index made meanwhile;
                                KIND: files (a list of URLs, so each file's size is asked for), s3 (the same files, listed as S3 does,
                                a thousand a request), tars (which are read whole for their index), mds, litdata, texts (Parquet),
                                tokens (the same texts as tokens of GPT-2's kind, in rows of 2,048). _open: of it, until the loader
                                is open
    remote_KIND                 samples/s of the first epoch, in the exact order, from its beginning on
    remote_KIND_vs_local        over those of the same files in a local folder
    remote_KIND_second_vs_local the second epoch's over the local one's second
    remote_KIND_origin          bytes that nginx sent, over those of the dataset
    remote_KIND_PEER            samples/s of another library's first epoch, two workers, the same steps on Pillow (torchvision);
                                _first: ms to its first batch; remote_KIND_vs_PEER: ours over it; _first_vs_: our time over its
    remote_files_cpu            CPU s a GB of the daemon for raw files, listing included, less those for local ones;
    remote_mds_cpu              _bare: of a bare libcurl loop (fetch_rate.c) for the same files; _vs_bare: the first over the second
"""
import contextlib
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TURNS, BATCH, PHOTOS_A_SHARD, SHARD_BYTES, ROW_TOKENS = 3, 64, 250, 20 << 20, 2048
TOKENIZERS = os.path.join(ROOT, "tests", "vectors", "tokenizers")
N_TEXTS, N_TOKENIZED, TEXTS_A_FILE = 60000, 15000, 7500
PEER_S = 6  # of another library's epoch, which may take minutes
STEPS = "random_resized_crop(224) hflip(0.5)"
# litdata: the newest that Debian's torch is new enough for; mosaicml-streaming's own list asks for the SDKs of three clouds.
PACKAGES = ("webdataset==1.0.2", "datasets==5.2.0", "pandas<3", "numpy==1.26.4", "boto3", "brotli", "zstd", "python-snappy",
            "xxhash<4", "catalogue", "aiohttp", "requests", "lightning-utilities", "filelock", "tifffile", "tokenizers")
ALONE = ("pyarrow==21.0.0", "litdata==0.2.40", "mosaicml-streaming==0.13.0", "s3torchconnector==1.5.0", "s3torchconnectorclient==1.5.0")
PROGRAMS = "/usr/sbin:/usr/bin:/sbin:" + os.environ.get("PATH", "")
ECHO = "/usr/lib/nginx/modules/ngx_http_echo_module.so"
CONFIG = """load_module /usr/lib/nginx/modules/ngx_http_echo_module.so;
daemon off; worker_processes 1; error_log {folder}/errors; pid {folder}/pid;
events {{ worker_connections 4096; }}
http {{ log_format short "$request_method $status $body_bytes_sent"; access_log {folder}/log short;
sendfile on; tcp_nopush on; keepalive_requests 1000000;
client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4;
scgi_temp_path {folder}/t5;
map $args $page {{ default /listing-1.xml; ~continuation-token /listing-2.xml; }}
server {{ listen 127.0.0.1:{port} backlog=2048; root {folder}/objects;
location = /s3 {{ echo_sleep 0.03; echo_exec @list; }} location @list {{ rewrite ^ $page break; }}
location = /s3/ {{ echo_sleep 0.03; echo_exec @list; }}
location / {{ echo_sleep 0.03; echo_exec @file; }} location @file {{ }} }} }}
"""


# ---- loaders: one process each, which prints what it has measured ------------------------------------------------------

def watch(begin, batches, n_of, n_epochs=2, most_s=1000):
    """Goes through the epochs of `batches(epoch)`, or so many seconds of each; n_of(batch) says how many samples it has."""
    opened, epochs = time.monotonic(), []
    for epoch in range(n_epochs):
        start, n, first = time.monotonic(), 0, None
        for batch in batches(epoch):
            n += n_of(batch)
            first = first or time.monotonic()
            if time.monotonic() > start + most_s:
                break
        epochs.append({"n": n, "seconds": time.monotonic() - start, "first": first - begin})
    return {"open": opened - begin, "epochs": epochs}


def cpu_of(home):
    """CPU seconds of the private daemon whose home this is."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as line:
                if home.encode() in environ.read() and line.read().split(b"\0")[0].endswith(b"/dataloaderd"):
                    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                        fields = stat.read().rpartition(")")[2].split()
                    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    raise RuntimeError("the daemon has gone")


def load_ours(path, pipeline):
    import dlclient
    begin = time.monotonic()
    with dlclient.Loader(path, batch_size=BATCH, seed=1, pipeline=pipeline) as loader:
        def batches(epoch):
            loader.set_epoch(epoch)
            return loader
        if "tokens" in pipeline:
            row = watch(begin, lambda epoch: in_rows(batches(epoch), lambda batch: list(batch["text"])), len)
        else:
            row = watch(begin, batches, lambda batch: len(batch.indices), 1 if pipeline.endswith("raw") else 2)
        row["cpu_s"] = cpu_of(os.environ["HOME"])
    return row


def in_rows(batches, ids_of):
    """The texts of each batch, whose tokens are laid end to end into rows of ROW_TOKENS as trainers of language models want them."""
    import numpy
    rest = numpy.empty(0, numpy.int64)
    for batch in batches:
        ids = ids_of(batch)
        flat = numpy.concatenate([rest, *(numpy.asarray(each) for each in ids)])
        n = len(flat) // ROW_TOKENS * ROW_TOKENS
        rows, rest = flat[:n].reshape(-1, ROW_TOKENS), flat[n:]
        assert rows.base is not None
        yield ids


def photo_steps():
    from PIL import Image
    from torchvision import transforms
    steps = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(0.5), transforms.PILToTensor()])
    return lambda content: steps((content if isinstance(content, Image.Image) else Image.open(io.BytesIO(content))).convert("RGB"))


def in_workers(begin, dataset, **more):
    import torch
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=2, **more)
    return watch(begin, lambda _: loader, len, 1, PEER_S)


def load_webdataset(base, _):
    import webdataset
    begin, steps = time.monotonic(), photo_steps()
    urls = base + "/tars/x-{000..%03d}.tar" % (int(os.environ["N_TARS"]) - 1)
    dataset = webdataset.WebDataset(f"pipe:curl -s {urls}", shardshuffle=100).shuffle(1000).map(lambda sample: steps(sample["jpg"]))
    return in_workers(begin, dataset)


def import_streaming():
    """It imports names of transformers for texts, which are not read here; transformers wants another huggingface_hub than datasets."""
    for module, name in ((".feature_extraction_utils", "BatchFeature"), (".tokenization_utils_base", "BatchEncoding"),
                         (".models.auto.tokenization_auto", "AutoTokenizer"), (".models.auto", ""), (".models", ""), ("", "")):
        stand_in = types.ModuleType("transformers" + module)
        setattr(stand_in, name, type(name, (), {}))
        sys.modules[stand_in.__name__] = stand_in
    import streaming
    return streaming


def load_mosaic(_, folder):
    StreamingDataset = import_streaming().StreamingDataset
    steps = photo_steps()

    class Photos(StreamingDataset):
        def __getitem__(self, index):
            return steps(super().__getitem__(index)["jpg"])

    begin = time.monotonic()
    return in_workers(begin, Photos(remote="s3://mds/", local=folder, shuffle=True, batch_size=BATCH))


def load_litdata(base, folder):
    import litdata
    steps = photo_steps()

    class Photos(litdata.StreamingDataset):
        def __getitem__(self, index):
            return steps(super().__getitem__(index)["jpg"])

    begin = time.monotonic()
    dataset = Photos(input_dir="s3://litdata", cache_dir=folder, shuffle=True,
                     storage_options={"endpoint_url": base, "aws_access_key_id": "a", "aws_secret_access_key": "b"})
    return watch(begin, lambda _: litdata.StreamingDataLoader(dataset, batch_size=BATCH, num_workers=2), len, 1, PEER_S)


def load_s3torch(base, _):
    from s3torchconnector import S3ClientConfig, S3MapDataset
    steps = photo_steps()
    with open(os.environ["NAMES"], encoding="utf-8") as file:
        names = [f"s3://{os.environ['KIND']}/" + line.rstrip() for line in file]
    begin = time.monotonic()
    dataset = S3MapDataset.from_objects(names, region="us-east-1", endpoint=base, transform=lambda each: steps(each.read()),
                                        s3client_config=S3ClientConfig(force_path_style=True))
    return in_workers(begin, dataset, shuffle=True)


def load_datasets(base, _):
    import datasets
    begin = time.monotonic()
    urls = [f"{base}/texts/x-{number:03d}.parquet" for number in range(N_TEXTS // TEXTS_A_FILE)]
    dataset = datasets.load_dataset("parquet", data_files=urls, streaming=True, split="train").shuffle(seed=1, buffer_size=1000)
    return in_workers(begin, dataset, collate_fn=lambda rows: [row["text"] for row in rows])


def load_datasets_tokens(base, _):
    import datasets
    import tokenizers
    begin = time.monotonic()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = tokenizers.Tokenizer.from_file(os.path.join(TOKENIZERS, "gpt2.json"))
    urls = [f"{base}/tokens/x-{number:03d}.parquet" for number in range(N_TOKENIZED // TEXTS_A_FILE)]
    dataset = datasets.load_dataset("parquet", data_files=urls, streaming=True, split="train").shuffle(seed=1, buffer_size=1000)
    dataset = dataset.map(lambda rows: {"ids": [each.ids for each in tokenizer.encode_batch(rows["text"])]}, batched=True,
                          remove_columns=["text"])
    import torch
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, num_workers=2, collate_fn=lambda rows: [row["ids"] for row in rows])
    return watch(begin, lambda _: in_rows(loader, lambda ids: ids), len, 1, PEER_S)


LOADERS = {"datasets_tokens": load_datasets_tokens, "ours": load_ours, "webdataset": load_webdataset, "mosaic": load_mosaic, "litdata": load_litdata,
           "s3torchconnector": load_s3torch, "datasets": load_datasets}


# ---- what is loaded ----------------------------------------------------------------------------------------------------

def photos_of(folder):
    """(path below the folder, label), in the folder's own sequence."""
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    return [(f"{name}/{file}", label) for label, name in enumerate(classes) for file in sorted(os.listdir(os.path.join(folder, name)))]


def contents(photos, names):
    for name, label in names:
        with open(os.path.join(photos, name), "rb") as file:
            yield file.read(), label


def make_files(out, photos):
    shutil.copytree(photos, out)


def make_tars(out, photos):
    os.makedirs(out)
    names = photos_of(photos)
    for first in range(0, len(names), PHOTOS_A_SHARD):
        with tarfile.open(os.path.join(out, f"x-{first // PHOTOS_A_SHARD:03d}.tar"), "w") as tar:
            for number, (content, label) in enumerate(contents(photos, names[first:first + PHOTOS_A_SHARD]), first):
                for ending, part in (("jpg", content), ("cls", b"%d" % label)):
                    member = tarfile.TarInfo(f"{number:08d}.{ending}")
                    member.size = len(part)
                    tar.addfile(member, io.BytesIO(part))


def make_mds(out, photos):
    with import_streaming().MDSWriter(out=out, columns={"jpg": "bytes", "label": "int"}, size_limit=SHARD_BYTES) as writer:
        for content, label in contents(photos, photos_of(photos)):
            writer.write({"jpg": content, "label": label})


def make_litdata(out, photos):
    from litdata.streaming.cache import Cache
    cache = Cache(out, chunk_bytes=SHARD_BYTES)
    for number, (content, label) in enumerate(contents(photos, photos_of(photos))):
        cache[number] = {"jpg": content, "label": label}
    cache.done()
    cache.merge()


def make_texts(out, _, n_texts=N_TEXTS):
    import pyarrow
    import pyarrow.parquet
    os.makedirs(out)
    words = [f"{(i * 2654435761) % 4294967296:x}" for i in range(5000)]
    for first in range(0, n_texts, TEXTS_A_FILE):
        texts = [" ".join(words[(number * 7919 + k * k) % 5000] for k in range(250)) for number in range(first, first + TEXTS_A_FILE)]
        pyarrow.parquet.write_table(pyarrow.table({"text": texts}), os.path.join(out, f"x-{first // TEXTS_A_FILE:03d}.parquet"),
                                    compression="zstd", row_group_size=1000)


def make_tokens(out, photos):
    make_texts(out, photos, N_TOKENIZED)


MAKERS = {"files": make_files, "s3": make_files, "tars": make_tars, "mds": make_mds, "litdata": make_litdata, "texts": make_texts,
          "tokens": make_tokens}
PEERS = {"files": ["s3torchconnector"], "s3": ["s3torchconnector"], "tokens": ["datasets_tokens"], "tars": ["webdataset"], "mds": ["mosaic"], "litdata": ["litdata"], "texts": ["datasets"]}


# ---- the server --------------------------------------------------------------------------------------------------------

class Server:
    """nginx over a folder in memory; what it has sent since the last look."""

    def __init__(self, folder):
        from fetch import free_ports
        self.folder, self.base = folder, f"http://127.0.0.1:{(port := free_ports(1)[0])}"
        with open(os.path.join(folder, "conf"), "w", encoding="utf-8") as file:
            file.write(CONFIG.format(folder=folder, port=port))
        self.process = subprocess.Popen([shutil.which("nginx", path=PROGRAMS), "-p", folder, "-c", os.path.join(folder, "conf"), "-e",
                                         os.path.join(folder, "errors")] + (["-g", "user root;"] if os.getuid() == 0 else []),
                                        stdin=subprocess.DEVNULL)
        self.seen = 0

    def sent(self):
        with open(os.path.join(self.folder, "log"), encoding="utf-8") as log:
            log.seek(self.seen)
            lines = log.read().splitlines()
            self.seen = log.tell()
        return sum(int(line.split()[2]) for line in lines)


# ---- measurements ------------------------------------------------------------------------------------------------------

class Bench:
    def __init__(self, emit, build, python, folder, photos):
        self.emit, self.build, self.python, self.folder, self.photos = emit, build, python, folder, photos
        self.objects = os.path.join(folder, "objects")
        os.makedirs(self.objects)

    def run(self, interpreter, *arguments, **more):
        """One loader in a process and a home of its own; None, and a line why, where it cannot run."""
        with tempfile.TemporaryDirectory(prefix="dlbench-", dir=self.folder) as home:
            env = {name: value for name, value in os.environ.items() if not name.startswith(("DATALOADERD_", "XDG_"))}
            env.update(HOME=home, XDG_RUNTIME_DIR=home, TMPDIR=home, DATALOADERD_IDLE="5",
                       DATALOADERD_PRIVATE=f"cache_dir={home}/cache memory_limit=2GiB workers=2 tokenizers={TOKENIZERS}",
                       PYTHONPATH=os.path.join(ROOT, "client", "python"), OMP_NUM_THREADS="1",
                       DATALOADERD_LIBRARY=os.path.join(self.build, "libdlclient.so.0"),
                       DATALOADERD_PROGRAM=os.path.join(self.build, "dataloaderd"), AWS_ACCESS_KEY_ID="a",
                       AWS_SECRET_ACCESS_KEY="b", AWS_REGION="us-east-1", AWS_DEFAULT_REGION="us-east-1", **more)
            try:
                done = subprocess.run([interpreter, os.path.abspath(__file__), *map(str, arguments), os.path.join(home, "data")], env=env,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=180, check=False)
                if done.returncode == 0:
                    return json.loads(done.stdout.splitlines()[-1])
                why = (done.stderr.strip().splitlines() or ["no message"])[-1]
            except subprocess.TimeoutExpired:
                why = "it took more than three minutes"
            finally:
                subprocess.run([os.path.join(self.build, "dlctl"), "--private", "stop", "--now"], env=env, check=False,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print(f"# remote: {' '.join(map(str, arguments[:2]))} cannot run: {why[:400]}", file=sys.stderr)
        return None

    def make(self, kind):
        """True once its files are there."""
        if kind in ("files", "s3", "tars"):
            MAKERS[kind](os.path.join(self.objects, kind), self.photos)
        elif not self.python or self.run(self.python, "make", kind, os.path.join(self.objects, kind), self.photos) is None:
            return False
        return True

    def path_of(self, server, kind):
        """A web server cannot be listed: a list of URLs stands for a folder, braces for numbered files."""
        names = sorted(os.path.relpath(os.path.join(folder, name), self.objects) for folder, _, all_names in
                       os.walk(os.path.join(self.objects, kind)) for name in all_names if not name.startswith("."))
        if kind == "s3":
            self.write_listing(names)
            return "s3://s3/", names
        if kind in ("tars", "texts", "tokens"):
            return f"{server.base}/{kind}/x-{{000..{len(names) - 1:03d}}}{os.path.splitext(names[0])[1]}", names
        with open(os.path.join(self.objects, kind + ".txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{server.base}/{name}\n" for name in names)
        return f"{server.base}/{kind}.txt", names

    def write_listing(self, names):
        """What S3 answers to ListObjectsV2, in two pages."""
        for page, some in enumerate((names[:1000], names[1000:]), 1):
            keys = ""
            for name in some:
                status = os.stat(os.path.join(self.objects, name))  # nginx makes its ETags of the same two
                keys += (f"<Contents><Key>{name.partition('/')[2]}</Key><Size>{status.st_size}</Size>"
                         f'<ETag>"{int(status.st_mtime):x}-{status.st_size:x}"</ETag></Contents>')
            more = "<IsTruncated>true</IsTruncated><NextContinuationToken>2</NextContinuationToken>" if page == 1 else ""
            with open(os.path.join(self.objects, f"listing-{page}.xml"), "w", encoding="utf-8") as file:
                file.write(f'<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>{more}{keys}</ListBucketResult>')

    def measure(self, server, kind):
        from common_bench import PYTHON
        pipeline = {"texts": "text: text", "tokens": "text: tokens(gpt2, truncation=none)", "files": STEPS, "s3": STEPS,
                    "tars": STEPS}.get(kind, f"jpg: {STEPS}; label")
        path, names = self.path_of(server, kind)
        n_bytes = sum(os.path.getsize(os.path.join(self.objects, name)) for name in names)
        with open(os.path.join(self.folder, "names"), "w", encoding="utf-8") as file:
            file.writelines(name.partition("/")[2] + "\n" for name in names)
        peers = {peer: [] for peer in PEERS[kind]} if self.python else {}
        rows, origin = [], []
        for _ in range(TURNS):
            server.sent()
            remote = self.run(PYTHON, "ours", path, pipeline, AWS_ENDPOINT_URL=server.base)
            origin.append(server.sent() / n_bytes)
            rows.append((remote, self.run(PYTHON, "ours", os.path.join(self.objects, kind), pipeline)))
            if None in rows[-1]:
                return
            for peer, theirs in peers.items():
                theirs.append(self.run(self.python, peer, server.base, N_TARS=str(len(names)), KIND=kind,
                                       NAMES=os.path.join(self.folder, "names"), S3_ENDPOINT_URL=server.base))
        self.tell(f"remote_{kind}", rows, origin, peers)

    def tell(self, name, rows, origin, peers):
        def median(of, pairs=rows):
            return statistics.median(of(*pair) for pair in pairs)

        self.emit(f"{name}_first", 1000 * median(lambda remote, _: remote["epochs"][0]["first"]), "ms", repeats=TURNS)
        self.emit(f"{name}_open", 1000 * median(lambda remote, _: remote["open"]), "ms")
        self.emit(name, median(lambda remote, _: rate(remote)), "samples/s")
        self.emit(f"{name}_vs_local", median(lambda remote, local: rate(remote) / rate(local)), "ratio")
        self.emit(f"{name}_second_vs_local", median(lambda remote, local: rate(remote, 1) / rate(local, 1)), "ratio")
        self.emit(f"{name}_origin", statistics.median(origin), "ratio")
        for peer, theirs in peers.items():
            pairs = [(remote, other) for (remote, _), other in zip(rows, theirs) if other]
            if not pairs:
                continue
            self.emit(f"{name}_{peer}", median(lambda _, other: rate(other), pairs), "samples/s", repeats=len(pairs))
            self.emit(f"{name}_{peer}_first", 1000 * median(lambda _, other: other["epochs"][0]["first"], pairs), "ms")
            self.emit(f"{name}_vs_{peer}", median(lambda remote, other: rate(remote) / rate(other), pairs), "ratio")
            self.emit(f"{name}_first_vs_{peer}", median(
                lambda remote, other: remote["epochs"][0]["first"] / other["epochs"][0]["first"], pairs), "ratio")

    def measure_cpu(self, server, kind):
        """Raw bytes: nothing is decoded, so what is left is fetching, keeping and handing out."""
        from common_bench import PYTHON
        from fetch import by_program, cpu
        path, names = self.path_of(server, kind)
        sizes = {name: os.path.getsize(os.path.join(self.objects, name)) for name in names}
        lines = "".join(f"{server.base}/{name}\t{size}\n" for name, size in sizes.items())
        pipeline, n_bytes, rows = "raw" if kind == "files" else "jpg: raw", sum(sizes.values()), []
        for _ in range(TURNS):
            remote = self.run(PYTHON, "ours", path, pipeline)
            local = self.run(PYTHON, "ours", os.path.join(self.objects, kind), pipeline)
            if not remote or not local:
                return
            rows.append(((remote["cpu_s"] - local["cpu_s"]) / n_bytes * 1e9, cpu(by_program(self.build, "bare", lines, 64, 1))))
        self.emit(f"remote_{kind}_cpu", statistics.median(ours for ours, _ in rows), "s/GB", repeats=TURNS)
        self.emit(f"remote_{kind}_cpu_bare", statistics.median(bare for _, bare in rows), "s/GB")
        self.emit(f"remote_{kind}_cpu_vs_bare", statistics.median(ours / bare for ours, bare in rows), "ratio")


def rate(row, epoch=0):
    return row["epochs"][epoch]["n"] / row["epochs"][epoch]["seconds"]


def environment(out, python):
    """The interpreter that has the other libraries; None, and a line why, if they are not there and cannot be had."""
    interpreter = os.path.join(out, "bin", "python3")
    if os.path.exists(os.path.join(out, "made")):
        return interpreter
    commands = ([python, "-m", "venv", "--system-site-packages", out], [interpreter, "-m", "pip", "install", "-q", *PACKAGES],
                [interpreter, "-m", "pip", "install", "-q", "--no-deps", *ALONE])
    for command in commands:
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            print(f"# remote: no other libraries, and neither MDS, LitData nor Parquet: {done.stderr.strip()[-200:]}", file=sys.stderr)
            return None
    with open(os.path.join(out, "made"), "w", encoding="utf-8"):
        pass
    return interpreter


def measure(emit, build, out, photos, names):
    from common_bench import PYTHON
    if not shutil.which("nginx", path=PROGRAMS) or not os.path.exists(ECHO):
        print("remote skipped: nginx, or its echo module, is not installed", flush=True)
        return
    python = environment(os.path.join(out, "remote-peers"), PYTHON)
    with tempfile.TemporaryDirectory(prefix="dlbench-", dir="/dev/shm") as folder:
        os.chmod(folder, 0o755)
        bench = Bench(emit, build, python, folder, photos)
        server = Server(folder)
        try:
            for kind in MAKERS:
                if any(f"remote_{kind}".startswith(name) or name.startswith(f"remote_{kind}") for name in names) and bench.make(kind):
                    bench.measure(server, kind)
                    if kind in ("files", "mds"):
                        bench.measure_cpu(server, kind)
                    shutil.rmtree(os.path.join(bench.objects, kind))
        finally:
            server.process.terminate()
            server.process.wait(10)


if __name__ == "__main__":
    sys.path.remove(HERE)  # there is another webdataset
    if sys.argv[1] == "make":
        MAKERS[sys.argv[2]](sys.argv[3], sys.argv[4])
        print("{}")
    else:
        print(json.dumps(LOADERS[sys.argv[1]](sys.argv[2], sys.argv[3])))
