/* Written by tidu. f_1: see its declaration, and docs/howto/c.md of tidu. */

#include <math.h>
#include <stdint.h>
#include <string.h>

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

int f_1(const double *restrict in_x, const double *restrict in_a, double *restrict out_x_1, double *restrict work)
{
    (void)work;
    {
        for (long i0 = 0; i0 < 3; ++i0) {
            const double v2 = cos(in_x[i0]);
            const double v3 = (in_a[0] * 1.0);
            out_x_1[i0] = (v2 * v3);
        }
    }
    return 0;
}

const char *f_1_describe(void)
{
    static const char text[] = "{\"function\": \"f_1\", \"inputs\": [{\"name\": \"in_x\", \"key\": \"x\", \"dtype\": \"f64\", \"shape\": [3]}, {\"name\": \"in_a\", \"key\": \"a\", \"dtype\": \"f64\", \"shape\": []}], \"outputs\": [{\"name\": \"out_x_1\", \"key\": \"x@-1\", \"dtype\": \"f64\", \"shape\": [3]}], \"work_bytes\": 0}";
    return text;
}
