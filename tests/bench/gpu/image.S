/* gpu/image.S: the kernels of measurements, as text, which ends with a zero. */

        .section .rodata
        .hidden bench_ptx
        .globl bench_ptx
        .type bench_ptx, %object
bench_ptx:
        .incbin "tests/bench/gpu/kernels.ptx"
        .byte 0
1:
        .size bench_ptx, 1b - bench_ptx

        .section .note.GNU-stack, "", %progbits
