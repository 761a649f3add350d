#include "reference/ddp/hooks/power_sgd.h"

#include <algorithm>
#include <cmath>

#include "backends/api/error.h"
#include "reference/model/initialization.h"

namespace ddproof {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw ConfigError("powerSGD: " + what);
}

// Gram-Schmidt: the columns of a row-major [rows][columns] become orthonormal.
void orthogonalize(float* matrix, std::int64_t rows, std::int64_t columns, float epsilon) {
  for (std::int64_t column = 0; column < columns; ++column) {
    float square = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const float value = matrix[i * columns + column];
      square = std::fma(value, value, square);
    }
    const float norm = std::sqrt(square) + epsilon;
    for (std::int64_t i = 0; i < rows && norm > 0; ++i) matrix[i * columns + column] /= norm;
    for (std::int64_t other = column + 1; other < columns; ++other) {
      float dot = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        dot = std::fma(matrix[i * columns + column], matrix[i * columns + other], dot);
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        float& value = matrix[i * columns + other];
        value = std::fma(-dot, matrix[i * columns + column], value);
      }
    }
  }
}

}  // namespace

PowerSgdHook::PowerSgdHook(const PowerSgdOptions& options) : options_(options) {
  require(options.rank >= 1, "rank " + std::to_string(options.rank) + ", expected at least 1");
  require(options.start_step >= 0,
          "start step " + std::to_string(options.start_step) + ", expected 0 or more");
  require(options.min_compression_rate > 0, "the least compression rate must be above 0");
  require(options.orthogonalization_epsilon >= 0, "the epsilon must not be negative");
  require(options.start_step > 1 || !(options.use_error_feedback || options.warm_start),
          "start step " + std::to_string(options.start_step) +
              ", expected above 1 with error feedback or warm start: buckets are rebuilt after the "
              "first step");
}

void PowerSgdHook::plan(const GradientBucket<float>& bucket, State& state) const {
  std::int64_t offset = 0;
  for (const Parameter<float>* parameter : bucket.parameters) {
    const Tensor<float>& value = parameter->value;
    Matrix matrix{.offset = offset, .rows = 1, .cols = value.count()};
    if (value.shape().size() > 1 && value.size(0) > 0) {
      matrix = {.offset = offset, .rows = value.size(0), .cols = value.count() / value.size(0)};
    }
    matrix.rank = std::min({options_.rank, matrix.rows, matrix.cols});
    const auto sent = static_cast<double>((matrix.rows + matrix.cols) * options_.rank);
    const bool is_worth_it =
        value.shape().size() > 1 &&
        sent * options_.min_compression_rate < static_cast<double>(matrix.rows * matrix.cols);
    (is_worth_it ? state.compressed : state.whole).push_back(matrix);
    offset += value.count();
  }
  std::int64_t p_count = 0;
  std::int64_t q_count = 0;
  for (const Matrix& matrix : state.compressed) {
    p_count += matrix.rows * matrix.rank;
    q_count += matrix.cols * matrix.rank;
  }
  state.p.resize(static_cast<std::size_t>(p_count));
  state.q.resize(static_cast<std::size_t>(q_count));
}

void PowerSgdHook::fill_q(const GradientBucket<float>& bucket, State& state) const {
  const std::string stream = "powerSGD bucket " + std::to_string(bucket.index) + " step " +
                             std::to_string(options_.warm_start ? 0 : step_);
  for (std::size_t i = 0; i < state.q.size(); ++i) {
    state.q[i] =
        static_cast<float>(uniform_value(options_.seed, stream, static_cast<std::int64_t>(i)));
  }
}

void PowerSgdHook::orthogonalize_all(const State& state, std::vector<float>& factors,
                                     std::int64_t Matrix::*rows) const {
  float* at = factors.data();
  for (const Matrix& matrix : state.compressed) {
    orthogonalize(at, matrix.*rows, matrix.rank,
                  static_cast<float>(options_.orthogonalization_epsilon));
    at += matrix.*rows * matrix.rank;
  }
}

WorkPtr PowerSgdHook::send(std::vector<float>& data, const GradientBucket<float>& bucket,
                           const char* what, ProcessGroup& group) {
  elements_sent_ += static_cast<std::int64_t>(data.size());
  return group.all_reduce(Buffer::of(data), ReduceOp::kSum, {.label = label(bucket) + ": " + what});
}

