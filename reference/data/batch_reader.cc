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
  if (options_.workers < 0 || (!listed_ && options_.workers > 1)) {
    throw ConfigError(fmt::format("loader workers {}: expected {}", options_.workers,
                                  listed_ ? "at least 0" : "0 or 1, who read a stream"));
  }
  if (const std::optional<std::int64_t> samples = stream_.length()) {
    batch_count_ = count_batches(*samples, options_);
    if (*batch_count_ == 0) refuse_no_batch(*samples, options_);
  }
  if (options_.prefetch == 0 || options_.workers == 0) return;
  monitor_ = runtime_.make_monitor();
  try {
    for (int i = 0; i < options_.workers; ++i) {
      tasks_.push_back(runtime_.spawn("loader", [this] { read_ahead(); }));
    }
  } catch (...) {
    stop();
    throw;
  }
}

BatchReader::~BatchReader() { stop(); }

void BatchReader::stop() {
  if (tasks_.empty()) return;
  {
    MonitorLock lock(*monitor_);
    stopped_ = true;
    monitor_->notify_all();
  }
  for (const auto& task : tasks_) task->join();
}

// As SampleStream::next(). Requires: in a stream, `place` is where it stands.
std::optional<std::int64_t> BatchReader::read_sample(std::int64_t place, std::span<float> values,
                                                     std::span<std::int64_t> labels) {
  return listed_ ? listed_->read(place, values, labels) : stream_.next(values, labels);
}

// False at the end. Memory is taken as samples come: a batch size may exceed any stream.
bool BatchReader::read(std::int64_t number, HostBatch& batch) {
  const auto sample_count = static_cast<std::size_t>(element_count(stream_.sample_shape()));
  const auto label_count = static_cast<std::size_t>(element_count(stream_.label_shape()));
  std::int64_t count = 0;
  for (; count < options_.batch_size; ++count) {
    const std::size_t begin = static_cast<std::size_t>(count) * sample_count;
    const std::size_t label_begin = static_cast<std::size_t>(count) * label_count;
    const auto values = grown(batch.values, begin, sample_count);
    const auto labels = grown(batch.labels, label_begin, label_count);
    const auto sample = read_sample(number * options_.batch_size + count, values, labels);
    if (!sample) break;
    if (options_.transform) options_.transform(*sample, values);
  }
  batch.size = count;
  batch.values.resize(static_cast<std::size_t>(count) * sample_count);
  batch.labels.resize(static_cast<std::size_t>(count) * label_count);
  const bool is_whole = count == options_.batch_size;
  if (count == 0 || (options_.drop_last && !is_whole)) {
    if (number == 0) refuse_no_batch(count, options_);
    return false;
  }
  return true;
}

// A worker. Never throws: an exception is the consumer's.
void BatchReader::read_ahead() {
  while (true) {
    HostBatch batch;
    const std::optional<std::int64_t> number = begin_batch(batch);
    if (!number) return;
    bool is_there = false;
    std::exception_ptr error;
    try {
      is_there = read(*number, batch);
    } catch (...) {
      error = std::current_exception();
    }
    MonitorLock lock(*monitor_);
    is_there ? void(ready_.emplace(*number, std::move(batch))) : end_at(*number, error);
    monitor_->notify_all();
  }
}

// Waits until another batch may be read; hands out the memory of a used one. Empty: read no more.
std::optional<std::int64_t> BatchReader::begin_batch(HostBatch& batch) {
  MonitorLock lock(*monitor_);
  const std::int64_t limit = std::int64_t{options_.workers} * options_.prefetch;
  const auto is_over = [&] { return stopped_ || (end_ && next_to_read_ >= *end_); };
  while (!is_over() && next_to_read_ - next_to_take_ >= limit) {
    monitor_->wait(kForever, {.what = "the loader's queue is full",
                              .site = CallSite::current(),
                              .idle = true,
                              .is_local = true});
  }
  if (is_over()) return std::nullopt;
  if (!spare_.empty()) {
    batch = std::move(spare_.back());
    spare_.pop_back();
  }
  return next_to_read_++;
}

// Workers may find out about several: the first one counts.
void BatchReader::end_at(std::int64_t number, std::exception_ptr error) {
  if (end_ && *end_ < number) return;
  end_ = number;
  error_ = std::move(error);
}

bool BatchReader::take(HostBatch& batch) {
  MonitorLock lock(*monitor_);
  const auto is_next = [&] { return !ready_.empty() && ready_.begin()->first == next_to_take_; };
  while (!is_next() && !(end_ && *end_ <= next_to_take_)) {
    monitor_->wait(
        kForever,
        {.what = "the loader's next batch", .site = CallSite::current(), .is_local = true});
  }
  if (!is_next()) {
    if (error_) std::rethrow_exception(error_);
    return false;
  }
  std::swap(batch, ready_.begin()->second);
  spare_.push_back(std::move(ready_.begin()->second));
  ready_.erase(ready_.begin());
  ++next_to_take_;
  monitor_->notify_all();
  return true;
}

bool BatchReader::next(HostBatch& batch) {
  if (!tasks_.empty()) return take(batch);
  if (error_) std::rethrow_exception(error_);
  if (end_) return false;
  try {
    if (read(next_to_read_, batch)) {
      ++next_to_read_;
      return true;
    }
    end_at(next_to_read_, nullptr);
    return false;
  } catch (...) {
    end_at(next_to_read_, std::current_exception());
    throw;
  }
}

}  // namespace ddproof
