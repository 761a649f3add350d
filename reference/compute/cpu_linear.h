// The linear layer on the kernels of kernels.h.
//
// Which operand is read in vectors is chosen so that the weights are never transposed:
//   forward     y^T = w x^T     vectors over samples
//   input       dx  = dy w      vectors over inputs
//   parameters  dw += dy^T x    vectors over inputs
#pragma once

#include "reference/compute/aligned_memory.h"
#include "reference/compute/kernels.h"
#include "reference/compute/pack.h"
#include "reference/compute/shapes.h"

namespace ddproof::internal {

template <class T>
void linear_forward(const Kernels<T>& kernels, Workspace<T>& work, const LinearShape& s, const T* x,
                    const T* w, const T* bias, T* y) {
  const std::int64_t panel = kernels.panel_columns;
  const std::int64_t padded = round_up(s.batch, panel);
  T* x_panels = work.b.reserve(padded * s.in);
  T* y_panels = work.c.reserve(padded * s.out);
  pack_transposed(x, s.in, s.batch, s.in, x_panels, panel);
  fill_offsets(work.a_row, s.out, s.in);
  fill_offsets(work.a_depth, s.in, 1);
  fill_offsets(work.b_depth, s.in, panel);
  kernels.multiply({.rows = s.out,
                    .depth = s.in,
                    .columns = s.batch,
                    .a = w,
                    .a_row = work.a_row.data(),
                    .a_depth = work.a_depth.data(),
                    .b = x_panels,
                    .b_depth = work.b_depth.data(),
                    .b_panel = s.in * panel,
                    .c = y_panels,
                    .c_row = panel,
                    .c_panel = s.out * panel,
                    .start = Start::kRowBias,
                    .bias = bias});
  unpack_transposed(y_panels, s.batch, s.out, panel, y, s.out);
}

template <class T>
void linear_backward_input(const Kernels<T>& kernels, Workspace<T>& work, const LinearShape& s,
                           const T* dy, const T* w, T* dx) {
  const std::int64_t panel = kernels.panel_columns;
  T* w_panel = work.b.reserve(s.out * panel);
  fill_offsets(work.a_row, s.batch, s.out);
  fill_offsets(work.a_depth, s.out, 1);
  fill_offsets(work.b_depth, s.out, panel);
  for (std::int64_t i = 0; i < s.in; i += panel) {
    const std::int64_t columns = std::min(panel, s.in - i);
    pack_panel(w + i, s.in, s.out, columns, w_panel, panel);
    kernels.multiply({.rows = s.batch,
                      .depth = s.out,
                      .columns = columns,
                      .a = dy,
                      .a_row = work.a_row.data(),
                      .a_depth = work.a_depth.data(),
                      .b = w_panel,
                      .b_depth = work.b_depth.data(),
                      .c = dx + i,
                      .c_row = s.in,
                      .start = Start::kZero});
  }
}

template <class T>
void linear_backward_parameters(const Kernels<T>& kernels, Workspace<T>& work, const LinearShape& s,
                                const T* dy, const T* x, T* dw, T* dbias) {
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t o = 0; o < s.out; ++o) dbias[o] = dbias[o] + dy[n * s.out + o];
  }
  const std::int64_t panel = kernels.panel_columns;
  T* x_panel = work.b.reserve(s.batch * panel);
  fill_offsets(work.a_row, s.out, 1);
  fill_offsets(work.a_depth, s.batch, s.out);
  fill_offsets(work.b_depth, s.batch, panel);
  for (std::int64_t i = 0; i < s.in; i += panel) {
    const std::int64_t columns = std::min(panel, s.in - i);
    pack_panel(x + i, s.in, s.batch, columns, x_panel, panel);
    kernels.multiply({.rows = s.out,
                      .depth = s.batch,
                      .columns = columns,
                      .a = dy,
                      .a_row = work.a_row.data(),
                      .a_depth = work.a_depth.data(),
                      .b = x_panel,
                      .b_depth = work.b_depth.data(),
                      .c = dw + i,
                      .c_row = s.in,
                      .start = Start::kContinue});
  }
}

}  // namespace ddproof::internal
