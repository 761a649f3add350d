// BERT's WordPiece tokenizer: text to pieces of a fixed vocabulary.
//
// First words: control characters go, white space and CJK characters separate, with do_lower_case
// letters become small and lose their accents, and punctuation stands alone. Then pieces: the
// longest one of the vocabulary that the word begins with, and so on with what is left, where
// pieces within a word are written with "##" in front; a word that does not come out, or has more
// than 100 characters, is "[UNK]" as a whole.
//
// Source: tokenization.py of google-research/bert (BasicTokenizer, WordpieceTokenizer). Text is
// plain: "[CLS]" in it is three words, and encode() adds nothing. Unicode tables are ICU's.
// Immutable; safe from any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "backends/api/files.h"

namespace ddproof {

// The pieces of a vocab.txt, one a line: a piece's id is the number of its line, from 0.
// Throws DataError naming file, line and expectation when there are none, a line is empty, a piece
// comes twice, or "[UNK]" is missing.
std::vector<std::string> parse_vocabulary(const std::string& path,
                                          const std::vector<std::byte>& bytes);

class WordPiece {
 public:
  // Requires: what parse_vocabulary() promises of a vocabulary.
  WordPiece(std::vector<std::string> vocabulary, bool do_lower_case);

  // `text` is UTF-8; bytes that are none are left out. Requires: less than 2 GiB.
  std::vector<std::string> tokenize(std::string_view text) const;
  // The same pieces as ids.
  std::vector<std::int64_t> encode(std::string_view text) const;

  std::int64_t size() const { return static_cast<std::int64_t>(vocabulary_.size()); }
  // Requires: 0 <= id < size().
  const std::string& piece(std::int64_t id) const {
    return vocabulary_[static_cast<std::size_t>(id)];
  }

 private:
  void add_pieces(const std::u32string& word, std::vector<std::int64_t>& ids) const;

  std::vector<std::string> vocabulary_;
  std::map<std::string, std::int64_t, std::less<>> ids_;
  std::int64_t unknown_ = 0;
  bool do_lower_case_;
};

}  // namespace ddproof
