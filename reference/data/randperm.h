// torch.randperm, bit for bit: the shuffle behind DistributedSampler.
//
// The engine is the standard's MT19937, seeded with the low 32 bits of the seed, so seeds 0 and
// 2^32 give the same permutation, and -1 is 2^64-1. The modulo bias is PyTorch's and is kept. Pure
// functions; safe from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace ddproof {

// From this length on newer PyTorch versions draw 64 bits a sample (aten/src/ATen/native/
// TensorFactories.cpp, randperm_cpu).
inline constexpr std::int64_t kRandpermWideLength = std::numeric_limits<std::uint32_t>::max() / 20;

// Advances `generator` by n-1 draws (none for n <= 1).
//
// Requires: 0 <= n, and Index can hold n-1. Index is std::uint32_t or std::int64_t; nothing else is
//           instantiated. Needs n * sizeof(Index) bytes.
// Ensures:  the result is a permutation of 0..n-1.
template <class Index>
std::vector<Index> randperm(std::int64_t n, std::mt19937& generator);

// With a generator of its own, as DistributedSampler does for each epoch.
template <class Index>
std::vector<Index> randperm(std::int64_t n, std::uint64_t seed);

namespace internal {

// The two branches of randperm, callable at any length so that tests can reach both.

// Forward Fisher-Yates: position i swaps with i + draw32 % (n-i).
template <class Index>
std::vector<Index> forward_shuffle(std::int64_t n, std::mt19937& generator);

// Inside-out Fisher-Yates (Knuth, TAOCP 2, 3.4.2): position i is drawn from 0..i with 64 bits, the
// first 32-bit draw being the upper half.
template <class Index>
std::vector<Index> inside_out_shuffle(std::int64_t n, std::mt19937& generator);

}  // namespace internal
}  // namespace ddproof