PowerSgdHook::State& PowerSgdHook::state_of(const GradientBucket<float>& bucket) {
  const auto [found, is_new] = states_.try_emplace(bucket.index);
  State& state = found->second;
  if (is_new) {
    plan(bucket, state);
    state.error.assign(static_cast<std::size_t>(bucket.data.count()), 0);
  }
  if (is_new || !options_.warm_start) fill_q(bucket, state);
  return state;
}

void PowerSgdHook::take_input(const GradientBucket<float>& bucket, State& state,
                              int group_size) const {
  state.input = to_host(bucket.data);
  for (std::size_t i = 0; options_.use_error_feedback && i < state.input.size(); ++i) {
    state.input[i] += state.error[i];
  }
  state.rest.clear();
  for (const Matrix& whole : state.whole) {
    const auto begin = state.input.begin() + whole.offset;
    state.rest.insert(state.rest.end(), begin, begin + whole.rows * whole.cols);
  }
  for (float& value : state.rest) value *= reciprocal_of<float>(group_size);
}

void PowerSgdHook::start(const GradientBucket<float>& bucket, ProcessGroup& group) {
  elements_uncompressed_ += bucket.data.count();
  if (!compresses()) {
    elements_sent_ += bucket.data.count();
    return mean_.start(bucket, group);
  }
  State& state = state_of(bucket);
  take_input(bucket, state, group.size());
  state.rest_work = send(state.rest, bucket, "whole", group);
  orthogonalize_all(state, state.q, &Matrix::cols);
  multiply_by_q(state);
  state.p_work = send(state.p, bucket, "P", group);
}

void PowerSgdHook::finish(const GradientBucket<float>& bucket, ProcessGroup& group) {
  if (compresses()) {
    State& state = states_.at(bucket.index);
    state.rest_work->wait();
    state.p_work->wait();
    orthogonalize_all(state, state.p, &Matrix::rows);
    multiply_by_p(state);
    send(state.q, bucket, "Q", group)->wait();
    for (float& value : state.q) value *= reciprocal_of<float>(group.size());
    give_output(bucket, state);
  } else {
    mean_.finish(bucket, group);
  }
  if (bucket.is_last) ++step_;
}

// P = M Q of each matrix.
void PowerSgdHook::multiply_by_q(State& state) {
  float* p = state.p.data();
  const float* q = state.q.data();
  for (const Matrix& m : state.compressed) {
    for (std::int64_t i = 0; i < m.rows; ++i) {
      for (std::int64_t k = 0; k < m.rank; ++k) {
        float sum = 0;
        for (std::int64_t j = 0; j < m.cols; ++j) {
          sum = std::fma(state.input[m.at(i, j)], q[j * m.rank + k], sum);
        }
        *p++ = sum;
      }
    }
    q += m.cols * m.rank;
  }
}

// Q = M^T P of each matrix.
void PowerSgdHook::multiply_by_p(State& state) {
  float* q = state.q.data();
  const float* p = state.p.data();
  for (const Matrix& m : state.compressed) {
    for (std::int64_t j = 0; j < m.cols; ++j) {
      for (std::int64_t k = 0; k < m.rank; ++k) {
        float sum = 0;
        for (std::int64_t i = 0; i < m.rows; ++i) {
          sum = std::fma(state.input[m.at(i, j)], p[i * m.rank + k], sum);
        }
        *q++ = sum;
      }
    }
    p += m.rows * m.rank;
  }
}

// The bucket becomes P Q^T of each matrix, and the means of the rest.
void PowerSgdHook::give_output(const GradientBucket<float>& bucket, State& state) const {
  std::vector<float> output(state.input.size());
  const float* rest = state.rest.data();
  for (const Matrix& whole : state.whole) {
    std::copy_n(rest, whole.rows * whole.cols, output.begin() + whole.offset);
    rest += whole.rows * whole.cols;
  }
  const float* p = state.p.data();
  const float* q = state.q.data();
  for (const Matrix& m : state.compressed) {
    for (std::int64_t i = 0; i < m.rows; ++i) {
      for (std::int64_t j = 0; j < m.cols; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < m.rank; ++k) {
          sum = std::fma(p[i * m.rank + k], q[j * m.rank + k], sum);
        }
        output[m.at(i, j)] = sum;
      }
    }
    p += m.rows * m.rank;
    q += m.cols * m.rank;
  }
  for (std::size_t i = 0; i < output.size(); ++i) state.error[i] = state.input[i] - output[i];
  bucket.data.device().copy_from_host(bucket.data.data(), output.data(), bucket.data.count());
}

}  // namespace ddproof
