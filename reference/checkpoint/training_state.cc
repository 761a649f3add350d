#include "reference/checkpoint/training_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <string_view>

#include "backends/api/check.h"
#include "backends/api/digest.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

constexpr std::string_view kVersionKey = "ddproof.version";
constexpr std::uint64_t kVersion = 3;
constexpr std::string_view kStepKey = "ddproof.step";
constexpr std::string_view kEpochKey = "ddproof.epoch";
constexpr std::string_view kPositionKey = "ddproof.position";
constexpr std::string_view kSeedKey = "ddproof.seed";
constexpr std::string_view kDataKey = "ddproof.data";
// These two are absent for what there was first, so that its files stay what they were.
constexpr std::string_view kOptimizerKey = "ddproof.optimizer";
constexpr std::string_view kFirstOptimizer = "sgd";
constexpr std::string_view kScheduleKey = "ddproof.lr_schedule";
constexpr std::string_view kOrderKey = "ddproof.gradient_order";
constexpr std::string_view kChecksumKey = "ddproof.xxh3";
// As it stands in the header; the quotes cannot come from a name, where they would be escaped.
constexpr std::string_view kChecksumText = "\"ddproof.xxh3\":\"";
constexpr std::string_view kNoChecksum = "0000000000000000";

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw DataError(fmt::format("{}: {}", path, what));
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Where the checksum's digits stand in the file; npos when they do not.
std::size_t checksum_place(std::span<const std::byte> bytes) {
  const std::size_t found = as_text(bytes).find(kChecksumText);
  return found == std::string_view::npos ? found : found + kChecksumText.size();
}

// Of the file with zeros for the digits at `place`.
std::string checksum_of(std::vector<std::byte> bytes, std::size_t place) {
  std::transform(kNoChecksum.begin(), kNoChecksum.end(), bytes.begin() + place,
                 [](char digit) { return static_cast<std::byte>(digit); });
  return fmt::format("{:016x}", digest_of(bytes));
}

const std::string& text(const Safetensors& file, std::string_view key) {
  const auto found = file.metadata().find(std::string(key));
  if (found == file.metadata().end()) {
    fail(file.path(), fmt::format("no metadata {}; expected a ddproof checkpoint", key));
  }
  return found->second;
}

template <class Number>
Number parse(const Safetensors& file, std::string_view key, std::string_view digits) {
  Number value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < Number{0}) {
    fail(file.path(), fmt::format("metadata {} is '{}', expected a number", key, digits));
  }
  return value;
}

template <class Number>
Number number(const Safetensors& file, std::string_view key) {
  return parse<Number>(file, key, text(file, key));
}

// "2,0,1".
std::vector<std::size_t> numbers(const Safetensors& file, std::string_view key) {
  std::vector<std::size_t> values;
  std::string_view rest = text(file, key);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    values.push_back(parse<std::size_t>(file, key, rest.substr(0, comma)));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return values;
}

}  // namespace

TrainingProgress read_progress(const Safetensors& file) {
  TrainingProgress progress;
  progress.step = number<std::int64_t>(file, kStepKey);
  progress.epoch = number<std::int64_t>(file, kEpochKey);
  progress.position = number<std::int64_t>(file, kPositionKey);
  progress.seed = number<std::uint64_t>(file, kSeedKey);
  progress.data = text(file, kDataKey);
  if (file.metadata().contains(std::string(kScheduleKey))) {
    progress.lr_schedule = text(file, kScheduleKey);
  }
  progress.gradient_order = numbers(file, kOrderKey);
  return progress;
}

Safetensors verify_state(const std::string& path, std::vector<std::byte> bytes) {
  Safetensors file = Safetensors::decode(path, std::move(bytes));
  const auto stored = file.metadata().find(std::string(kChecksumKey));
  const std::size_t place = checksum_place(file.bytes());
  if (stored == file.metadata().end() || stored->second.size() != kNoChecksum.size() ||
      place == std::string_view::npos) {
    fail(path, fmt::format("no metadata {}; expected a ddproof checkpoint", kChecksumKey));
  }
  const std::string actual =
      checksum_of(std::vector(file.bytes().begin(), file.bytes().end()), place);
  if (actual != stored->second) {
    fail(path,
         fmt::format("checksum {}, expected {}; the file is damaged", actual, stored->second));
  }
  if (const auto version = number<std::uint64_t>(file, kVersionKey); version != kVersion) {
    fail(path, fmt::format("checkpoint version {}, expected {}", version, kVersion));
  }
  read_progress(file);
  return file;
}

