/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifndef MS_GRAPHS_MEMORYTIME_H
#define MS_GRAPHS_MEMORYTIME_H

/* How long a kernel takes that the memory bounds: pointwise ops, norms,
 * softmax, lookups, the optimizer.
 *
 * Bytes go at the share of the memory's rate that a long stream of loads and
 * stores reaches, and faster while they stay in the L2 cache: what the op
 * before has just written is read from there.  Some kernels go over their
 * input again.  The second time it comes from the cache as well, if the rows
 * that are under way on all multiprocessors fit there, else from memory:
 * PyTorch's layer norm (a block of 128 threads a row: mean and variance, then
 * the output) is half as long again where they do not, its softmax over long
 * rows twice as long (the largest, the sum, the output), ATen/native/cuda,
 * layer_norm_kernel.cu and SoftMax.cu.  Of softmax a row lies in shared memory
 * meanwhile if it begins at a multiple of 16 bytes; others come from the cache
 * again.
 *
 * A norm's block of 128 threads has a row, and takes 1.45 us and 1.9 ns an
 * element, however fast the memory is: 16,384 rows of 128, as norms of heads
 * have them, are 7 waves on a GB200 and take 14 us, of which their bytes
 * are 1.5.
 *
 * The backward of a norm over rows has kernels for the gradients of its weight
 * and bias, a block for 32 columns, which goes over all rows at 60 GB/s: 8,192
 * rows of 128 take 17 of 27 us on an H200 (cudnn-frontend's runs of PyTorch).
 * Rows that are looked up by index_select (up to PyTorch 2.7) are the same time
 * whether they fit the cache or not; since then they are gathered as a stream.
 *
 * The newest PyTorch's kernels are others, measured on an H100 with 2.11
 * (tests/truth/h100.py; fitted on the half for fits of h100memory.tsv). Softmax
 * has rows of up to 2,048 in a warp, up to 9,216 in a block's registers, loaded
 * an element at a time, and multiplies gradient and output in a kernel of its
 * own; log_softmax goes over long rows three times.  A norm's gradient of the
 * weight reads both operands once more.  A kernel whose operands are not alike
 * loads no vectors: 2.7 elements a ns and multiprocessor, which is 1.98 of an
 * H100's 3.03 TB/s where 16 bits become 32.  Lists of tensors reach 0.86 of a
 * stream's rate on Hopper.
 *
 * A cast to fp8 has all of its bytes in the cache, if they fit: a
 * multiprocessor moves 41 GB/s there.  Else they go as fast as what a product
 * reads from memory.  A block of 256 threads has a row (vLLM's
 * scaled_fp8_quant_kernel), so that a few long rows and many short ones take
 * longer.  These numbers are those of five devices' casts in aiconfigurator, of
 * half of the shapes (tests/truth/cast_fit.py).
 *
 * A worked example, A100 PCIe, 8,192 rows of 8,192 in fp32: 16 blocks on each
 * of 108 multiprocessors are 1,728 rows of 32 KiB, 54 MiB, more than the 40 MiB
 * of L2.  So 256 MiB are read twice and written once: 805 MB at 0.893 of 1,555
 * GB/s are 580 us, less 4 us for what is left in the cache; NeuSight measured
 * 618, its host's 43 included.
 *
 * The parts are fitted on half of the shapes of NeuSight, vidur and
 * cudnn-frontend (tests/truth/memory_fit.py); the others hold them
 * (tests/truth/memory.tsv). */

#include "graphs/device.h"

typedef enum ms_memory_kernel {
    MS_STREAM, /* each byte once */
    MS_COLD,   /* the same, and nothing of it was used shortly before */
    /* The same, an element at a time: row has how many. */
    MS_SINGLE,
    /* The same, of a copy into another order, on Hopper; steps on A100s
     * (vTrain's) have it as fast as a stream. */
    MS_SCATTERED,
    MS_RANDOM,      /* the same, with a random number for each: dropout */
    MS_COLUMN_SUMS, /* sums, each of so many rows (row); on Hopper they wait */
    MS_LISTS,       /* over lists of tensors of this width: the optimizer's */
    MS_ROWS_NORM,   /* of rows: PyTorch's layer and RMS norm up to 2.7 */
    MS_ROWS_NORM_BACKWARD,
    MS_ROWS_RMS, /* since then; its layer norm */
    MS_ROWS_RMS_BACKWARD,
    MS_ROWS_CENTRED,
    MS_ROWS_CENTRED_BACKWARD,
    MS_BATCH_NORM, /* over all of the input */
    MS_BATCH_NORM_BACKWARD,
    MS_ROWS_SOFTMAX, /* PyTorch's up to 2.6, also of logarithms */
    MS_ROWS_SOFTMAX_BACKWARD,
    MS_ROWS_REGISTERS, /* softmax since then */
    MS_ROWS_REGISTERS_BACKWARD,
    MS_ROWS_LOG, /* log_softmax since then */
    MS_ROWS_LOG_BACKWARD,
    MS_LOOKUP, /* rows of a table by index, up to PyTorch 2.7 */
    MS_CAST,   /* to fp8: what it reads was just written, and what it writes
                  the next op reads */
    MS_N_MEMORY_KERNELS
} ms_memory_kernel;

/* ns; bytes: read and written, each once.  row, width: elements of a row, and
 * bytes of one; of a cast, those that are read and those that are written. */
double ms_memorytime_ns(const ms_device *device, ms_memory_kernel kernel,
                        double bytes, double row, double width);

/* ns of bytes that go no further than the last cache, from and to all
 * multiprocessors. */
double ms_memorytime_cached_ns(const ms_device *device, double bytes);
/* Of what a kernel goes over again and again, so many bytes, the share that is
 * in the cache each time: all of it or, where it does not fit, nothing, as the
 * oldest goes first. */
double ms_memorytime_cached_share(const ms_device *device, double bytes);

#endif
