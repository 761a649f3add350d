// The include table of DESIGN.md: which folder may include what. Root-relative includes compile
// and link whatever CMake's DEPS say, so only a test can hold the line.
#pragma once

#include "tests/tidy/source_file.h"

namespace ddproof::tidy {

// Every #include "..." of a file must be allowed by the table.
Findings project_includes(const SourceFile& file);

// Every #include <...> must be the standard library's, or a third party's in its own folder.
Findings external_includes(const SourceFile& file);

}  // namespace ddproof::tidy
