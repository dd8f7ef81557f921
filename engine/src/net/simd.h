// FOR_EACH_CPU: build a function for several CPU generations and choose when the program starts.
// For short loops over arrays that the compiler turns into SIMD.
#pragma once

// Sanitizers cannot follow the run-time choice between builds; clang 14's choice is x86-64-v4 on a
// CPU without AVX-512, too.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define FOR_EACH_CPU __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define FOR_EACH_CPU
#endif
