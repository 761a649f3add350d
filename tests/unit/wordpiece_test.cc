// WordPiece by examples: those of the published tokenizer's own tests, and bad vocabularies.
#include "reference/text/wordpiece.h"

#include <gtest/gtest.h>

#include <span>
#include <string_view>

#include "backends/api/error.h"

namespace ddproof {
namespace {

using Pieces = std::vector<std::string>;

std::vector<std::byte> vocabulary_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

WordPiece with(Pieces vocabulary, bool do_lower_case = true) {
  vocabulary.insert(vocabulary.begin(), "[UNK]");
  return WordPiece(std::move(vocabulary), do_lower_case);
}

TEST(WordPiece, TakesTheLongestPieces) {
  const WordPiece tokenizer = with({"want", "##want", "##ed", "wa", "un", "runn", "##ing"});
  EXPECT_EQ(tokenizer.tokenize(""), Pieces{});
  EXPECT_EQ(tokenizer.tokenize("unwanted running"),
            (Pieces{"un", "##want", "##ed", "runn", "##ing"}));
  EXPECT_EQ(tokenizer.encode("unwanted running"), (std::vector<std::int64_t>{5, 2, 3, 6, 7}));
  EXPECT_EQ(with({"un", "##aff", "##able"}).tokenize("unaffable"),
            (Pieces{"un", "##aff", "##able"}));
}

TEST(WordPiece, AWordThatDoesNotComeOutIsUnknownAsAWhole) {
  const WordPiece tokenizer = with({"want", "##want", "##ed", "wa", "un", "runn", "##ing"});
  EXPECT_EQ(tokenizer.tokenize("unwantedX running"), (Pieces{"[UNK]", "runn", "##ing"}));
  EXPECT_EQ(tokenizer.tokenize("u"), Pieces{"[UNK]"});
}

TEST(WordPiece, LowersAndStripsAccents) {
  const Pieces vocabulary{"un", "##want", "##ed", ",", "runn", "##ing", "low", "##est"};
  EXPECT_EQ(with(vocabulary).tokenize("UNwant\u00E9d,running"),
            (Pieces{"un", "##want", "##ed", ",", "runn", "##ing"}));
  EXPECT_EQ(with({"H\u00E9llo", "hello"}).tokenize("H\u00E9llo"), Pieces{"hello"});
  EXPECT_EQ(with({"H\u00E9llo", "hello"}, false).tokenize("H\u00E9llo"), Pieces{"H\u00E9llo"});
}

TEST(WordPiece, SplitsAtWhiteSpaceAndPunctuation) {
  EXPECT_EQ(with({"hello", "!", "how", "are", "you", "?"}).tokenize(" \tHeLLo!how  \n Are yoU?  "),
            (Pieces{"hello", "!", "how", "are", "you", "?"}));
  EXPECT_EQ(with({"a", "$", "`", "\u3002"}).tokenize("a$`a\u3002"),
            (Pieces{"a", "$", "`", "a", "\u3002"}));
  EXPECT_EQ(with({"a", "b"}).tokenize("a\u00A0b"), (Pieces{"a", "b"}));
}

TEST(WordPiece, CjkCharactersAreWords) {
  EXPECT_EQ(with({"ah", "\u535A", "\u63A8", "zz"}).tokenize("ah\u535A\u63A8zz"),
            (Pieces{"ah", "\u535A", "\u63A8", "zz"}));
}

TEST(WordPiece, LeavesOutControlCharactersAndBytesThatAreNoText) {
  const WordPiece tokenizer = with({"ab"});
  EXPECT_EQ(tokenizer.tokenize(std::string_view("a\0b", 3)), Pieces{"ab"});
  EXPECT_EQ(tokenizer.tokenize("a\u200Bb"), Pieces{"ab"});
  EXPECT_EQ(tokenizer.tokenize("a\xFF"
                               "b"),
            Pieces{"ab"});
}

TEST(WordPiece, WordsOfMoreThanAHundredCharactersAreUnknown) {
  const WordPiece tokenizer = with({"a", "##a"});
  EXPECT_EQ(tokenizer.tokenize(std::string(100, 'a')).size(), 100u);
  EXPECT_EQ(tokenizer.tokenize(std::string(101, 'a')), Pieces{"[UNK]"});
}

TEST(Vocabulary, IdsAreLines) {
  EXPECT_EQ(parse_vocabulary("v", vocabulary_bytes("[PAD]\n[UNK]\r\nthe")),
            (Pieces{"[PAD]", "[UNK]", "the"}));
  EXPECT_EQ(parse_vocabulary("v", vocabulary_bytes("[UNK]\n")), Pieces{"[UNK]"});
}

std::string error_of(std::string_view text) {
  try {
    parse_vocabulary("vocab.txt", vocabulary_bytes(text));
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Vocabulary, RefusesWhatIsNone) {
  EXPECT_EQ(error_of(""), "vocab.txt: found no piece, expected one a line");
  EXPECT_EQ(error_of("[UNK]\n\na"), "vocab.txt: line 2: found no piece, expected one a line");
  EXPECT_EQ(error_of("[UNK]\na\nb\na\n"), "vocab.txt: line 4: found \"a\", which is on line 2 too");
  EXPECT_EQ(error_of("a\nb\n"),
            "vocab.txt: found no [UNK] in 2 lines, expected the piece for unknown words");
}

}  // namespace
}  // namespace ddproof
