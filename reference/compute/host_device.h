// DDPROOF_HOST_DEVICE: the function runs on the host and in kernels of a CUDA device, from one
// text; so what a test shows of it on the host holds there too. Empty for a host compiler.
#pragma once

#ifdef __CUDACC__
#define DDPROOF_HOST_DEVICE __host__ __device__
#else
#define DDPROOF_HOST_DEVICE
#endif
