__kernel void add_1(__global float *a)
{
    a[0] += 1;
}

__kernel void add_4(__global float *a, __global float *b, __global float *c, __global float *d)
{
    a[0] += 1;
    b[0] += 1;
    c[0] += 1;
    d[0] += 1;
}

__kernel void add_16(
    __global float *a, __global float *b, __global float *c, __global float *d,
    __global float *e, __global float *f, __global float *g, __global float *h,
    __global float *i, __global float *j, __global float *k, __global float *l,
    __global float *m, __global float *n, __global float *o, __global float *p)
{
    a[0] += 1;
    b[0] += 1;
    c[0] += 1;
    d[0] += 1;
    e[0] += 1;
    f[0] += 1;
    g[0] += 1;
    h[0] += 1;
    i[0] += 1;
    j[0] += 1;
    k[0] += 1;
    l[0] += 1;
    m[0] += 1;
    n[0] += 1;
    o[0] += 1;
    p[0] += 1;
}
