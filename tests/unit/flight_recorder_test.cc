// The last calls of each rank, in the form of PyTorch's flight recorder.
#include "backends/recorder/flight_recorder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "backends/registry/simulated_world.h"

namespace ddproof {
namespace {

using nlohmann::json;

constexpr CallSite kSite{"train.py", 88, "step"};

// The dumps of two ranks that do `body`; whatever comes of it.
std::vector<json> dumps_of(const std::function<void(RankContext&)>& body, bool checked = true,
                           int ranks = 2) {
  std::vector<FlightRecorder> recorders(static_cast<std::size_t>(ranks));
  run_simulated_world({.world = {.world_size = ranks, .checked = checked}}, body, &recorders);
  std::vector<json> dumps;
  for (const FlightRecorder& recorder : recorders) dumps.push_back(json::parse(recorder.to_json()));
  return dumps;
}

void all_reduce_and_send(RankContext& rank) {
  std::vector<float> data(6);
  const std::vector<std::int64_t> sizes{2, 3};
  rank.group
      .all_reduce(Buffer(data.data(), DType::kFloat32, Layout::row_major(sizes)), ReduceOp::kSum,
                  {.timeout = std::chrono::minutes(10)}, kSite)
      ->wait();
  const Buffer one = Buffer::of(std::span(data).first(1));
  if (rank.group.rank() == 0) rank.group.send(one, 1, 0, {}, kSite)->wait();
  if (rank.group.rank() == 1) rank.group.recv(one, 0, 0, {}, kSite)->wait();
}

TEST(FlightRecorder, HasTheFieldsOfPyTorch) {
  const std::vector<json> dumps = dumps_of(all_reduce_and_send);
  EXPECT_EQ(dumps[1].at("version"), "2.4");
  EXPECT_EQ(dumps[1].at("pg_config").at("0"),
            (json{{"name", "0"}, {"desc", "default_pg"}, {"ranks", "[0,1]"}}));
  EXPECT_EQ(dumps[1].at("pg_status").at("0"), (json{{"last_enqueued_collective", 1},
                                                    {"last_started_collective", 1},
                                                    {"last_completed_collective", 1}}));
  json first = dumps[0].at("entries").at(0);
  EXPECT_GT(first.at("time_discovered_completed_ns"), first.at("time_created_ns"));
  EXPECT_GT(first.at("duration_ms"), 0);
  first.erase("time_discovered_completed_ns");
  first.erase("duration_ms");
  EXPECT_EQ(first,
            (json{{"record_id", 0},
                  {"pg_id", 0},
                  {"process_group", {"0", "default_pg"}},
                  {"collective_seq_id", 1},
                  {"p2p_seq_id", 0},
                  {"op_id", 1},
                  {"profiling_name", "sim:all_reduce"},
                  {"time_created_ns", 0},
                  {"input_sizes", {{2, 3}}},
                  {"input_dtypes", {"Float"}},
                  {"output_sizes", {{2, 3}}},
                  {"output_dtypes", {"Float"}},
                  {"state", "completed"},
                  {"time_discovered_started_ns", 0},
                  {"retired", true},
                  {"timeout_ms", 600'000},
                  {"is_p2p", false},
                  {"frames", {{{"name", "step"}, {"filename", "train.py"}, {"line", 88}}}}}));
}

TEST(FlightRecorder, TellsSendsAndReceivesApart) {
  const std::vector<json> dumps = dumps_of(all_reduce_and_send);
  const json send = dumps[0].at("entries").at(1), receive = dumps[1].at("entries").at(1);
  EXPECT_EQ(send.at("profiling_name"), "sim:send 0->1");
  EXPECT_EQ(receive.at("profiling_name"), "sim:recv 1<-0");
  EXPECT_EQ(send.at("p2p_seq_id"), 1);
  EXPECT_EQ(send.at("is_p2p"), true);
  EXPECT_EQ(send.at("input_sizes"), (json{{1}}));
  EXPECT_EQ(send.at("output_sizes"), json::array());
  EXPECT_EQ(receive.at("input_dtypes"), json::array());
}

TEST(FlightRecorder, TellsWhatIsUnderWayAndWhatIsBehindIt) {
  for (const bool checked : {true, false}) {
    const std::vector<json> dumps = dumps_of(
        [](RankContext& rank) {
          rank.group.barrier({}, kSite)->wait();
          if (rank.group.rank() == 0) return;
          const WorkPtr first = rank.group.barrier({}, kSite);
          rank.group.barrier({}, kSite);
          first->wait();
        },
        checked);
    const json& entries = dumps[1].at("entries");
    ASSERT_EQ(entries.size(), 3u);
    EXPECT_EQ(entries.at(0).at("state"), "completed");
    EXPECT_EQ(entries.at(1).at("state"), "started");
    EXPECT_EQ(entries.at(2).at("state"), "scheduled");
    EXPECT_EQ(entries.at(1).at("retired"), false);
    EXPECT_TRUE(entries.at(1).at("time_discovered_completed_ns").is_null());
    EXPECT_TRUE(entries.at(2).at("time_discovered_started_ns").is_null());
    EXPECT_EQ(dumps[1].at("pg_status").at("0"), (json{{"last_enqueued_collective", 3},
                                                      {"last_started_collective", 2},
                                                      {"last_completed_collective", 1}}));
    EXPECT_EQ(dumps[0].at("entries").size(), 1u);
  }
}

TEST(FlightRecorder, KeepsTheCallsOfPartsApart) {
  const std::vector<json> dumps = dumps_of(
      [](RankContext& rank) {
        const auto half = rank.group.split(rank.group.rank() / 2, 0);
        half->barrier({}, kSite)->wait();
        rank.group.barrier({}, kSite)->wait();
      },
      true, 4);
  const json& entries = dumps[3].at("entries");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries.at(0).at("process_group"), (json{"1.1", "undefined"}));
  EXPECT_EQ(entries.at(1).at("process_group"), (json{"0", "default_pg"}));
  EXPECT_EQ(entries.at(0).at("pg_id"), 0);
  EXPECT_EQ(entries.at(1).at("pg_id"), 1);
  EXPECT_EQ(entries.at(1).at("collective_seq_id"), 1);
}

TEST(FlightRecorder, SaysTheSameInEveryRunAndChangesNone) {
  EXPECT_EQ(dumps_of(all_reduce_and_send), dumps_of(all_reduce_and_send));
  std::vector<FlightRecorder> recorders(2);
  const SimWorldOptions options{.world = {.world_size = 2}};
  EXPECT_EQ(run_simulated_world(options, all_reduce_and_send, &recorders).digest,
            run_simulated_world(options, all_reduce_and_send).digest);
}

TEST(FlightRecorder, ShowsTheCallThatIsNotDoneAndTheOneBeforeIt) {
  std::vector<FlightRecorder> recorders(2);
  run_simulated_world(
      {.world = {.world_size = 2}},
      [](RankContext& rank) {
        rank.group.barrier({}, kSite)->wait();
        if (rank.group.rank() == 0) return;
        const WorkPtr second = rank.group.barrier({}, kSite);
        for (int i = 0; i < 3; ++i) rank.group.barrier({}, kSite);
        second->wait();
      },
      &recorders);
  EXPECT_EQ(recorders[1].last_calls(2),
            (std::vector<std::string>{"barrier #1 at train.py:88: completed",
                                      "barrier #2 at train.py:88: started, failed"}));
}

TEST(FlightRecorder, KeepsTheLastCallsOnly) {
  std::vector<FlightRecorder> recorders(2, FlightRecorder(3));
  run_simulated_world(
      {.world = {.world_size = 2}},
      [](RankContext& rank) {
        for (int i = 0; i < 10; ++i) rank.group.barrier({}, kSite)->wait();
      },
      &recorders);
  const json dump = json::parse(recorders[0].to_json());
  ASSERT_EQ(dump.at("entries").size(), 3u);
  EXPECT_EQ(dump.at("entries").at(0).at("record_id"), 7);
  EXPECT_EQ(recorders[0].last_calls(2),
            (std::vector<std::string>{"barrier #9 at train.py:88: completed",
                                      "barrier #10 at train.py:88: completed"}));
}

}  // namespace
}  // namespace ddproof
