// Random numbers that depend on what they are for, and on nothing that came before.
//
// A stream is a function of its key: seed, epoch and sample, or seed, epoch, rank and worker. So
// there is no state to save in a checkpoint, to copy into a forked worker or to forget to seed, and
// a sample gets the same numbers at every world size. Two streams of one seed never share a
// number's place: they are different blocks of one counter-based generator, by construction.
//
// Source: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1,
// 2, 3", SC 2011. Threads: a stream belongs to one task at a time.
#pragma once

#include <array>
#include <cstdint>

namespace ddproof {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

// One block of four numbers.
PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key);

class RandomStream {
 public:
  // What is done to one sample in one epoch. Throws ConfigError unless epoch is in 0..2^32-1 and
  // sample in 0..2^62-1.
  static RandomStream of_sample(std::uint64_t seed, std::int64_t epoch, std::int64_t sample);
  // What one loader worker of one rank draws in one epoch. Throws ConfigError unless epoch is in
  // 0..2^32-1, rank is not negative and worker is in 0..2^30-1.
  static RandomStream of_worker(std::uint64_t seed, std::int64_t epoch, int rank, int worker);

  // Uniform over all 32-bit numbers. A stream has 2^34 of them, then starts over.
  std::uint32_t next();
  // Uniform over 0..bound-1, without bias (Lemire's method). Requires: bound > 0.
  std::uint32_t below(std::uint32_t bound);

 private:
  RandomStream(std::uint64_t seed, PhiloxCounter first);

  PhiloxKey key_;
  PhiloxCounter counter_;  // of the next block; its first word counts blocks
  PhiloxCounter block_{};
  unsigned used_ = 4;  // numbers of block_ that were handed out
};

}  // namespace ddproof
