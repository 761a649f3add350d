#include "reference/data/batch_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {
namespace {

std::int64_t count_batches(std::int64_t samples, const DataLoaderOptions& options) {
  const std::int64_t full = samples / options.batch_size;
  const bool rest = samples % options.batch_size != 0;
  return rest && !options.drop_last ? full + 1 : full;
}

// `count` elements from `begin` on; the vector grows where it has not got them.
template <class T>
std::span<T> grown(std::vector<T>& all, std::size_t begin, std::size_t count) {
  if (all.size() < begin + count) all.resize(begin + count);
  return std::span<T>(all).subspan(begin, count);
}

[[noreturn]] void refuse_no_batch(std::int64_t samples, const DataLoaderOptions& options) {
  throw ConfigError(fmt::format(
      "loader: 0 batches from {} samples of this rank with batch size {}{}; use more data, fewer "
      "ranks or a smaller batch",
      samples, options.batch_size, options.drop_last ? " and drop_last" : ""));
}

}  // namespace

BatchReader::BatchReader(Runtime& runtime, const Dataset& dataset, IndexList indices,
                         const DataLoaderOptions& options)
    : runtime_(runtime),
      listed_(std::make_unique<ListedSamples>(dataset, std::move(indices))),
      stream_(*listed_),
      options_(options) {
  check_and_start();
}

BatchReader::BatchReader(Runtime& runtime, SampleStream& stream, const DataLoaderOptions& options)
    : runtime_(runtime), stream_(stream), options_(options) {
  check_and_start();
}

void BatchReader::check_and_start() {
  if (options_.batch_size < 1) {
    throw ConfigError(
        fmt::format("loader batch size {}: expected at least 1", options_.batch_size));
  }
  if (options_.prefetch < 0) {
    throw ConfigError(fmt::format("loader prefetch {}: expected at least 0", options_.prefetch));
  }
  if (const std::optional<std::int64_t> samples = stream_.length()) {
    batch_count_ = count_batches(*samples, options_);
    if (*batch_count_ == 0) refuse_no_batch(*samples, options_);
  }
  if (options_.prefetch == 0) return;
  monitor_ = runtime_.make_monitor();
  task_ = runtime_.spawn("loader", [this] { read_ahead(); });
}

BatchReader::~BatchReader() {
  if (!task_) return;
  {
    MonitorLock lock(*monitor_);
    stopped_ = true;
    monitor_->notify_all();
  }
  task_->join();
}

// False at the end. Memory is taken as samples come: a batch size may exceed any stream.
bool BatchReader::read(HostBatch& batch) {
  const auto sample_count = static_cast<std::size_t>(element_count(stream_.sample_shape()));
  const auto label_count = static_cast<std::size_t>(element_count(stream_.label_shape()));
  std::int64_t count = 0;
  for (; count < options_.batch_size; ++count) {
    const std::size_t begin = static_cast<std::size_t>(count) * sample_count;
    const std::size_t label_begin = static_cast<std::size_t>(count) * label_count;
    const auto values = grown(batch.values, begin, sample_count);
    const auto labels = grown(batch.labels, label_begin, label_count);
    const std::optional<std::int64_t> number = stream_.next(values, labels);
    if (!number) break;
    if (options_.transform) options_.transform(*number, values);
  }
  batch.size = count;
  batch.values.resize(static_cast<std::size_t>(count) * sample_count);
  batch.labels.resize(static_cast<std::size_t>(count) * label_count);
  const bool is_whole = count == options_.batch_size;
  if (count == 0 || (options_.drop_last && !is_whole)) {
    if (batches_read_ == 0) refuse_no_batch(count, options_);
    return false;
  }
  ++batches_read_;
  return true;
}

// The task. Never throws: an exception is the consumer's.
void BatchReader::read_ahead() {
  std::exception_ptr error;
  try {
    while (true) {
      HostBatch batch;
      if (!make_room(batch)) return;
      if (!read(batch)) break;
      MonitorLock lock(*monitor_);
      ready_.push_back(std::move(batch));
      monitor_->notify_all();
    }
  } catch (...) {
    error = std::current_exception();
  }
  MonitorLock lock(*monitor_);
  error_ = error;
  ended_ = true;
  monitor_->notify_all();
}

// Waits until another batch may be read; hands out the memory of a used one. False: stop.
bool BatchReader::make_room(HostBatch& batch) {
  MonitorLock lock(*monitor_);
  const auto limit = static_cast<std::size_t>(options_.prefetch);
  while (!stopped_ && ready_.size() >= limit) {
    monitor_->wait(kForever, {.what = "the loader's queue is full",
                              .site = CallSite::current(),
                              .idle = true,
                              .is_local = true});
  }
  if (!stopped_ && !spare_.empty()) {
    batch = std::move(spare_.back());
    spare_.pop_back();
  }
  return !stopped_;
}

bool BatchReader::take(HostBatch& batch) {
  MonitorLock lock(*monitor_);
  while (ready_.empty() && !ended_) {
    monitor_->wait(
        kForever,
        {.what = "the loader's next batch", .site = CallSite::current(), .is_local = true});
  }
  if (ready_.empty()) {
    if (error_) std::rethrow_exception(error_);
    return false;
  }
  std::swap(batch, ready_.front());
  spare_.push_back(std::move(ready_.front()));
  ready_.pop_front();
  monitor_->notify_all();
  return true;
}

bool BatchReader::next(HostBatch& batch) {
  if (task_) return take(batch);
  if (error_) std::rethrow_exception(error_);
  if (ended_) return false;
  try {
    ended_ = !read(batch);
  } catch (...) {
    error_ = std::current_exception();
    throw;
  }
  return !ended_;
}

}  // namespace ddproof
