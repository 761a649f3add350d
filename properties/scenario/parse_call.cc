#include "properties/scenario/parse_call.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "backends/api/error.h"
#include "properties/scenario/call_buffers.h"
#include "properties/scenario/elements.h"
#include "properties/scenario/parse.h"

namespace ddproof::scenario {
namespace {

constexpr std::int64_t kCountMax = std::int64_t{1} << 28;
constexpr std::int64_t kVirtualCountMax = std::int64_t{1} << 40;

template <class Value>
std::vector<std::string> names_of(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.emplace_back(to_string(value));
  return names;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> names;
  for (const DType dtype : every_dtype()) names.emplace_back(ElementType(dtype).name());
  return names;
}

std::vector<Op> every_op() {
  std::vector<Op> ops;
  for (int op = 0; op <= static_cast<int>(Op::kMonitoredBarrier); ++op) {
    ops.push_back(static_cast<Op>(op));
  }
  return ops;
}

bool has_data(Op op) { return op != Op::kBarrier && op != Op::kMonitoredBarrier; }

// Whether the call has one buffer, of `count` elements, which may have a layout.
bool has_one_buffer(Op op) {
  return op == Op::kAllReduce || op == Op::kBroadcast || op == Op::kReduce || is_point_to_point(op);
}

// Whether the call's buffers are address space alone. A reduce takes scratch memory.
bool is_virtual(Op op, const StepContext& context) {
  return context.payload == PayloadMode::kSizeOnly && has_one_buffer(op) && op != Op::kReduce;
}

std::int64_t count_max(Op op, const StepContext& context) {
  return is_virtual(op, context) ? kVirtualCountMax : kCountMax;
}

std::vector<std::int64_t> parse_sizes(const JsonNode& node, std::int64_t most) {
  std::vector<std::int64_t> sizes;
  for (const JsonNode& size : node.elements()) sizes.push_back(size.whole(0, most));
  if (sizes.empty() || sizes.size() > Layout::kMaxDimensions) {
    node.fail(
        fmt::format("has {} numbers; allowed: 1 to {}", sizes.size(), Layout::kMaxDimensions));
  }
  return sizes;
}

void parse_layout(CallStep& call, JsonObject& object, std::int64_t most) {
  const auto count = object.find("count");
  if (count) call.count = count->whole(0, most);
  call.layout = Layout(call.count);
  if (!has_one_buffer(call.op)) return;
  const auto shape = object.find("shape");
  const auto strides = object.find("strides");
  if (!shape) {
    if (strides) strides->fail("has no \"shape\" that it belongs to");
    return;
  }
  if (count) count->fail("stands beside \"shape\"; leave out one of them");
  const std::vector<std::int64_t> sizes = parse_sizes(*shape, most);
  const std::vector<std::int64_t> steps =
      strides ? parse_sizes(*strides, most) : std::vector<std::int64_t>();
  try {
    call.layout = strides ? Layout::strided(sizes, steps) : Layout::row_major(sizes);
    call.count = call.layout.count();
    reach(call.layout);
  } catch (const ConfigError& error) {
    shape->fail(std::string("is no layout: ") + error.what());
  }
}

// A number or a list of numbers, each of which the call's type can hold.
std::vector<double> parse_values(const JsonNode& node, DType dtype) {
  std::vector<double> values;
  const auto add = [&](const JsonNode& element) {
    const double value = element.number();
    if (!holds(dtype, value))
      element.refuse(fmt::format("what {} holds", ElementType(dtype).name()));
    values.push_back(value);
  };
  if (!node.is_list()) {
    add(node);
    return values;
  }
  for (const JsonNode& element : node.elements()) add(element);
  if (values.empty()) node.fail("is empty; allowed: a number, or a list that is repeated");
  return values;
}

void require_few_bytes(const CallStep& call, const JsonNode& node, const StepContext& context) {
  const int ranks = context.scenario.size_of(call);
  const std::int64_t parts = has_one_buffer(call.op) ? 1 : ranks + 1;
  const std::int64_t part = has_one_buffer(call.op) ? reach(call.layout) : call.count;
  const auto bytes = static_cast<__int128>(part) * parts * ranks *
                     static_cast<std::int64_t>(ElementType(call.dtype).size());
  const std::int64_t most = is_virtual(call.op, context) ? kVirtualBytesMax : kBufferBytesMax;
  if (bytes <= most) return;
  node.fail(fmt::format("needs {} bytes over all ranks; allowed: {}",
                        static_cast<std::int64_t>(std::min<__int128>(bytes, INT64_MAX)), most));
}

// Refuses what stands for elements that the payload leaves out.
void require_values(const CallStep& call, const JsonNode& node, const StepContext& context) {
  if (has_values(call, context.payload, context.scenario.size_of(call))) return;
  node.fail(
      fmt::format("has no meaning: with payload \"{}\" a call of more than {} bytes has no "
                  "values; leave it out, or use payload \"real\"",
                  payload_names()[static_cast<std::size_t>(context.payload)], kSteeringBytes));
}

const Group& group_of(const CallStep& call, const StepContext& context) {
  return context.scenario.groups[static_cast<std::size_t>(call.group)];
}

[[noreturn]] void refuse_stranger(const JsonNode& node, const Group& group, int rank) {
  node.fail(fmt::format("is for group \"{}\", of which rank {} is no member; its members: {}",
                        group.name, rank, fmt::join(group.ranks, ", ")));
}

bool has_member(const Group& group, int rank) {
  return std::ranges::find(group.ranks, rank) != group.ranks.end();
}

// Every rank that may come to the step is a member.
void parse_group(CallStep& call, JsonObject& object, const StepContext& context) {
  const auto node = object.find("group");
  if (!node) return;
  const std::vector<Group>& groups = context.scenario.groups;
  if (groups.empty()) {
    node->fail(
        fmt::format("is \"{}\", but the scenario has no groups; add \"groups\": {{\"{}\": "
                    "[0, 1]}}",
                    node->text(), node->text()));
  }
  std::vector<std::string> names;
  for (const Group& group : groups) names.push_back(group.name);
  call.group = static_cast<int>(node->choice(names));
  for (const int rank : context.takers) {
    const Group& group = group_of(call, context);
    if (!has_member(group, rank)) refuse_stranger(*node, group, rank);
  }
}

// A rank of the world that makes the call too.
int parse_member(const JsonNode& node, const CallStep& call, const StepContext& context) {
  const auto rank = static_cast<int>(node.whole(0, context.world_size - 1));
  if (call.group >= 0 && !has_member(group_of(call, context), rank)) {
    refuse_stranger(node, group_of(call, context), rank);
  }
  return rank;
}

void parse_data(CallStep& call, JsonObject& object, const StepContext& context) {
  if (const auto dtype = object.find("dtype"))
    call.dtype = every_dtype()[dtype->choice(dtype_names())];
  parse_layout(call, object, count_max(call.op, context));
  require_few_bytes(call, object.node(), context);
  if (call.op != Op::kRecv) {
    if (const auto value = object.find("value")) {
      if (context.payload == PayloadMode::kSizeOnly) require_values(call, *value, context);
      call.value = parse_values(*value, call.dtype);
    }
  }
  if (call.op != Op::kSend) {
    if (const auto expect = object.find("expect")) {
      require_values(call, *expect, context);
      call.expect = parse_values(*expect, call.dtype);
    }
  }
}

}  // namespace

const std::vector<std::string>& operation_names() {
  static const std::vector<std::string> names = names_of(every_op());
  return names;
}

std::optional<Op> find_operation(const std::string& name) {
  const auto found = std::ranges::find(operation_names(), name);
  if (found == operation_names().end()) return std::nullopt;
  return every_op()[static_cast<std::size_t>(found - operation_names().begin())];
}

CallStep parse_call(Op op, JsonObject& object, const StepContext& context) {
  CallStep call{.op = op};
  parse_group(call, object, context);
  if (has_data(op)) parse_data(call, object, context);
  if (has_root(op)) {
    if (call.group >= 0) call.root = group_of(call, context).ranks.front();
    if (const auto root = object.find("root")) call.root = parse_member(*root, call, context);
  }
  if (reduces(op)) {
    if (const auto reduce = object.find("reduce")) {
      call.reduce = every_reduce_op()[reduce->choice(names_of(every_reduce_op()))];
    }
  }
  if (is_point_to_point(op)) {
    const JsonNode peer = object.require(op == Op::kSend ? "to" : "from");
    call.peer = parse_member(peer, call, context);
    if (const auto tag = object.find("tag")) {
      call.tag = static_cast<std::uint32_t>(tag->whole(0, ProcessGroup::kTagMax));
    }
  }
  if (op == Op::kMonitoredBarrier) {
    if (const auto all = object.find("wait_all_ranks")) call.wait_all_ranks = all->boolean();
  }
  if (const auto label = object.find("label")) call.label = label->text();
  if (const auto timeout = object.find("timeout")) call.timeout = timeout->positive_duration();
  call.site = parse_site(object);
  return call;
}

Site parse_site(JsonObject& object) {
  const auto at = object.find("at");
  if (!at) return {.file = "", .line = object.node().line()};
  const std::string text = at->text();
  const auto colon = text.rfind(':');
  Site site;
  if (colon != std::string::npos && colon > 0) {
    site.file = text.substr(0, colon);
    const char* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data() + colon + 1, end, site.line);
    if (parsed.ec == std::errc{} && parsed.ptr == end && site.line > 0) return site;
  }
  at->refuse("a file and a line, as in \"train.py:88\"");
}

std::string describe(const CallStep& call, const StepContext& context) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (reduces(call.op)) add(to_string(call.reduce));
  if (has_data(call.op)) {
    add(fmt::format("{} [{}]", ElementType(call.dtype).name(), call.layout.describe()));
  }
  if (has_root(call.op)) add(fmt::format("root {}", call.root));
  if (is_point_to_point(call.op)) {
    add(fmt::format("{} {}", call.op == Op::kSend ? "to" : "from", call.peer));
    add(fmt::format("tag {}", call.tag));
  }
  if (call.group >= 0) add("group " + group_of(call, context).name);
  if (!call.label.empty()) add(call.label);
  return text;
}

}  // namespace ddproof::scenario
