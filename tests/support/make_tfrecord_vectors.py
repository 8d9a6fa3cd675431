#!/usr/bin/env python3
"""Writes tests/vectors/tfrecord: small files of TensorFlow's own writer, and what its own parsers read from them.

    pip install tensorflow-cpu
    tests/support/make_tfrecord_vectors.py [FOLDER]

Each data set is a folder of .tfrecord files with expected.jsonl beside it: a line a sample, as dlctl read prints its fields.
What the parsers give is compared with what was written before it is trusted.
"""
import hashlib
import json
import os
import sys

import numpy
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
train = tf.train


def feature(values):
    """A Feature of the type that the values have; an empty list of floats for [], and of bytes for b""."""
    first = values[0] if values else 0.0
    if isinstance(first, (bytes, str)) or values == b"":
        return train.Feature(bytes_list=train.BytesList(value=[v.encode() if isinstance(v, str) else v for v in values]))
    if isinstance(first, float):
        return train.Feature(float_list=train.FloatList(value=values))
    return train.Feature(int64_list=train.Int64List(value=values))


def example(features):
    return train.Example(features=train.Features(feature={k: feature(v) for k, v in features.items()})).SerializeToString()


def sequence(context, lists):
    return train.SequenceExample(
        context=train.Features(feature={k: feature(v) for k, v in context.items()}),
        feature_lists=train.FeatureLists(feature_list={
            k: train.FeatureList(feature=[feature(step) for step in steps]) for k, steps in lists.items()}),
    ).SerializeToString()


def array(values):
    values = numpy.asarray(values)
    entry = {"dtype": str(values.dtype), "shape": list(values.shape)}
    if values.ndim == 0:
        return {**entry, "value": values.item()}
    return {**entry, "sha256": hashlib.sha256(values.tobytes()).hexdigest()}


def stored(value):
    return {"dtype": "bytes", "shape": [len(value)], "sha256": hashlib.sha256(value).hexdigest()}


def text(value):
    return {"dtype": "text", "shape": [len(value)], "sha256": hashlib.sha256(value).hexdigest(), "text": value.decode()}


def told_texts(values):
    """A list of texts: its hash is over the texts, each with a NUL after it; the first eight are shown."""
    hashed = hashlib.sha256(b"".join(value + b"\0" for value in values)).hexdigest()
    return {"dtype": "texts", "shape": [len(values)], "sha256": hashed, "texts": [value.decode() for value in values[:8]]}


def picture(number):
    pixels = numpy.full((8 + number, 12, 3), 20 * number, numpy.uint8)
    pixels[:, :6, 1] = 255 - number
    return tf.io.encode_jpeg(pixels).numpy() if number % 2 else tf.io.encode_png(pixels).numpy()


def records_of(paths):
    return [record.numpy() for record in tf.data.TFRecordDataset(sorted(paths))]


def photos():
    """What detection and classification sets have: ragged boxes, a text that some lack, scalars, an array."""
    for i in range(7):
        n_boxes = i % 4
        yield example({
            "image/encoded": [picture(i)],
            "image/class/label": [1000 * i - 3000],
            "image/filename": [f"größe_{i}.jpg"],
            "image/object/bbox/xmin": [0.125 * k + i for k in range(n_boxes)],
            "image/object/class/label": [i * 10 + k for k in range(n_boxes)] or [-(2 ** 63)],
            "whitened": [float(i), 0.5, -1.5],
            "digest": [bytes([0xff, i, 0])],
            "score": [3.4e38 * (i % 3 - 1)],
            "empty": [],
            **({"caption": [f"a caption of {i}"]} if i != 2 else {}),
        })


def read_photos(paths):
    one, many = tf.io.FixedLenFeature, tf.io.RaggedFeature
    for record in records_of(paths):
        got = tf.io.parse_single_example(record, {
            "image/encoded": one([], tf.string), "image/class/label": one([], tf.int64), "image/filename": one([], tf.string),
            "image/object/bbox/xmin": many(tf.float32), "image/object/class/label": many(tf.int64),
            "whitened": one([3], tf.float32), "digest": one([], tf.string), "score": one([], tf.float32),
            "caption": many(tf.string)})
        got = {key: value.numpy() for key, value in got.items()}
        entries = {key: array(got[key]) for key in got if key not in
                   ("image/encoded", "image/filename", "digest", "caption")}
        entries["image/encoded"] = stored(got["image/encoded"])
        entries["digest"] = stored(got["digest"])
        entries["image/filename"] = text(got["image/filename"])
        entries["caption"] = text(got["caption"][0]) if len(got["caption"]) else None
        yield entries


