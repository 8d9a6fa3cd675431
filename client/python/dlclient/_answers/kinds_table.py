"""The classes of torchvision, torchaudio and timm that are kinds of steps, by family: `make kinds-pages`."""
from __future__ import annotations

from typing import Any, Dict

CLASSES: Dict[str, Dict[str, Dict[str, Any]]] = {
    'pictures': {
        'AugMix': {'name': 'aug_mix', 'n_bare': 1, 'arguments': [
            {'name': 'severity', 'default': '3'},
            {'name': 'mixture_width', 'default': '3'},
            {'name': 'chain_depth', 'default': '-1'},
            {'name': 'alpha', 'default': '1'},
            {'name': 'all_ops', 'default': 'true', 'type': 'flag'},
            {'name': 'interpolation', 'default': 'bilinear', 'choices': 'nearest bilinear'},
            {'name': 'fill', 'form': 'N or R:G:B'},
        ]},
        'AutoAugment': {'name': 'auto_augment', 'n_bare': 1, 'arguments': [
            {'name': 'policy', 'default': 'imagenet', 'choices': 'imagenet cifar10 svhn'},
            {'name': 'interpolation', 'default': 'nearest', 'choices': 'nearest bilinear bicubic'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
        ]},
        'RandomAutocontrast': {'name': 'autocontrast', 'n_bare': 1, 'arguments': [
            {'name': 'p', 'default': '0.5'},
        ]},
        'CenterCrop': {'name': 'center_crop', 'n_bare': 1, 'arguments': [
            {'name': 'size', 'type': 'size'},
        ]},
        'ColorJitter': {'name': 'color_jitter', 'n_bare': 3, 'arguments': [
            {'name': 'brightness', 'default': '0'},
            {'name': 'contrast', 'default': '0'},
            {'name': 'saturation', 'default': '0'},
            {'name': 'hue', 'default': '0'},
        ]},
        'ElasticTransform': {'name': 'elastic', 'n_bare': 1, 'arguments': [
            {'name': 'alpha', 'default': '50', 'form': 'N or X:Y'},
            {'name': 'sigma', 'default': '5', 'form': 'N or X:Y'},
            {'name': 'interpolation', 'default': 'bilinear', 'choices': 'nearest bilinear'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
        ]},
        'RandomEqualize': {'name': 'equalize', 'n_bare': 1, 'arguments': [
            {'name': 'p', 'default': '0.5'},
        ]},
        'RandomErasing': {'name': 'erasing', 'n_bare': 1, 'arguments': [
            {'name': 'p', 'default': '0.5'},
            {'name': 'scale', 'default': '0.02:0.33'},
            {'name': 'ratio', 'default': '0.3:3.3'},
            {'name': 'value', 'default': '0', 'word': 'random', 'form': 'N or one for each channel'},
        ]},
        'FiveCrop': {'name': 'five_crop', 'n_bare': 1, 'arguments': [
            {'name': 'size', 'type': 'size'},
        ]},
        'GaussianBlur': {'name': 'gaussian_blur', 'n_bare': 1, 'arguments': [
            {'name': 'kernel_size', 'form': 'N or WIDTH:HEIGHT'},
            {'name': 'sigma', 'default': '0.1:2', 'form': 'N or FROM:TO'},
        ]},
        'GaussianNoise': {'name': 'gaussian_noise', 'n_bare': 1, 'arguments': [
            {'name': 'mean', 'default': '0'},
            {'name': 'sigma', 'default': '0.1'},
            {'name': 'clip', 'default': 'true', 'type': 'flag'},
        ]},
        'Grayscale': {'name': 'grayscale', 'n_bare': 1, 'arguments': [
            {'name': 'num_output_channels', 'default': '1', 'choices': '1 3'},
        ]},
        'RandomHorizontalFlip': {'name': 'hflip', 'n_bare': 1, 'arguments': [
            {'name': 'p', 'default': '0.5'},
        ]},
        'RandomInvert': {'name': 'invert', 'n_bare': 1, 'arguments': [
            {'name': 'p', 'default': '0.5'},
        ]},
        'JPEG': {'name': 'jpeg', 'n_bare': 1, 'arguments': [
            {'name': 'quality', 'other_name': 'quality_range', 'form': 'N or FROM:TO'},
            {'name': 'p', 'default': '1'},
        ]},
        'Normalize': {'name': 'normalize', 'n_bare': 0, 'arguments': [
            {'name': 'mean', 'form': 'N or a number for each channel'},
            {'name': 'std', 'form': 'N or a number for each channel'},
        ]},
        'Pad': {'name': 'pad', 'n_bare': 1, 'arguments': [
            {'name': 'padding'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
            {'name': 'padding_mode', 'default': 'constant', 'choices': 'constant edge reflect symmetric'},
        ]},
        'RandomPosterize': {'name': 'posterize', 'n_bare': 1, 'arguments': [
            {'name': 'bits'},
            {'name': 'p', 'default': '0.5'},
        ]},
        'RandAugment': {'name': 'rand_augment', 'n_bare': 2, 'arguments': [
            {'name': 'num_ops', 'default': '2'},
            {'name': 'magnitude', 'default': '9'},
            {'name': 'num_magnitude_bins', 'default': '31'},
            {'name': 'interpolation', 'default': 'nearest', 'choices': 'nearest bilinear bicubic'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
        ]},
        'RandomAffine': {'name': 'random_affine', 'n_bare': 1, 'arguments': [
            {'name': 'degrees'},
            {'name': 'translate', 'default': '0:0'},
            {'name': 'scale', 'default': '1:1'},
            {'name': 'shear', 'default': '0'},
            {'name': 'interpolation', 'default': 'nearest', 'choices': 'nearest bilinear bicubic'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
            {'name': 'center'},
        ]},
        'RandomApply': {'name': 'random_apply', 'n_bare': 1, 'arguments': [
            {'name': 'steps', 'other_name': 'transforms', 'type': 'steps'},
            {'name': 'p', 'default': '0.5'},
        ]},
        'RandomChannelPermutation': {'name': 'random_channel_permutation', 'n_bare': 0, 'arguments': [
        ]},
        'RandomChoice': {'name': 'random_choice', 'n_bare': 1, 'arguments': [
            {'name': 'steps', 'other_name': 'transforms', 'type': 'steps'},
            {'name': 'p', 'form': 'W:W'},
        ]},
        'RandomCrop': {'name': 'random_crop', 'n_bare': 1, 'arguments': [
            {'name': 'size', 'type': 'size'},
            {'name': 'padding', 'default': '0'},
            {'name': 'pad_if_needed', 'default': 'false', 'type': 'flag'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
            {'name': 'padding_mode', 'default': 'constant', 'choices': 'constant edge reflect symmetric'},
        ]},
        'RandomGrayscale': {'name': 'random_grayscale', 'n_bare': 1, 'arguments': [
            {'name': 'p', 'default': '0.1'},
        ]},
        'RandomIoUCrop': {'name': 'random_iou_crop', 'n_bare': 0, 'arguments': [
            {'name': 'min_scale', 'default': '0.3'},
            {'name': 'max_scale', 'default': '1'},
            {'name': 'min_aspect_ratio', 'default': '0.5'},
            {'name': 'max_aspect_ratio', 'default': '2'},
            {'name': 'sampler_options', 'attribute': 'options', 'default': '0:0.1:0.3:0.5:0.7:0.9:1'},
            {'name': 'trials', 'default': '40'},
        ]},
        'RandomOrder': {'name': 'random_order', 'n_bare': 1, 'arguments': [
            {'name': 'steps', 'other_name': 'transforms', 'type': 'steps'},
        ]},
        'RandomPerspective': {'name': 'random_perspective', 'n_bare': 1, 'arguments': [
            {'name': 'distortion_scale', 'default': '0.5'},
            {'name': 'p', 'default': '0.5'},
            {'name': 'interpolation', 'default': 'bilinear', 'choices': 'nearest bilinear bicubic'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
        ]},
        'RandomPhotometricDistort': {'name': 'random_photometric_distort', 'n_bare': 0, 'arguments': [
            {'name': 'brightness', 'default': '0.875:1.125'},
            {'name': 'contrast', 'default': '0.5:1.5'},
            {'name': 'saturation', 'default': '0.5:1.5'},
            {'name': 'hue', 'default': '-0.05:0.05'},
            {'name': 'p', 'default': '0.5'},
        ]},
        'RandomResize': {'name': 'random_resize', 'n_bare': 2, 'arguments': [
            {'name': 'min_size'},
            {'name': 'max_size'},
            {'name': 'interpolation', 'default': 'bilinear', 'choices': 'nearest box bilinear hamming bicubic lanczos'},
        ]},
        'RandomResizedCrop': {'name': 'random_resized_crop', 'n_bare': 1, 'arguments': [
            {'name': 'size', 'type': 'size'},
            {'name': 'scale', 'default': '0.08:1'},
            {'name': 'ratio', 'default': '0.75:1.3333333333333333'},
            {'name': 'interpolation', 'default': 'bilinear', 'choices': 'nearest box bilinear hamming bicubic lanczos'},
        ]},
        'RandomRotation': {'name': 'random_rotation', 'n_bare': 1, 'arguments': [
            {'name': 'degrees'},
            {'name': 'interpolation', 'default': 'nearest', 'choices': 'nearest bilinear bicubic'},
            {'name': 'expand', 'default': 'false', 'type': 'flag'},
            {'name': 'center'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
        ]},
        'RandomShortestSize': {'name': 'random_shortest_size', 'n_bare': 1, 'arguments': [
            {'name': 'min_size', 'form': 'N or N:N'},
            {'name': 'max_size'},
            {'name': 'interpolation', 'default': 'bilinear', 'choices': 'nearest box bilinear hamming bicubic lanczos'},
        ]},
        'RandomZoomOut': {'name': 'random_zoom_out', 'n_bare': 0, 'arguments': [
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
            {'name': 'side_range', 'default': '1:4'},
            {'name': 'p', 'default': '0.5'},
        ]},
        'Resize': {'name': 'resize', 'n_bare': 1, 'arguments': [
            {'name': 'size', 'other_name': 'short'},
            {'name': 'interpolation', 'default': 'bilinear', 'choices': 'nearest box bilinear hamming bicubic lanczos'},
            {'name': 'max', 'other_name': 'max_size'},
        ]},
        'SanitizeBoundingBoxes': {'name': 'sanitize', 'n_bare': 0, 'arguments': [
            {'name': 'min_size', 'default': '1'},
            {'name': 'min_area', 'default': '1'},
        ]},
        'ScaleJitter': {'name': 'scale_jitter', 'n_bare': 1, 'arguments': [
            {'name': 'target_size', 'type': 'size'},
            {'name': 'scale_range', 'default': '0.1:2'},
            {'name': 'interpolation', 'default': 'bilinear', 'choices': 'nearest box bilinear hamming bicubic lanczos'},
        ]},
        'RandomAdjustSharpness': {'name': 'sharpness', 'n_bare': 1, 'arguments': [
            {'name': 'factor', 'other_name': 'sharpness_factor'},
            {'name': 'p', 'default': '0.5'},
        ]},
        'RandomSolarize': {'name': 'solarize', 'n_bare': 1, 'arguments': [
            {'name': 'threshold'},
            {'name': 'p', 'default': '0.5'},
        ]},
        'TenCrop': {'name': 'ten_crop', 'n_bare': 1, 'arguments': [
            {'name': 'size', 'type': 'size'},
            {'name': 'vertical_flip', 'default': 'false', 'type': 'flag'},
        ]},
        'rand_augment_transform': {'name': 'timm_rand_augment', 'n_bare': 1, 'arguments': [
            {'name': 'magnitude', 'default': '10'},
            {'name': 'num_layers', 'default': '2'},
            {'name': 'p', 'default': '0.5'},
            {'name': 'mstd', 'default': '0'},
            {'name': 'mmax', 'default': '10'},
            {'name': 'increasing', 'default': 'false', 'type': 'flag'},
            {'name': 'interpolation', 'default': 'random', 'choices': 'nearest bilinear bicubic random'},
            {'name': 'fill', 'default': '128', 'form': 'N or R:G:B'},
        ]},
        'ToDtype': {'name': 'to', 'n_bare': 1, 'arguments': [
            {'name': 'dtype', 'choices': 'uint8 float16 bfloat16 float32'},
            {'name': 'scale', 'choices': 'divide multiply'},
        ]},
        'TrivialAugmentWide': {'name': 'trivial_augment_wide', 'n_bare': 0, 'arguments': [
            {'name': 'num_magnitude_bins', 'default': '31'},
            {'name': 'interpolation', 'default': 'nearest', 'choices': 'nearest bilinear bicubic'},
            {'name': 'fill', 'default': '0', 'form': 'N or R:G:B'},
        ]},
        'RandomVerticalFlip': {'name': 'vflip', 'n_bare': 1, 'arguments': [
            {'name': 'p', 'default': '0.5'},
        ]},
    },
    'sounds': {
        'AmplitudeToDB': {'name': 'amplitude_to_db', 'n_bare': 0, 'arguments': [
            {'name': 'stype', 'default': 'power', 'choices': 'power magnitude'},
            {'name': 'top_db', 'default': 'none', 'word': 'none'},
        ]},
        'FrequencyMasking': {'name': 'freq_mask', 'n_bare': 1, 'arguments': [
            {'name': 'freq_mask_param', 'attribute': 'mask_param'},
            {'name': 'iid_masks', 'default': 'false', 'type': 'flag'},
            {'name': 'mask_value', 'default': '0'},
        ]},
        'MelSpectrogram': {'name': 'mel_spectrogram', 'n_bare': 0, 'arguments': [
            {'name': 'n_fft', 'default': '400'},
            {'name': 'win_length', 'default': 'none', 'word': 'none'},
            {'name': 'hop_length', 'default': 'none', 'word': 'none'},
            {'name': 'f_min', 'default': '0'},
            {'name': 'f_max', 'default': 'none', 'word': 'none'},
            {'name': 'pad', 'default': '0'},
            {'name': 'n_mels', 'default': '128'},
            {'name': 'window_fn', 'default': 'hann', 'choices': 'hann hamming blackman'},
            {'name': 'power', 'default': '2'},
            {'name': 'normalized', 'default': 'false', 'choices': 'false window frame_length'},
            {'name': 'center', 'default': 'true', 'type': 'flag'},
            {'name': 'pad_mode', 'default': 'reflect', 'choices': 'reflect constant replicate'},
            {'name': 'norm', 'default': 'none', 'choices': 'none slaney'},
            {'name': 'mel_scale', 'default': 'htk', 'choices': 'htk slaney'},
        ]},
        'MFCC': {'name': 'mfcc', 'n_bare': 0, 'arguments': [
            {'name': 'n_mfcc', 'default': '40'},
            {'name': 'norm', 'default': 'ortho', 'choices': 'none ortho'},
            {'name': 'log_mels', 'default': 'false', 'type': 'flag'},
            {'name': 'n_fft', 'default': '400'},
            {'name': 'win_length', 'default': 'none', 'word': 'none'},
            {'name': 'hop_length', 'default': 'none', 'word': 'none'},
            {'name': 'f_min', 'default': '0'},
            {'name': 'f_max', 'default': 'none', 'word': 'none'},
            {'name': 'pad', 'default': '0'},
            {'name': 'n_mels', 'default': '128'},
            {'name': 'window_fn', 'default': 'hann', 'choices': 'hann hamming blackman'},
            {'name': 'power', 'default': '2'},
            {'name': 'normalized', 'default': 'false', 'choices': 'false window frame_length'},
            {'name': 'center', 'default': 'true', 'type': 'flag'},
            {'name': 'pad_mode', 'default': 'reflect', 'choices': 'reflect constant replicate'},
            {'name': 'mel_norm', 'default': 'none', 'choices': 'none slaney'},
            {'name': 'mel_scale', 'default': 'htk', 'choices': 'htk slaney'},
        ]},
        'SpecAugment': {'name': 'spec_augment', 'n_bare': 4, 'arguments': [
            {'name': 'n_time_masks'},
            {'name': 'time_mask_param'},
            {'name': 'n_freq_masks'},
            {'name': 'freq_mask_param'},
            {'name': 'iid_masks', 'default': 'true', 'type': 'flag'},
            {'name': 'p', 'default': '1'},
            {'name': 'zero_masking', 'default': 'false', 'type': 'flag'},
        ]},
        'Spectrogram': {'name': 'spectrogram', 'n_bare': 0, 'arguments': [
            {'name': 'n_fft', 'default': '400'},
            {'name': 'win_length', 'default': 'none', 'word': 'none'},
            {'name': 'hop_length', 'default': 'none', 'word': 'none'},
            {'name': 'pad', 'default': '0'},
            {'name': 'window_fn', 'default': 'hann', 'choices': 'hann hamming blackman'},
            {'name': 'power', 'default': '2'},
            {'name': 'normalized', 'default': 'false', 'choices': 'false window frame_length'},
            {'name': 'center', 'default': 'true', 'type': 'flag'},
            {'name': 'pad_mode', 'default': 'reflect', 'choices': 'reflect constant replicate'},
        ]},
        'TimeMasking': {'name': 'time_mask', 'n_bare': 1, 'arguments': [
            {'name': 'time_mask_param', 'attribute': 'mask_param'},
            {'name': 'iid_masks', 'default': 'false', 'type': 'flag'},
            {'name': 'p', 'default': '1'},
            {'name': 'mask_value', 'default': '0'},
        ]},
    },
    'collations': {
        'CutMix': {'name': 'cutmix', 'n_bare': 0, 'arguments': [
            {'name': 'alpha', 'default': '1'},
            {'name': 'num_classes'},
        ]},
        'Mixup': {'name': 'mix', 'n_bare': 0, 'arguments': [
            {'name': 'mixup_alpha', 'default': '1'},
            {'name': 'cutmix_alpha', 'default': '0'},
            {'name': 'cutmix_minmax'},
            {'name': 'prob', 'attribute': 'mix_prob', 'default': '1'},
            {'name': 'switch_prob', 'default': '0.5'},
            {'name': 'mode', 'default': 'batch', 'choices': 'batch pair elem'},
            {'name': 'correct_lam', 'default': 'true', 'type': 'flag'},
            {'name': 'label_smoothing', 'default': '0.1'},
            {'name': 'num_classes'},
            {'name': 'partner', 'default': 'mirrored', 'choices': 'mirrored previous'},
        ]},
        'MixUp': {'name': 'mixup', 'n_bare': 0, 'arguments': [
            {'name': 'alpha', 'default': '1'},
            {'name': 'num_classes'},
        ]},
    },
}

# Collations that mix samples, and all in which what a sample becomes depends on its batch.
MIXES = ['cutmix', 'mix', 'mixup']
OF_BATCHES = ['cutmix', 'mix', 'mixup', 'pack', 'pad']
