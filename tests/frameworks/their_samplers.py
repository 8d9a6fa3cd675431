"""What the samplers of other programs give: a function a row of docs/orders.md, found by the row's first column.

Each function takes (n, world, rank, batch, seed, epoch) and returns the indices that this rank gets in this epoch, or None
where the other program refuses these numbers. Given() adds what else stands in the row. What must be installed is named
with it."""
import glob
import importlib.util
import os
import random
import sysconfig

ROWS = {}


class Given:
    """Indices, and what the names in the row's second column mean."""

    def __init__(self, indices, **names):
        self.indices, self.names = indices, names


def gives(first_column, *modules, position=0):
    """Registers a function. `position`: where in the epoch it begins, in batches of all ranks."""
    def register(function):
        ROWS[first_column] = (function, modules, position)
        return function
    return register


# ---- torch ----------------------------------------------------------------------------------------------------------

def distributed(n, world, rank, seed, epoch, **options):
    from torch.utils.data import DistributedSampler
    sampler = DistributedSampler(range(n), world, rank, seed=seed, **options)
    sampler.set_epoch(epoch)
    return sampler


@gives("`DistributedSampler(d, seed=S)`, `set_epoch(E)` before each epoch", "torch")
def _(n, world, rank, batch, seed, epoch):
    return list(distributed(n, world, rank, seed, epoch))


@gives("`DistributedSampler(d, seed=S, drop_last=True)`", "torch")
def _(n, world, rank, batch, seed, epoch):
    return list(distributed(n, world, rank, seed, epoch, drop_last=True))


@gives("`DistributedSampler(d, shuffle=False)`", "torch")
def _(n, world, rank, batch, seed, epoch):
    return list(distributed(n, world, rank, seed, epoch, shuffle=False))


@gives("`SequentialSampler(d)`, one rank", "torch")
def _(n, world, rank, batch, seed, epoch):
    from torch.utils.data import SequentialSampler
    return list(SequentialSampler(range(n))) if world == 1 else None


@gives("`RandomSampler(d, generator=g)`, one rank, `g.manual_seed(S + E)` before each epoch", "torch")
def _(n, world, rank, batch, seed, epoch):
    import torch
    generator = torch.Generator()
    generator.manual_seed(seed + epoch)
    return list(torch.utils.data.RandomSampler(range(n), generator=generator)) if world == 1 else None


@gives("`DataLoader(d, B, sampler=DistributedSampler(d, seed=S), drop_last=True)`", "torch")
def _(n, world, rank, batch, seed, epoch):
    from torch.utils.data import DataLoader
    loader = DataLoader(range(n), batch, sampler=distributed(n, world, rank, seed, epoch), drop_last=True)
    return [index for rows in loader for index in rows.tolist()]


def seeded(seed):
    import torch
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def some(n, chance=random):
    """How many samples to draw of n."""
    return chance.choice([1, n, 1 + chance.randrange(3 * n)])


@gives("`RandomSampler(d, replacement=True, num_samples=K, generator=g)`, seeded as above", "torch")
def _(n, world, rank, batch, seed, epoch):
    from torch.utils.data import RandomSampler
    k = some(n)
    sampler = RandomSampler(range(n), replacement=True, num_samples=k, generator=seeded(seed + epoch))
    return Given(list(sampler), K=k) if world == 1 else None


@gives("`RandomSampler(d, num_samples=K, generator=g)`, seeded as above", "torch")
def _(n, world, rank, batch, seed, epoch):
    from torch.utils.data import RandomSampler
    k = some(n)
    sampler = RandomSampler(range(n), num_samples=k, generator=seeded(seed + epoch))
    return Given(list(sampler), K=k) if world == 1 else None


@gives("`SubsetRandomSampler(i, generator=g)`, seeded as above", "torch")
def _(n, world, rank, batch, seed, epoch):
    from torch.utils.data import SubsetRandomSampler
    i = random.sample(range(n), 1 + random.randrange(n))
    return Given(list(SubsetRandomSampler(i, generator=seeded(seed + epoch))), i=i) if world == 1 else None


@gives("`WeightedRandomSampler(w, K, generator=g)`, seeded as above", "torch")
def _(n, world, rank, batch, seed, epoch):
    from torch.utils.data import WeightedRandomSampler
    k, w = some(n), [random.choice([0.0, 1.0, random.random(), 1e6 * random.random()]) for _ in range(n - 1)] + [0.5]
    sampler = WeightedRandomSampler(w, k, generator=seeded(seed + epoch))
    return Given(list(sampler), K=k, w=w) if world == 1 else None