def tokens():
    """Long arrays: of a fixed and of a varying number."""
    for i in range(5):
        yield example({
            "input_ids": [(k * 7919 + i * 104729) % (1 << 7 * (k % 9 + 1)) - (k % 5 == 4) for k in range(30 + 10 * i)],
            "weights": [i + k / 64 for k in range(40)],
            "segments": list(range(i, i + 33)),
        })


def read_tokens(paths):
    for record in records_of(paths):
        got = tf.io.parse_single_example(record, {
            "input_ids": tf.io.RaggedFeature(tf.int64), "weights": tf.io.FixedLenFeature([40], tf.float32),
            "segments": tf.io.FixedLenFeature([33], tf.int64)})
        yield {key: array(value.numpy()) for key, value in got.items()}


def sequences():
    for i in range(5):
        yield sequence({"label": [i], "name": [f"clip {i}"]}, {
            "motion": [[i + 0.25 * t, -1.0, float(t)] for t in range(i + 1)],
            "class": [[t * i] for t in range(3)],
            "fixed": [[t, i] for t in range(2)],
            "frame": [[bytes([0xff, i, t])] for t in range(i + 1)],
            "words": [[f"wört {i}.{t}" * (t % 3)] for t in range(3 * i)],
            "phrases": [[f"{i}", f"{t}"][:1 + t] for t in range(2)],
            "uneven": [list(range(t)) for t in range(1, i + 2)],
        })


def list_message(record, name):
    return train.SequenceExample.FromString(record).feature_lists.feature_list[name].SerializeToString()


def read_sequences(paths):
    steps = tf.io.FixedLenSequenceFeature
    for record in records_of(paths):
        context, lists = tf.io.parse_single_sequence_example(
            record, {"label": tf.io.FixedLenFeature([], tf.int64), "name": tf.io.FixedLenFeature([], tf.string)},
            {"motion": steps([3], tf.float32), "class": steps([], tf.int64), "fixed": steps([2], tf.int64),
             "words": steps([], tf.string)})
        words = lists.pop("words")
        entries = {key: array(value.numpy()) for key, value in lists.items()}
        entries["label"] = array(context["label"].numpy())
        entries["name"] = text(context["name"].numpy())
        entries["words"] = told_texts(list(words.numpy()))
        for key in ("frame", "uneven", "phrases"):
            entries[key] = stored(list_message(record, key))
        yield entries


def several():
    """Features with several bytes values in some records: texts, which some records lack or have none of; and others."""
    for i in range(8):
        yield example({
            "names": [f"n{k}" for k in range(i)] or [b""], "id": [i],
            "digests": [bytes([0xff, i, k]) for k in range(i % 3 + 1)],
            "mixed": ["a", b"\xff" if i == 5 else "b"],
            **({"tags": [f"größe {k}" * (k % 4) for k in range(i * i % 13)] if i else b""} if i != 3 else {}),
        })


def read_several(paths):
    for record in records_of(paths):
        message = train.Example.FromString(record).features.feature
        got = tf.io.parse_single_example(record, {"id": tf.io.FixedLenFeature([], tf.int64), "names": tf.io.RaggedFeature(tf.string),
                                                  "tags": tf.io.RaggedFeature(tf.string)})
        yield {"names": told_texts(list(got["names"].numpy())), "id": array(got["id"].numpy()),
               "tags": told_texts(list(got["tags"].numpy())) if "tags" in message else None,
               **{key: stored(message[key].bytes_list.SerializeToString()) for key in ("digests", "mixed")}}


def lines():
    """Records that are not examples."""
    for i in range(6):
        yield f"line {i}: {'ä' * i}".encode()


def read_lines(paths):
    for record in records_of(paths):
        yield {"record": text(record)}


SETS = {"photos": (photos, read_photos), "tokens": (tokens, read_tokens), "sequences": (sequences, read_sequences),
        "several": (several, read_several), "lines": (lines, read_lines)}


def write(folder, name):
    make, read = SETS[name]
    where = os.path.join(folder, name)
    os.makedirs(where, exist_ok=True)
    records = list(make())
    paths = [os.path.join(where, f"{name}.tfrecord-{k:05d}-of-00002") for k in range(2)]
    for path, part in zip(paths, (records[:2], records[2:])):
        with tf.io.TFRecordWriter(path) as writer:
            for record in part:
                writer.write(record)
    assert records_of(paths) == records
    with open(os.path.join(where, "expected.jsonl"), "w", encoding="utf-8") as file:
        for entries in read(paths):
            file.write(json.dumps(dict(sorted(entries.items()))) + "\n")


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "..", "vectors", "tfrecord")
    for name in SETS:
        write(folder, name)
    with open(os.path.join(folder, "WRITER"), "w", encoding="utf-8") as file:
        file.write(f"tensorflow {tf.__version__}\n")


if __name__ == "__main__":
    main()
