#include "properties/scenario/complaint.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

namespace ddproof::scenario {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// One rank or several, one millisecond or a second: no difference. Nor who waits behind whom, which
// depends on how many ranks there are. Empty: no word of its own.
std::string_view plain(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 24> kSame = {
      {{"ranks", "rank"}, {"wait", "waits"}, {"have", "has"},   {"are", "is"},   {"were", "was"},
       {"and", ""},       {"all", ""},       {"others", ""},    {"more", ""},    {"ns", ""},
       {"us", ""},        {"ms", ""},        {"s", ""},         {"min", ""},     {"h", ""},
       {"behind", ""},    {"it", ""},        {"them", ""},      {"besides", ""}, {"any", ""},
       {"of", ""},        {"called", ""},    {"something", ""}, {"else", ""}}};
  const auto* same =
      std::ranges::find(kSame, word, &std::pair<std::string_view, std::string_view>::first);
  return same == kSame.end() ? word : same->second;
}

void add_words(std::string_view text, std::set<std::string>& words) {
  for (std::size_t begin = 0; begin < text.size();) {
    if (!is_word(text[begin])) {
      ++begin;
      continue;
    }
    std::size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = plain(text.substr(begin, end - begin));
    if (!word.empty() && !is_digit(word.front())) words.emplace(word);
    begin = end;
  }
}

}  // namespace

Complaint complaint_of(const Run& run) {
  Complaint complaint{.outcome = run.verdict.outcome};
  // "expected passes, saw", "expected the culprits", "the fault "crash": numbers come later.
  std::size_t end = 0;
  for (int word = 0; word < 3 && end != std::string::npos; ++word) {
    end = run.wrong.find(' ', end + 1);
  }
  complaint.wrong = run.wrong.substr(0, end);
  complaint.is_abridged = run.verdict.text.find(" more") != std::string::npos;
  add_words(run.verdict.text, complaint.words);
  return complaint;
}

bool is_same(const Complaint& original, const Complaint& complaint) {
  if (complaint.outcome != original.outcome || complaint.wrong != original.wrong) return false;
  // Which calls ranks have come to when messages are lost depends on how many they are.
  if (original.words.contains("lost")) {
    return complaint.words.contains("lost") &&
           std::ranges::includes(original.words, complaint.words);
  }
  if (!original.is_abridged) return complaint.words == original.words;
  // What ranks came to is never cut off, what they wait in may be.
  for (const char* fate : {"returned", "crashed", "hangs", "failed"}) {
    if (complaint.words.contains(fate) != original.words.contains(fate)) return false;
  }
  return std::ranges::includes(complaint.words, original.words);
}

}  // namespace ddproof::scenario