@gives("`WeightedRandomSampler(w, K, replacement=False, generator=g)`, seeded as above", "torch")
def _(n, world, rank, batch, seed, epoch):
    from torch.utils.data import WeightedRandomSampler
    k, w = 1 + random.randrange(n), [0.01 + random.random() for _ in range(n)]
    sampler = WeightedRandomSampler(w, k, replacement=False, generator=seeded(seed + epoch))
    return Given(list(sampler), K=k, w=w) if world == 1 else None


@gives("`random_split(d, [0.8, 0.2], generator=g)[0]`, `g.manual_seed(7)`, under `DistributedSampler(d, seed=S)`", "torch")
def _(n, world, rank, batch, seed, epoch):
    from torch.utils.data import random_split
    part = random_split(range(n), [0.8, 0.2], generator=seeded(7))[0]
    if len(part) == 0:
        return None
    return [part.indices[i] for i in distributed(len(part), world, rank, seed, epoch)]


# ---- Accelerate -----------------------------------------------------------------------------------------------------

def accelerated(n, world, rank, batch, seed, epoch, shuffle=True, drop_last=False, **options):
    """What prepare() of a process of that rank makes of a DataLoader."""
    if world == 1:
        return None  # nothing is dealt then
    from accelerate.data_loader import prepare_data_loader
    from torch.utils.data import DataLoader
    loader = prepare_data_loader(DataLoader(range(n), batch, shuffle=shuffle, drop_last=drop_last), num_processes=world,
                                 process_index=rank, use_seedable_sampler=True, data_seed=seed, **options)
    loader.set_epoch(epoch)
    return [index for indices in loader.batch_sampler for index in indices]


@gives("`accelerator.prepare(DataLoader(d, B, shuffle=True))`, `use_seedable_sampler=True, data_seed=S`", "accelerate")
def _(*terms):
    return accelerated(*terms)


@gives("the same with `DataLoader(..., drop_last=True)`", "accelerate")
def _(*terms):
    return accelerated(*terms, drop_last=True)


@gives("the same with `even_batches=False`", "accelerate")
def _(*terms):
    return accelerated(*terms, even_batches=False)


@gives("the same with `even_batches=False` and `DataLoader(..., drop_last=True)`", "accelerate")
def _(*terms):
    return accelerated(*terms, even_batches=False, drop_last=True)


@gives("the same with `split_batches=True`, where B is the size over all ranks", "accelerate")
def _(n, world, rank, batch, seed, epoch):
    return accelerated(n, world, rank, batch, seed, epoch, split_batches=True) if batch % world == 0 else None


@gives("`accelerator.prepare(DataLoader(d, B))`", "accelerate")
def _(*terms):
    return accelerated(*terms, shuffle=False)


# ---- transformers ---------------------------------------------------------------------------------------------------

def lengths_of(n):
    return [random.choice([1, 7, random.randrange(1, 500)]) for _ in range(n)]


@gives("`LengthGroupedSampler(B, lengths=l, generator=g)`, one rank, `g.manual_seed(S + E)` before each epoch", "transformers")
def _(n, world, rank, batch, seed, epoch):
    from transformers.trainer_pt_utils import LengthGroupedSampler
    if world > 1:
        return None
    lengths = lengths_of(n)
    return Given(list(LengthGroupedSampler(batch, lengths=lengths, generator=seeded(seed + epoch))), l=lengths)


@gives("`DistributedLengthGroupedSampler(B, lengths=l, seed=S)`, `set_epoch(E)` before each epoch", "transformers")
def _(n, world, rank, batch, seed, epoch):
    from transformers.trainer_pt_utils import DistributedLengthGroupedSampler
    lengths = lengths_of(n)
    sampler = DistributedLengthGroupedSampler(batch, num_replicas=world, rank=rank, seed=seed, lengths=lengths)
    sampler.set_epoch(epoch)
    return Given(list(sampler), l=lengths) if n >= world else None  # it does not get beyond twice the samples


# ---- timm -----------------------------------------------------------------------------------------------------------

@gives("`RepeatAugSampler(d, num_replicas=W)`, `set_epoch(E)`, K = W * `len(sampler)`", "timm")
def _(n, world, rank, batch, seed, epoch):
    from timm.data.distributed_sampler import RepeatAugSampler
    n *= random.choice([1, 3])  # more and fewer than 256
    sampler = RepeatAugSampler(range(n), num_replicas=world, rank=rank)
    sampler.set_epoch(epoch)
    k = world * len(sampler)
    return Given(list(sampler), K=k, n=n) if k <= 3 * n else None  # with fewer samples than ranks it repeats even more


# ---- Lightning ------------------------------------------------------------------------------------------------------

