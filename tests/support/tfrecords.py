"""TFRecord files made byte by byte, for what TensorFlow's writer would not write."""
import struct

POLYNOMIAL = 0x82F63B78


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(record):
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", masked_crc(length)) + record + struct.pack("<I", masked_crc(record))


def record_file(records):
    return b"".join(framed(record) for record in records)


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value >> 7:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def member(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def texts(*values):
    return member(1, b"".join(member(1, value) for value in values))


def floats(*values):
    return member(2, member(1, struct.pack(f"<{len(values)}f", *values)))


def ints(*values):
    return member(3, member(1, b"".join(varint(value) for value in values)))


def unpacked_ints(*values):
    return member(3, b"".join(varint(1 << 3) + varint(value) for value in values))


def example(**features):
    """A tf.train.Example; names may be given with a dictionary: example(**{"image/encoded": texts(...)})."""
    return member(1, b"".join(member(1, member(1, name.encode()) + member(2, feature))
                              for name, feature in features.items()))
