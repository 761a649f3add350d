#!/bin/sh
# Every C++ file is as clang-format makes it: format_test.sh CLANG_FORMAT SOURCE_FOLDER.
# Another version of clang-format breaks lines elsewhere, so only the one of ci/packages.txt counts.
case "$("$1" --version 2>/dev/null)" in
  *" version 14."*) ;;
  *) echo "skipped: clang-format 14 is not installed; run ci/bootstrap --all"; exit 77 ;;
esac
cd "$2" || exit 1
find backends cli properties reference simulator tests -name '*.cc' -o -name '*.h' |
  xargs "$1" --dry-run --Werror
