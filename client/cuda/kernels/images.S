/* client/cuda/kernels/images.S: the files of generated/ as symbols (images.h). */

        .section .rodata
        .hidden dlk_fatbin
        .globl dlk_fatbin
        .type dlk_fatbin, %object
        .balign 16
dlk_fatbin:
        .incbin "client/cuda/kernels/generated/kernels.fatbin"
1:
        .size dlk_fatbin, 1b - dlk_fatbin

        .hidden dlk_fatbin_bytes
        .globl dlk_fatbin_bytes
        .type dlk_fatbin_bytes, %object
        .size dlk_fatbin_bytes, 8
        .balign 8
dlk_fatbin_bytes:
        .quad 1b - dlk_fatbin

        .hidden dlk_ptx
        .globl dlk_ptx
        .type dlk_ptx, %object
dlk_ptx:
        .incbin "client/cuda/kernels/generated/kernels.ptx"
        .byte 0
2:
        .size dlk_ptx, 2b - dlk_ptx

        .section .note.GNU-stack, "", %progbits
