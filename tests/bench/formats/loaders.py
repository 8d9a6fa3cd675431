"""What is compared: loaders without end, and a loop that takes their batches and counts samples. Run by build/peers/venv's Python.

    loaders.py NAME SECONDS ARGUMENT...     prints {"per_s": samples a second}

Ours is `ours DATASET PIPELINE BATCH`, of the daemon that DATALOADERD_SOCKET names. The others are the formats' own readers, as
their documentation shows them; their last argument is the number of worker processes (of tf.data: threads).
"""
import json
import os
import sys
import tempfile
import time
import warnings

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # last: it has a webdataset.py of its own
BATCH = 64
WARM_BATCHES, WARM_SECONDS, MIN_BATCHES = 16, 1.0, 8


def ours(dataset, pipeline, batch):
    import dlclient
    loader = dlclient.Loader(dataset, batch_size=int(batch), pipeline=pipeline, epochs=None, drop_last=True, rank=0, world_size=1)
    for one in loader:
        for name in one:
            one[name]  # pylint: disable=pointless-statement
        yield len(one.indices)


def of_torch(dataset, workers, **more):
    """Batches of a map dataset, shuffled, without end."""
    import torch
    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(dataset, num_workers=int(workers), prefetch_factor=4, persistent_workers=True,
                                         **{"batch_size": BATCH, "shuffle": True, "drop_last": True, **more})
    while True:
        yield from loader


def webdataset(shards, workers):
    import torch
    import webdataset as wds
    from torchvision.transforms import v2
    torch.set_num_threads(1)
    crop = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(0.5), v2.PILToTensor()])
    urls = sorted(os.path.join(shards, name) for name in os.listdir(shards) if name.endswith(".tar"))
    samples = wds.WebDataset(urls, shardshuffle=100, nodesplitter=None).repeat().shuffle(1000).decode("pil").to_tuple("jpg", "cls")
    batches = samples.map_tuple(crop, int).batched(BATCH, partial=False)
    for pictures, _ in wds.WebLoader(batches, batch_size=None, num_workers=int(workers), prefetch_factor=4):
        yield len(pictures)


def megatron(prefix, workers):
    from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
    from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

    class Tokenizer:
        """As much of one as GPTDataset asks for."""
        vocab_size, eod, pad = 65536, 1, -1
        unique_identifiers = {"class": "Tokenizer"}

    with tempfile.TemporaryDirectory() as cache:
        config = GPTDatasetConfig(
            random_seed=1234, sequence_length=2048, split="1", tokenizer=Tokenizer(), blend=([prefix], None), path_to_cache=cache,
            reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False)
        dataset = BlendedMegatronDatasetBuilder(GPTDataset, [None, None, None], lambda: True, config).build()[0]
        for batch in of_torch(dataset, workers, shuffle=False):  # it is shuffled already
            yield len(batch["tokens"])


def arrow(folder, workers):
    import datasets
    for batch in of_torch(datasets.load_from_disk(folder).with_format("numpy"), workers):
        yield len(batch["text"])


def make_arrow(folder, n_rows):
    """A text of about 1,000 bytes and two integers a row."""
    import random

    import datasets
    dice = random.Random(1)
    words = ["".join(dice.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(dice.randrange(2, 10))) for _ in range(5000)]
    rows = [" ".join(dice.choice(words) for _ in range(153)) for _ in range(int(n_rows))]
    datasets.Dataset.from_dict({"text": rows, "label": list(range(len(rows))), "length": [len(row) for row in rows]}).save_to_disk(folder)


def soundfile(folder, workers):
    from sound_loader import Crops
    for batch in of_torch(Crops(folder), workers):
        yield len(batch)


def torchvision(photos, annotations, workers):
    from coco_loader import torch_samples
    for _ in torch_samples(photos, annotations, int(workers)):
        yield 1


def tfdata(files, workers):
    from tfrecord_tfdata import batches
    for pictures, _ in batches(files, int(workers)):
        yield len(pictures.numpy())


def measure(batches, seconds):
    """Samples a second, after the queues have found their level."""
    begin, n = time.monotonic(), 0
    while n < WARM_BATCHES or time.monotonic() - begin < WARM_SECONDS:
        next(batches)
        n += 1
    begin, n_samples, n = time.monotonic(), 0, 0
    while n < MIN_BATCHES or time.monotonic() - begin < seconds:
        n_samples += next(batches)
        n += 1
    return n_samples / (time.monotonic() - begin)


def main():
    warnings.simplefilter("ignore")
    name, arguments = sys.argv[1], sys.argv[2:]
    if name == "make_arrow":
        make_arrow(*arguments)
        return
    print(json.dumps({"per_s": measure(globals()[name](*arguments[1:]), float(arguments[0]))}), flush=True)
    os._exit(0)  # some loaders have threads and processes that would be waited for


if __name__ == "__main__":
    main()
