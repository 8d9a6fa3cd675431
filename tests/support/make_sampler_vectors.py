#!/usr/bin/env python3
"""Writes tests/vectors/samplers.jsonl: orders of other programs' samplers, made by these programs.

    make_sampler_vectors.py > tests/vectors/samplers.jsonl

Needs torch, numpy, timm 0.9.16, transformers 4.30.2 and detectron2's data/samplers/distributed_sampler.py. The file was
made with torch 1.13.1 and numpy 1.24.2. Kinds:

    length_grouped  transformers' DistributedLengthGroupedSampler: `ranks` has the list of each rank
    repeat          timm's RepeatAugSampler, the same
    repeat_factor   the first pass of detectron2's RepeatFactorTrainingSampler
    blend           Megatron's blend: position k gets the first maximum of weight * max(k, 1) - given (numpy)
    numpy           numpy.random.default_rng(seed).permutation(n), which is the order of datasets' shuffle(seed)
"""
import itertools
import json
import math
import random
import warnings

import numpy
import torch

warnings.simplefilter("ignore")


def write(**line):
    print(json.dumps(line, separators=(",", ":")))


def length_grouped():
    from transformers.trainer_pt_utils import DistributedLengthGroupedSampler

    for n, batch, world, seed, epoch, longest in ((10, 2, 1, 0, 0, 20), (1, 4, 1, 3, 0, 5), (97, 4, 3, 5, 2, 30),
                                                  (500, 1, 2, 1, 1, 9), (777, 8, 4, 11, 0, 100), (600, 2, 1, 7, 3, 2)):
        lengths = [random.randint(1, longest) for _ in range(n)]
        ranks = []
        for rank in range(world):
            sampler = DistributedLengthGroupedSampler(batch, lengths=lengths, num_replicas=world, rank=rank, seed=seed)
            sampler.set_epoch(epoch)
            ranks.append(list(sampler))
        write(kind="length_grouped", lengths=lengths, batch=batch, seed=seed, epoch=epoch, ranks=ranks)


def repeat():
    from timm.data.distributed_sampler import RepeatAugSampler

    for n, world, epoch, times, selected in ((600, 2, 0, 3, 256), (515, 1, 4, 3, 256), (300, 3, 1, 2, 64),
                                             (256, 8, 2, 4, 256)):
        ranks = []
        for rank in range(world):
            sampler = RepeatAugSampler(range(n), world, rank, num_repeats=times, selected_round=selected)
            sampler.set_epoch(epoch)
            ranks.append(list(sampler))
        write(kind="repeat", n=n, times=times, epoch=epoch, ranks=ranks,
              num_samples=world * math.floor(n // selected * selected / world))


def repeat_factor():
    from detectron2.data.samplers.distributed_sampler import RepeatFactorTrainingSampler

    for n, n_classes, t, seed, most in ((40, 5, 0.5, 0, 1), (300, 40, 0.1, 3, 4), (500, 200, 0.02, 9, 6),
                                        (7, 2, 0.001, 1, 2)):
        labels = [[int(n_classes * random.random() ** 3) for _ in range(random.randint(1 if most == 1 else 0, most))]
                  for _ in range(n)]
        factors = RepeatFactorTrainingSampler.repeat_factors_from_category_frequency(
            [{"annotations": [{"category_id": c} for c in each]} for each in labels], t)
        generator = torch.Generator()
        generator.manual_seed(seed)
        sampler = RepeatFactorTrainingSampler(factors, seed=seed)
        n_first = len(sampler._get_epoch_indices(generator))
        write(kind="repeat_factor", labels=labels, t=t, seed=seed, indices=list(itertools.islice(sampler, n_first)))


def blend():
    for weights, n in (([0.7, 0.3], 100), ([1, 1, 1], 50), ([30, 70, 0.5, 12], 400), ([0.1] * 10, 300),
                       ([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], 500)):
        shares = numpy.array(weights, dtype=numpy.float64)
        shares = shares / numpy.sum(shares)
        shares = shares / numpy.sum(shares)
        given, parts = numpy.zeros(len(weights)), []
        for k in range(n):
            i = int(numpy.argmax(shares * max(k, 1) - given))
            parts.append(i)
            given[i] += 1
        write(kind="blend", weights=weights, parts=parts)


def of_numpy():
    for n, seed in ((1, 0), (2, 1), (10, 42), (1000, 0), (777, 12345678901234567890), (500, 2**32)):
        write(kind="numpy", n=n, seed=seed, indices=numpy.random.default_rng(seed).permutation(n).tolist())


random.seed(0)
length_grouped()
repeat()
repeat_factor()
blend()
of_numpy()
