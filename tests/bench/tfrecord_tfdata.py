"""TensorFlow's half of tfrecord.py, run by an interpreter that has it.

    tfrecord_tfdata.py pack PHOTOS OUT           the folder's photos as TFRecord files of Examples
    tfrecord_tfdata.py rate OUT WORKERS BATCHES  images/s of tf.data: parse, decode_and_crop_jpeg, resize, flip, batch
"""
import json
import os
import sys
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

PHOTOS_A_FILE, BATCH, SIZE, WARM_UP = 250, 64, 224, 10


def pack(folder, out):
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    photos = [(os.path.join(folder, name, file), label) for label, name in enumerate(classes)
              for file in sorted(os.listdir(os.path.join(folder, name)))]
    os.makedirs(out, exist_ok=True)
    for first in range(0, len(photos), PHOTOS_A_FILE):
        with tf.io.TFRecordWriter(os.path.join(out, f"photos-{first // PHOTOS_A_FILE:05d}.tfrecord")) as writer:
            for path, label in photos[first:first + PHOTOS_A_FILE]:
                with open(path, "rb") as file:
                    writer.write(tf.train.Example(features=tf.train.Features(feature={
                        "image/encoded": tf.train.Feature(bytes_list=tf.train.BytesList(value=[file.read()])),
                        "image/class/label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))})).SerializeToString())


def cut(record):
    """As the pixels of Pillow's, to rounding: the accurate DCT, and antialiasing."""
    features = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string),
                                                   "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
    data = features["image/encoded"]
    begin, size, _ = tf.image.sample_distorted_bounding_box(
        tf.image.extract_jpeg_shape(data), tf.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4]), min_object_covered=0.0,
        aspect_ratio_range=(3 / 4, 4 / 3), area_range=(0.08, 1.0), max_attempts=10, use_image_if_no_bounding_boxes=True)
    picture = tf.image.decode_and_crop_jpeg(data, tf.concat([begin[:2], size[:2]], 0), channels=3,
                                            dct_method="INTEGER_ACCURATE")
    picture = tf.image.random_flip_left_right(tf.image.resize(picture, (SIZE, SIZE), antialias=True))
    return tf.cast(tf.round(picture), tf.uint8), features["image/class/label"]


def batches(out, workers):
    """Without end."""
    options = tf.data.Options()
    options.threading.private_threadpool_size = workers
    options.threading.max_intra_op_parallelism = 1
    options.deterministic = False
    paths = sorted(os.path.join(out, name) for name in os.listdir(out) if name.endswith(".tfrecord"))
    records = tf.data.Dataset.from_tensor_slices(paths).shuffle(len(paths)).interleave(
        tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=workers)
    return iter(records.shuffle(1000).repeat().map(cut, num_parallel_calls=workers)
                .batch(BATCH, drop_remainder=True).prefetch(4).with_options(options))


def rate(out, workers, n_batches):
    them = batches(out, workers)
    for _ in range(WARM_UP):
        next(them)
    begin = time.monotonic()
    for _ in range(n_batches):
        next(them)[0].numpy()
    print(json.dumps({"images_per_s": BATCH * n_batches / (time.monotonic() - begin)}))


if __name__ == "__main__":
    if sys.argv[1] == "pack":
        pack(*sys.argv[2:4])
    else:
        rate(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
