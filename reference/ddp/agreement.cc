#include "reference/ddp/agreement.h"

#include <array>

#include "backends/api/check.h"
#include "backends/api/text_exchange.h"

namespace ddproof {

namespace {

// The first rank whose text is not rank 0's. Requires: there is one.
std::size_t first_odd_rank(const std::vector<std::string>& texts) {
  std::size_t odd = 1;
  while (texts[odd] == texts[0]) ++odd;
  return odd;
}

}  // namespace

bool all_ranks_have(ProcessGroup& group, const std::string& text, const std::string& label) {
  TextComparison comparison(text);
  group.all_reduce(Buffer::of(comparison.words), ReduceOp::kMax, {.label = label})->wait();
  return comparison.all_equal();
}

std::vector<std::string> gather_texts(ProcessGroup& group, const std::string& text,
                                      const std::string& label) {
  std::array<std::int64_t, 1> longest{static_cast<std::int64_t>(text.size())};
  group.all_reduce(Buffer::of(longest), ReduceOp::kMax, {.label = label + " length"})->wait();
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
  const std::size_t odd = first_odd_rank(texts);
  std::string differences;
  for (const Setting& setting : settings) {
    const std::vector<std::string> values = gather_texts(group, setting.value, label);
    if (values[0] == values[odd]) continue;
    differences += (differences.empty() ? "" : ", ") + setting.name + " is " + values[0] +
                   " on rank 0 and " + values[odd] + " on rank " + std::to_string(odd);
  }
  throw ConfigError(group.who() + " settings differ between ranks: " + differences + "; " + advice);
}

void require_same_text(ProcessGroup& group, const std::string& what, const std::string& text,
                       const std::string& advice) {
  if (all_ranks_have(group, text, what)) return;
  const std::vector<std::string> texts = gather_texts(group, text, what);
  const std::size_t odd = first_odd_rank(texts);
  throw ConfigError(group.who() + " " + what + " differs between ranks: rank 0 has " + texts[0] +
                    ", rank " + std::to_string(odd) + " has " + texts[odd] + "; " + advice);
}

std::vector<std::size_t> adopt_from_rank_zero(ProcessGroup& group,
                                              const std::vector<std::size_t>& values) {
  std::vector<std::int64_t> shared(values.begin(), values.end());
  group.broadcast(Buffer::of(shared), 0, {.label = "bucket order"})->wait();
  return {shared.begin(), shared.end()};
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
  DDPROOF_CHECK(result.first_rank >= 0);
  return result;
}

}  // namespace ddproof
