#include "reference/data/batch_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {
namespace {

std::int64_t checked_batch_count(const Dataset& dataset, const IndexList& indices,
                                 const DataLoaderOptions& options) {
  if (options.batch_size < 1) {
    throw ConfigError(fmt::format("loader batch size {}: expected at least 1", options.batch_size));
  }
  if (options.prefetch < 0) {
    throw ConfigError(fmt::format("loader prefetch {}: expected at least 0", options.prefetch));
  }
  for (std::int64_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= dataset.size()) {
      throw ConfigError(fmt::format(
          "loader: sample {} of a data set of {}; give the sampler the data set's length",
          indices[i], dataset.size()));
    }
  }
  const std::int64_t full = indices.size() / options.batch_size;
  const bool rest = indices.size() % options.batch_size != 0;
  const std::int64_t count = rest && !options.drop_last ? full + 1 : full;
  if (count == 0) {
    throw ConfigError(fmt::format(
        "loader: 0 batches from {} samples of this rank with batch size {}{}; use more data, fewer "
        "ranks or a smaller batch",
        indices.size(), options.batch_size, options.drop_last ? " and drop_last" : ""));
  }
  return count;
}

}  // namespace

BatchReader::BatchReader(Runtime& runtime, const Dataset& dataset, IndexList indices,
                         const DataLoaderOptions& options)
    : runtime_(runtime),
      dataset_(dataset),
      indices_(std::move(indices)),
      options_(options),
      batch_count_(checked_batch_count(dataset, indices_, options)) {
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

void BatchReader::read(std::int64_t number, HostBatch& batch) const {
  const auto sample_count = static_cast<std::size_t>(element_count(dataset_.sample_shape()));
  const std::int64_t begin = number * options_.batch_size;
  const auto count =
      static_cast<std::size_t>(std::min(options_.batch_size, indices_.size() - begin));
  batch.values.resize(count * sample_count);
  batch.labels.resize(count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::span<float> values(batch.values.data() + k * sample_count, sample_count);
    const std::int64_t index = indices_[begin + static_cast<std::int64_t>(k)];
    batch.labels[k] = dataset_.read(index, values);
    if (options_.transform) options_.transform(index, values);
  }
}

// The task. Never throws: an exception is the consumer's.
void BatchReader::read_ahead() {
  std::exception_ptr error;
  try {
    for (std::int64_t number = 0; number < batch_count_; ++number) {
      HostBatch batch;
      if (!make_room(batch)) return;
      read(number, batch);
      MonitorLock lock(*monitor_);
      ready_.push_back(std::move(batch));
      monitor_->notify_all();
    }
  } catch (...) {
    error = std::current_exception();
  }
  MonitorLock lock(*monitor_);
  error_ = error;
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

void BatchReader::take(HostBatch& batch) {
  MonitorLock lock(*monitor_);
  while (ready_.empty() && !error_) {
    monitor_->wait(
        kForever,
        {.what = "the loader's next batch", .site = CallSite::current(), .is_local = true});
  }
  if (ready_.empty()) std::rethrow_exception(error_);
  std::swap(batch, ready_.front());
  spare_.push_back(std::move(ready_.front()));
  ready_.pop_front();
  monitor_->notify_all();
}

bool BatchReader::next(HostBatch& batch) {
  if (next_batch_ == batch_count_) return false;
  if (task_) {
    take(batch);
  } else {
    read(next_batch_, batch);
  }
  ++next_batch_;
  return true;
}

}  // namespace ddproof