def injected(n, world, rank, batch, seed, epoch, mode, shuffle=False):
    """The sampler that the Trainer puts into a DataLoader when it runs several processes."""
    from lightning.pytorch.trainer.connectors.data_connector import _get_distributed_sampler
    from lightning.pytorch.trainer.states import RunningStage
    from torch.utils.data import DataLoader
    os.environ["PL_GLOBAL_SEED"] = str(seed)  # as seed_everything() leaves it
    try:
        sampler = _get_distributed_sampler(DataLoader(range(n), batch, shuffle=shuffle), shuffle, 0,
                                           getattr(RunningStage, mode), num_replicas=world, rank=rank)
    except AssertionError:
        return None  # predict() refuses ranks without a sample
    sampler.set_epoch(epoch)
    return list(sampler)


@gives("`Trainer.validate()`, `Trainer.test()` over `DataLoader(d, B)`", "lightning")
def _(*terms):
    return injected(*terms, "VALIDATING")


@gives("`Trainer.predict()` over `DataLoader(d, B)`", "lightning")
def _(*terms):
    return injected(*terms, "PREDICTING")


# ---- Megatron -------------------------------------------------------------------------------------------------------

def megatron_samplers():
    """The file of megatron-bridge that has Megatron's samplers. Importing the package would need a GPU's libraries."""
    path = os.path.join(sysconfig.get_path("purelib"), "megatron", "bridge", "data", "samplers.py")
    if not os.path.exists(path):
        return None
    spec = importlib.util.spec_from_file_location("megatron_samplers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pretraining(n, world, rank, batch, consumed=0, drop_last=True):
    sampler = megatron_samplers().MegatronPretrainingSampler(
        total_samples=n, consumed_samples=consumed, micro_batch_size=batch, data_parallel_rank=rank,
        data_parallel_size=world, drop_last=drop_last)
    return [index for indices in sampler for index in indices]


@gives("`MegatronPretrainingSampler`, micro-batches of B (`--dataloader-type single`)", "megatron.bridge")
def _(n, world, rank, batch, seed, epoch):
    return pretraining(n, world, rank, batch)


@gives("the same with `drop_last=False`", "megatron.bridge")
def _(n, world, rank, batch, seed, epoch):
    return pretraining(n, world, rank, batch, drop_last=False)


@gives("the same with `consumed_samples=C`", "megatron.bridge", position=2)
def _(n, world, rank, batch, seed, epoch):
    consumed = 2 * batch * world
    return pretraining(n, world, rank, batch, consumed) if consumed < n else None  # else it refuses


@gives("`MegatronPretrainingRandomSampler`, `data_sharding=False` (`--dataloader-type cyclic`), where B * W divides the samples",
       "megatron.bridge")
def _(n, world, rank, batch, seed, epoch):
    if n % (world * batch) or seed:
        return None
    sampler = megatron_samplers().MegatronPretrainingRandomSampler(
        dataset=None, total_samples=n, consumed_samples=epoch * n, micro_batch_size=batch, data_parallel_rank=rank,
        data_parallel_size=world, data_sharding=False)
    return [index for indices in sampler for index in indices]


@gives("`BlendedDataset` of a and b with weights X and 1 - X, of K samples", "megatron.core")
def _(n, world, rank, batch, seed, epoch):
    if world > 1 or epoch > 0:
        return None  # there is one epoch; ours goes on with the next samples of each part
    import numpy
    path, = glob.glob(os.path.join(sysconfig.get_path("purelib"), "megatron", "core", "datasets", "helpers_cpp.*.so"))
    spec = importlib.util.spec_from_file_location("helpers_cpp", path)
    helpers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helpers)
    part, sample = numpy.zeros(n, numpy.int16), numpy.zeros(n, numpy.int64)
    share = random.choice([0.5, 0.7, 0.001, random.random()])
    helpers.build_blending_indices(part, sample, numpy.array([share, 1 - share]), 2, n, False)
    return Given((sample + n * part).tolist(), n=2 * n, parts={"a": n, "b": n}, X=share, K=n)


# ---- datasets -------------------------------------------------------------------------------------------------------

@gives("`d.shuffle(seed=S)` of a map-style dataset", "datasets")
def _(n, world, rank, batch, seed, epoch):
    from datasets import Dataset
    if world > 1:
        return None
    return Dataset.from_dict({"i": list(range(n))}).shuffle(seed=seed)["i"][:]


@gives("`split_dataset_by_node()` of an `IterableDataset` whose shards W does not divide", "datasets")
def _(n, world, rank, batch, seed, epoch):
    if world == 1:
        return None
    from datasets import Dataset
    from datasets.distributed import split_dataset_by_node
    rows = Dataset.from_dict({"i": list(range(n))}).to_iterable_dataset(num_shards=1)
    return [row["i"] for row in split_dataset_by_node(rows, rank, world)]