namespace internal {

std::vector<std::byte> encode_state(const TrainingProgress& progress, std::string_view optimizer,
                                    const std::vector<NamedTensor>& tensors) {
  Metadata metadata;
  metadata["format"] = "pt";  // what loaders of safetensors ask for
  metadata[std::string(kVersionKey)] = std::to_string(kVersion);
  metadata[std::string(kStepKey)] = std::to_string(progress.step);
  metadata[std::string(kEpochKey)] = std::to_string(progress.epoch);
  metadata[std::string(kPositionKey)] = std::to_string(progress.position);
  metadata[std::string(kSeedKey)] = std::to_string(progress.seed);
  metadata[std::string(kDataKey)] = progress.data;
  if (optimizer != kFirstOptimizer) metadata[std::string(kOptimizerKey)] = optimizer;
  if (progress.lr_schedule != TrainingProgress().lr_schedule) {
    metadata[std::string(kScheduleKey)] = progress.lr_schedule;
  }
  metadata[std::string(kOrderKey)] = fmt::format("{}", fmt::join(progress.gradient_order, ","));
  metadata[std::string(kChecksumKey)] = kNoChecksum;
  std::vector<TensorView> views;
  for (const NamedTensor& tensor : tensors) {
    views.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  }
  std::vector<std::byte> bytes = encode_safetensors(metadata, views);
  const std::size_t place = checksum_place(bytes);
  DDPROOF_CHECK(place != std::string_view::npos);
  const std::string checksum = checksum_of(bytes, place);
  std::transform(checksum.begin(), checksum.end(), bytes.begin() + place,
                 [](char digit) { return static_cast<std::byte>(digit); });
  return bytes;
}

NamedTensor encode_updates(const std::string& parameter, std::int64_t updates) {
  NamedTensor tensor{state_name(kUpdates, parameter), safetensors_dtype(DType::kInt64), {}, {}};
  tensor.bytes.resize(sizeof(updates));
  std::memcpy(tensor.bytes.data(), &updates, sizeof(updates));
  return tensor;
}

std::int64_t read_updates(const Safetensors& file, const std::string& parameter) {
  const std::string name = state_name(kUpdates, parameter);
  const TensorView* view = find_checked(file, name, safetensors_dtype(DType::kInt64), {});
  DDPROOF_CHECK(view != nullptr);
  std::int64_t updates = 0;
  std::memcpy(&updates, view->bytes.data(), sizeof(updates));
  if (updates < 1) {
    fail(file.path(), fmt::format("tensor {} is {}, expected at least 1", name, updates));
  }
  return updates;
}

void check_optimizer(const Safetensors& file, std::string_view optimizer) {
  const auto found = file.metadata().find(std::string(kOptimizerKey));
  const std::string_view stored =
      found == file.metadata().end() ? kFirstOptimizer : std::string_view(found->second);
  if (stored == optimizer) return;
  fail(file.path(), fmt::format("it was made with the optimizer {}, this run has {}; resume with "
                                "the same optimizer",
                                stored, optimizer));
}

void check_gradient_order(const std::string& path, const std::vector<std::size_t>& order,
                          std::size_t parameters) {
  if (order.empty()) return;
  std::vector<std::size_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool is_permutation = sorted.size() == parameters;
  for (std::size_t i = 0; i < sorted.size(); ++i) is_permutation &= sorted[i] == i;
  if (is_permutation) return;
  fail(path, fmt::format("metadata {} is '{}', expected each of 0 to {} once", kOrderKey,
                         fmt::join(order, ","), parameters - 1));
}

const TensorView* find_checked(const Safetensors& file, const std::string& name,
                               const std::string& dtype, const Shape& shape) {
  const TensorView* view = file.find(name);
  if (view == nullptr) return nullptr;
  if (view->dtype != dtype || view->shape != shape) {
    fail(file.path(),
         fmt::format("tensor {} is {} [{}], expected {} [{}] as in the model", name, view->dtype,
                     fmt::join(view->shape, ", "), dtype, fmt::join(shape, ", ")));
  }
  return view;
}

void check_names(const Safetensors& file, const std::vector<std::string>& parameters,
                 const std::vector<std::string>& buffers, const StateLayout& layout) {
  std::set<std::string> known;
  for (const std::string& name : buffers) {
    if (file.find(name) == nullptr) {
      fail(file.path(), fmt::format("no tensor {}, expected every buffer of the model", name));
    }
    known.insert(name);
  }
  for (const std::string& name : parameters) {
    if (file.find(name) == nullptr) {
      fail(file.path(), fmt::format("no tensor {}, expected every parameter of the model", name));
    }
    known.insert(name);
    for (const std::string& tensor : layout.tensors) known.insert(state_name(tensor, name));
    if (layout.counts_updates) known.insert(state_name(kUpdates, name));
  }
  for (const TensorView& tensor : file.tensors()) {
    if (known.count(tensor.name) == 0) {
      fail(file.path(), fmt::format("tensor {} is not in the model", tensor.name));
    }
  }
}

std::vector<const TensorView*> find_state(const Safetensors& file, const StateLayout& layout,
                                          const std::string& parameter, const std::string& dtype,
                                          const Shape& shape) {
  std::vector<const TensorView*> found;
  std::string missing;
  for (const std::string& tensor : layout.tensors) {
    const std::string name = state_name(tensor, parameter);
    const TensorView* view = find_checked(file, name, dtype, shape);
    if (view == nullptr) missing = name;
    if (view != nullptr) found.push_back(view);
  }
  const std::string updates = state_name(kUpdates, parameter);
  const bool has_updates = layout.counts_updates && file.find(updates) != nullptr;
  if (layout.counts_updates && !has_updates) missing = updates;
  if (missing.empty() || (found.empty() && !has_updates)) return found;
  fail(file.path(), fmt::format("no tensor {}, but others of the optimizer's state", missing));
}

}  // namespace internal
}  // namespace ddproof
