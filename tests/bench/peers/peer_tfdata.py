"""tf.data: tfdata decodes exactly and resizes with antialiasing; tfdata_roi is what is usual for speed: the fast DCT, and no
antialiasing. Both decode the crop alone. The crop's ratio is drawn uniformly, which is TensorFlow's way."""
import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow

from common import BATCH, PREFETCH, SIZE


def cutter(name, task):
    image = tensorflow.image
    fast = name == "tfdata_roi"
    whole = tensorflow.constant([0.0, 0.0, 1.0, 1.0], shape=[1, 1, 4])

    def cut(path):
        data = tensorflow.io.read_file(path)
        shape = image.extract_jpeg_shape(data)
        if task.whole:
            begin, size = tensorflow.constant([0, 0]), shape[:2]
        else:
            begin, size, _ = image.sample_distorted_bounding_box(
                shape, whole, min_object_covered=0.0, aspect_ratio_range=task.ratio, area_range=task.scale, max_attempts=10,
                use_image_if_no_bounding_boxes=True)
        picture = image.decode_and_crop_jpeg(data, tensorflow.concat([begin[:2], size[:2]], 0), channels=3,
                                             dct_method="INTEGER_FAST" if fast else "INTEGER_ACCURATE")
        picture = image.resize(picture, (SIZE, SIZE), antialias=not fast)
        if task.flip:
            picture = image.random_flip_left_right(picture)
        return tensorflow.cast(tensorflow.round(picture), tensorflow.uint8)

    return cut


def batches(name, task):
    data = tensorflow.data
    options = data.Options()
    options.threading.private_threadpool_size = task.workers
    options.threading.max_intra_op_parallelism = 1
    options.deterministic = False
    photos = data.Dataset.from_tensor_slices(task.paths).shard(task.world, task.rank)
    photos = photos.shuffle(len(task.paths), seed=task.seed).repeat()
    photos = photos.map(cutter(name, task), num_parallel_calls=task.workers).batch(BATCH, drop_remainder=True)
    for batch in photos.prefetch(PREFETCH).with_options(options):
        yield batch.numpy()
