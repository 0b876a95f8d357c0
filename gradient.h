/* Written by tidu. The header. f_1: see its declaration, and docs/howto/c.md of tidu. */

#ifndef TIDU_GRADIENT_H
#define TIDU_GRADIENT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define f_1_WORK_BYTES 0L
#define f_1_WORK (((f_1_WORK_BYTES) + sizeof(double)) / sizeof(double))
#define f_1_SIZE_in_x 3L
#define f_1_SIZE_in_a 1L
#define f_1_SIZE_out_x_1 3L

/* Computes outputs from inputs, arrays row by row. No two may overlap.
   `work` has f_1_WORK doubles, which mean nothing before and after. Gives 0. */
int f_1(const double *in_x, const double *in_a, double *out_x_1, double *work);

/* JSON: the keys, types and names of the parameters, in order, and the bytes of the workspace. */
const char *f_1_describe(void);

#ifdef __cplusplus
}
#endif

#endif
