#include "reference/ddp/agreement.h"

#include <algorithm>
#include <array>

#include "backends/api/error.h"
#include "backends/api/text_exchange.h"

namespace ddproof {

void throw_damaged(const ProcessGroup& group, const std::string& what) {
  throw CommError(CommErrorKind::kMismatch,
                  group.who() + " " + what +
                      ": what came from the other ranks was damaged on its way; restart the job "
                      "from its last checkpoint");
}

std::size_t first_odd_rank(const ProcessGroup& group, const std::vector<std::string>& texts,
                           const std::string& what) {
  for (std::size_t odd = 1; odd < texts.size(); ++odd) {
    if (texts[odd] != texts[0]) return odd;
  }
  throw_damaged(group, what);
}

bool all_ranks_have(ProcessGroup& group, const std::string& text, const std::string& label) {
  TextComparison comparison(text);
  group.all_reduce(Buffer::of(comparison.words), ReduceOp::kMax, {.label = label})->wait();
  return comparison.all_equal();
}

std::vector<std::string> gather_texts(ProcessGroup& group, const std::string& text,
                                      const std::string& label) {
  std::array<std::uint64_t, 1> longest{text.size()};
  group.all_reduce(Buffer::of(longest), ReduceOp::kMax, {.label = label + " length"})->wait();
  if (!is_text_width(longest[0], text.size())) throw_damaged(group, label + " length");
  const auto width = static_cast<std::size_t>(longest[0]);
  const std::vector<std::uint8_t> mine = pad_text(text, width);
  std::vector<std::uint8_t> all(width * static_cast<std::size_t>(group.size()));
  group.all_gather(ConstBuffer::of(mine), Buffer::of(all), {.label = label})->wait();
  return split_texts(all, width, group.size());
}

void require_same_settings(ProcessGroup& group, const std::vector<Setting>& settings,
                           const std::string& advice) {
  const std::string label = "settings";
  std::string all;
  for (const Setting& setting : settings) {
    all += std::to_string(setting.value.size()) + ":" + setting.value;
  }
  if (all_ranks_have(group, all, label)) return;
  const std::vector<std::string> texts = gather_texts(group, all, label);
  const std::size_t odd = first_odd_rank(group, texts, label);
  std::string differences;
  for (const Setting& setting : settings) {
    const std::vector<std::string> values = gather_texts(group, setting.value, label);
    if (values[0] == values[odd]) continue;
    differences += (differences.empty() ? "" : ", ") + setting.name + " is " + values[0] +
                   " on rank 0 and " + values[odd] + " on rank " + std::to_string(odd);
  }
  throw ConfigError(group.who() + " settings differ between ranks: " + differences + "; " + advice);
}

std::vector<std::size_t> adopt_from_rank_zero(ProcessGroup& group,
                                              const std::vector<std::size_t>& values) {
  std::vector<std::int64_t> shared(values.begin(), values.end());
  group.broadcast(Buffer::of(shared), 0, {.label = "bucket order"})->wait();
  std::vector<std::size_t> adopted(shared.begin(), shared.end());
  if (!std::ranges::is_permutation(adopted, values)) throw_damaged(group, "bucket order");
  return adopted;
}

RankFlags gather_flags(ProcessGroup& group, const std::vector<std::uint8_t>& flags) {
  std::vector<std::uint8_t> all(flags.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(ConstBuffer::of(flags), Buffer::of(all), {.label = "missing gradients"})->wait();
  RankFlags result;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] == 0) continue;
    if (result.first_rank < 0) {
      result.first_rank = static_cast<int>(i / flags.size());
      result.first_index = i % flags.size();
    }
    ++result.count;
  }
  if (result.first_rank < 0) throw_damaged(group, "missing gradients");
  return result;
}

}  // namespace ddproof
