// The one inner product that linear and convolution layers are made of, on a CUDA device:
//
//   C[i][j] = start(i, j) + sum over k ascending of a(i, k) * b(k, j)
//
// as one chain of fused multiply-adds per element, which one thread computes: so the bits are
// those of kernels.h. Blocks of threads go through k in steps, and share what a step reads.
//
// A Layer (layers.h) says what a, b, start and C are:
//   rows(), columns(), depth()        below 2^31
//   a(i, k), b(k, j), start(i, j), store(i, j, value)
//   kDepthFirstA, kDepthFirstB        whether neighbours in memory are neighbours in k
//
// Blocking as in Goto, van de Geijn, "Anatomy of High-Performance Matrix Multiplication", ACM TOMS
// 34(3), 2008, with shared memory for the cache and registers for the tile.
#pragma once

#include <cstdint>

#include "reference/compute/host_device.h"
#include "reference/compute/scalar.h"

namespace ddproof::internal {

template <class Layer>
struct ProductKernel {
  using T = typename Layer::Scalar;
  static constexpr const char* kName = Layer::kName;
  static constexpr int kTile = 64;                  // rows and columns of C of a block
  static constexpr int kStep = 16;                  // of k at once
  static constexpr int kRows = 4, kColumns = 8;     // of C, of a thread
  static constexpr int kAcross = kTile / kColumns;  // threads
  static constexpr int kThreads = kTile / kRows * kAcross;

  struct Shared {
    T a[kStep][kTile];
    T b[kStep][kTile];
  };
  struct Registers {
    T sum[kRows][kColumns];
  };

  Layer layer;

  std::int64_t blocks() const {
    return (layer.rows() + kTile - 1) / kTile * ((layer.columns() + kTile - 1) / kTile);
  }
  template <class See>
  void operands(See see) const {
    layer.operands(see);
  }

  template <class Threads>
  DDPROOF_HOST_DEVICE void block(std::int64_t index, Shared& shared, Threads& threads) const {
    const std::int64_t tiles_across = (layer.columns() + kTile - 1) / kTile;
    const std::int64_t row0 = index / tiles_across * kTile;
    const std::int64_t column0 = index % tiles_across * kTile;
    const std::int64_t depth = layer.depth();
    threads.each([&](int thread, Registers& mine) { begin(row0, column0, thread, mine); });
    for (std::int64_t k0 = 0; k0 < depth; k0 += kStep) {
      const int step = static_cast<int>(depth - k0 < kStep ? depth - k0 : kStep);
      threads.each([&](int thread, Registers&) { load(row0, column0, k0, step, thread, shared); });
      threads.each([&](int thread, Registers& mine) {
        if (has_work(row0, column0, thread)) multiply(shared, step, thread, mine);
      });
    }
    threads.each([&](int thread, Registers& mine) { store(row0, column0, thread, mine); });
  }

 private:
  DDPROOF_HOST_DEVICE static int row_of(int thread) { return thread / kAcross * kRows; }
  DDPROOF_HOST_DEVICE static int column_of(int thread) { return thread % kAcross * kColumns; }

  // Whether any of the thread's elements is in C.
  DDPROOF_HOST_DEVICE bool has_work(std::int64_t row0, std::int64_t column0, int thread) const {
    return row0 + row_of(thread) < layer.rows() && column0 + column_of(thread) < layer.columns();
  }

  DDPROOF_HOST_DEVICE void begin(std::int64_t row0, std::int64_t column0, int thread,
                                 Registers& mine) const {
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kColumns; ++c) {
        const std::int64_t i = row0 + row_of(thread) + r, j = column0 + column_of(thread) + c;
        mine.sum[r][c] = i < layer.rows() && j < layer.columns() ? layer.start(i, j) : T{};
      }
    }
  }

  // Places outside of the matrices get zeros, which no element of C meets.
  DDPROOF_HOST_DEVICE void load(std::int64_t row0, std::int64_t column0, std::int64_t k0, int step,
                                int thread, Shared& shared) const {
    for (int at = thread; at < kStep * kTile; at += kThreads) {
      const int k = Layer::kDepthFirstA ? at % kStep : at / kTile;
      const int r = Layer::kDepthFirstA ? at / kStep : at % kTile;
      const std::int64_t i = row0 + r;
      shared.a[k][r] = k < step && i < layer.rows() ? layer.a(i, k0 + k) : T{};
    }
    for (int at = thread; at < kStep * kTile; at += kThreads) {
      const int k = Layer::kDepthFirstB ? at % kStep : at / kTile;
      const int c = Layer::kDepthFirstB ? at / kStep : at % kTile;
      const std::int64_t j = column0 + c;
      shared.b[k][c] = k < step && j < layer.columns() ? layer.b(k0 + k, j) : T{};
    }
  }

  DDPROOF_HOST_DEVICE static void multiply(const Shared& shared, int step, int thread,
                                           Registers& mine) {
    Registers local = mine;
    const int row = row_of(thread), column = column_of(thread);
    for (int k = 0; k < step; ++k) {
      for (int r = 0; r < kRows; ++r) {
        for (int c = 0; c < kColumns; ++c) {
          local.sum[r][c] =
              multiply_add(shared.a[k][row + r], shared.b[k][column + c], local.sum[r][c]);
        }
      }
    }
    mine = local;
  }

  DDPROOF_HOST_DEVICE void store(std::int64_t row0, std::int64_t column0, int thread,
                                 const Registers& mine) const {
    for (int r = 0; r < kRows; ++r) {
      for (int c = 0; c < kColumns; ++c) {
        const std::int64_t i = row0 + row_of(thread) + r, j = column0 + column_of(thread) + c;
        if (i < layer.rows() && j < layer.columns()) layer.store(i, j, mine.sum[r][c]);
      }
    }
  }
};

}  // namespace ddproof::internal
