// How samples are dealt to ranks when they do not divide: sample p goes to rank p mod R, and the
// tail is what is left after the last full round. Pure functions; safe from any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace ddproof {

enum class Tail : std::uint8_t {
  kPad,   // every rank gets ceil(N/R): the round is filled up from the front. For training
  kDrop,  // every rank gets floor(N/R): the tail is left out (PyTorch's drop_last)
  kKeep,  // each sample once: some ranks get one more, or all there is. For evaluation
};

// "pad", "drop", "keep".
std::string_view name_of(Tail tail);

// How many of `count` samples the rank gets.
// Requires: count >= 0, replicas >= 1, rank in 0..replicas-1.
std::int64_t share_of(std::int64_t count, int replicas, int rank, Tail tail);

}  // namespace ddproof
