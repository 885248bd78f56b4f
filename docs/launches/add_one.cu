extern "C" __global__ void add_1(float *a)
{
    a[0] += 1;
}

extern "C" __global__ void add_4(float *a, float *b, float *c, float *d)
{
    a[0] += 1;
    b[0] += 1;
    c[0] += 1;
    d[0] += 1;
}

extern "C" __global__ void add_16(
    float *a, float *b, float *c, float *d, float *e, float *f, float *g, float *h,
    float *i, float *j, float *k, float *l, float *m, float *n, float *o, float *p)
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
