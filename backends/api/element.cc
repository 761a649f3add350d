#include "backends/api/element.h"

#include <array>

namespace ddproof {
namespace {

struct Entry {
  std::string_view name;
  std::size_t size;
};

constexpr std::array<Entry, 10> kEntries{{{"int8", 1},
                                          {"uint8", 1},
                                          {"int32", 4},
                                          {"uint32", 4},
                                          {"int64", 8},
                                          {"uint64", 8},
                                          {"float16", 2},
                                          {"bfloat16", 2},
                                          {"float32", 4},
                                          {"float64", 8}}};

}  // namespace

std::size_t ElementType::size() const {
  return custom_ != nullptr ? custom_->size : kEntries[static_cast<std::size_t>(dtype_)].size;
}

std::string_view ElementType::name() const {
  return custom_ != nullptr ? custom_->name : kEntries[static_cast<std::size_t>(dtype_)].name;
}

}  // namespace ddproof
