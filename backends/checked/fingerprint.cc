#include "backends/checked/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/digest.h"
#include "backends/api/list_of.h"
#include "backends/api/text_exchange.h"

namespace ddproof {
namespace {

constexpr std::uint32_t kReservedTagBit = ~ProcessGroup::kTagMax;

// A call of the comparison itself; messages speak of the compared call.
class Channel {
 public:
  Channel(ProcessGroup& group, const Call& call, Duration timeout)
      : group_(group), about_(std::make_shared<const Call>(call)), timeout_(timeout) {}

  void run(Call call) {
    call.timeout = timeout_;
    call.site = about_->site;
    call.on_behalf_of = about_;
    group_.submit(std::move(call))->wait();
  }
  void all_reduce_max(std::span<std::uint64_t> values) {
    const Buffer data = Buffer::of(values);
    run({.op = Op::kAllReduce, .reduce_op = ReduceOp::kMax, .input = data, .output = data});
  }
  void all_gather(std::span<std::uint8_t> mine, std::span<std::uint8_t> all) {
    run({.op = Op::kAllGather, .input = Buffer::of(mine), .output = Buffer::of(all)});
  }
  void send(std::span<char> data) {
    run({.op = Op::kSend, .peer = about_->peer, .tag = tag(), .input = bytes(data)});
  }
  void recv(std::span<char> data) {
    run({.op = Op::kRecv, .peer = about_->peer, .tag = tag(), .output = bytes(data)});
  }

 private:
  static Buffer bytes(std::span<char> data) {
    return Buffer(data.data(), DType::kUint8, Layout(static_cast<std::int64_t>(data.size())));
  }
  std::uint32_t tag() const { return about_->tag | kReservedTagBit; }

  ProcessGroup& group_;
  std::shared_ptr<const Call> about_;
  Duration timeout_;
};

// A rank's call as the others get it: what is compared, and the line where that leaves it out, in
// so many digits that the size of a message does not depend on the line.
constexpr std::size_t kLineDigits = 10;

std::string text_for_others(const Call& call) {
  std::string text = call.fingerprint();
  if (call.site.is_line_compared) return text;
  const std::string line = std::to_string(call.site.line);
  return text + "\n" + std::string(kLineDigits - line.size(), '0') + line;
}

// Where the compared part ends. It ends with the name of a file, so a label cannot look like this.
std::size_t end_of_compared(const std::string& text) {
  const std::size_t tail = kLineDigits + 1;
  const bool has_line = text.size() > tail && text[text.size() - tail] == '\n';
  return has_line ? text.size() - tail : text.size();
}

std::string compared_part(const std::string& text) { return text.substr(0, end_of_compared(text)); }

// As Call::describe().
std::string shown(const std::string& text) {
  const std::size_t end = end_of_compared(text);
  if (end == text.size()) return text;
  const auto digit = text.find_first_not_of('0', end + 1);
  return text.substr(0, end) + ":" + (digit == std::string::npos ? "0" : text.substr(digit));
}

// Every rank's text_for_others().
std::vector<std::string> gather_texts(Channel& channel, const std::string& mine, int size) {
  std::array<std::uint64_t, 1> longest{mine.size()};
  channel.all_reduce_max(longest);
  // All the same: that is told as damage.
  if (!is_text_width(longest[0], mine.size())) return {static_cast<std::size_t>(size), mine};
  const auto width = static_cast<std::size_t>(longest[0]);
  std::vector<std::uint8_t> padded = pad_text(mine, width);
  std::vector<std::uint8_t> all(width * static_cast<std::size_t>(size));
  channel.all_gather(padded, all);
  return split_texts(all, width, size);
}

// The ranks of each text, by their lowest rank.
using Sides = std::vector<std::pair<std::string, std::vector<int>>>;

template <class TextOf>
Sides divide_ranks(const std::vector<std::string>& texts, const TextOf& text_of) {
  Sides sides;
  for (int rank = 0; rank < static_cast<int>(texts.size()); ++rank) {
    const std::string text = text_of(texts[static_cast<std::size_t>(rank)]);
    const auto side = std::ranges::find(sides, text, &Sides::value_type::first);
    if (side == sides.end()) {
      sides.push_back({text, {rank}});
    } else {
      side->second.push_back(rank);
    }
  }
  return sides;
}

// The ranks that are not in the majority; empty when there is none.
std::vector<int> odd_ones(const Sides& sides, int size) {
  std::vector<int> odd;
  for (const auto& [text, ranks] : sides) {
    if (2 * static_cast<int>(ranks.size()) <= size) continue;
    for (int rank = 0; rank < size; ++rank) {
      if (!std::ranges::binary_search(ranks, rank)) odd.push_back(rank);
    }
  }
  return odd;
}

[[noreturn]] void throw_mismatch(const ProcessGroup& group, const Call& call,
                                 const std::vector<std::string>& texts) {
  const Sides sides = divide_ranks(texts, compared_part);
  const std::vector<int> odd = odd_ones(sides, group.size());
  std::string message = group.who() + " " + call.describe() + ": the ranks made different calls: ";
  for (const auto& [text, ranks] : divide_ranks(texts, shown)) {
    message += list_of(ranks) + ": " + text + "; ";
  }
  if (!odd.empty()) {
    message += list_of(odd) + " differ" + (odd.size() == 1 ? "s" : "") + " from the majority; ";
  }
  message += sides.size() > 1
                 ? "make every rank call the same, in the same order"
                 : "these are the same, so a message of the comparison was damaged on its way";
  throw CommError(CommErrorKind::kMismatch, message, odd);
}

// What both ends of a message must agree on.
std::string payload_text(const Call& call) {
  const ConstBuffer data = call.op == Op::kSend ? call.input : ConstBuffer(call.output);
  return std::string(data.type().name()) + " [" + data.layout().describe() + "] tag " +
         std::to_string(call.tag) + " " + call.label;
}

struct PeerRecord {
  std::uint64_t digest = 0;
  char text[248] = {};  // cut off when longer, and always ends with a zero
};

std::span<char> bytes_of(PeerRecord& record) {
  return {reinterpret_cast<char*>(&record), sizeof(record)};
}

}  // namespace

void compare_collective(ProcessGroup& group, const Call& call, Duration timeout) {
  Channel channel(group, call, timeout);
  TextComparison comparison(call.fingerprint());
  channel.all_reduce_max(comparison.words);
  if (comparison.all_equal()) return;
  throw_mismatch(group, call, gather_texts(channel, text_for_others(call), group.size()));
}

void compare_with_peer(ProcessGroup& group, const Call& call, Duration timeout) {
  Channel channel(group, call, timeout);
  PeerRecord mine{digest_of(payload_text(call)), {}};
  call.describe().copy(mine.text, sizeof(mine.text) - 1);
  PeerRecord theirs;
  if (call.op == Op::kSend) {
    channel.send(bytes_of(mine));
    channel.recv(bytes_of(theirs));
  } else {
    channel.recv(bytes_of(theirs));
    channel.send(bytes_of(mine));
  }
  if (mine.digest == theirs.digest) return;
  theirs.text[sizeof(theirs.text) - 1] = '\0';
  group.abort();
  throw CommError(CommErrorKind::kMismatch, group.who() + " " + call.describe() +
                                                ": does not fit rank " + std::to_string(call.peer) +
                                                "'s " + theirs.text +
                                                "; give both the same count, type, tag and label");
}

}  // namespace ddproof
