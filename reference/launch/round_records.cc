#include "reference/launch/round_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "backends/api/error.h"

namespace ddproof {
namespace {

constexpr std::string_view kNoAddress = "-";

// Takes a record apart: words with one blank between them. A round may have thousands of nodes, and
// each of them reads all of it.
class Words {
 public:
  explicit Words(std::string_view record) : record_(record), left_(record) {}

  std::string_view next() { return until(' '); }
  std::string_view rest_of_line() { return until('\n'); }
  bool at_end() const { return left_.empty(); }
  template <class Number>
  Number number() {
    const std::string_view word = next();
    Number value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) refuse();
    return value;
  }

 private:
  std::string_view until(char separator) {
    const std::string_view found = left_.substr(0, left_.find(separator));
    left_.remove_prefix(std::min(left_.size(), found.size() + 1));
    return found;
  }
  [[noreturn]] void refuse() const {
    throw CommError(CommErrorKind::kMismatch,
                    fmt::format("the rendezvous store holds \"{}\", which no agent of this version "
                                "wrote; give the job a store of its own",
                                record_));
  }

  std::string_view record_;
  std::string_view left_;
};

Node node_of(std::string_view record) {
  Words words(record);
  Node node;
  node.id = words.number<int>();
  node.host = words.next();
  node.pid = words.number<std::int64_t>();
  node.local_world_size = words.number<int>();
  node.node_rank = words.number<int>();
  node.address = words.next();
  node.port = words.number<std::uint16_t>();
  if (node.address == kNoAddress) node.address.clear();
  return node;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

int Round::first_rank() const {
  int rank = 0;
  for (int group = 0; group < group_rank; ++group) {
    rank += members[static_cast<std::size_t>(group)].local_world_size;
  }
  return rank;
}

int Round::world_size() const {
  int size = 0;
  for (const Node& member : members) size += member.local_world_size;
  return size;
}

std::string to_record(const Node& node) {
  return fmt::format("{} {} {} {} {} {} {}", node.id, node.host, node.pid, node.local_world_size,
                     node.node_rank,
                     node.address.empty() ? kNoAddress : std::string_view(node.address), node.port);
}

Node parse_node(const std::string& record) { return node_of(record); }

std::string to_record(const RoundEnd& end) {
  return fmt::format("{} {} {}", static_cast<int>(end.kind), end.status, one_line(end.text));
}

RoundEnd parse_round_end(const std::string& record) {
  Words words(record);
  RoundEnd end;
  end.kind = static_cast<RoundEnd::Kind>(words.number<std::uint8_t>());
  end.status = words.number<int>();
  end.text = words.rest_of_line();
  return end;
}

std::string to_record(const RoundOutcome& outcome) {
  if (!outcome.round) {
    return fmt::format("ended {} {}", outcome.end.status, one_line(outcome.end.text));
  }
  std::string record =
      fmt::format("round {} {}", outcome.round->restarts, one_line(outcome.round->reason));
  for (const Node& member : outcome.round->members) record += "\n" + to_record(member);
  return record;
}

RoundOutcome parse_outcome(const std::string& record) {
  Words words(record);
  const bool ended = words.next() == "ended";
  const int number = words.number<int>();
  std::string text(words.rest_of_line());
  if (ended) return {.round = std::nullopt, .end = {number, std::move(text)}};
  Round round{.restarts = number, .reason = std::move(text)};
  while (!words.at_end()) round.members.push_back(node_of(words.rest_of_line()));
  return {.round = std::move(round), .end = {}};
}

std::string describe(const Node& node) { return fmt::format("{} (pid {})", node.host, node.pid); }

std::string lost_text(const Node& node, const std::string& why) {
  return describe(node) + " is lost: " + why;
}

std::string hosts_of(const std::vector<Node>& nodes) {
  constexpr std::size_t kNamedMax = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(nodes.size(), kNamedMax); ++i) {
    text += (i == 0 ? "" : ", ") + nodes[i].host;
  }
  if (nodes.size() > kNamedMax) text += fmt::format(" and {} more", nodes.size() - kNamedMax);
  return text;
}

}  // namespace ddproof
