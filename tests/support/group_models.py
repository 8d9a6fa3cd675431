"""What others make of lengths: packs of TRL and Grain, batches of fairseq and of torchvision's references. Each function imports
what it needs. A unit is a list of samples, or of [sample, begin, elements] where samples are cut.

Tokens bear their document and place, so that pieces are read from what was packed, not from what was meant to be packed.
"""

PLACE = 1 << 20  # tokens: document * PLACE + place in it


def documents(lengths):
    return [[i * PLACE + k for k in range(length)] for i, length in enumerate(lengths)]


def pieces_of(tokens, bounds=None):
    """Pieces of a pack: runs of consecutive tokens, cut also where a piece is said to end."""
    pieces, ends, end = [], set(), 0
    for bound in bounds or []:
        end += bound
        ends.add(end)
    for k, token in enumerate(tokens):
        if pieces and token == tokens[k - 1] + 1 and k not in ends:
            pieces[-1][2] += 1
        else:
            pieces.append([token // PLACE, token % PLACE, 1])
    return pieces


def trl_packs(lengths, size, strategy, rows):
    from datasets import Dataset, disable_progress_bars
    from trl import pack_dataset
    disable_progress_bars()
    packed = pack_dataset(Dataset.from_dict({"input_ids": documents(lengths)}), size, strategy,
                          {"batch_size": rows if rows else len(lengths)})
    bounds = packed["seq_lengths"] if strategy != "wrapped" else [None] * len(packed)
    units = [pieces_of(tokens, ends) for tokens, ends in zip(packed["input_ids"], bounds)]
    return [unit for unit in units if unit]


def grain_packs(lengths, size, bins, max_samples):
    import grain
    import numpy as np
    rows = grain.experimental.FirstFitPackIterDataset(
        grain.MapDataset.source(documents(lengths)).map(lambda tokens: {"x": np.array(tokens, dtype=np.int64)}).to_iter_dataset(),
        length_struct={"x": size}, num_packing_bins=bins, shuffle_bins=False, max_sequences_per_bin=max_samples)
    units = []
    for row in rows:
        n = int((row["x_segment_ids"] > 0).sum())
        bounds = [int((row["x_segment_ids"] == k + 1).sum()) for k in range(int(row["x_segment_ids"].max()))]
        units.append(pieces_of([int(token) for token in row["x"][:n]], bounds))
    return units


def fairseq_batches(lengths, tokens, sentences, multiple):
    import data_utils_fast
    import numpy as np
    return [list(batch) for batch in data_utils_fast.batch_by_size_vec(
        np.arange(len(lengths)), np.array(lengths, dtype=np.int64), tokens, sentences, multiple)]


def grouped_batches(groups, batch):
    """The batches of one group as they are full; then, up to n div batch of them, what is left, the most first, each
    filled from the beginning of its group. A group's place in the dictionary is that of its last batch."""
    left, members, batches = {}, {}, []
    for sample, group in enumerate(groups):
        left.setdefault(group, []).append(sample)
        members.setdefault(group, []).append(sample)
        if len(left[group]) == batch:
            batches.append(left.pop(group))
            left[group] = []
    n_more = len(groups) // batch - len(batches)
    for group, samples in sorted(left.items(), key=lambda item: len(item[1]), reverse=True)[:n_more]:
        n_lacking = batch - len(samples)
        batches.append(samples + (members[group] * n_lacking)[:n_lacking])
    return batches


def bucket_batches(lengths, edges, tokens=None, sizes=None, most=None, multiple=1, on_long="skip", keeps=True, batch=4):
    """Our own definition, written once more: buckets hold lists, and each list is asked whether one more would fit."""
    def cost(samples):
        longest = max(taken[sample] for sample in samples)
        return len(samples) * max(1, -(-longest // multiple)) * multiple

    def fits(samples, bucket):
        if tokens is not None:
            return cost(samples) <= tokens and (most is None or len(samples) <= most)
        return len(samples) <= (sizes[bucket] if sizes else batch)

    limit = edges[-1] if tokens is None else min(edges[-1], tokens // multiple * multiple)
    taken = {i: min(length, limit) for i, length in enumerate(lengths) if length <= limit or on_long == "truncate"}
    buckets, batches = [[] for _ in edges], []
    for sample, length in taken.items():
        bucket = next(i for i, edge in enumerate(edges) if length <= edge)
        if buckets[bucket] and not fits(buckets[bucket] + [sample], bucket):
            batches.append(buckets[bucket])
            buckets[bucket] = []
        buckets[bucket].append(sample)
        longest = max(buckets[bucket], key=taken.get)
        if not fits(buckets[bucket] + [longest], bucket):
            batches.append(buckets[bucket])
            buckets[bucket] = []
    batches += [samples for samples in buckets if samples and keeps]
    return [[[sample, 0, taken[sample]] for sample in samples] for samples in batches] if on_long == "truncate" else batches
