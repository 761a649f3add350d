// PowerSGD: a gradient that is a large matrix travels as the product of two thin ones.
//
// For each matrix M (rows x cols: the first dimension by the others) of a bucket that is worth it:
// P = M Q, summed over ranks and orthogonalised; Q = M^T P, averaged over ranks; M := P Q^T. Three
// all-reduces a bucket: what is not compressed, the Ps, the Qs. What is lost on this rank is added
// to its next gradient (error feedback), and Q is where the next power iteration starts (warm
// start). Before `start_step` buckets are averaged as they are.
//
// All sums run in ascending order in float on the host, from equal inputs, so that every rank ends
// with the same bits. The first Q is uniform random, not PyTorch's: the same on all ranks.
// Source: Vogels, Karimireddy, Jaggi, "PowerSGD", NeurIPS 2019, algorithms 1 and 2; defaults and
// the order of steps are PyTorch 1.13.1's (SEMANTICS section 6). Threads: one task at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reference/ddp/hooks/all_reduce_hook.h"

namespace ddproof {

struct PowerSgdOptions {
  std::int64_t rank = 1;  // columns of P and Q
  // Steps, counted from 0, before compression. Above 1 with error feedback or warm start, because
  // buckets are rebuilt after the first step.
  std::int64_t start_step = 1000;
  // A matrix is compressed when (rows + cols) * rank * this is below rows * cols.
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  double orthogonalization_epsilon = 0;  // added to a column's norm; 0: a zero column stays zero
  std::uint64_t seed = 0;
};

class PowerSgdHook final : public CommHook<float> {
 public:
  // Throws ConfigError for options that make no sense.
  explicit PowerSgdHook(const PowerSgdOptions& options);

  std::string name() const override { return "powerSGD"; }
  void start(const GradientBucket<float>& bucket, ProcessGroup& group) override;
  void finish(const GradientBucket<float>& bucket, ProcessGroup& group) override;

  // Elements that this rank has sent since the start, and that an all-reduce would have sent.
  std::int64_t elements_sent() const { return elements_sent_; }
  std::int64_t elements_uncompressed() const { return elements_uncompressed_; }

 private:
  struct Matrix {
    std::int64_t offset = 0;  // in the bucket
    std::int64_t rows = 0;
    std::int64_t cols = 0;
    std::int64_t rank = 0;  // columns of its P and Q
    std::size_t at(std::int64_t row, std::int64_t column) const {
      return static_cast<std::size_t>(offset + row * cols + column);
    }
  };
  struct State {  // of a bucket
    std::vector<Matrix> compressed;
    std::vector<Matrix> whole;
    std::vector<float> input;  // gradient plus error
    std::vector<float> error;
    std::vector<float> rest;  // the elements of `whole`
    std::vector<float> p;
    std::vector<float> q;
    WorkPtr rest_work;
    WorkPtr p_work;
  };

  bool compresses() const { return step_ >= options_.start_step; }
  void plan(const GradientBucket<float>& bucket, State& state) const;
  void fill_q(const GradientBucket<float>& bucket, State& state) const;
  State& state_of(const GradientBucket<float>& bucket);
  void take_input(const GradientBucket<float>& bucket, State& state, int group_size) const;
  void orthogonalize_all(const State& state, std::vector<float>& factors,
                         std::int64_t Matrix::*rows) const;
  static void multiply_by_q(State& state);
  static void multiply_by_p(State& state);
  void give_output(const GradientBucket<float>& bucket, State& state) const;
  WorkPtr send(std::vector<float>& data, const GradientBucket<float>& bucket, const char* what,
               ProcessGroup& group);

  const PowerSgdOptions options_;
  std::int64_t step_ = 0;
  std::int64_t elements_sent_ = 0;
  std::int64_t elements_uncompressed_ = 0;
  std::map<std::size_t, State> states_;  // by bucket
  AllReduceHook<float> mean_;
};

}  // namespace ddproof
