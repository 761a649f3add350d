// The shape of files: lengths, opening comments, leftovers, and files that nothing builds.
#pragma once

#include <vector>

#include "tests/tidy/source_file.h"

namespace ddproof::tidy {

inline constexpr int kFileLinesMax = 500;
inline constexpr int kFunctionLinesMax = 70;
inline constexpr int kColumnsMax = 100;
inline constexpr int kRootReadmeLinesMax = 120;

Findings file_length(const SourceFile& file);

// A rough brace matcher for formatted code: a '{' after a parameter list opens a function, and its
// lines count up to the matching '}'. Lambdas and classes inside count as part of it.
Findings function_lengths(const SourceFile& file);

// In characters, not bytes.
Findings line_lengths(const SourceFile& file);

// A header starts with a comment and has #pragma once.
Findings header_opening(const SourceFile& file);

// Marks of unfinished work.
Findings leftovers(const SourceFile& file);

// Every source is named in a CMakeLists.txt of its folder or one above; otherwise it never runs.
Findings unbuilt_sources(const std::vector<SourceFile>& tree);

// There is a README at the root, and it is short.
Findings root_readme(const std::vector<SourceFile>& tree);

// Every top-level folder has a README with the four headings.
Findings folder_readmes(const std::vector<SourceFile>& tree);

}  // namespace ddproof::tidy
