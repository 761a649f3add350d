// Simulated ranks with Gloo contexts over them: what the tests of the transport share.
#pragma once

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/common/error.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/scatter.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/api/digest.h"
#include "backends/api/error.h"
#include "backends/sim/sim_connection.h"
#include "backends/sim/transport.h"

namespace ddproof {

using ContextPtr = std::shared_ptr<gloo::Context>;
using std::chrono::milliseconds;

struct Setting {
  int ranks = 2;
  std::uint64_t seed = 0;
  sim::Time jitter = 0;
  milliseconds timeout = kGlooForever;
  bool timeouts_end_deadlocks = false;
  sim::FaultHook* faults = nullptr;
};

// Runs `body(context)` on every rank, each with a connected context of Gloo.
class World {
 public:
  explicit World(const Setting& setting)
      : setting_(setting),
        simulation({.ranks = setting.ranks,
                    .seed = setting.seed,
                    .patience_runs_out = setting.timeouts_end_deadlocks,
                    .scheduler = &scheduler_,
                    .faults = setting.faults}),
        network_(simulation, {.jitter_max = setting.jitter}),
        fabric(simulation, network_) {}

  sim::Report run(const std::function<void(const ContextPtr&)>& body) {
    std::vector<int> everybody;
    for (int rank = 0; rank < setting_.ranks; ++rank) everybody.push_back(rank);
    Group& group = fabric.group(0, "world", everybody);
    for (int rank = 0; rank < setting_.ranks; ++rank) {
      simulation.spawn(rank, "main", [&, rank] {
        const ContextPtr context = make_gloo_context(group.endpoints[rank]);
        context->setTimeout(setting_.timeout);
        body(context);
      });
    }
    return simulation.run();
  }

 private:
  Setting setting_;
  sim::RandomWalk scheduler_;

 public:
  sim::Simulation simulation;

 private:
  sim::Network network_;

 public:
  Fabric fabric;
};

// Rank r's element i; sums of 64 of them are exact.
inline float input(int rank, std::size_t i) { return static_cast<float>((rank * 7 + i * 3) % 64); }

inline std::vector<float> inputs(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = input(rank, i);
  return values;
}

inline std::vector<float> exact_sum(int ranks, std::size_t count) {
  std::vector<float> values(count, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < count; ++i) values[i] += input(rank, i);
  }
  return values;
}

inline void all_reduce(const ContextPtr& context, std::vector<float>& values,
                       gloo::AllreduceOptions::Algorithm algorithm) {
  gloo::AllreduceOptions options(context);
  options.setAlgorithm(algorithm);
  options.setOutput(values.data(), values.size());
  options.setMaxSegmentSize(256);  // several segments already at small sizes
  options.setReduceFunction(
      static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
  gloo::allreduce(options);
}

inline void barrier(const ContextPtr& context) {
  gloo::BarrierOptions options(context);
  gloo::barrier(options);
}

inline void expect_all_returned(const sim::Report& report) {
  for (const sim::RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.outcome, sim::RankOutcome::kReturned);
    if (rank.error) std::rethrow_exception(rank.error);
  }
}

inline std::string what_of(const sim::RankReport& report) {
  if (!report.error) return "";
  try {
    std::rethrow_exception(report.error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

// One message of 4 bytes.
inline void send_one(const ContextPtr& context, int peer, std::uint64_t slot, int value) {
  const auto buffer = context->createUnboundBuffer(&value, sizeof value);
  buffer->send(peer, slot);
  buffer->waitSend(context->getTimeout());
}

inline int receive_one(const ContextPtr& context, int peer, std::uint64_t slot) {
  int value = -1;
  const auto buffer = context->createUnboundBuffer(&value, sizeof value);
  buffer->recv(peer, slot);
  buffer->waitRecv(context->getTimeout());
  return value;
}

}  // namespace ddproof
