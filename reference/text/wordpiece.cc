#include "reference/text/wordpiece.h"

#include <fmt/format.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/api/check.h"
#include "backends/api/error.h"

namespace ddproof {
namespace {

constexpr std::string_view kUnknown = "[UNK]";
constexpr std::size_t kLongestWord = 100;

bool is_white_space(char32_t c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' ||
         u_charType(static_cast<UChar32>(c)) == U_SPACE_SEPARATOR;
}

bool is_left_out(char32_t c) {
  if (c == 0 || c == 0xFFFD) return true;
  if (is_white_space(c)) return false;
  const auto type = u_charType(static_cast<UChar32>(c));
  return type == U_CONTROL_CHAR || type == U_FORMAT_CHAR;
}

// ASCII's symbols count too, which Unicode does not call punctuation: ^, $ and `.
bool is_punctuation(char32_t c) {
  const bool is_ascii_symbol = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) ||
                               (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return is_ascii_symbol || u_ispunct(static_cast<UChar32>(c)) != 0;
}

// The blocks of CJK ideographs: words of such a text are not separated.
bool is_cjk(char32_t c) {
  constexpr std::array<std::pair<char32_t, char32_t>, 8> kBlocks{{{0x4E00, 0x9FFF},
                                                                  {0x3400, 0x4DBF},
                                                                  {0x20000, 0x2A6DF},
                                                                  {0x2A700, 0x2B73F},
                                                                  {0x2B740, 0x2B81F},
                                                                  {0x2B820, 0x2CEAF},
                                                                  {0xF900, 0xFAFF},
                                                                  {0x2F800, 0x2FA1F}}};
  return std::ranges::any_of(kBlocks, [c](auto b) { return c >= b.first && c <= b.second; });
}

std::u32string to_characters(const icu::UnicodeString& text) {
  std::u32string characters;
  for (int32_t at = 0; at < text.length(); at = text.moveIndex32(at, 1)) {
    characters += static_cast<char32_t>(text.char32At(at));
  }
  return characters;
}

icu::UnicodeString to_unicode(const std::u32string& characters) {
  icu::UnicodeString text;
  for (const char32_t c : characters) text.append(static_cast<UChar32>(c));
  return text;
}

std::string to_utf8(std::u32string_view characters) {
  std::string bytes;
  return to_unicode(std::u32string(characters)).toUTF8String(bytes);
}

std::u32string lower_without_accents(const std::u32string& word) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* decompose = icu::Normalizer2::getNFDInstance(status);
  icu::UnicodeString text = to_unicode(word);
  text = decompose->normalize(text.toLower(icu::Locale::getRoot()), status);
  DDPROOF_CHECK(U_SUCCESS(status));
  std::u32string plain = to_characters(text);
  std::erase_if(
      plain, [](char32_t c) { return u_charType(static_cast<UChar32>(c)) == U_NON_SPACING_MARK; });
  return plain;
}

// Between white space; a CJK character is a word of its own.
std::vector<std::u32string> split(const std::u32string& text) {
  std::vector<std::u32string> words(1);
  for (const char32_t c : text) {
    if (is_left_out(c)) continue;
    if (is_white_space(c)) {
      words.emplace_back();
    } else if (is_cjk(c)) {
      words.emplace_back(1, c);
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

std::vector<std::u32string> split_punctuation(const std::u32string& word) {
  std::vector<std::u32string> words(1);
  for (const char32_t c : word) {
    if (is_punctuation(c)) {
      words.emplace_back(1, c);
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

std::vector<std::string> parse_vocabulary(const std::string& path,
                                          const std::vector<std::byte>& bytes) {
  std::vector<std::string> pieces;
  std::map<std::string, std::size_t> lines;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string piece(text.substr(begin, end - begin));
    if (piece.ends_with('\r')) piece.pop_back();
    begin = end + 1;
    const std::size_t line = pieces.size() + 1;
    if (piece.empty()) {
      throw DataError(fmt::format("{}: line {}: found no piece, expected one a line", path, line));
    }
    const auto [first, is_new] = lines.emplace(piece, line);
    if (!is_new) {
      throw DataError(fmt::format("{}: line {}: found \"{}\", which is on line {} too", path, line,
                                  piece, first->second));
    }
    pieces.push_back(std::move(piece));
  }
  if (pieces.empty()) throw DataError(path + ": found no piece, expected one a line");
  if (!lines.contains(std::string(kUnknown))) {
    throw DataError(fmt::format("{}: found no {} in {} lines, expected the piece for unknown words",
                                path, kUnknown, pieces.size()));
  }
  return pieces;
}

WordPiece::WordPiece(std::vector<std::string> vocabulary, bool do_lower_case)
    : vocabulary_(std::move(vocabulary)), do_lower_case_(do_lower_case) {
  std::int64_t id = 0;
  for (const std::string& piece : vocabulary_) ids_.emplace(piece, id++);
  const auto unknown = ids_.find(kUnknown);
  DDPROOF_CHECK(unknown != ids_.end());
  unknown_ = unknown->second;
}

// Greedy, longest first. A word that does not come out leaves no piece but [UNK].
void WordPiece::add_pieces(const std::u32string& word, std::vector<std::int64_t>& ids) const {
  const std::size_t before = ids.size();
  std::size_t begin = 0;
  while (begin < word.size() && word.size() <= kLongestWord) {
    std::size_t end = word.size();
    auto found = ids_.end();
    for (; end > begin && found == ids_.end(); --end) {
      const std::string piece = to_utf8(std::u32string_view(word).substr(begin, end - begin));
      found = ids_.find(begin > 0 ? "##" + piece : piece);
    }
    if (found == ids_.end()) break;
    ids.push_back(found->second);
    begin = end + 1;  // the loop took one off after it had found
  }
  if (begin >= word.size()) return;
  ids.resize(before);
  ids.push_back(unknown_);
}

std::vector<std::int64_t> WordPiece::encode(std::string_view text) const {
  const icu::StringPiece bytes(text.data(), static_cast<int32_t>(text.size()));
  std::vector<std::int64_t> ids;
  for (const std::u32string& word : split(to_characters(icu::UnicodeString::fromUTF8(bytes)))) {
    for (const std::u32string& part :
         split_punctuation(do_lower_case_ ? lower_without_accents(word) : word)) {
      if (!part.empty()) add_pieces(part, ids);
    }
  }
  return ids;
}

std::vector<std::string> WordPiece::tokenize(std::string_view text) const {
  std::vector<std::string> pieces;
  for (const std::int64_t id : encode(text)) pieces.push_back(piece(id));
  return pieces;
}

}  // namespace ddproof
